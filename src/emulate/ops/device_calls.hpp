// Functions that kernels call and the driver provides: printf and assert.
#pragma once

#include "machine.hpp"

namespace demarc::emulate::device_calls {

const MicroOp* print(Warp& w, const MicroOp* op);  // vprintf(format, arguments); aux: CallDetails
const MicroOp* allocate(Warp& w, const MicroOp* op);  // malloc
const MicroOp* release(Warp& w, const MicroOp* op);   // free
const MicroOp* assertion(
    Warp& w, const MicroOp* op);  // __assertfail(message, file, line, function, character size)

// printf of one thread: `arguments` holds the values as the compiler lays them out, each aligned to
// its size. `text` reads the string at a device address.
[[nodiscard]] std::string format_print(const std::string& format,
                                       const std::vector<std::byte>& arguments,
                                       const std::function<std::string(std::uint64_t)>& text);

}  // namespace demarc::emulate::device_calls
