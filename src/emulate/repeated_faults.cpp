// Counts lanes that make a mistake again which was reported before, many at a time: a loop can make
// one in each of millions of turns.
#include <algorithm>
#include <bit>

#include "machine.hpp"

namespace demarc::emulate {

namespace {

constexpr int max_places = 4;  // that are looked at for one access

// Addresses `first` to `last`, at which an access meets the same fate.
struct SameFate {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool allowed = false;  // if aligned
};

// Where all bytes lie in [low, high), or begin outside of it; nothing for an address between these.
std::optional<SameFate> in_or_behind(const Region& region, std::uint64_t address,
                                     std::uint32_t bytes, bool allowed) {
  constexpr std::uint64_t no_address = ~std::uint64_t{0};
  if (address >= region.high) return SameFate{region.high, no_address, false};
  if (region.high - address < bytes) return std::nullopt;
  return SameFate{region.low, region.high - bytes, allowed};
}

std::optional<SameFate> global_fate(const Program& program, std::uint64_t address,
                                    std::uint32_t bytes, bool writes) {
  if (program.heap != nullptr) return std::nullopt;
  const auto above =
      std::upper_bound(program.regions.begin(), program.regions.end(), address,
                       [](std::uint64_t at, const Region& region) { return at < region.low; });
  SameFate fate;
  if (above != program.regions.begin()) {
    const Region& below = *std::prev(above);
    const auto found = in_or_behind(below, address, bytes, below.writable || !writes);
    if (!found) return std::nullopt;
    fate = *found;
    if (address < below.high) return fate;
  }
  fate.last = above == program.regions.end() ? ~std::uint64_t{0} : above->low - 1;
  return fate;
}

// Without generic addresses of other spaces.
std::optional<SameFate> outside_of_windows(SameFate fate, std::uint64_t address) {
  for (const std::uint64_t window : {shared_window, local_window, constant_window, param_window}) {
    if (address - window < window_bytes) return std::nullopt;
    if (address < window)
      fate.last = std::min(fate.last, window - 1);
    else
      fate.first = std::max(fate.first, window + window_bytes);
  }
  return fate;
}

// The mask must have lanes.
unsigned first_lane(Mask mask) {
  return static_cast<unsigned>(std::countr_zero(mask)) % warp_size;
}
unsigned last_lane(Mask mask) {
  return warp_size - 1 - static_cast<unsigned>(std::countl_zero(mask)) % warp_size;
}

Mask lanes_within(const Access& access, const SameFate& fate) {
  const std::uint64_t reach = fate.last - fate.first;
  const auto is_within = [&](unsigned lane) {
    return access.addresses[lane] - fate.first <= reach;
  };
  if (access.affine && is_within(first_lane(access.mask)) && is_within(last_lane(access.mask)))
    return access.mask;
  Mask within = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    within |= Mask{access.addresses[lane] - fate.first <= reach} << lane;
  return within;
}

Mask misaligned_lanes(const Access& access, std::uint32_t bytes) {
  if (access.affine && (static_cast<std::uint64_t>(access.stride) & (bytes - 1)) == 0)
    return (access.addresses[first_lane(access.mask)] & (bytes - 1)) != 0 ? access.mask : 0;
  Mask misaligned = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    misaligned |= Mask{(access.addresses[lane] & (bytes - 1)) != 0} << lane;
  return misaligned;
}

}  // namespace

void Block::count_repeated(const Warp& warp, const MicroOp* op, Access& access, AddressKind kind,
                           std::uint32_t bytes, AccessMode mode) {
  PendingFinding* const outside = reported(op, FindingKind::out_of_bounds);
  PendingFinding* const misaligned = reported(op, FindingKind::misaligned);
  if (outside == nullptr && misaligned == nullptr) return;
  const bool writes = mode != AccessMode::load;
  const auto fate_of = [&](std::uint64_t address) -> std::optional<SameFate> {
    switch (kind) {
      case AddressKind::shared:
        if (cluster != nullptr) return std::nullopt;
        return in_or_behind(shared_region, address, bytes, true);
      case AddressKind::local:
        return in_or_behind(local_region(warp), address, bytes, true);
      case AddressKind::constant:
        return in_or_behind(program->constant_region, address, bytes, !writes);
      case AddressKind::param:
        return in_or_behind(program->parameter_region, address, bytes, !writes);
      default:
        break;
    }
    const auto fate = global_fate(*program, address, bytes, writes);
    if (!fate || op->kind != static_cast<std::uint8_t>(AddressKind::generic)) return fate;
    return outside_of_windows(*fate, address);
  };
  Mask rest = access.mask;
  for (int places = 0; rest != 0 && places < max_places; ++places) {
    const auto fate = fate_of(access.addresses[first_lane(rest)]);
    if (!fate) return;
    Mask lanes = lanes_within(access, *fate) & rest;
    rest &= ~lanes;
    if (fate->allowed) lanes &= misaligned_lanes(access, bytes);
    PendingFinding* const finding = fate->allowed ? misaligned : outside;
    if (finding == nullptr) continue;
    finding->finding.count += static_cast<std::uint64_t>(std::popcount(lanes));
    access.mask &= ~lanes;
  }
}

}  // namespace demarc::emulate
