// How the rooms of a coloured program's calls say what becomes of one.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "driver/driver_call.hpp"

namespace demarc::cuda {

// The driver's function returns this; nothing: the driver carries the call out.
using CallAnswer = std::optional<CuResult>;

// Rows are of one version of a function, whose arguments lie as the handler reads them.
template <class Calls>
struct CallRow {
  std::string_view name;  // DriverCall::versioned_name()
  CallAnswer (Calls::*answer)(const DriverCall& call);
};

template <class Calls>
const CallRow<Calls>* find_row(std::span<const CallRow<Calls>> rows, const DriverCall& call) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const CallRow<Calls>& known) {
    return known.name == call.versioned_name();
  });
  return row == rows.end() ? nullptr : &*row;
}

// The stream that a call means by a handle that may be null.
inline CuStream meant_stream(const DriverCall& call, CuStream stream) {
  constexpr std::uintptr_t of_the_thread = 2;  // CU_STREAM_PER_THREAD
  if (stream != nullptr || !call.per_thread()) return stream;
  return reinterpret_cast<CuStream>(of_the_thread);  // NOLINT: the driver's own number
}

}  // namespace demarc::cuda
