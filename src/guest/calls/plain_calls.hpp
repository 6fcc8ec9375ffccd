// The calls of a process of a tenant that has plain memory: all of them pass, and what of them
// leaves the tenant's colours is counted.
#pragma once

#include "calls/call_answer.hpp"
#include "calls/launch_names.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

class PlainCalls {
 public:
  // The record outlives the object.
  explicit PlainCalls(ProgramRecord& record)
      : record_(record), launches_(record, Recorded::plain_kernel) {}
  // At the entry of a call, of whichever thread.
  void watch(const DriverCall& call);

 private:
  ProgramRecord& record_;
  LaunchNames launches_;
};

}  // namespace demarc::cuda
