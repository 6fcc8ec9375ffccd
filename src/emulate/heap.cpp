// Gives out the device heap block by block, with margins between them.
#include "heap.hpp"
#include "demarc/base/rounding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demarc::emulate {

namespace {

constexpr std::uint64_t heap_alignment = 16;
constexpr std::uint64_t narrow_margin = 16;

std::uint64_t heap_round(std::uint64_t size) {
  return round_up(size, heap_alignment);
}

}  // namespace

// The first offset from `from` on that has `size` free bytes, and a margin on both sides.
std::optional<std::uint64_t> DeviceHeap::gap(std::uint64_t from, std::uint64_t size,
                                             std::uint64_t margin) const {
  std::uint64_t at = from;
  auto above = used_.upper_bound(from);
  if (above != used_.begin()) {
    const auto& [offset, block] = *std::prev(above);
    at = std::max(at, offset + heap_round(block.size) + margin);
  }
  for (; above != used_.end() && above->first < at + size + margin; ++above)
    at = above->first + heap_round(above->second.size) + margin;
  if (at + size > wide_margin + bytes) return std::nullopt;
  return at;
}

std::uint64_t DeviceHeap::allocate(std::uint64_t size, std::uint32_t line) {
  if (size == 0 || size > bytes) return 0;
  const std::uint64_t rounded = heap_round(size);
  if (too_large_ && rounded >= *too_large_) return 0;
  auto found = gap(next_, rounded, margin_);
  if (!found) {
    margin_ = narrow_margin;
    found = gap(wide_margin, rounded, margin_);
  }
  if (!found) {
    too_large_ = rounded;
    return 0;
  }
  const std::uint64_t at = *found;
  next_ = at + rounded;
  auto old = freed_.lower_bound(at);
  if (old != freed_.begin() && std::prev(old)->first + std::prev(old)->second.size > at) --old;
  while (old != freed_.end() && old->first < next_) old = freed_.erase(old);

  Region& region = spare_.empty() ? regions_.emplace_back() : **spare_.begin();
  spare_.erase(&region);
  region.low = base + at;
  region.high = base + at + size;
  region.delta = reinterpret_cast<std::uint64_t>(memory_.data()) - base;
  if (tracks_writes_) {
    std::fill_n(shadow_.data() + at, size, std::uint8_t{0});
    region.shadow = shadow_.data() + at;
  }
  used_.emplace(at, Block{.size = size, .line = line, .region = &region});
  return base + at;
}

std::string DeviceHeap::release(std::uint64_t address, std::uint32_t line) {
  const auto block = contains(address) ? used_.find(address - base) : used_.end();
  if (block != used_.end()) {
    freed_[block->first] = {block->second.size, line};
    *block->second.region = {};
    spare_.insert(block->second.region);
    used_.erase(block);
    margin_ = wide_margin;
    too_large_.reset();
    return {};
  }
  std::string what = fmt::format("free of 0x{:x}, which malloc did not return", address);
  if (!contains(address)) return what;
  const auto freed = freed_.find(address - base);
  if (freed != freed_.end())
    return fmt::format("{} since it was freed at line {}", what, freed->second.line);
  return fmt::format("{}: {}", what, describe(address));
}

const Region* DeviceHeap::find(std::uint64_t low, std::uint64_t high) const {
  auto above = used_.upper_bound(low - base);
  if (!contains(low) || above == used_.begin()) return nullptr;
  const Region& region = *std::prev(above)->second.region;
  return low < high && high <= region.high ? &region : nullptr;
}

std::string DeviceHeap::describe(std::uint64_t address) const {
  const std::uint64_t offset = address - base;
  const auto freed_above = freed_.upper_bound(offset);
  if (freed_above != freed_.begin()) {
    const auto& [start, freed] = *std::prev(freed_above);
    if (offset - start < freed.size) {
      return fmt::format("it lies in the {} bytes at 0x{:x} that were freed at line {}", freed.size,
                         base + start, freed.line);
    }
  }
  const auto above = used_.upper_bound(offset);
  if (above != used_.begin()) {
    const auto& [start, block] = *std::prev(above);
    const std::string which = fmt::format("the {} bytes at 0x{:x} that malloc gave at line {}",
                                          block.size, base + start, block.line);
    if (offset < start + block.size)
      return fmt::format("it lies {} bytes behind the start of {}", offset - start, which);
    return fmt::format("it lies {} bytes after the end of {}", offset - start - block.size, which);
  }
  if (above != used_.end()) {
    return fmt::format("it lies {} bytes before the {} bytes at 0x{:x} that malloc gave at line {}",
                       above->first - offset, above->second.size, base + above->first,
                       above->second.line);
  }
  return "malloc gave no memory near it";
}

}  // namespace demarc::emulate
