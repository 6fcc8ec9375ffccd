// Finds shared-memory races: two warps touch the same granule, neither access comes before the
// other, one of them writes, and not both are strong (atomic, volatile, relaxed). Two that store
// the same bytes are no race: whichever comes first, memory holds these.
#include <algorithm>
#include <cstring>
#include <optional>

#include "machine.hpp"
#include "races.hpp"

namespace demarc::emulate {

namespace {

constexpr unsigned race_warp_shift = 29;
constexpr std::uint64_t race_warp_mask = std::uint64_t{63} << race_warp_shift;
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
  const bool strong = mode == AccessMode::atomic || (op->flags & memory_strong) != 0;
  const std::uint64_t warp_bits = std::uint64_t{warp.index} << race_warp_shift;
  const std::uint64_t mine = (epoch << race_epoch_shift) | warp_bits | op->instruction;
  const std::uint64_t unordered = unordered_epoch << race_epoch_shift;
  const std::size_t of_granule = clocks.used() ? warps.size() : 1;
  const bool is_load = mode == AccessMode::load;
  if (strong) races.strong_epoch = epoch;
  // A record by another warp (or by several) that does not come before us.
  const auto conflicts = [&](std::uint64_t record) {
    return record >= unordered && ((record ^ mine) & (race_warp_mask | race_several)) != 0 &&
           !(clocks.used() &&
             clocks.ordered(warp.index, RaceView{record}.warp(), record >> race_epoch_shift));
  };
  const auto conflicting = [&](const std::vector<std::uint64_t>& records, std::uint64_t g) {
    const auto first = records.begin() + static_cast<std::ptrdiff_t>(g * of_granule);
    const auto end = first + static_cast<std::ptrdiff_t>(of_granule);
    const auto at = std::find_if(first, end, conflicts);
    return at == end ? std::uint64_t{0} : *at;
  };
  std::vector<std::uint64_t>& kept = is_load ? (strong ? races.strong_reads : races.reads)
                                             : (strong ? races.strong_writes : races.writes);
  struct Found {
    std::uint64_t record;
    unsigned lane;
  };
  std::optional<Found> found;
  const bool full = access.mask == full_mask && access.affine;
  const bool same_address = full && access.stride == 0;
  const Mask lanes = same_address ? 1 : access.mask;
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t first = access.addresses[lane] / granule;
    for (std::uint64_t g = first; g < first + granules; ++g) {
      std::uint64_t other = conflicting(races.writes, g);
      if (other != 0 && mode == AccessMode::store && stores_what_is_there(warp, op, access, lane)) {
        // The last of them stands for all.
        std::fill_n(races.writes.begin() + static_cast<std::ptrdiff_t>(g * of_granule), of_granule,
                    0);
        other = 0;
      }
      if (other == 0 && !strong) other = conflicting(races.strong_writes, g);
      if (other == 0 && !is_load) other = conflicting(races.reads, g);
      if (other == 0 && !is_load && !strong) other = conflicting(races.strong_reads, g);
      if (!found && other != 0) found = {.record = other, .lane = lane};
      std::uint64_t& record = kept[g * of_granule + (clocks.used() ? warp.index : 0)];
      const bool several =
          record >= unordered && ((record ^ mine) & (race_warp_mask | race_several)) != 0;
      record = mine | (std::uint64_t{lane} << 24) | (several ? race_several : 0);
    }
  }
  if (!found) return;
  const RaceView other{found->record};
  std::string who = "several threads";
  if ((found->record & race_several) == 0) who = thread_name(warps[other.warp()], other.lane());
  report(
      warp, op, found->lane, FindingKind::shared_race,
      fmt::format("shared memory at 0x{:x}: {} touched it since the last barrier at line {}: {}{}",
                  access.addresses[found->lane], who,
                  program->instructions[other.instruction()].trace.line,
                  program->instructions[other.instruction()].trace.text,
                  clocks.used() ? ", and no release, acquire or fence orders the two" : ""));
}

void Block::order_access(const Warp& warp, const MicroOp* op, const Access& access,
                         AccessMode mode) {
  const bool releases = (op->flags & memory_releases) != 0;
  std::optional<std::uint64_t> last;
  for (Mask rest = access.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t place =
        RaceClocks::place_of(static_cast<std::uint8_t>(access.space),
                             access.addresses[static_cast<unsigned>(std::countr_zero(rest))]);
    if (place == last) continue;
    last = place;
    if (mode != AccessMode::store)
      clocks.read(warp.index, place, (op->flags & memory_acquires) != 0);
    if (mode != AccessMode::load)
      clocks.write(warp.index, place, epoch, releases, mode == AccessMode::atomic);
  }
  if (releases) next_moment();
}

// A barrier of the whole block orders everything. Of another one, the waiting warps come behind all
// that arrived, and nothing else is ordered.
void Block::order_waiters(std::uint32_t barrier_id) {
  const BarrierState& barrier = barriers[barrier_id];
  const bool of_all =
      barrier.expected == 0 || std::all_of(barrier.waiting.begin(), barrier.waiting.end(),
                                           [](Mask lanes) { return lanes != 0; });
  if (!clocks.used() || of_all) {
    next_epoch();
    return;
  }
  const std::uint64_t place = RaceClocks::place_of_barrier(barrier_id);
  for (const Warp& warp : warps) {
    if (barrier.waiting[warp.index] != 0) clocks.read(warp.index, place, true);
  }
  clocks.forget(place);
}

void Block::next_moment() {
  constexpr std::uint64_t most = (std::uint64_t{1} << 27) - 2;
  if (++epoch < most) return;
  // The records are full: what was before is not looked at any more.
  epoch = 1;
  unordered_epoch = 1;
  for (auto* records : {&races.writes, &races.reads, &races.strong_writes, &races.strong_reads})
    records->assign(records->size(), 0);
  races.strong_epoch = 0;
  clocks.clear();
}

void Block::next_epoch() {
  next_moment();
  unordered_epoch = epoch;
}

namespace race_ops {

const MicroOp* fence(Warp& w, const MicroOp* op) {
  Block& block = *w.block;
  if (!block.clocks.used()) return op + 1;
  block.clocks.fence(w.index, block.epoch);
  block.next_moment();
  return op + 1;
}

}  // namespace race_ops

}  // namespace demarc::emulate
