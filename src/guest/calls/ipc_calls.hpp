// Answers the functions of the driver by which processes share memory (CUDA IPC). The processes of
// a tenant share ranges of its memory; the server keeps count of which processes have a range.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "calls/call_answer.hpp"
#include "calls/ipc_handle.hpp"
#include "calls/memory_calls.hpp"
#include "calls/window_memory.hpp"
#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

class IpcCalls {
 public:
  // Asks the server; LeaseClient has the same functions.
  struct Lender {
    std::function<Result<std::string>(color::LinearByte first, std::uint64_t place)> lend;
    // The range can be used from then on, and may be borrowed again. missing_capability if it can
    // be borrowed but not used.
    std::function<Result<color::Extent>(const std::string& key)> borrow;
    std::function<void(color::LinearByte first)> give_back;
  };

  // All outlive the object.
  IpcCalls(const DriverApi& api, WindowMemory& memory, MemoryCalls& memory_calls,
           const Lender& lender, const std::function<void(const std::string& line)>& tell)
      : api_(api), memory_(memory), memory_calls_(memory_calls), lender_(lender), tell_(tell) {}

  static std::span<const CallRow<IpcCalls>> rows();

 private:
  struct Opened {
    color::LinearByte range;
    std::uint64_t times = 0;
  };
  CallAnswer get(const DriverCall& call);
  CallAnswer open(const DriverCall& call);
  CallAnswer close(const DriverCall& call);
  CallAnswer refuse(const DriverCall& call, CuResult code, std::string_view why) const;
  // The rest is called under the lock.
  void leave(color::LinearByte range);  // if nothing in it is open

  const DriverApi& api_;
  WindowMemory& memory_;
  MemoryCalls& memory_calls_;
  const Lender& lender_;
  const std::function<void(const std::string& line)>& tell_;
  std::mutex mutex_;  // guards what is below
  std::map<DevicePointer, Opened> opened_;
};

}  // namespace demarc::cuda
