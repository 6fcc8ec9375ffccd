// What a program in a tenant is told that its card can do: features whose functions are refused
// there are told as missing, so that programs that ask take the way that works.
#pragma once

#include "calls/call_answer.hpp"

namespace demarc::cuda {

// The answer to a function with Rule::told. `windows`: the page table can lead code as it is to the
// tenant's bytes.
[[nodiscard]] CallAnswer tell_of_card(const DriverCall& call, bool windows);

}  // namespace demarc::cuda
