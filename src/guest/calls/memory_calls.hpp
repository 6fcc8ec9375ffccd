// Allocations of a coloured program: they are made in the window, and what the driver would tell of
// an address there is told in its place.
#pragma once

#include <mutex>
#include <vector>

#include "calls/call_answer.hpp"
#include "calls/window_memory.hpp"
#include "demarc/driver/driver_api.hpp"
#include "demarc/guest/program_record.hpp"

namespace demarc::cuda {

class MemoryCalls {
 public:
  // All outlive the object.
  MemoryCalls(const DriverApi& api, WindowMemory& memory, ProgramRecord& record)
      : api_(api), memory_(memory), record_(record) {}

  static std::span<const CallRow<MemoryCalls>> rows();

  // A block that the driver's calls do not free. Error: there is no room.
  [[nodiscard]] Result<DevicePointer> allocate(std::uint64_t bytes,
                                               WindowMemory::Use use = WindowMemory::Use::internal);
  // For such a block that nothing on the card uses any more.
  void release(DevicePointer address) { memory_.free(address); }  // of 0: nothing
  [[nodiscard]] bool in_window(DevicePointer address) const { return memory_.touches(address, 1); }

  // Whether the program has freed the allocation at this address, which stays until a stream or the
  // card has come there.
  [[nodiscard]] bool is_freed(DevicePointer address);

 private:
  // Freed in the order of a stream that has not come there yet, or while the card could not be
  // waited for.
  struct Pending {
    DevicePointer address;
    CuEvent event;  // null: until all that is under way has ended
  };
  CallAnswer alloc(const DriverCall& call);
  CallAnswer alloc_pitch(const DriverCall& call);
  CallAnswer free(const DriverCall& call);
  CallAnswer free_async(const DriverCall& call);
  CallAnswer info(const DriverCall& call);
  CallAnswer set_limit(const DriverCall& call);
  CallAnswer address_range(const DriverCall& call);
  CallAnswer attribute(const DriverCall& call);
  CallAnswer attributes(const DriverCall& call);
  CallAnswer set_attribute(const DriverCall& call);
  CallAnswer reset(const DriverCall& call);

  CuResult give(DevicePointer* address, std::uint64_t bytes);
  CuResult tell(int attribute, DevicePointer address, void* value) const;
  void reap(bool waiting);
  [[nodiscard]] CuResult has_come(const Pending& one, bool waiting) const;
  [[nodiscard]] bool is_pending(DevicePointer address) const;  // under the lock
  [[nodiscard]] bool is_borrowed(DevicePointer address) const;
  CuResult free_later(DevicePointer address);

  const DriverApi& api_;
  WindowMemory& memory_;
  ProgramRecord& record_;
  std::mutex mutex_;  // of pending_
  std::vector<Pending> pending_;
};

}  // namespace demarc::cuda
