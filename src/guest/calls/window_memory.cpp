// Allocates by first fit in stretches that are taken from the window's owner.
#include "calls/window_memory.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <iterator>

namespace demarc::cuda {
namespace {

constexpr std::uint64_t allocation_step = 512;
// Small allocations share a stretch.
constexpr std::uint64_t least_stretch = std::uint64_t{32} << 20U;
// What lies at the window's beginning is given last. Stencils read a little below their first
// buffer, where the driver's allocator has memory too; below the window nothing is mapped.
constexpr color::LinearByte edge(std::uint64_t{2} << 20U);

std::uint64_t rounded_up(std::uint64_t bytes) {
  return round_up(bytes, allocation_step);
}

}  // namespace

bool WindowMemory::touches(DevicePointer address, std::uint64_t bytes) const {
  return contains(address) || window_ - address < bytes;
}

std::optional<color::LinearByte> WindowMemory::take_free(std::uint64_t bytes,
                                                         color::LinearByte from) {
  for (auto& [first, stretch] : stretches_) {
    if (const auto taken = stretch.free.take(bytes, from)) return taken;
  }
  return std::nullopt;
}

Result<DevicePointer> WindowMemory::allocate(std::uint64_t bytes, Use use) {
  if (bytes == 0 || bytes > bytes_) {
    return invalid_input("{} bytes of coloured memory were asked for; the share has {}", bytes,
                         bytes_);
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t whole = rounded_up(bytes);
  auto first = take_free(whole, edge);
  if (!first) {
    const Result<void> more = take_stretch(whole);
    if (more) first = take_free(whole, edge);
    if (!first) first = take_free(whole, {});
    if (!first) return tl::unexpected(more.error());
  }
  allocated_.emplace(*first, Place{bytes, use});
  usage_.used_bytes += whole;
  return window_ + first->raw();
}

Result<void> WindowMemory::take_stretch(std::uint64_t whole) {
  const std::uint64_t wanted =
      std::max(whole + (stretches_.empty() ? edge.raw() : 0), least_stretch);
  auto stretch = owner_.take(wanted);
  // What is left may be less than small allocations would share.
  if (!stretch && whole < wanted) stretch = owner_.take(whole);
  if (!stretch) return tl::unexpected(stretch.error());
  const color::LinearByte behind(bytes_);
  if (stretch->bytes < whole || stretch->first > behind ||
      stretch->bytes > behind - stretch->first) {
    return check_failed("a stretch of {} bytes from {} on was lent for {}; the share has {}",
                        stretch->bytes, stretch->first, whole, bytes_);
  }
  stretches_.emplace(stretch->first, Taken{stretch->bytes, {stretch->first, stretch->end()}});
  usage_.taken_bytes += stretch->bytes;
  return {};
}

bool WindowMemory::free(DevicePointer address) {
  const std::lock_guard lock(mutex_);
  const auto found = allocated_.find(linear(address));
  if (found == allocated_.end() || found->second.use == Use::borrowed) return false;
  const color::LinearByte first = found->first;
  const Place place = found->second;
  allocated_.erase(found);
  if (place.lent) {
    const color::LinearByte stretch = std::prev(stretches_.upper_bound(first))->first;
    owner_.withdraw(stretch, first - stretch);
  }
  usage_.used_bytes -= rounded_up(place.bytes);
  put_free({first, rounded_up(place.bytes)});
  return true;
}

// An empty stretch goes back to the owner.
void WindowMemory::put_free(const color::Extent& freed) {
  const auto stretch = std::prev(stretches_.upper_bound(freed.first));
  stretch->second.free.put(freed.first, freed.end());
  const color::Extent whole{stretch->first, stretch->second.bytes};
  if (stretch->second.free.longest() < whole.bytes) return;
  stretches_.erase(stretch);
  usage_.taken_bytes -= whole.bytes;
  owner_.give(whole);
}

std::optional<WindowMemory::Allocation> WindowMemory::find(DevicePointer address) const {
  if (!contains(address)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto above = allocated_.upper_bound(linear(address));
  if (above == allocated_.begin()) return std::nullopt;
  const auto& [first, place] = *std::prev(above);
  if (linear(address) - first >= place.bytes) return std::nullopt;
  Allocation found{window_ + first.raw(), place.bytes, place.use};
  if (place.use != Use::borrowed) {
    found.stretch = std::prev(stretches_.upper_bound(first))->first;
  }
  return found;
}

bool WindowMemory::has_stretch(color::LinearByte first) const {
  const std::lock_guard lock(mutex_);
  return stretches_.contains(first);
}

bool WindowMemory::note_lent(color::LinearByte allocation) {
  const std::lock_guard lock(mutex_);
  const auto found = allocated_.find(allocation);
  if (found == allocated_.end()) return false;
  found->second.lent = true;
  return true;
}

DevicePointer WindowMemory::add_borrowed(const color::Extent& allocation) {
  const std::lock_guard lock(mutex_);
  Place& place = allocated_[allocation.first];
  place = {std::max(place.bytes, allocation.bytes), Use::borrowed};
  return window_ + allocation.first.raw();
}

void WindowMemory::remove_borrowed(DevicePointer address) {
  const std::lock_guard lock(mutex_);
  allocated_.erase(linear(address));
}

WindowMemory::Usage WindowMemory::usage() const {
  const std::lock_guard lock(mutex_);
  return usage_;
}

}  // namespace demarc::cuda
