// How the rooms of a coloured program's calls say what becomes of one.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "demarc/driver/driver_call.hpp"

namespace demarc::cuda {

// The driver's function returns this; nothing: the driver carries the call out.
using CallAnswer = std::optional<CuResult>;

// Who answers a function whose rule says that it is answered.
template <class Calls>
struct CallRow {
  DriverFunction function;
  CallAnswer (Calls::*answer)(const DriverCall& call);
};

template <class Calls>
const CallRow<Calls>* find_row(std::span<const CallRow<Calls>> rows, const DriverCall& call) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const CallRow<Calls>& known) {
    return known.function == call.function();
  });
  return row == rows.end() ? nullptr : &*row;
}

// The stream that a call means by a handle that may be null.
inline CuStream meant_stream(const DriverCall& call, CuStream stream) {
  constexpr std::uintptr_t of_the_thread = 2;  // CU_STREAM_PER_THREAD
  if (stream != nullptr || !call.per_thread()) return stream;
  return reinterpret_cast<CuStream>(of_the_thread);  // NOLINT: the driver's own number
}
// The same by its parameters: where they have none, the default stream.
template <class Parameters>
CuStream stream_of(const DriverCall& call, const Parameters& given) {
  if constexpr (requires { given.stream; }) return meant_stream(call, given.stream);
  return meant_stream(call, nullptr);
}

}  // namespace demarc::cuda
