// libFuzzer: any bytes are read as a machine of `translate --device`; one that is accepted is
// within its limits and comes back from its own file as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "demarc/sim/translation/settings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace demarc::sim::translation;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto settings = parse_machine(bytes, "fuzz");
  if (!settings) return 0;
  if (!validate(*settings)) std::abort();
  const std::string text = machine_json(*settings, "fuzz");
  const auto back = parse_machine(text, "printed");
  if (!back || machine_json(*back, "fuzz") != text) std::abort();
  return 0;
}
