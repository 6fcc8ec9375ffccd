// Makes each piece of work wait for the one before it: by one event, or several of joined orders.
#include "calls/launch_order.hpp"

#include <algorithm>

namespace demarc::cuda {

CuResult LaunchOrder::run(const DriverApi& api, CuStream stream, const Work& work) {
  if (lost_ != cu_success) return lost_;
  for (const CuEvent event : last_) {
    if (const CuResult code = api.cuStreamWaitEvent(stream, event, 0); code != cu_success) {
      return code;
    }
  }
  CuEvent event = last_.empty() ? nullptr : last_.front();
  CuResult code = cu_success;
  if (event == nullptr) code = api.cuEventCreate(&event, cu_event_disable_timing);
  if (code != cu_success) return code;
  code = work();
  if (code == cu_success) return record(api, event, stream);
  if (last_.empty()) api.cuEventDestroy_v2(event);
  return code;
}

// It stands for all those that were waited for.
CuResult LaunchOrder::record(const DriverApi& api, CuEvent event, CuStream stream) {
  lost_ = api.cuEventRecord(event, stream);
  for (const CuEvent before : last_) {
    if (before != event) api.cuEventDestroy_v2(before);
  }
  last_.assign(1, event);
  return lost_;
}

CuResult LaunchOrder::wait(const DriverApi& api) const {
  if (lost_ != cu_success) return lost_;
  for (const CuEvent event : last_) {
    if (const CuResult code = api.cuEventSynchronize(event); code != cu_success) return code;
  }
  return cu_success;
}

void LaunchOrder::join(LaunchOrder& other) {
  last_.insert(last_.end(), other.last_.begin(), other.last_.end());
  other.last_.clear();
  if (lost_ == cu_success) lost_ = other.lost_;
}

void LaunchOrder::forget(const DriverApi& api) {
  for (const CuEvent event : last_) api.cuEventDestroy_v2(event);
  last_.clear();
}

}  // namespace demarc::cuda
