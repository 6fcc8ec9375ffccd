// What --device takes: a card, a simulated device or a planted model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "demarc/base/result.hpp"

namespace demarc::gpu {

// "cuda:0", also "cuda"
struct CardRef {
  std::uint32_t index = 0;  // ordinal of the card
};
// "sim:h100-sxm", "sim:my.json"
struct SimulatedRef {
  std::string name;  // for find_device()
};
// "planted:h100": a model whose truth is known
struct PlantedRef {
  std::string name;
};
using DeviceRef = std::variant<CardRef, SimulatedRef, PlantedRef>;
using GpuRef = std::variant<CardRef, SimulatedRef>;  // where no model will do

// Errors name `option` with its value, and say `instead`, or what is a GPU.
[[nodiscard]] Result<DeviceRef> parse_device_ref(std::string_view text,
                                                 std::string_view option = "--device",
                                                 std::string_view instead = {});
[[nodiscard]] Result<GpuRef> parse_gpu_ref(std::string_view text);
// As parse_device_ref() reads it.
[[nodiscard]] std::string to_string(const DeviceRef& ref);

// Where only one kind will do; for others the error says `instead`.
template <class Kind>
[[nodiscard]] Result<Kind> parse_ref_as(std::string_view text, std::string_view instead,
                                        std::string_view option = "--device") {
  DEMARC_TRY(DeviceRef ref, parse_device_ref(text, option, instead));
  if (auto* wanted = std::get_if<Kind>(&ref)) return std::move(*wanted);
  return invalid_input("{} {}: {}", option, text, instead);
}

}  // namespace demarc::gpu
