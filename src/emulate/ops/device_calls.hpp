// Functions that kernels call and the driver provides: printf and assert.
#pragma once

#include "machine.hpp"

namespace demarc::emulate::device_calls {

const MicroOp* print(Warp& w, const MicroOp* op);  // vprintf(format, arguments); aux: CallDetails
const MicroOp* allocate(Warp& w, const MicroOp* op);  // malloc
const MicroOp* release(Warp& w, const MicroOp* op);   // free
const MicroOp* assertion(
    Warp& w, const MicroOp* op);  // __assertfail(message, file, line, function, character size)

struct Printed {
  std::string text;
  std::int32_t arguments = 0;  // those of the format, which printf returns
};

// The value of so many bytes, so far behind the start of the arguments.
using PrintedValue = std::function<std::uint64_t(std::size_t at, std::size_t bytes)>;

// printf of one thread. `text` reads the string at a device address.
[[nodiscard]] Printed format_print(const std::string& format, const PrintedValue& value,
                                   const std::function<std::string(std::uint64_t)>& text);

}  // namespace demarc::emulate::device_calls
