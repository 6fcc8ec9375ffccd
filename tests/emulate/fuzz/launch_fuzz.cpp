// libFuzzer: launch files, and the launch and a variable of a command line. What is accepted must
// be a launch that validate() accepts, with as many addresses as buffers.
#include <cstdlib>
#include <string_view>

#include "demarc/launch/launch.hpp"

namespace {

void expect_whole(const demarc::Result<demarc::gpu::Launch>& launch) {
  if (!launch) {
    if (launch.error().message.empty()) std::abort();
    return;
  }
  if (!demarc::gpu::validate(*launch) ||
      demarc::gpu::default_addresses(*launch).size() != launch->buffers.size())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_whole(demarc::gpu::parse_launch_json(text, "fuzz.json"));
  demarc::gpu::LaunchText line;
  line.ptx = "k.ptx";
  const std::size_t cut = text.find('\n');
  line.grid = "4," + std::string(text.substr(0, std::min<std::size_t>(cut, 20)));
  line.arguments = std::string(cut == std::string_view::npos ? text : text.substr(cut + 1));
  expect_whole(demarc::gpu::parse_launch(line));
  const auto variable = demarc::gpu::parse_variable(text.substr(0, cut));
  if (variable ? variable->name.empty() : variable.error().message.empty()) std::abort();
  return 0;
}
