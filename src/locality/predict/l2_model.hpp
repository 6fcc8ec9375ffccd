// The L2 of a prediction. On GPUs whose L2 has two halves each line has its home in one of them; an
// SM asks the half it is near to, which passes on to the home half what it does not hold and keeps
// a copy of what comes back. Hardware counters see the first look-up.
//
// As measured on an H100 (docs/measurements/locality.md): a read that misses brings in 64 bytes;
// stores always count as hits, without a read; an atomic counts as a hit unless it is at its home
// half and misses there.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "demarc/locality/runs.hpp"
#include "predict/sector_cache.hpp"

namespace demarc::locality {

class L2Model {
 public:
  // `sectors`: of a line.
  L2Model(std::uint64_t bytes, std::uint32_t halves, std::uint32_t line_bytes,
          std::uint32_t sector_bytes)
      : bytes_(bytes),
        sectors_(std::max(1U, line_bytes / std::max(1U, sector_bytes))),
        fetch_sectors_(std::max(1U, fetch_bytes / std::max(1U, sector_bytes))) {
    for (std::uint32_t h = 0; h < std::max(halves, 1U); ++h)
      halves_.emplace_back(bytes / std::max(halves, 1U), line_bytes);
  }

  struct Traffic {
    std::uint32_t hits = 0;          // sectors of those asked for
    std::uint32_t dram_read = 0;     // sectors
    std::uint32_t dram_written = 0;  // sectors
  };
  // As a workload leaves it that goes through so many bytes over and over.
  void fill(std::uint64_t bytes) {
    held_ = static_cast<std::uint64_t>(held_share(bytes) * static_cast<double>(hashes));
  }

  // From an SM near half `side`.
  Traffic access(std::uint32_t side, std::uint64_t line, SectorMask asked, AccessKind kind) {
    const std::uint32_t home = home_of(line);
    side %= static_cast<std::uint32_t>(halves_.size());
    Traffic traffic;
    if (hash_of(line) % hashes < held_)
      traffic.hits = sectors_in(asked);
    else if (kind == AccessKind::load)
      read(side, home, line, asked, traffic);
    else
      write(side, home, line, asked, kind, traffic);
    return traffic;
  }

  [[nodiscard]] std::uint64_t dirty_sectors() const {
    std::uint64_t count = 0;
    for (const SectorCache& half : halves_) count += half.dirty_sectors();
    return count;
  }

 private:
  static constexpr std::uint32_t fetch_bytes = 64;
  static constexpr std::uint64_t hashes = 1U << 16U;

  [[nodiscard]] static std::uint64_t hash_of(std::uint64_t line) {
    return line * 0x9e3779b97f4a7c15ULL >> 40U;
  }

  // A line is still there when its turn comes again if none of the misses in between took its
  // place: h = exp(-(1 - h) x), where x is what is wanted over what there is room for and a miss
  // takes any place. Of two halves the nearer one keeps copies of the other's lines, half of all.
  [[nodiscard]] double held_share(std::uint64_t bytes) const {
    const double wanted = static_cast<double>(bytes) * (halves_.size() < 2 ? 1 : 1.5);
    const double over = wanted / static_cast<double>(std::max<std::uint64_t>(bytes_, 1));
    if (over <= 1) return 1;
    double held = 0;
    for (double step = 1; step > 1e-6;) {
      const double next = std::exp((held - 1) * over);
      step = next - held;
      held = next;
    }
    return held;
  }

  [[nodiscard]] std::uint32_t home_of(std::uint64_t line) const {
    if (halves_.size() < 2) return 0;
    return static_cast<std::uint32_t>(hash_of(line) % halves_.size());
  }
  // The sectors that a miss of `missing` brings in.
  [[nodiscard]] SectorMask fetched(SectorMask missing) const {
    SectorMask all = 0;
    for (std::uint32_t s = 0; s < sectors_; s += fetch_sectors_) {
      const SectorMask unit = ((SectorMask{1} << fetch_sectors_) - 1) << s;
      if ((missing & unit) != 0) all |= unit;
    }
    return all;
  }

  void read(std::uint32_t side, std::uint32_t home, std::uint64_t line, SectorMask asked,
            Traffic& traffic) {
    // What is fetched is known after the look-up: a second one fills.
    SectorCache::Looked near = halves_[side].look_up(line, asked, 0, false);
    traffic.hits = sectors_in(near.hits);
    const SectorMask missing = asked & ~near.hits;
    if (missing == 0) return;
    const SectorMask fetch = fetched(missing);
    near = halves_[side].look_up(line, fetch, fetch, false);
    traffic.dram_written += near.written_back;
    SectorMask from_dram = fetch & ~near.hits;
    if (home != side) {
      const SectorCache::Looked far = halves_[home].look_up(line, from_dram, from_dram, false);
      traffic.dram_written += far.written_back;
      from_dram &= ~far.hits;
    }
    traffic.dram_read += sectors_in(from_dram);
  }

  void write(std::uint32_t side, std::uint32_t home, std::uint64_t line, SectorMask asked,
             AccessKind kind, Traffic& traffic) {
    const bool atomic = kind == AccessKind::atomic;
    if (home != side) {
      // A store leaves a copy behind; an atomic is carried out at home alone.
      const SectorCache::Looked near =
          halves_[side].look_up(line, asked, atomic ? 0 : asked, false);
      traffic.dram_written += near.written_back;
      traffic.hits = sectors_in(asked);
    }
    const SectorCache::Looked at_home = halves_[home].look_up(line, asked, asked, true);
    traffic.dram_written += at_home.written_back;
    const std::uint32_t missing = sectors_in(asked & ~at_home.hits);
    if (atomic) traffic.dram_read += missing;
    if (home == side) traffic.hits = sectors_in(asked) - (atomic ? missing : 0);
  }

  std::uint64_t bytes_;
  std::uint64_t held_ = 0;  // of `hashes`
  std::uint32_t sectors_;
  std::uint32_t fetch_sectors_;
  std::vector<SectorCache> halves_;
};

}  // namespace demarc::locality
