// Predicts hit rates of L1 and L2, and what a kernel loses with half the L2.
#include "demarc/locality/predict.hpp"

#include <algorithm>

#include "block_requests.hpp"
#include "l2_model.hpp"
#include "sm_order.hpp"

namespace demarc::locality {
namespace {

// Cycles until an answer comes, where the description does not tell; requests of a warp that are on
// their way at a time.
constexpr double l1_latency = 35;
constexpr double l2_latency = 270;
constexpr double dram_latency = 650;
constexpr double requests_in_flight = 4;

std::uint32_t resident_blocks(const AccessRuns& runs, const gpu::Device& device,
                              std::uint32_t shared_bytes) {
  const std::uint32_t threads = std::max(32U, (runs.threads() + 31) / 32 * 32);
  std::uint32_t count = std::min(device.sm.blocks, device.sm.threads / threads);
  if (shared_bytes > 0)
    count =
        std::min(count, device.sm.shared_bytes / (shared_bytes + device.sm.shared_reserved_bytes));
  return std::max(count, 1U);
}

// Lines that the SMs of a TPC asked the L2 for in this turn.
class MergeWindow {
 public:
  // Those of `asked` that are not on their way already.
  SectorMask new_ones(std::uint64_t line, SectorMask asked, std::uint64_t turn) {
    Entry& entry = entries_[line * 0x9e3779b97f4a7c15ULL >> 54U];
    if (entry.line != line || entry.turn != turn) entry = {line, turn, 0};
    const SectorMask missing = asked & ~entry.sectors;
    entry.sectors |= asked;
    return missing;
  }

