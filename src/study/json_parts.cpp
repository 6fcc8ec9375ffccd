// Writes pieces of JSON that results of several verbs have in common.
#include "json_parts.hpp"

#include <cmath>

#include "demarc/base/version.hpp"

namespace demarc::study {

Json end_json(double end) {
  return std::isfinite(end) ? Json(end) : Json(nullptr);
}

Json ends_json(double low, double high) {
  return Json::array({end_json(low), end_json(high)});
}

Json estimate_json(const Estimate& e) {
  return {{"value", e.value}, {"low", end_json(e.low)}, {"high", end_json(e.high)}};
}

std::string program_name() {
  return fmt::format("demarc {}", version());
}

Json context_json(const DeviceContext& device, const std::string& command) {
  Json settings = Json::object();
  for (const auto& [option, value] : device.settings) settings[option] = value;
  return {
      {"program", program_name()}, {"revision", revision()},      {"command", command},
      {"device", device.device},   {"device_name", device.name},  {"driver", device.driver},
      {"sms", device.sms},         {"measured", device.measured}, {"settings", std::move(settings)},
      {"notes", device.notes},     {"model", device.model}};
}

}  // namespace demarc::study
