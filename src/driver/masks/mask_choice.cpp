// The rules by which one of several wanted masks is chosen.
#include "masks/mask_choice.hpp"

namespace demarc::cuda {

MaskChoice choose_mask(const WantedMasks& wanted) {
  using Kind = MaskChoice::Kind;
  const bool driver_wins =
      wanted.driver != nullptr && (wanted.own == nullptr || wanted.own_of_process);
  const HardwareMask* finest = driver_wins ? wanted.driver : wanted.own;
  if (wanted.ceiling == nullptr) {
    if (finest == nullptr) return {};
    return {driver_wins ? Kind::keep : Kind::write, *finest};
  }
  if (finest == nullptr) return {Kind::write, *wanted.ceiling};
  const HardwareMask both = *finest | *wanted.ceiling;
  if (both.everything()) return {Kind::empty, *wanted.ceiling};
  return {Kind::write, both};
}

}  // namespace demarc::cuda
