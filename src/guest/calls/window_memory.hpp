// The parts of the window that a process has allocated, and where there is room (lent_share.hpp).
// The window's owner is asked for stretches of it as they are needed and gets back those that are
// empty.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "demarc/base/free_ranges.hpp"
#include "demarc/base/result.hpp"
#include "demarc/color/place.hpp"
#include "demarc/driver/driver_types.hpp"

namespace demarc::cuda {

// May be used by several threads at a time; the owner is asked by one of them.
class WindowMemory {
 public:
  struct Owner {
    // A free stretch of at least so many bytes.
    std::function<Result<color::Extent>(std::uint64_t bytes)> take;
    std::function<void(const color::Extent& stretch)> give;
    // An allocation that was lent is freed, at this place in its stretch.
    std::function<void(color::LinearByte stretch, std::uint64_t place)> withdraw = {};
  };
  enum class Use {
    internal,  // Demarc's own, as the memory of modules and of reserved ranges
    program,   // that of an allocation of the program
    borrowed,  // in a range of another process
  };
  struct Allocation {
    DevicePointer address = 0;
    std::uint64_t bytes = 0;  // as asked for
    Use use = Use::internal;
    color::LinearByte stretch = {};  // that it lies in, unless it is borrowed
  };
  struct Usage {
    std::uint64_t used_bytes = 0;   // bytes of allocations, rounded up
    std::uint64_t taken_bytes = 0;  // bytes of stretches
  };

  WindowMemory(DevicePointer window, std::uint64_t bytes, Owner owner)
      : window_(window), bytes_(bytes), owner_(std::move(owner)) {}

  [[nodiscard]] bool contains(DevicePointer address) const { return address - window_ < bytes_; }
  // Whether any byte of a range lies in the window.
  [[nodiscard]] bool touches(DevicePointer address, std::uint64_t bytes) const;

  // Multiples of 512 bytes, as the driver's. An error of the owner's where there is no room.
  [[nodiscard]] Result<DevicePointer> allocate(std::uint64_t bytes, Use use = Use::internal);
  // False where no allocation begins there, or a borrowed one.
  bool free(DevicePointer address);
  // The allocation that an address lies in.
  [[nodiscard]] std::optional<Allocation> find(DevicePointer address) const;
  [[nodiscard]] bool has_stretch(color::LinearByte first) const;
  // Other processes can have this allocation until it is freed. False if that has happened.
  [[nodiscard]] bool note_lent(color::LinearByte allocation);
  // An allocation of another process, which lies in no stretch: find() knows it from then on. Where
  // one begins already the longer of them stays.
  DevicePointer add_borrowed(const color::Extent& allocation);
  void remove_borrowed(DevicePointer address);
  [[nodiscard]] Usage usage() const;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] color::LinearByte linear(DevicePointer address) const {
    return color::LinearByte(address - window_);
  }

 private:
  // The first room from there on.
  [[nodiscard]] std::optional<color::LinearByte> take_free(std::uint64_t bytes,
                                                           color::LinearByte from);
  // Room for at least so many bytes.
  [[nodiscard]] Result<void> take_stretch(std::uint64_t whole);
  void put_free(const color::Extent& freed);

  mutable std::mutex mutex_;
  DevicePointer window_;
  std::uint64_t bytes_;
  Owner owner_;
  struct Place {
    std::uint64_t bytes = 0;  // as asked for
    Use use = Use::internal;
    bool lent = false;
  };
  struct Taken {
    std::uint64_t bytes = 0;
    FreeRanges<color::LinearByte> free;
  };
  std::map<color::LinearByte, Taken> stretches_;  // by their first byte
  std::map<color::LinearByte, Place> allocated_;  // by their first byte
  Usage usage_;
};

}  // namespace demarc::cuda
