// libFuzzer: heads of .npy files. What is read is written and read again as the same.
#include <cstdlib>

#include "demarc/base/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto header = demarc::parse_npy_header(bytes, "fuzz.npy");
  if (!header) {
    if (!header.error().message.starts_with("fuzz.npy: ")) std::abort();
    return 0;
  }
  if (header->header_bytes > size) std::abort();
  const std::string written = demarc::npy_header(header->type, header->shape);
  if (written.size() > 65535) return 0;  // more dimensions than version 1.0 has room for
  const auto again = demarc::parse_npy_header(written, "again.npy");
  if (!again || again->type != header->type || again->shape != header->shape ||
      again->data_bytes != header->data_bytes || again->header_bytes != written.size())
    std::abort();
  return 0;
}
