// Counts misses in the control block of the program.
#include "demarc/guest/slo_misses.hpp"

#include <cstdlib>

#include "demarc/guest/control.hpp"

namespace demarc::cuda {
namespace {

Result<Control> open_of_lease() {
  const char* tenant = std::getenv(tenant_variable);
  const char* control = std::getenv(control_variable);
  if (tenant == nullptr || *tenant == '\0' || control == nullptr) {
    return missing_capability(
        "an SLO miss counts for a tenant, but this process has no lease: start the program with "
        "demarc exec --tenant NAME");
  }
  return Control::open(control);
}

}  // namespace

Result<void> count_slo_miss() {
  static const Result<Control> control = open_of_lease();
  if (!control) return tl::unexpected(control.error());
  control->block().slo_misses.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace demarc::cuda
