// Predicts hit rates of L1 and L2, and what a kernel loses with half the L2.
#include "demarc/locality/predict.hpp"

#include <algorithm>

#include "maps/block_requests.hpp"
#include "predict/kernel_time.hpp"
#include "predict/l2_model.hpp"
#include "predict/sm_order.hpp"

namespace demarc::locality {
namespace {

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
    std::size_t tpcs = 0;
    for (const SmPlace& place : order) {
      tpcs = std::max<std::size_t>(tpcs, place.tpc.raw() + 1);
      sms_.push_back({SectorCache(l1_bytes, device.l1.line_bytes), place, {}});
    }
    windows_.resize(tpcs);
  }

  CachePrediction run() {
    // One block for every SM in turn until they are full.
    for (std::uint32_t round = 0; round < result_.blocks_per_sm; ++round)
      for (Sm& sm : sms_)
        if (next_block_ < runs_.blocks()) {
          sm.blocks.emplace_back();
          start_block(sm.blocks.back());
        }
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
  struct Place {
    BlockRequests requests;
    std::vector<double> waits;  // by warp: for what it has asked since it last waited
  };
  struct Sm {
    SectorCache l1;
    SmPlace place;
    std::vector<Place> blocks;
  };

  struct Counted {
    std::uint64_t hits = 0;
    std::uint64_t sectors = 0;
  };

  void start_block(Place& place) {
    maker_.start(next_block_++, place.requests);
    place.waits.assign(place.requests.warps.size(), 0);
  }

  // One request of every warp; a block that is done makes room for the next.
  bool turn(Sm& sm, Place& place) {
    BlockRequests& block = place.requests;
    while (block.busy_warps == 0 && next_block_ < runs_.blocks()) start_block(place);
    if (block.busy_warps == 0) return false;
    for (std::uint32_t warp = 0; warp < block.warps.size(); ++warp) {
      if (!maker_.next(warp, block)) continue;
      double& waits = place.waits[warp];
      waits = std::max(waits, perform(sm, block));
      if (runs_.accesses[block.access].waits || !block.warps[warp].busy()) {
        waited_cycles_ += waits;
        waits = 0;
      }
      ++requests_;
    }
    return true;
  }

  // The request in hand. Cycles until it is answered; 0: no warp waits for it.
  double perform(Sm& sm, const BlockRequests& block) {
    const Access& access = runs_.accesses[block.access];
    const double l2_latency = or_typical(device_.l2.latency_cycles, typical_l2_latency);
    const double dram_latency = or_typical(device_.dram.latency_cycles, typical_dram_latency);
    double waited = access.kind == AccessKind::store
                        ? 0
                        : or_typical(device_.l1.latency_cycles, typical_l1_latency);
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
        waited = std::max(waited, l2_latency);
        asked = windows_[sm.place.tpc].new_ones(part.line, asked, turn_);
        if (asked == 0) continue;
      }
      const L2Model::Traffic traffic = l2_.access(sm.place.side, part.line, asked, access.kind);
      count(access.kind, sectors_in(asked), traffic);
      if (access.kind != AccessKind::load) {
        result_.store_line_cycles += l2_latency;
      } else {
        result_.load_line_cycles += traffic.dram_read > 0 ? dram_latency : l2_latency;
      }
      if (traffic.dram_read > 0 && access.kind != AccessKind::store)
        waited = std::max(waited, dram_latency);
    }
    return waited;
  }

  // For what may be followed.
  [[nodiscard]] double progress() const {
    return std::max(share_of(requests_, options_.max_requests),
                    share_of(lines_, options_.max_lines));
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
    if (kind == AccessKind::atomic) result_.l2_atomic_sectors += sectors;
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
    result_.blocks = followed_blocks();
    const std::uint64_t warps = (runs_.threads() + 31) / 32;
    if (result_.blocks > 0) {
      result_.block_wait_cycles = waited_cycles_ / static_cast<double>(warps) / result_.blocks;
    }
  }

  // With parts of those that are under way, by their requests.
  [[nodiscard]] double followed_blocks() const {
    double blocks = next_block_;
    for (const Sm& sm : sms_) {
      for (const Place& place : sm.blocks) blocks -= maker_.left_share(place.requests);
    }
    return blocks;
  }

  const AccessRuns& runs_;
  const gpu::Device& device_;
  PredictOptions options_;
  RequestMaker maker_;
  L2Model& l2_;
  std::vector<Sm> sms_;
  PerIndex<gpu::TpcIndex, MergeWindow> windows_;
  std::uint32_t next_block_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t parts_ = 0;
  double waited_cycles_ = 0;
  Counted l1_before_;
  Counted l2_before_;
  std::uint64_t l1_hits_ = 0;
  std::uint64_t l2_hits_ = 0;
  std::uint64_t l2_read_hits_ = 0;
  std::uint64_t dram_read_ = 0;
  std::uint64_t dram_written_ = 0;
  CachePrediction result_;
};

L2Model l2_of(const gpu::Device& device, const PredictOptions& options) {
  return {static_cast<std::uint64_t>(static_cast<double>(device.l2.size_bytes) * options.l2_share),
          l2_halves(device), device.l2.line_bytes, device.l2.sector_bytes};
}

// One time through the kernels of a workload.
struct Pass {
  struct Kernel {
    CachePrediction prediction;
    double times = 1;
  };
  std::vector<Kernel> kernels;
  CachePrediction sum;
  std::uint64_t requests = 0;

  [[nodiscard]] KernelTime time(const gpu::Device& device, const CardShare& share) const {
    KernelTime all;
    for (const Kernel& kernel : kernels) {
      const KernelTime one = kernel_time(kernel.prediction, device, share);
      all.sms_s += one.sms_s * kernel.times;
      all.l2_s += one.l2_s * kernel.times;
      all.dram_s += one.dram_s * kernel.times;
      all.all_s += one.all_s * kernel.times;
    }
    return all;
  }
};

