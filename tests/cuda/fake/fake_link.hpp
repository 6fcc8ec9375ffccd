// Machine code of the stand-in: an ELF file with the PTX that it was made of, and in its code one
// instruction of the hardware for each reading of %smid.
#pragma once

#include <optional>
#include <string>

#include "fake_state.hpp"

namespace demarc::fake {

[[nodiscard]] std::string machine_code_of(const FakeConfig& config, const std::string& ptx);

// What such code says of itself; nothing for all other bytes.
struct FakeCode {
  std::string ptx;
  FakeSmReading reading;
};
[[nodiscard]] std::optional<FakeCode> code_in(const char* image);

}  // namespace demarc::fake
