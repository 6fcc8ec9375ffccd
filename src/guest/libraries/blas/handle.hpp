// What a cublasHandle_t of libdemarc_blas.so names.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "types.hpp"

namespace demarc::blas {

struct Handle {
  static constexpr std::uint64_t right_mark = 0x44454d424c415331;  // "DEMBLAS1"
  static constexpr std::size_t max_parts = 64;                     // blocks of a sum
  static constexpr std::size_t result_bytes = 16 * (max_parts + 1);

  std::uint64_t mark = right_mark;
  Stream stream = nullptr;
  PointerMode pointers = host_pointers;
  MathMode math = default_math;
  int atomics = 0;
  int sm_count_target = 0;
  // Memory of the card for a sum, by context and stream: sums of one stream follow each other.
  // Threads may share a handle.
  std::mutex mutex = {};
  std::map<std::pair<Context, Stream>, std::uint64_t> sums = {};
};

// Null where a program gives what is not a handle, or one that it has destroyed.
inline Handle* known(Handle* handle) {
  return handle != nullptr && handle->mark == Handle::right_mark ? handle : nullptr;
}

}  // namespace demarc::blas
