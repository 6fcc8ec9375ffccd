// Work that uses the GPU in a process of its own: this process keeps no context, survives a crash
// in the driver, and ends work that hangs.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <type_traits>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

struct ChildAnswer {
  bool good = false;
  int error_kind = 2;
  std::string bytes;  // the value, or the error's message
};

// Forks, calls `work` there, brings its answer back. check_failed when the child ends without an
// answer or not within `limit`. Call before this process has used CUDA.
[[nodiscard]] Result<std::string> answer_of_child(const std::function<ChildAnswer()>& work,
                                                  std::chrono::milliseconds limit);

inline constexpr std::chrono::milliseconds child_limit{60000};

template <class T>
[[nodiscard]] Result<T> in_child(const std::function<Result<T>()>& work,
                                 std::chrono::milliseconds limit = child_limit) {
  static_assert(std::is_trivially_copyable_v<T>);
  DEMARC_TRY(const std::string bytes,
             answer_of_child(
                 [&work]() -> ChildAnswer {
                   const Result<T> result = work();
                   if (!result) {
                     return {false, static_cast<int>(result.error().kind), result.error().message};
                   }
                   const auto* begin = reinterpret_cast<const char*>(&*result);
                   return {true, 0, std::string(begin, sizeof(T))};
                 },
                 limit));
  T value;
  if (bytes.size() != sizeof(T)) return check_failed("a child process gave an incomplete answer");
  bytes.copy(reinterpret_cast<char*>(&value), sizeof(T));
  return value;
}

}  // namespace demarc::cuda
