// Graphs of a coloured program: their launches, their captures, and what would let kernels with
// local variables run beside each other (local_users.hpp).
#pragma once

#include <functional>
#include <string>

#include "calls/call_answer.hpp"
#include "calls/local_users.hpp"

namespace demarc::cuda {

class GraphCalls {
 public:
  // `api` and `locals` outlive the object; `tell` is called with lines for the user.
  GraphCalls(const DriverApi& api, LocalUsers& locals,
             std::function<void(const std::string& line)> tell)
      : api_(api), locals_(locals), tell_(std::move(tell)) {}

  static std::span<const CallRow<GraphCalls>> rows();

 private:
  CallAnswer launch(const DriverCall& call);
  CallAnswer begin_capture(const DriverCall& call);
  CallAnswer begin_capture_into(const DriverCall& call);
  CallAnswer end_capture(const DriverCall& call);
  CallAnswer change_order(const DriverCall& call);
  CallAnswer instantiate(const DriverCall& call);
  CallAnswer instantiate_with(const DriverCall& call);
  CallAnswer destroy_context(const DriverCall& call);
  CallAnswer judge_flags(unsigned long long flags);

  const DriverApi& api_;
  LocalUsers& locals_;
  std::function<void(const std::string& line)> tell_;
};

}  // namespace demarc::cuda
