// libFuzzer: any bytes are read as an access stream, as text, in the binary form, and as what the
// content of a file says (an Accel-Sim trace among others); what a parser accepts must come back
// from both forms as it was.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "demarc/sim/memory/access_stream.hpp"

namespace {

using namespace demarc::sim::memory;

void comes_back(const PackedLaunch& launch) {
  const std::string text = access_text(launch);
  const std::string binary = access_binary(launch);
  const auto from_text = parse_access_text(text, "printed");
  const auto from_binary = parse_access_binary(binary, "written");
  if (!from_text || !from_binary) std::abort();
  if (access_text(**from_text) != text || access_binary(**from_binary) != binary) std::abort();
  if (access_text(**from_binary) != text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto launch = parse_access_text(bytes, "fuzz")) comes_back(**launch);
  if (const auto launch = parse_access_binary(bytes, "fuzz")) comes_back(**launch);
  const int file = ::memfd_create("stream", 0);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  if (const auto launch = read_access_stream("/proc/self/fd/" + std::to_string(file)))
    comes_back(**launch);
  ::close(file);
  return 0;
}
