// The calls of a process of a tenant that has plain memory: all of them pass, and what of them
// leaves the tenant's colours is counted.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "calls/call_answer.hpp"
#include "demarc/driver/driver_api.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

class PlainCalls {
 public:
  // The record outlives the object.
  explicit PlainCalls(ProgramRecord& record) : record_(record) {}
  // At the entry of a call, of whichever thread.
  void watch(const DriverCall& call);

 private:
  void note_launch(CuFunction function);
  [[nodiscard]] std::atomic<std::uint64_t>& launches_of(CuFunction function);

  ProgramRecord& record_;
  std::mutex mutex_;
  std::unordered_map<CuFunction, std::atomic<std::uint64_t>*> launches_;
};

}  // namespace demarc::cuda
