// Carries out bulk copies and reductions.
#include "ops/bulk.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/async.hpp"

namespace demarc::emulate {

std::uint64_t lane_address(Warp& w, const MicroOp& op, unsigned lane) {
  const bool uniform = (op.uniform & uniform_a) != 0;
  const bool narrow = (op.flags & memory_narrow_address) != 0;
  const std::uint64_t base = narrow && !uniform ? w.at<std::uint32_t>(op.a)[lane]
                             : narrow           ? *w.at<std::uint32_t>(op.a)
                                                : w.at<std::uint64_t>(op.a)[uniform ? 0 : lane];
  const std::uint64_t sum = base + op.imm;
  return narrow ? static_cast<std::uint32_t>(sum) : sum;
}

bool access_places(Warp& w, const MicroOp& part, std::uint32_t scratch,
                   std::span<const std::uint64_t> places, Access& x, AccessMode mode) {
  MicroOp op = part;
  op.a = scratch;
  op.uniform = 0;
  op.imm = 0;
  op.flags = static_cast<std::uint8_t>(op.flags & ~memory_narrow_address);
  auto* addresses = w.at<std::uint64_t>(scratch);
  for (std::size_t i = 0; i < warp_size; ++i) addresses[i] = places[std::min(i, places.size() - 1)];
  const Mask before = w.mask;
  w.mask = places.size() >= warp_size ? full_mask : (Mask{1} << places.size()) - 1;
  const bool some = w.program->tables.fronts[op.kind](w, &op, x, mode);
  if (!some) x.mask = 0;
  const bool all = x.mask == w.mask;
  w.mask = before;
  return all;
}

std::byte* host_place(const Access& x, unsigned lane) {
  return reinterpret_cast<std::byte*>(x.addresses[lane] + x.delta + lane * x.pitch);
}

void combine_elements(const BulkReduction& reduction, std::byte* to, const std::byte* from,
                      std::uint32_t bytes) {
  for (std::uint32_t at = 0; at < bytes; at += reduction.element_bytes) {
    std::uint64_t old = 0;
    std::uint64_t value = 0;
    std::memcpy(&old, to + at, reduction.element_bytes);
    std::memcpy(&value, from + at, reduction.element_bytes);
    const std::uint64_t made = atomic_value(reduction.kind, reduction.type, old, value, 0, false);
    std::memcpy(to + at, &made, reduction.element_bytes);
  }
}

BulkTarget::BulkTarget(Warp& w, const BulkArrival& arrival, unsigned lane)
    : w_(w), arrival_(arrival), lane_(lane), address_(lane_address(w, arrival.to, lane)) {
  if (arrival.multicast)
    blocks_ = w.at<std::uint16_t>(arrival.blocks)[arrival.blocks_uniform ? 0 : lane];
}

template <class Take>
void BulkTarget::for_each_block(std::uint64_t address, Take take) const {
  if (!arrival_.multicast) {
    take(address);
    return;
  }
  for (std::uint32_t rest = blocks_; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint64_t>(std::countr_zero(rest));
    take(((rank + 1) << shared_rank_shift) | (address & (shared_rank_unit - 1)));
  }
}

bool BulkTarget::put(std::span<const std::uint64_t> places, const std::byte* bytes,
                     const BulkReduction& reduction) {
  bool all = true;
  // Places differ from the first by what stays the same in every block.
  for_each_block(places[0], [&](std::uint64_t first) {
    std::array<std::uint64_t, warp_size> there;
    for (std::size_t i = 0; i < places.size(); ++i) there[i] = first + (places[i] - places[0]);
    Access x;
    const AccessMode mode = reduction.reduces ? AccessMode::atomic : AccessMode::store;
    if (!access_places(w_, arrival_.to, arrival_.scratch, {there.data(), places.size()}, x, mode))
      all = false;
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<unsigned>(std::countr_zero(rest));
      const std::byte* from = bytes + std::size_t{i} * bulk_granule;
      if (reduction.reduces) {
        combine_elements(reduction, host_place(x, i), from, bulk_granule);
      } else {
        std::memcpy(host_place(x, i), from, bulk_granule);
      }
    }
  });
  return all;
}

void BulkTarget::signal(std::uint32_t bytes) {
  if (!arrival_.signals) return;
  for_each_block(lane_address(w_, arrival_.barrier, lane_), [&](std::uint64_t address) {
    MicroOp op = arrival_.barrier;
    op.a = arrival_.scratch;
    op.uniform = uniform_a;
    op.imm = 0;
    op.flags = static_cast<std::uint8_t>(op.flags & ~memory_narrow_address);
    *w_.at<std::uint64_t>(arrival_.scratch) = address;
    const Mask before = w_.mask;
    w_.mask = Mask{1} << lane_;
    bytes_arrived(w_, op, bytes);
    w_.mask = before;
  });
}

namespace bulk_ops {

const MicroOp* copy(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const BulkDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t bytes =
        w.at<std::uint32_t>(details.bytes)[details.bytes_uniform ? 0 : lane];
    BulkTarget target(w, details.arrival, lane);
    const std::uint64_t from = lane_address(w, details.from, lane);
    if (bytes % bulk_granule != 0) {
      w.block->report(w, op, lane, FindingKind::misaligned,
                      fmt::format("a bulk copy of {} bytes: it must be a multiple of 16", bytes));
      continue;
    }
    for (std::uint32_t done = 0; done < bytes; done += bulk_granule * warp_size) {
      const unsigned granules = std::min<std::uint32_t>((bytes - done) / bulk_granule, warp_size);
      std::array<std::uint64_t, warp_size> sources;
      std::array<std::uint64_t, warp_size> places;
      for (unsigned i = 0; i < granules; ++i) {
        sources[i] = from + done + i * bulk_granule;
        places[i] = target.address() + done + i * bulk_granule;
      }
      Access in;
      if (!access_places(w, details.from, details.arrival.scratch, {sources.data(), granules}, in,
                         AccessMode::load))
        break;
      std::array<std::byte, std::size_t{bulk_granule} * warp_size> moved;
      for (unsigned i = 0; i < granules; ++i)
        std::memcpy(moved.data() + std::size_t{i} * bulk_granule, host_place(in, i), bulk_granule);
      if (!target.put({places.data(), granules}, moved.data(), details.reduction)) break;
    }
    target.signal(bytes);
  }
  return op + 1;
}

}  // namespace bulk_ops
}  // namespace demarc::emulate
