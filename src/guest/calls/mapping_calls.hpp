// Memory that a program maps itself (cuMemCreate, cuMemMap): an address of the window is the number
// of its byte in the share, so a range that is reserved takes its bytes at once, and what is mapped
// into it lies there already. Whatever would need the same bytes at a second place is refused.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "calls/call_answer.hpp"
#include "calls/memory_calls.hpp"
#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

class MappingCalls {
 public:
  // All that is referred to outlives the object. `tell`: a line for the user about what was
  // refused.
  MappingCalls(const DriverApi& api, MemoryCalls& memory,
               std::function<void(const std::string& line)> tell)
      : api_(api), memory_(memory), tell_(std::move(tell)) {}

  static std::span<const CallRow<MappingCalls>> rows();

 private:
  using Handle = unsigned long long;
  struct Range {
    std::uint64_t bytes = 0;
    DevicePointer block = 0;  // of MemoryCalls
  };
  struct Allocation {
    std::uint64_t bytes = 0;
    DevicePointer place = 0;  // where it lies since it was first mapped; 0: it was not
    bool mapped = false;
    bool released = false;
  };

  CallAnswer reserve(const DriverCall& call);
  CallAnswer give_back(const DriverCall& call);
  CallAnswer create(const DriverCall& call);
  CallAnswer release(const DriverCall& call);
  CallAnswer map(const DriverCall& call);
  CallAnswer unmap(const DriverCall& call);
  CallAnswer set_access(const DriverCall& call);
  CallAnswer get_access(const DriverCall& call);

  CallAnswer refuse(const DriverCall& call, std::string_view why) const;
  [[nodiscard]] bool is_reserved(DevicePointer address, std::uint64_t bytes) const;
  // Whether every byte is mapped.
  [[nodiscard]] bool is_mapped(DevicePointer address, std::uint64_t bytes) const;
  [[nodiscard]] bool touches_mapped(DevicePointer address, std::uint64_t bytes) const;

  const DriverApi& api_;
  MemoryCalls& memory_;
  std::function<void(const std::string& line)> tell_;
  mutable std::mutex mutex_;
  std::map<DevicePointer, Range> ranges_;
  std::map<Handle, Allocation> allocations_;
  std::map<DevicePointer, Handle> mapped_;  // by first byte
  Handle last_ = 0;
};

}  // namespace demarc::cuda
