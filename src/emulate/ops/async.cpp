// Carries out what threads and copies do to barriers in shared memory.
#include "ops/async.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "groups.hpp"

namespace demarc::emulate {

namespace {

struct BarrierWord {
  std::uint32_t pending;
  std::uint32_t expected;
  std::int32_t bytes;
  bool parity;
};

constexpr unsigned count_bits = 20;
constexpr std::uint64_t count_mask = (1U << count_bits) - 1;
constexpr unsigned byte_bits = 22;
constexpr std::int64_t max_bytes = (1 << 20) - 1;  // to come, or too many

BarrierWord unpack_barrier(std::uint64_t word) {
  const auto bytes = static_cast<std::uint32_t>(word >> (2 * count_bits)) << (32 - byte_bits);
  return {.pending = static_cast<std::uint32_t>(word & count_mask),
          .expected = static_cast<std::uint32_t>((word >> count_bits) & count_mask),
          .bytes = static_cast<std::int32_t>(bytes) >> (32 - byte_bits),
          .parity = ((word >> 62) & 1U) != 0};
}

std::uint64_t pack_barrier(const BarrierWord& in) {
  const std::uint64_t bytes = static_cast<std::uint32_t>(in.bytes) & ((1U << byte_bits) - 1);
  return (std::uint64_t{1} << 63) | (std::uint64_t{in.parity ? 1U : 0U} << 62) |
         (bytes << (2 * count_bits)) | (std::uint64_t{in.expected} << count_bits) | in.pending;
}

// Bytes and arrivals that came: what their warps did comes before the end of the phase.
void come(Warp& w, const std::uint64_t* host, bool releases) {
  Block& block = *w.block;
  if (!block.clocks.used()) return;
  block.clocks.write(w.index, RaceClocks::place_of_arrivals(host), block.epoch, releases, true);
  block.next_moment();
}

// A phase ends when nothing is to come any more. In a cluster that orders the warps of all of its
// blocks, as its barrier does.
void end_phase(Warp& w, const std::uint64_t* host, BarrierWord& word) {
  if (word.pending != 0 || word.bytes != 0) return;
  if (w.block->cluster != nullptr) w.block->cluster->order_all();
  w.block->clocks.move(RaceClocks::place_of_arrivals(host), RaceClocks::place_of_phase(host));
  word.pending = word.expected;
  word.parity = !word.parity;
}

std::uint64_t number_of(Warp& w, const BarrierDetails& details, unsigned lane) {
  if (!details.has_number) return 1;
  std::uint64_t value = 0;
  const std::size_t at = details.number_uniform ? 0 : std::size_t{lane} * details.number_bytes;
  std::memcpy(&value, w.frame + details.number + at, details.number_bytes);
  return value;
}

void barrier_result(Warp& w, const BarrierDetails& details, unsigned lane, std::uint64_t value) {
  if (!details.has_result) return;
  if (details.result_width == 0) {
    Mask& p = *w.at<Mask>(details.result);
    p = (p & ~(Mask{1} << lane)) | (static_cast<Mask>(value & 1U) << lane);
  } else {
    std::memcpy(w.frame + details.result + std::size_t{lane} * details.result_width, &value,
                details.result_width);
  }
}

// The word of the mbarrier. Null, with a finding: there is none.
std::uint64_t* barrier_host(Warp& w, const MicroOp* op, const Access& x, unsigned lane,
                            bool makes) {
  if (x.space != MemorySpace::shared) {
    w.block->report(
        w, op, lane, FindingKind::out_of_bounds,
        fmt::format("an mbarrier in {} memory; it must be in shared memory", to_string(x.space)));
    return nullptr;
  }
  auto* const host = reinterpret_cast<std::uint64_t*>(x.addresses[lane] + x.delta);
  if (makes || *host >> 63 != 0) return host;
  w.block->report(
      w, op, lane, FindingKind::uninitialised_read,
      fmt::format("there is no initialised mbarrier at 0x{:x} in shared memory",
                  reinterpret_cast<std::uint64_t>(host) - w.block->shared_region.delta));
  return nullptr;
}

// The phase waits for so many bytes more, or less.
void add_bytes(Warp& w, const MicroOp* op, unsigned lane, BarrierWord& word, std::int64_t more) {
  const std::int64_t bytes = word.bytes + more;
  const std::int64_t kept = std::clamp(bytes, -max_bytes, max_bytes);
  if (kept != bytes) {
    w.block->report(w, op, lane, FindingKind::limit,
                    fmt::format("{} bytes are to come to a phase; the limits are {} and {}", bytes,
                                -max_bytes, max_bytes));
  }
  word.bytes = static_cast<std::int32_t>(kept);
}

}  // namespace

void bytes_arrived(Warp& w, const MicroOp& barrier, std::uint32_t bytes) {
  Access x;
  if (!w.program->tables.fronts[barrier.kind](w, &barrier, x, AccessMode::atomic)) return;
  const auto lane = static_cast<unsigned>(std::countr_zero(x.mask));
  std::uint64_t* const host = barrier_host(w, &barrier, x, lane, false);
  if (host == nullptr) return;
  BarrierWord word = unpack_barrier(*host);
  add_bytes(w, &barrier, lane, word, -std::int64_t{bytes});
  come(w, host, true);
  end_phase(w, host, word);
  *host = pack_barrier(word);
}

std::uint32_t pending_count(std::uint64_t state) {
  return unpack_barrier(state).pending;
}

namespace async_ops {

const MicroOp* barrier_word(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const BarrierDetails*>(op->aux);
  const bool makes = details.operation == BarrierOperation::init;
  Access x;
  if (!w.program->tables.fronts[op->kind](w, op, x, makes ? AccessMode::store : AccessMode::atomic))
    return op + 1;
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint64_t* const host = barrier_host(w, op, x, lane, makes);
    if (host == nullptr) continue;
    const std::uint64_t number = number_of(w, details, lane);
    const auto count = static_cast<std::uint32_t>(number);
    BarrierWord word = unpack_barrier(*host);
    switch (details.operation) {
      case BarrierOperation::init:
        if (count == 0 || count > count_mask) {
          w.block->report(
              w, op, lane, FindingKind::limit,
              fmt::format("an mbarrier for {} arrivals; it counts 1 to {}", count, count_mask));
          continue;
        }
        word = {count, count, 0, false};
        break;
      case BarrierOperation::invalidate:
        *host = 0;
        continue;
      case BarrierOperation::expect:
        add_bytes(w, op, lane, word, count);
        break;
      case BarrierOperation::complete:
        add_bytes(w, op, lane, word, -std::int64_t{count});
        come(w, host, !details.relaxed);
        end_phase(w, host, word);
        break;
      case BarrierOperation::arrive:
      case BarrierOperation::drop: {
        const std::uint64_t before = *host;
        std::uint32_t arrivals = details.expects ? 1 : count;
        if (details.expects) add_bytes(w, op, lane, word, count);
        if (arrivals > word.pending) {
          w.block->report(
              w, op, lane, FindingKind::limit,
              fmt::format("{} arrivals, but the phase still expects {}", arrivals, word.pending));
          arrivals = word.pending;
        }
        if (details.operation == BarrierOperation::drop) word.expected -= arrivals;
        word.pending -= arrivals;
        come(w, host, !details.relaxed);
        end_phase(w, host, word);
        barrier_result(w, details, lane, before);
        break;
      }
      case BarrierOperation::test_state:
      case BarrierOperation::test_parity: {
        // True once the phase that the state, or the parity, names has ended.
        const bool asked = details.operation == BarrierOperation::test_parity
                               ? (number & 1U) != 0
                               : unpack_barrier(number).parity;
        const bool ended = word.parity != asked;
        barrier_result(w, details, lane, ended ? 1 : 0);
        if (ended)
          w.block->clocks.read(w.index, RaceClocks::place_of_phase(host), !details.relaxed);
        if (!ended) control::yield(w, op);  // the others get their turn
        continue;
      }
      case BarrierOperation::nothing:
        break;
    }
    *host = pack_barrier(word);
  }
  return op + 1;
}

}  // namespace async_ops
}  // namespace demarc::emulate
