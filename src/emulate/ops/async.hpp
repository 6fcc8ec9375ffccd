// Bulk copies and barriers in shared memory (mbarrier).
//
// The eight bytes of an mbarrier hold, from the lowest bit: arrivals still to come (20 bits),
// arrivals of a phase (20), bytes still to come (22, signed), the phase's parity (1), and a one so
// that an object that has been initialised is not zero. That is what mbarrier.arrive returns, too;
// on a GPU the word is opaque.
#pragma once

#include "machine.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

enum class BarrierOperation : std::uint8_t {
  nothing,
  init,
  invalidate,
  expect,
  complete,
  arrive,
  drop,
  test_state,
  test_parity
};

struct BarrierDetails {
  BarrierOperation operation = BarrierOperation::nothing;
  bool expects = false;  // arrive.expect_tx: the number is bytes, not arrivals
  bool has_number = false;
  bool number_uniform = false;
  std::uint8_t number_bytes = 4;
  std::uint32_t number = 0;  // slot
  bool has_result = false;
  std::uint8_t result_width = 8;  // 0: predicate
  std::uint32_t result = 0;
};

struct BulkDetails {
  MicroOp to;  // memory micro-ops of their own, 16 bytes a lane
  MicroOp from;
  MicroOp barrier;
  bool signals = false;       // the bytes are taken off the barrier's
  std::uint32_t scratch = 0;  // slot of 32 addresses
  std::uint32_t bytes = 0;    // slot
  bool bytes_uniform = false;
  bool reduces = false;  // each element is combined with what is there
  AtomicKind kind = AtomicKind::add;
  AtomicType type = AtomicType::u32;
  std::uint32_t element_bytes = 4;
};

[[nodiscard]] std::uint32_t pending_count(std::uint64_t state);

namespace async_ops {
const MicroOp* barrier_word(Warp& w, const MicroOp* op);  // aux: BarrierDetails
const MicroOp* copy_bulk(Warp& w, const MicroOp* op);     // aux: BulkDetails
}  // namespace async_ops

}  // namespace demarc::emulate
