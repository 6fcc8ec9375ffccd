// Machine code of probe kernels that learns from the hardware on which SM it runs. In a client of
// MPS, %smid counts the SMs that a launch may use and does not name them. A register that no PTX
// names whole does: on an H200 its bits 20 to 28 were the number of the SM, inside MPS and outside,
// under every mask that was tried (docs/measurements/sm-numbers.md). Bit 29 is set in launches of
// such a client that may not use all SMs.
#pragma once

#include <string>

#include "demarc/driver/launch.hpp"

namespace demarc::cuda {

inline constexpr std::uint32_t sm_number_bit = 20;  // the first of the register's bits for it
inline constexpr std::uint32_t sm_number_bits = 9;
// A kernel that counts by these numbers needs as many counters.
inline constexpr std::uint32_t max_named_sms = 1U << sm_number_bits;

// `ptx` made to machine code, where what %smid gave is the number of the SM on the card.
// invalid_input if `ptx` reads %smid other than by `mov.u32 %r, %smid;`; check_failed if its
// machine code does not read it where it is looked for.
[[nodiscard]] Result<std::string> code_that_names_sms(const GpuPointer& gpu, std::string_view ptx,
                                                      const std::string& source);

// The first half of it: the number is cut out of the register after each reading.
[[nodiscard]] Result<std::string> cut_readings(std::string_view ptx, std::string_view source);

}  // namespace demarc::cuda
