// Launches of code that is loaded as it is, counted by the kernels' names as the driver tells them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "demarc/driver/driver_types.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

class LaunchNames {
 public:
  // Counts as names of that kind. The record outlives the object.
  LaunchNames(ProgramRecord& record, Recorded what) : record_(record), what_(what) {}
  // One more of a function, or of a library's kernel in its place; of whichever thread.
  void note(CuFunction function);

 private:
  [[nodiscard]] std::atomic<std::uint64_t>& launches_of(CuFunction function);

  ProgramRecord& record_;
  Recorded what_;
  std::mutex mutex_;
  std::unordered_map<CuFunction, std::atomic<std::uint64_t>*> launches_;
};

}  // namespace demarc::cuda