 private:
  struct Entry {
    std::uint64_t line = ~std::uint64_t{0};
    std::uint64_t turn = 0;
    SectorMask sectors = 0;
  };
  std::vector<Entry> entries_ = std::vector<Entry>(1024);
};

// What an SM's L1 and shared memory have together where the description does not tell.
std::uint64_t l1_bytes_of(const gpu::Device& device) {
  if (device.l1.size_bytes > 0) return device.l1.size_bytes;
  constexpr std::uint64_t kib = 1024;
  switch (device.compute_capability.number()) {
    case 75:
      return 96 * kib;
    case 80:
      return 192 * kib;
    case 90:
    case 100:
      return 256 * kib;
    default:
      return 128 * kib;
  }
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double or_default(double cycles, double otherwise) {
  return cycles > 0 ? cycles : otherwise;
}

double clock_of(const gpu::Device& device) {
  return device.sm_clock_hz > 0 ? device.sm_clock_hz : 1e9;
}

class CacheModel {
 public:
  // `l2`: as the launches before left it.
  CacheModel(const AccessRuns& runs, const gpu::Device& device, const PredictOptions& options,
             L2Model& l2)
      : runs_(runs),
        device_(device),
        options_(options),
        maker_(runs, device.l2.line_bytes, device.l2.sector_bytes),
        l2_(l2) {
    result_.blocks_per_sm = resident_blocks(runs, device, options.shared_bytes_per_block);
    std::vector<SmPlace> order = sm_order(device);
    result_.sms = std::min(static_cast<std::uint32_t>(order.size()), runs.blocks());
    order.resize(result_.sms);
    const std::uint64_t l1_size = l1_bytes_of(device);
    // What shared memory takes is not left for the L1 where the two are one memory.
    const std::uint64_t taken =
        device.sm.shared_bytes < l1_size
            ? std::uint64_t{result_.blocks_per_sm} * options.shared_bytes_per_block
            : 0;
    const std::uint64_t l1_bytes = l1_size > taken ? l1_size - taken : 0;
    std::uint32_t tpcs = 0;
    for (const SmPlace& place : order) {
      tpcs = std::max(tpcs, place.tpc + 1);
      sms_.push_back({SectorCache(l1_bytes, device.l1.line_bytes), place, {}, 0, 0});
    }
    windows_.resize(tpcs);
  }

  CachePrediction run() {
    // One block for every SM in turn until they are full.
    for (std::uint32_t round = 0; round < result_.blocks_per_sm; ++round)
      for (Sm& sm : sms_)
        if (next_block_ < runs_.blocks()) {
          sm.blocks.emplace_back();
          maker_.start(next_block_++, sm.blocks.back());
        }
    for (Sm& sm : sms_) sm.warps = sm.blocks.size() * ((runs_.threads() + 31) / 32);
    bool busy = true;
    while (busy && progress() < 1) {
      busy = false;
      ++turn_;
      // Over the SMs first: blocks that end together are not all replaced on the same SM.
      for (std::size_t slot = 0; slot < result_.blocks_per_sm; ++slot)
        for (Sm& sm : sms_)
          if (slot < sm.blocks.size()) busy = turn(sm, sm.blocks[slot]) || busy;
      if (progress() >= static_cast<double>(parts_ + 1) / 10) end_part();
    }
    result_.complete = !busy;
    finish();
    return result_;
  }
  [[nodiscard]] std::uint64_t requests() const { return requests_; }

 private:
  struct Sm {
    SectorCache l1;
    SmPlace place;
    std::vector<BlockRequests> blocks;
    std::uint64_t warps = 0;  // resident
    double waited_cycles = 0;
  };

  struct Counted {
    std::uint64_t hits = 0;
    std::uint64_t sectors = 0;
  };

  // One request of every warp; a block that is done makes room for the next.
  bool turn(Sm& sm, BlockRequests& block) {
    while (block.busy_warps == 0 && next_block_ < runs_.blocks())
      maker_.start(next_block_++, block);
    if (block.busy_warps == 0) return false;
    for (std::uint32_t warp = 0; warp < block.warps.size(); ++warp) {
      if (!maker_.next(warp, block)) continue;
      perform(sm, block);
      ++requests_;
    }
    return true;
  }

  // The request in hand.
  void perform(Sm& sm, const BlockRequests& block) {
    const Access& access = runs_.accesses[block.access];
    const gpu::Device& d = device_;
    double waited =
        access.kind == AccessKind::store ? 0 : or_default(d.l1.latency_cycles, l1_latency);
    lines_ += block.parts.size();
    for (const BlockRequests::Part& part : block.parts) {
      SectorMask asked = part.sectors;
      if (access.kind == AccessKind::load) {
        result_.l1_sectors += sectors_in(asked);
        if (!access.passes_l1) {
          const SectorMask hits = sm.l1.look_up(part.line, asked, asked, false).hits;
          l1_hits_ += sectors_in(hits);
          asked &= ~hits;
        }
        if (asked == 0) continue;
        waited = std::max(waited, or_default(d.l2.latency_cycles, l2_latency));
        asked = windows_[sm.place.tpc].new_ones(part.line, asked, turn_);
        if (asked == 0) continue;
      }
      const L2Model::Traffic traffic = l2_.access(sm.place.side, part.line, asked, access.kind);
      count(access.kind, sectors_in(asked), traffic);
      if (traffic.dram_read > 0 && access.kind != AccessKind::store)
        waited = std::max(waited, or_default(d.dram.latency_cycles, dram_latency));
    }
    sm.waited_cycles += waited;
  }

  // Of what may be followed.
  [[nodiscard]] double progress() const {
    return std::max(share_of(requests_, options_.most_requests),
                    share_of(lines_, options_.most_lines));
  }

  // Tenths of the requests, as far as whole turns allow.
  void end_part() {
    const auto widen = [](RateInterval& interval, std::uint64_t hits, std::uint64_t sectors,
                          Counted& before) {
      if (sectors == before.sectors) return;
      const double rate = share_of(hits - before.hits, sectors - before.sectors);
      interval.low = before.sectors == 0 ? rate : std::min(interval.low, rate);
      interval.high = before.sectors == 0 ? rate : std::max(interval.high, rate);
      before = {hits, sectors};
    };
    widen(result_.l1_interval, l1_hits_, result_.l1_sectors, l1_before_);
    widen(result_.l2_interval, l2_hits_, result_.l2_sectors, l2_before_);
    ++parts_;
  }

  void count(AccessKind kind, std::uint32_t sectors, const L2Model::Traffic& traffic) {
    result_.l2_sectors += sectors;
    l2_hits_ += traffic.hits;
    if (kind == AccessKind::load) {
      result_.l2_read_sectors += sectors;
      l2_read_hits_ += traffic.hits;
    }
    dram_read_ += traffic.dram_read;
    dram_written_ += traffic.dram_written;
  }

  void finish() {
    const std::uint64_t sector = device_.l2.sector_bytes;
    result_.requests = requests_;
    result_.dram_read_bytes = dram_read_ * sector;
    result_.dram_bytes = (dram_read_ + dram_written_) * sector;
    result_.l1_hit_rate = share_of(l1_hits_, result_.l1_sectors);
    result_.l2_hit_rate = share_of(l2_hits_, result_.l2_sectors);
    result_.l2_read_hit_rate = share_of(l2_read_hits_, result_.l2_read_sectors);
    const double clock = clock_of(device_);
    for (const Sm& sm : sms_) {
      const double overlap =
          requests_in_flight * static_cast<double>(std::max<std::uint64_t>(sm.warps, 1));
      result_.busiest_sm_s = std::max(result_.busiest_sm_s, sm.waited_cycles / overlap / clock);
    }
  }

  const AccessRuns& runs_;
  const gpu::Device& device_;
  PredictOptions options_;
  RequestMaker maker_;
  L2Model& l2_;
  std::vector<Sm> sms_;
  std::vector<MergeWindow> windows_;
  std::uint32_t next_block_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t parts_ = 0;
  Counted l1_before_;
  Counted l2_before_;
  std::uint64_t l1_hits_ = 0;
  std::uint64_t l2_hits_ = 0;
  std::uint64_t l2_read_hits_ = 0;
  std::uint64_t dram_read_ = 0;
  std::uint64_t dram_written_ = 0;
  CachePrediction result_;
};

// Bytes a cycle that an SM's L1 and a slice of the L2 deliver; the least time of a kernel.
constexpr double l1_bytes_per_cycle = 128;
constexpr double slice_bytes_per_cycle = 64;
constexpr double shortest_kernel_s = 2e-6;

// As probing found them, or as the description says; 1 where neither is known, which no GPU has.
std::uint32_t l2_slices_of(const gpu::Device& device) {
  return std::max(device.l2.slices, device.address_map ? device.address_map->slices : 1U);
}

// What all slices together need to deliver the sectors; 0 where their number is not known.
double l2_time_of(const CachePrediction& prediction, const gpu::Device& device) {
  const std::uint32_t slices = l2_slices_of(device);
  if (slices <= 1) return 0;
  return static_cast<double>(prediction.l2_sectors) * device.l2.sector_bytes /
         (slice_bytes_per_cycle * clock_of(device) * slices);
}

// 0 where its bandwidth is not known.
double dram_time_of(const CachePrediction& prediction, const gpu::Device& device) {
  return device.dram.bandwidth_bytes_per_s > 0
             ? static_cast<double>(prediction.dram_bytes) / device.dram.bandwidth_bytes_per_s
             : 0;
}

double time_of(const CachePrediction& prediction, const gpu::Device& device) {
  const double clock = clock_of(device);
  const double sector = device.l2.sector_bytes;
  const double l1 = static_cast<double>(prediction.l1_sectors) * sector /
                    (l1_bytes_per_cycle * clock * std::max(prediction.sms, 1U));
  return shortest_kernel_s + std::max({l1, l2_time_of(prediction, device),
                                       dram_time_of(prediction, device), prediction.busiest_sm_s});
}

L2Model l2_of(const gpu::Device& device, const PredictOptions& options) {
  return {static_cast<std::uint64_t>(static_cast<double>(device.l2.size_bytes) * options.l2_share),
          l2_halves(device), device.l2.line_bytes, device.l2.sector_bytes};
}

// One time through the kernels of a workload.
struct Pass {
  CachePrediction sum;
  double time_s = 0;
  std::uint64_t requests = 0;
};

// Adds what `kernel.times` launches like `one` do.
void add_kernel(const CachePrediction& one, const RepeatedKernel& kernel, const gpu::Device& device,
                Pass& pass) {
  CachePrediction& sum = pass.sum;
  // Sums of look-ups and of hits; the rates are formed anew.
  const auto times = [&kernel](std::uint64_t count) {
    return static_cast<std::uint64_t>(static_cast<double>(count) * kernel.times);
  };
  const auto join = [](double& rate, std::uint64_t& sectors, double more_rate, std::uint64_t more) {
    const std::uint64_t all = sectors + more;
    if (all > 0)
      rate = (rate * static_cast<double>(sectors) + more_rate * static_cast<double>(more)) /
             static_cast<double>(all);
    sectors = all;
  };
  join(sum.l1_hit_rate, sum.l1_sectors, one.l1_hit_rate, times(one.l1_sectors));
  join(sum.l2_hit_rate, sum.l2_sectors, one.l2_hit_rate, times(one.l2_sectors));
  join(sum.l2_read_hit_rate, sum.l2_read_sectors, one.l2_read_hit_rate, times(one.l2_read_sectors));
  sum.dram_read_bytes += times(one.dram_read_bytes);
  sum.dram_bytes += times(one.dram_bytes);
  sum.busiest_sm_s += one.busiest_sm_s * kernel.times;
  sum.sms = std::max(sum.sms, one.sms);
  sum.blocks_per_sm = std::max(sum.blocks_per_sm, one.blocks_per_sm);
  sum.complete = sum.complete && one.complete;
  pass.time_s += time_of(one, device) * kernel.times;
}

Pass run_pass(std::span<const RepeatedKernel> kernels, const gpu::Device& device,
              const PredictOptions& options, L2Model& l2) {
  Pass pass;
  for (const RepeatedKernel& kernel : kernels) {
    PredictOptions own = options;
    own.shared_bytes_per_block = kernel.shared_bytes_per_block;
    own.most_requests = options.most_requests - pass.requests;
    if (own.most_requests == 0) {
      pass.sum.complete = false;
      break;
    }
    CacheModel model(*kernel.runs, device, own, l2);
    add_kernel(model.run(), kernel, device, pass);
    pass.requests += std::min(model.requests(), own.most_requests);
  }
  return pass;
}

// As often as it takes for the caches to be as they always are: once to fill them, once to count.
Pass run_repeatedly(std::span<const RepeatedKernel> kernels, const gpu::Device& device,
                    const PredictOptions& options) {
  L2Model l2 = l2_of(device, options);
  Pass first = run_pass(kernels, device, options, l2);
  if (first.sum.complete && !options.beginning) return run_pass(kernels, device, options, l2);
  first.sum.complete = false;
  first.sum.dram_bytes += l2.dirty_sectors() * device.l2.sector_bytes;
  first.time_s = std::max(first.time_s, dram_time_of(first.sum, device));
  return first;
}

void compare(const Pass& whole, const Pass& half, const gpu::Device& device, Sensitivity& result) {
  result.whole = whole.sum;
  result.half = half.sum;
  result.time_s = whole.time_s;
  if (whole.time_s <= 0) return;
  result.half_l2_slowdown = half.time_s / whole.time_s;
  result.dram_demand_bytes_s = static_cast<double>(whole.sum.dram_bytes) / whole.time_s;
  result.dram_demand_share = dram_time_of(whole.sum, device) / whole.time_s;
  result.l2_demand_share = l2_time_of(whole.sum, device) / whole.time_s;
}

}  // namespace

CachePrediction predict_caches(const AccessRuns& runs, const gpu::Device& device,
                               const PredictOptions& options) {
  L2Model l2 = l2_of(device, options);
  CachePrediction result = CacheModel(runs, device, options, l2).run();
  // What is still in the L2 has to be written back one day.
  result.dram_bytes += l2.dirty_sectors() * device.l2.sector_bytes;
  return result;
}

Sensitivity predict_sensitivity(const AccessRuns& runs, const gpu::Device& device,
                                const PredictOptions& options) {
  const auto once = [&](double share) {
    PredictOptions own = options;
    own.l2_share = options.l2_share * share;
    Pass pass;
    pass.sum = predict_caches(runs, device, own);
    pass.time_s = time_of(pass.sum, device);
    return pass;
  };
  Sensitivity result;
  compare(once(1), once(0.5), device, result);
  return result;
}

Sensitivity predict_repeated(std::span<const RepeatedKernel> kernels, const gpu::Device& device,
                             const PredictOptions& options) {
  PredictOptions halved = options;
  halved.l2_share = options.l2_share / 2;
  Sensitivity result;
  compare(run_repeatedly(kernels, device, options), run_repeatedly(kernels, device, halved), device,
          result);
  return result;
}

}  // namespace demarc::locality
