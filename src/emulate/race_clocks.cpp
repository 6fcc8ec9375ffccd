// Moves the clocks of warps on, as the memory model of PTX has it.
#include "race_clocks.hpp"

#include <algorithm>

namespace demarc::emulate {

namespace {

void join_clocks(std::uint32_t* to, const std::uint32_t* from, std::uint32_t warps) {
  for (std::uint32_t w = 0; w < warps; ++w) to[w] = std::max(to[w], from[w]);
}

}  // namespace

void RaceClocks::clear() {
  const std::size_t all = std::size_t{warps_} * warps_;
  now_.assign(all, 0);
  fenced_.assign(all, 0);
  seen_.assign(all, 0);
  written_.clear();
}

void RaceClocks::fence(std::uint32_t warp, std::uint64_t moment) {
  std::uint32_t* const now = now_.data() + at(warp);
  join_clocks(now, seen_.data() + at(warp), warps_);
  now[warp] = static_cast<std::uint32_t>(moment);
  std::copy_n(now, warps_, fenced_.data() + at(warp));
}

void RaceClocks::write(std::uint32_t warp, std::uint64_t place, std::uint64_t moment, bool releases,
                       bool atomic) {
  std::uint32_t* const now = now_.data() + at(warp);
  if (releases) now[warp] = static_cast<std::uint32_t>(moment);
  Clock& written = written_[place];
  if (written.empty() || !atomic) written.assign(warps_, 0);
  join_clocks(written.data(), releases ? now : fenced_.data() + at(warp), warps_);
}

void RaceClocks::read(std::uint32_t warp, std::uint64_t place, bool acquires) {
  const auto found = written_.find(place);
  if (found == written_.end()) return;
  join_clocks(seen_.data() + at(warp), found->second.data(), warps_);
  if (acquires) join_clocks(now_.data() + at(warp), found->second.data(), warps_);
}

void RaceClocks::move(std::uint64_t from, std::uint64_t to) {
  auto moved = written_.extract(from);
  if (!moved.empty()) written_[to] = std::move(moved.mapped());
}

}  // namespace demarc::emulate
