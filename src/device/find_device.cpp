// Finds device descriptions by name, by file or by card.
#include "builtin.hpp"
#include "demarc/base/near_names.hpp"
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
  return invalid_input("there is no device '{}'{}; a file's name ends in .json", name,
                       did_you_mean(name, known, "demarc list devices"));
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

}  // namespace demarc::gpu
