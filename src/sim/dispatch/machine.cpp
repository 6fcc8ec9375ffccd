// Keeps the occupancy: places and releases many blocks at a time.
#include "demarc/sim/dispatch/machine.hpp"

#include <algorithm>

#include "dispatch/lanes.hpp"

namespace demarc::sim {

Occupancy::Occupancy(SmSpec spec)
    : spec_(std::move(spec)),
      resources_(spec_.max.size()),
      // Room for the engine to read whole tiles of SMs.
      used_(std::size_t{spec_.n_sms} * resources_ + 16),
      total_(resources_) {}

std::uint32_t Machine::place_run(SmIndex first, const BlockRequest& block, std::span<SmIndex> out) {
  const auto most = static_cast<std::uint32_t>(
      std::min<std::size_t>(out.size(), std::size_t{spec_.n_sms} - first.raw()));
  std::uint32_t count = 0;
  if (resources_ == 1 && !wraps_ && block.sm[0] <= spec_.max[0]) {
    std::uint32_t* used = used_.data() + first.raw();
    const std::uint32_t request = block.sm[0];
    const std::uint32_t max = spec_.max[0];
    for (; count < most && used[count] + request <= max; ++count) {
      used[count] += request;
      out[count] = first + count;
    }
    for (std::uint32_t i = 0; levels_ && i < count; ++i) {
      levels_->move(first + i, used[i] - request, used[i]);
    }
    total_[0] += std::uint64_t{count} * request;
    return count;
  }
  for (; count < most && fits(first + count, block); ++count) {
    place(first + count, block);
    out[count] = first + count;
  }
  return count;
}

void Machine::release_row(SmIndex first_sm, std::uint32_t mask, std::uint32_t request) {
  std::uint32_t* const used = used_.data() + first_sm.raw();
  if (levels_) levels_->lower(first_sm, mask, used, request);
  subtract_in(used, mask, request);
}

bool Machine::levels_serve(const BlockRequest& block) {
  if (!levels_) {
    if (!UsageLevels::apply_to(spec_)) return false;
    levels_.emplace(spec_);
    for (const SmIndex sm : indices<SmIndex>(spec_.n_sms)) {
      if (used(sm, 0) != 0) levels_->move(sm, 0, used(sm, 0));
    }
  }
  return block.sm[0] != 0 && block.sm[0] <= spec_.max[0] && levels_->complete();
}

std::size_t Machine::place_breadth_first(const BlockRequest& block, std::span<SmIndex> out) {
  const std::uint32_t request = block.sm[0];
  const std::uint32_t highest = spec_.max[0] - request;
  std::size_t count = 0;
  for (std::uint32_t level = 0; count < out.size(); ++level) {
    level = levels_->lowest_from(level);
    if (level > highest) break;
    levels_->move_lowest(level, level + request, out.size() - count, [&](SmIndex sm) {
      out[count++] = sm;
      used_[sm.raw() * resources_] += request;
      for (std::size_t r = 1; r < resources_; ++r) add_use(sm, r, block.sm[r]);
    });
  }
  total_[0] += count * request;
  return count;
}

std::size_t Machine::place_depth_first(const BlockRequest& block, std::span<SmIndex> out) {
  const std::uint32_t request = block.sm[0];
  const std::uint32_t highest = spec_.max[0] - request;
  std::size_t count = 0;
  while (count < out.size()) {
    const std::uint32_t level = levels_->highest_to(highest);
    if (level == UsageLevels::none) break;
    const SmIndex sm = levels_->first(level);
    // It stays the fullest with room until it has none.
    const auto blocks = static_cast<std::uint32_t>(
        std::min<std::size_t>(out.size() - count, (highest - level) / request + 1));
    for (std::uint32_t i = 0; i < blocks; ++i) out[count++] = sm;
    used_[sm.raw() * resources_] += blocks * request;
    for (std::size_t r = 1; r < resources_; ++r) add_use(sm, r, blocks * block.sm[r]);
    levels_->move(sm, level, level + blocks * request);
  }
  total_[0] += count * request;
  return count;
}

}  // namespace demarc::sim
