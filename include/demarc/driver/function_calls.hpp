// The driver's callbacks at entry to and exit from its functions: domain 6 of the table that the
// launch hook subscribes to. Undocumented like the hook itself; numbers of functions are those of
// CUPTI's cupti_driver_cbid.h.
#pragma once

#include <cstdint>
#include <span>

#include "demarc/driver/driver_types.hpp"

namespace demarc::cuda {

inline constexpr int function_domain = 6;

struct FunctionCall {
  enum class Kind {
    other,       // nothing to do
    unreadable,  // the parameters are not laid out as known
    launch,      // into `stream`
    copy_or_fill,
    graph_launch,  // of `graph` into `stream`
    graph_upload,  // it is built for later launches; `graph` is known once the call has succeeded
    stream_gone,   // `stream` is about to be destroyed
    graph_gone,    // so is `graph`
  };
  Kind kind = Kind::other;
  bool leaving = false;
  CuStream stream = nullptr;
  CuGraphExec graph = nullptr;
};

// Reads the parameters of a callback; `other` of functions that are none of those below.
[[nodiscard]] FunctionCall read_function_call(int id, const void* params);

// What a hook needs in any case, and what it needs to tell paths of launches apart.
[[nodiscard]] std::span<const int> stream_and_graph_functions();
[[nodiscard]] std::span<const int> launch_functions();

}  // namespace demarc::cuda
