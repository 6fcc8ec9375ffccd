// Finds shared-memory races: two warps touch the same granule between barriers, one of them writes,
// and not both accesses are atomic. Two that store the same bytes are no race: whichever comes
// first, memory holds these. This is exact for barriers of the whole block. A barrier of part of
// the block counts as if it ordered everything.
#include <cstring>

#include "machine.hpp"

namespace demarc::emulate {

namespace {

constexpr unsigned race_warp_shift = 29;
constexpr std::uint64_t race_warp_mask = std::uint64_t{63} << race_warp_shift;
constexpr std::uint64_t race_strong = std::uint64_t{1} << 35;
constexpr std::uint64_t race_several = std::uint64_t{1} << 36;
constexpr unsigned race_epoch_shift = 37;

struct RaceView {
  std::uint64_t record;
  [[nodiscard]] std::uint32_t instruction() const {
    return static_cast<std::uint32_t>(record & 0xffffff);
  }
  [[nodiscard]] unsigned lane() const { return static_cast<unsigned>(record >> 24) & 31U; }
  [[nodiscard]] unsigned warp() const {
    return static_cast<unsigned>(record >> race_warp_shift) & 63U;
  }
};

// Whether an st stores what memory holds already.
bool stores_what_is_there(const Warp& warp, const MicroOp* op, const Access& access,
                          unsigned lane) {
  if ((op->flags & memory_plain_store) == 0) return false;
  const auto* there = reinterpret_cast<const std::byte*>(access.addresses[lane] + access.delta);
  const auto* details = static_cast<const VectorDetails*>(op->aux);
  for (unsigned i = 0; i < op->count; ++i) {
    const bool uniform =
        details == nullptr ? (op->uniform & uniform_b) != 0 : details->uniform[i] != 0;
    const std::byte* value = warp.frame + (details == nullptr ? op->b : details->slots[i]);
    if (!uniform) value += std::size_t{lane} * op->width;
    if (std::memcmp(there + std::size_t{i} * op->bytes, value, op->bytes) != 0) return false;
  }
  return true;
}

}  // namespace

void Block::check_race(Warp& warp, const MicroOp* op, const Access& access, std::uint32_t bytes,
                       AccessMode mode) {
  const std::uint32_t granule = program->shared_granule;
  const std::uint32_t granules = bytes / granule;
  const std::uint64_t warp_bits = std::uint64_t{warp.index} << race_warp_shift;
  const std::uint64_t mine = (epoch << race_epoch_shift) | warp_bits | op->instruction |
                             (mode == AccessMode::atomic ? race_strong : 0);
  const std::uint64_t epoch_start = epoch << race_epoch_shift;
  std::uint64_t* const writes = races.writes.data();
  std::uint64_t* const reads = races.reads.data();
  // A record of this epoch by another warp (or by several) that is not atomic where we are.
  const auto conflicts = [&](std::uint64_t record) {
    return record >= epoch_start && ((record ^ mine) & (race_warp_mask | race_several)) != 0 &&
           !(mode == AccessMode::atomic && (record & race_strong) != 0);
  };
  std::uint64_t found = 0;
  unsigned found_lane = 0;
  const bool full = access.mask == full_mask && access.affine;
  const bool same_address = full && access.stride == 0;
  const Mask lanes = same_address ? 1 : access.mask;
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t first = access.addresses[lane] / granule;
    for (std::uint64_t g = first; g < first + granules; ++g) {
      if (found == 0 && conflicts(writes[g]) &&
          !(mode == AccessMode::store && (writes[g] & race_strong) == 0 &&
            stores_what_is_there(warp, op, access, lane))) {
        found = writes[g];
        found_lane = lane;
      }
      if (found == 0 && mode != AccessMode::load && conflicts(reads[g])) {
        found = reads[g];
        found_lane = lane;
      }
      const std::uint64_t record = mine | (std::uint64_t{lane} << 24);
      if (mode == AccessMode::load) {
        const bool several =
            reads[g] >= epoch_start && ((reads[g] ^ mine) & (race_warp_mask | race_several)) != 0;
        reads[g] = record | (several ? race_several : 0);
      } else {
        writes[g] = record;
      }
    }
  }
  if (found == 0) return;
  const RaceView other{found};
  std::string who = "several threads";
  if ((found & race_several) == 0) {
    const Warp& other_warp = warps[other.warp()];
    who = fmt::format("thread ({},{},{})", other_warp.tid[0][other.lane()],
                      other_warp.tid[1][other.lane()], other_warp.tid[2][other.lane()]);
  }
  report(warp, op, found_lane, FindingKind::shared_race,
         fmt::format("shared memory at 0x{:x}: {} touched it since the last barrier at line {}: {}",
                     access.addresses[found_lane], who,
                     program->instructions[other.instruction()].trace.line,
                     program->instructions[other.instruction()].trace.text));
}

}  // namespace demarc::emulate
