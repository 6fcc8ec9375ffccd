// Copies and reductions of many bytes by one thread, and what these have in common with those of
// tensors. They are done when they are issued.
#pragma once

#include <array>
#include <span>

#include "demarc/launch/launch.hpp"
#include "machine.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

inline constexpr std::uint32_t bulk_granule = 16;  // bytes that a lane of an access moves

// Where a transfer goes, and what hears of its bytes.
struct BulkArrival {
  MicroOp to;  // memory micro-ops of their own
  MicroOp barrier;
  bool signals = false;      // the bytes are taken off the barrier's
  bool multicast = false;    // to the same places in each block whose bit is set
  std::uint32_t blocks = 0;  // slot of 16 bits
  bool blocks_uniform = false;
  std::uint32_t scratch = 0;  // slot of 32 addresses
};

// How elements are combined with those that are there.
struct BulkReduction {
  bool reduces = false;
  AtomicKind kind = AtomicKind::add;
  AtomicType type = AtomicType::u32;
  std::uint32_t element_bytes = 4;
};

struct BulkDetails {
  BulkArrival arrival;
  MicroOp from;
  std::uint32_t bytes = 0;  // slot
  bool bytes_uniform = false;
  BulkReduction reduction;
};

// The address of the lane that a memory micro-op names.
[[nodiscard]] std::uint64_t lane_address(Warp& w, const MicroOp& op, unsigned lane);

// An access at up to 32 addresses, one a lane, as `part` says, through the checks of the space.
// False: some of it may not be done; Access::mask has what may.
bool access_places(Warp& w, const MicroOp& part, std::uint32_t scratch,
                   std::span<const std::uint64_t> places, Access& x, AccessMode mode);
[[nodiscard]] std::byte* host_place(const Access& x, unsigned lane);

void combine_elements(const BulkReduction& reduction, std::byte* to, const std::byte* from,
                      std::uint32_t bytes);

// One lane's transfer, to one place or to the same one in several blocks.
class BulkTarget {
 public:
  BulkTarget(Warp& w, const BulkArrival& arrival, unsigned lane);

  [[nodiscard]] std::uint64_t address() const { return address_; }
  // Granules, one after the other in `bytes`, to a place each. False: not all may be written.
  bool put(std::span<const std::uint64_t> places, const std::byte* bytes,
           const BulkReduction& reduction);
  void signal(std::uint32_t bytes);

 private:
  // Takes `address`, or that of the same place in each block.
  template <class Take>
  void for_each_block(std::uint64_t address, Take take) const;

  Warp& w_;
  const BulkArrival& arrival_;
  unsigned lane_;
  std::uint64_t address_;
  std::uint32_t blocks_ = 0;  // a bit a rank
};

namespace bulk_ops {
const MicroOp* copy(Warp& w, const MicroOp* op);  // aux: BulkDetails
}  // namespace bulk_ops

}  // namespace demarc::emulate
