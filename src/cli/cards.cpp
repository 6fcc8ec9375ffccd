// What verbs find out about a real card before they use it: whether there is a driver, and what
// other programs have of the card.
#include "demarc/device/device_ref.hpp"
#include "demarc/driver/driver.hpp"
#include "demarc/exec/beside_others.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

std::optional<gpu::CardRef> card_of(std::string_view device) {
  const auto ref = gpu::parse_device_ref(device);
  const auto* card = ref ? std::get_if<gpu::CardRef>(&*ref) : nullptr;
  return card == nullptr ? std::nullopt : std::optional(*card);
}

}  // namespace

Result<void> check_driver(std::string_view device) {
  if (!card_of(device)) return {};
  const auto version = cuda::Driver::peek_version();
  if (version) return {};
  return missing_capability(
      "{}; without one, use a simulated GPU, such as --device sim:h100-sxm (demarc list devices "
      "shows the names)",
      version.error().message);
}

Result<void> tell_of_others(std::string verb, std::string_view device) {
  const auto card = card_of(device);
  if (!card) return {};
  DEMARC_TRY(const std::string others, cuda::what_others_have(card->index));
  if (!others.empty()) tell_of(std::move(verb))(others);
  return {};
}

}  // namespace demarc::cli
