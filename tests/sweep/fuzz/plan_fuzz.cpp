// A sweep file that is read is read again from its own text, with the same points.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "demarc/sweep/plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using demarc::sweep::Plan;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("files") != std::string_view::npos) return 0;  // of this machine
  const auto plan = Plan::parse(text, "fuzz", {});
  if (!plan) return 0;
  const auto again = Plan::parse(plan->text(), "again", {});
  if (!again || again->size() != plan->size()) std::abort();
  for (const std::uint64_t index : {std::uint64_t{0}, plan->size() / 2, plan->size() - 1}) {
    const auto one = plan->point(index);
    const auto other = again->point(index);
    if (one.has_value() != other.has_value()) std::abort();
    if (one && one->arguments != other->arguments) std::abort();
  }
  return 0;
}
