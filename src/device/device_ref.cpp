// Reads and writes what --device takes.
#include "demarc/device/device_ref.hpp"

#include "demarc/base/numbers.hpp"
#include "demarc/device/device.hpp"

namespace demarc::gpu {
namespace {

constexpr std::string_view card_word = "cuda";
constexpr std::string_view simulated_word = "sim";
constexpr std::string_view planted_word = "planted";

tl::unexpected<Error> no_gpu(std::string_view text, std::string_view option) {
  return invalid_input(
      "{} {}: write cuda:N for a real GPU or sim:NAME for a simulated one; demarc list devices "
      "shows the names",
      option, text);
}

std::string word_of(const CardRef& card) {
  return fmt::format("{}:{}", card_word, card.index);
}
std::string word_of(const SimulatedRef& simulated) {
  return fmt::format("{}:{}", simulated_word, simulated.name);
}
std::string word_of(const PlantedRef& planted) {
  return fmt::format("{}:{}", planted_word, planted.name);
}

}  // namespace

Result<DeviceRef> parse_device_ref(std::string_view text, std::string_view option,
                                   std::string_view instead) {
  const auto colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (kind == card_word) {
    if (colon == std::string_view::npos) return CardRef{};
    DEMARC_TRY(const std::uint64_t index, parse_u64(rest, fmt::format("{} cuda:N", option)));
    if (index > 1023) return invalid_input("{} {}: no machine has that many GPUs", option, text);
    return CardRef{static_cast<std::uint32_t>(index)};
  }
  if (kind == simulated_word && !rest.empty()) return SimulatedRef{std::string(rest)};
  if (kind == planted_word && !rest.empty()) return PlantedRef{std::string(rest)};
  if (instead.empty()) return no_gpu(text, option);
  return invalid_input("{} {}: {}", option, text, instead);
}

Result<GpuRef> parse_gpu_ref(std::string_view text) {
  DEMARC_TRY(DeviceRef ref, parse_device_ref(text));
  if (const auto* card = std::get_if<CardRef>(&ref)) return *card;
  if (auto* simulated = std::get_if<SimulatedRef>(&ref)) return std::move(*simulated);
  return no_gpu(text, "--device");
}

std::string to_string(const DeviceRef& ref) {
  return std::visit([](const auto& one) { return word_of(one); }, ref);
}

}  // namespace demarc::gpu
