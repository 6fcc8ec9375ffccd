// The special registers that machine code reads with S2R and S2UR. PTX names some of them, and the
// assembler chooses others for it: %warpid is a field of register 3. The numbers were read off
// what ptxas makes of PTX for sm_75 to sm_90.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

enum class SpecialRegister : std::uint8_t {
  lane_id = 0x00,     // %laneid
  virtual_id = 0x03,  // %warpid in bits 8 to 14, the number of the SM in 20 to 28
  launch_sm = 0x43,   // %smid
};

// Has each instruction of `cubin` that reads `from` read `to`, and returns how many there are.
// invalid_input if it is not a cubin, or one for a card before sm_70: only later ones have
// instructions of 16 bytes. `name` stands in the messages.
[[nodiscard]] Result<std::size_t> replace_special_register(std::string& cubin, SpecialRegister from,
                                                           SpecialRegister to,
                                                           std::string_view name);

}  // namespace demarc::fatbin