std::uint64_t times(std::uint64_t count, double factor) {
  return static_cast<std::uint64_t>(static_cast<double>(count) * factor);
}

// What all blocks of the launch do, of which the prediction followed the first.
CachePrediction of_all_blocks(CachePrediction one, double blocks) {
  const double factor = one.blocks > 0 ? blocks / one.blocks : 1;
  for (std::uint64_t* count : {&one.l1_sectors, &one.l2_sectors, &one.l2_read_sectors,
                               &one.l2_atomic_sectors, &one.dram_read_bytes, &one.dram_bytes}) {
    *count = times(*count, factor);
  }
  one.blocks *= factor;
  one.load_line_cycles *= factor;
  one.store_line_cycles *= factor;
  return one;
}

// Adds what `factor` launches like `one` do.
void add_kernel(const CachePrediction& one, double factor, Pass& pass) {
  CachePrediction& sum = pass.sum;
  // Sums of look-ups and of hits; the rates are formed anew.
  const auto join = [](double& rate, std::uint64_t& sectors, double more_rate, std::uint64_t more) {
    const std::uint64_t all = sectors + more;
    if (all > 0)
      rate = (rate * static_cast<double>(sectors) + more_rate * static_cast<double>(more)) /
             static_cast<double>(all);
    sectors = all;
  };
  join(sum.l1_hit_rate, sum.l1_sectors, one.l1_hit_rate, times(one.l1_sectors, factor));
  join(sum.l2_hit_rate, sum.l2_sectors, one.l2_hit_rate, times(one.l2_sectors, factor));
  join(sum.l2_read_hit_rate, sum.l2_read_sectors, one.l2_read_hit_rate,
       times(one.l2_read_sectors, factor));
  sum.l2_atomic_sectors += times(one.l2_atomic_sectors, factor);
  sum.dram_read_bytes += times(one.dram_read_bytes, factor);
  sum.dram_bytes += times(one.dram_bytes, factor);
  sum.sms = std::max(sum.sms, one.sms);
  sum.blocks_per_sm = std::max(sum.blocks_per_sm, one.blocks_per_sm);
  sum.complete = sum.complete && one.complete;
  pass.kernels.push_back({one, factor});
}

// `beginning`: what is left to be written back counts, and the blocks followed stand for all.
Pass run_pass(std::span<const RepeatedKernel> kernels, const gpu::Device& device,
              const PredictOptions& options, bool beginning, L2Model& l2) {
  Pass pass;
  for (const RepeatedKernel& kernel : kernels) {
    PredictOptions own = options;
    own.shared_bytes_per_block = kernel.shared_bytes_per_block;
    own.max_requests = options.max_requests - pass.requests;
    if (own.max_requests == 0) {
      pass.sum.complete = false;
      break;
    }
    const std::uint64_t left_before = l2.dirty_sectors();
    CacheModel model(*kernel.runs, device, own, l2);
    CachePrediction one = model.run();
    pass.requests += std::min(model.requests(), own.max_requests);
    if (beginning) {
      one.dram_bytes += (l2.dirty_sectors() - left_before) * device.l2.sector_bytes;
      one = of_all_blocks(
          one, static_cast<double>(std::max<std::uint64_t>(kernel.blocks, kernel.runs->blocks())));
    }
    add_kernel(one, kernel.times, pass);
  }
  return pass;
}

// As often as it takes for the caches to be as they always are: once to fill them, once to count.
Pass run_repeatedly(std::span<const RepeatedKernel> kernels, const gpu::Device& device,
                    const PredictOptions& options) {
  if (!options.beginning) {
    L2Model l2 = l2_of(device, options);
    const Pass first = run_pass(kernels, device, options, false, l2);
    if (first.sum.complete) return run_pass(kernels, device, options, false, l2);
  }
  L2Model l2 = l2_of(device, options);
  l2.fill(options.buffer_bytes);
  Pass pass = run_pass(kernels, device, options, true, l2);
  pass.sum.complete = false;
  return pass;
}

void compare(const Pass& whole, const Pass& half, const gpu::Device& device, Sensitivity& result) {
  const CardShare all;
  const CardShare half_the_sms{0.5, 1};
  const CardShare half_of_both{0.5, 0.5};
  const KernelTime time = whole.time(device, all);
  result.whole = whole.sum;
  result.half = half.sum;
  result.time_s = time.all_s;
  if (time.all_s <= 0) return;
  result.half_l2_slowdown = half.time(device, all).all_s / time.all_s;
  result.half_memory_slowdown =
      half.time(device, half_of_both).all_s / whole.time(device, half_the_sms).all_s;
  result.dram_demand_bytes_s = static_cast<double>(whole.sum.dram_bytes) / time.all_s;
  result.dram_demand_share = time.dram_s / time.all_s;
  result.l2_demand_share = time.l2_s / time.all_s;
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
    add_kernel(predict_caches(runs, device, own), 1, pass);
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

Result<void> check_rates(const Sensitivity& sensitivity) {
  for (const CachePrediction* one : {&sensitivity.whole, &sensitivity.half}) {
    for (const double rate : {one->l1_hit_rate, one->l2_hit_rate, one->l2_read_hit_rate}) {
      if (rate >= 0 && rate <= 1) continue;
      return check_failed(
          "the prediction is wrong: a hit rate of {} {} is not between 0 and 1", rate,
          one == &sensitivity.whole ? "with the whole of the L2" : "with half of the L2");
    }
  }
  return {};
}

}  // namespace demarc::locality
