// Finds device descriptions by name, by file or by card, and reads --device.
#include "builtin.hpp"
#include "demarc/base/near_names.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"
#include "demarc/device/device.hpp"

namespace demarc::gpu {

std::vector<std::string> builtin_device_names() {
  std::vector<std::string> names;
  for (const NamedText& device : builtin_devices()) names.emplace_back(device.name);
  return names;
}

Result<Device> find_device(std::string_view name) {
  if (name.find('/') != std::string_view::npos || name.ends_with(".json")) {
    return read_device(std::filesystem::path(name));
  }
  for (const NamedText& device : builtin_devices()) {
    if (device.name == name) return parse_device(device.text, fmt::format("{}.json", name));
  }
  const auto known = builtin_device_names();
  return invalid_input("there is no device '{}'; known are {}, or give a file ending in .json{}",
                       name, joined(known, ", "), did_you_mean(name, known));
}

Result<Device> describe_card(std::string_view card, std::string_view description) {
  if (!description.empty()) return find_device(description);
  for (const std::string& name : builtin_device_names()) {
    DEMARC_TRY(Device device, find_device(name));
    if (device.name == card) return device;
  }
  return missing_capability(
      "no description of '{}' is built in, so its colours are unknown; demarc probe memory -o FILE "
      "writes a description",
      card);
}

Result<DeviceRef> parse_device_ref(std::string_view text) {
  const auto colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  DeviceRef ref;
  if (kind == "cuda") {
    ref.kind = DeviceRef::Kind::cuda;
    if (colon == std::string_view::npos) return ref;
    DEMARC_TRY(const std::uint64_t index, parse_u64(rest, "--device cuda:N"));
    if (index > 1023) return invalid_input("--device {}: no machine has that many GPUs", text);
    ref.index = static_cast<std::uint32_t>(index);
    return ref;
  }
  if (kind == "sim" && !rest.empty()) {
    ref.kind = DeviceRef::Kind::simulated;
    ref.name = std::string(rest);
    return ref;
  }
  return invalid_input(
      "--device {}: write cuda:N for a real GPU or sim:NAME for a simulated one ({})", text,
      joined(builtin_device_names(), ", "));
}

}  // namespace demarc::gpu
