// Fills the window before the first code runs that needs it.
#include "calls/window_code.hpp"

namespace demarc::cuda {

Result<void> WindowCode::admit(const std::string& why) {
  if (admitted()) return {};
  if (means_.use == WindowUse::never)
    return tl::unexpected(Error{ErrorKind::missing_capability, why});
  if (auto shown = means_.show(); !shown) {
    return tl::unexpected(Error{shown.error().kind, fmt::format("{}; and as it is it cannot run in "
                                                                "the tenant's colours: {}",
                                                                why, shown.error().message)});
  }
  if (!admitted_.exchange(true, std::memory_order_acq_rel)) {
    tell_(fmt::format("{}: it runs as it is, at addresses that the page table colours", why));
  }
  return {};
}

Result<void> WindowCode::admit_code(const std::string& why) {
  DEMARC_CHECK(admit(why));
  record_.counter(Recorded::window_code, why).fetch_add(1);
  return {};
}

bool WindowCode::launches(CuFunction function) {
  if (!admitted()) return false;
  launches_.note(function);
  return true;
}

}  // namespace demarc::cuda
