// Barriers in shared memory (mbarrier).
//
// The eight bytes of an mbarrier hold, from the lowest bit: arrivals still to come (20 bits),
// arrivals of a phase (20), bytes still to come (22, signed), the phase's parity (1), and a one so
// that an object that has been initialised is not zero. That is what mbarrier.arrive returns, too;
// on a GPU the word is opaque.
#pragma once

#include "machine.hpp"

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
  bool relaxed = false;  // neither releases nor acquires
  bool has_number = false;
  bool number_uniform = false;
  std::uint8_t number_bytes = 4;
  std::uint32_t number = 0;  // slot
  bool has_result = false;
  std::uint8_t result_width = 8;  // 0: predicate
  std::uint32_t result = 0;
};

[[nodiscard]] std::uint32_t pending_count(std::uint64_t state);
// The barrier of the one lane that runs waits for so many bytes less. `barrier`: a memory micro-op
// of 8 bytes.
void bytes_arrived(Warp& w, const MicroOp& barrier, std::uint32_t bytes);

namespace async_ops {
const MicroOp* barrier_word(Warp& w, const MicroOp* op);  // aux: BarrierDetails
}  // namespace async_ops

}  // namespace demarc::emulate
