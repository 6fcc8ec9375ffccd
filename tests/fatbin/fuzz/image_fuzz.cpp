// libFuzzer: any bytes are taken for device code and for a program that holds some.
#include <cstddef>
#include <cstdint>

#include "everything.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  demarc::fatbin::test::do_everything({reinterpret_cast<const char*>(data), size});
  return 0;
}
