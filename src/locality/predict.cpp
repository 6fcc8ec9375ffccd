#include "demarc/locality/predict.hpp"

#include <algorithm>

#include "sector_cache.hpp"

namespace demarc::locality {
namespace {

// The requests of one block: those of warp w are [warp_next[w], warp_end[w]).
struct BlockRequests {
  struct Request {
    std::uint32_t first_sector = 0;
    std::uint32_t sectors = 0;
    AccessKind kind = AccessKind::load;
  };
  std::vector<Request> requests;
  std::vector<std::uint64_t> sectors;
  std::vector<std::uint32_t> warp_next;
  std::vector<std::uint32_t> warp_end;
  std::size_t left = 0;
};

class RequestMaker {
 public:
  RequestMaker(const AccessRuns& runs, std::uint32_t sector_bytes)
      : runs_(runs), starts_(block_starts(runs)), sector_bytes_(sector_bytes) {}

  void make(std::uint32_t block, BlockRequests& out) {
    parts_.clear();
    for (std::size_t r = starts_[block]; r < starts_[block + 1]; ++r) add_parts(runs_.runs[r]);
    std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
      return a.warp != b.warp ? a.warp < b.warp : a.order < b.order;
    });
    const std::uint32_t warps = (runs_.threads() + 31) / 32;
    out.requests.clear();
    out.sectors.clear();
    out.warp_next.assign(warps, 0);
    out.warp_end.assign(warps, 0);
    std::size_t i = 0;
    for (std::uint32_t warp = 0; warp < warps; ++warp) {
      out.warp_next[warp] = static_cast<std::uint32_t>(out.requests.size());
      while (i < parts_.size() && parts_[i].warp == warp) i = add_request(i, out);
      out.warp_end[warp] = static_cast<std::uint32_t>(out.requests.size());
    }
    out.left = out.requests.size();
  }

 private:
  struct Part {
    std::uint32_t warp = 0;
    std::uint64_t order = 0;  // step, access, request
    const Run* run = nullptr;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };

  void add_parts(const Run& run) {
    for (std::uint32_t done = 0; done < run.count;) {
      const std::uint32_t warp = (run.thread + done) / 32;
      const std::uint32_t count = std::min(run.count - done, (warp + 1) * 32 - run.thread - done);
      parts_.push_back({warp,
                        (std::uint64_t{run.step} << 32U) | (std::uint64_t{run.access} << 16U) |
                            (run.request & 0xffffU),
                        &run, done, count});
      done += count;
    }
  }

  // Parts of one instruction stand side by side; their distinct sectors make a request.
  std::size_t add_request(std::size_t i, BlockRequests& out) {
    const Part& head = parts_[i];
    const Access& access = runs_.accesses[head.run->access];
    lanes_.clear();
    for (; i < parts_.size() && parts_[i].warp == head.warp && parts_[i].order == head.order; ++i) {
      const Part& part = parts_[i];
      for (std::uint32_t k = 0; k < part.count; ++k) {
        const std::uint64_t address =
            part.run->address + static_cast<std::uint64_t>(part.run->stride) * (part.first + k);
        const std::uint64_t last = (address + access.bytes - 1) / sector_bytes_;
        for (std::uint64_t sector = address / sector_bytes_; sector <= last; ++sector)
          if (lanes_.empty() || lanes_.back() != sector) lanes_.push_back(sector);
      }
    }
    std::sort(lanes_.begin(), lanes_.end());
    lanes_.erase(std::unique(lanes_.begin(), lanes_.end()), lanes_.end());
    out.requests.push_back({static_cast<std::uint32_t>(out.sectors.size()),
                            static_cast<std::uint32_t>(lanes_.size()), access.kind});
    out.sectors.insert(out.sectors.end(), lanes_.begin(), lanes_.end());
    return i;
  }

  const AccessRuns& runs_;
  std::vector<std::size_t> starts_;
  std::uint64_t sector_bytes_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> lanes_;
};

std::uint32_t resident_blocks(const AccessRuns& runs, const gpu::Device& device,
                              std::uint32_t shared_bytes) {
  const std::uint32_t threads = std::max(32U, (runs.threads() + 31) / 32 * 32);
  std::uint32_t count = std::min(device.sm.blocks, device.sm.threads / threads);
  if (shared_bytes > 0)
    count =
        std::min(count, device.sm.shared_bytes / (shared_bytes + device.sm.shared_reserved_bytes));
  return std::max(count, 1U);
}

class CacheModel {
 public:
  CacheModel(const AccessRuns& runs, const gpu::Device& device, const PredictOptions& options)
      : runs_(runs),
        options_(options),
        maker_(runs, device.l2.sector_bytes),
        l2_(static_cast<std::uint64_t>(static_cast<double>(device.l2.size_bytes) *
                                       options.l2_share),
            device.l2.line_bytes, device.l2.sector_bytes),
        sector_bytes_(device.l2.sector_bytes) {
    result_.blocks_per_sm = resident_blocks(runs, device, options.shared_bytes_per_block);
    const std::uint32_t sms = std::max(device.topology.sm_count(), 1U);
    result_.sms = std::min(sms, runs.blocks());
    // What shared memory takes is not left for the L1 where the two are one memory.
    const std::uint64_t taken =
        device.sm.shared_bytes < device.l1.size_bytes
            ? std::uint64_t{result_.blocks_per_sm} * options.shared_bytes_per_block
            : 0;
    const std::uint64_t l1_bytes = device.l1.size_bytes > taken ? device.l1.size_bytes - taken : 0;
    for (std::uint32_t s = 0; s < result_.sms; ++s)
      sms_.push_back({SectorCache(l1_bytes, device.l1.line_bytes, device.l1.sector_bytes), {}});
  }

  CachePrediction run() {
    // One block for every SM in turn until they are full.
    for (std::uint32_t round = 0; round < result_.blocks_per_sm; ++round)
      for (Sm& sm : sms_)
        if (next_block_ < runs_.blocks()) {
          sm.blocks.emplace_back();
          maker_.make(next_block_++, sm.blocks.back());
        }
    bool busy = true;
    while (busy && requests_ < options_.most_requests) {
      busy = false;
      for (Sm& sm : sms_)
        for (BlockRequests& block : sm.blocks) busy = turn(sm, block) || busy;
    }
    result_.complete = !busy;
    result_.dram_bytes += l2_.dirty_sectors() * sector_bytes_;
    if (result_.l1_sectors > 0)
      result_.l1_hit_rate = static_cast<double>(l1_hits_) / static_cast<double>(result_.l1_sectors);
    if (result_.l2_sectors > 0)
      result_.l2_hit_rate = static_cast<double>(l2_hits_) / static_cast<double>(result_.l2_sectors);
    return result_;
  }

 private:
  struct Sm {
    SectorCache l1;
    std::vector<BlockRequests> blocks;
  };

  // One request of every warp; a block that is done makes room for the next.
  bool turn(Sm& sm, BlockRequests& block) {
    while (block.left == 0 && next_block_ < runs_.blocks()) maker_.make(next_block_++, block);
    if (block.left == 0) return false;
    for (std::size_t warp = 0; warp < block.warp_next.size(); ++warp) {
      if (block.warp_next[warp] == block.warp_end[warp]) continue;
      perform(sm, block, block.requests[block.warp_next[warp]++]);
      --block.left;
      ++requests_;
    }
    return true;
  }

  void perform(Sm& sm, const BlockRequests& block, const BlockRequests::Request& request) {
    for (std::uint32_t k = 0; k < request.sectors; ++k) {
      const std::uint64_t sector = block.sectors[request.first_sector + k];
      const bool load = request.kind == AccessKind::load;
      if (load) {
        ++result_.l1_sectors;
        if (sm.l1.look_up(sector, true, false).hit) {
          ++l1_hits_;
          continue;
        }
      } else if (request.kind == AccessKind::store) {
        sm.l1.look_up(sector, false, false);
      }
      ++result_.l2_sectors;
      const SectorCache::Looked looked = l2_.look_up(sector, true, !load);
      // A store fills its sector without reading it: it counts as a hit, as the counters do.
      if (looked.hit || request.kind == AccessKind::store)
        ++l2_hits_;
      else
        result_.dram_bytes += sector_bytes_;
      result_.dram_bytes += looked.written_back * sector_bytes_;
    }
  }

  const AccessRuns& runs_;
  PredictOptions options_;
  RequestMaker maker_;
  SectorCache l2_;
  std::uint64_t sector_bytes_;
  std::vector<Sm> sms_;
  std::uint32_t next_block_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t l1_hits_ = 0;
  std::uint64_t l2_hits_ = 0;
  CachePrediction result_;
};

// Bytes a cycle that an SM's L1 and a slice of the L2 deliver.
constexpr double l1_bytes_per_cycle = 128;
constexpr double slice_bytes_per_cycle = 64;

double least_time_s(const CachePrediction& prediction, const gpu::Device& device) {
  const double clock = device.sm_clock_hz > 0 ? device.sm_clock_hz : 1e9;
  const double sector = device.l2.sector_bytes;
  const double l1 = static_cast<double>(prediction.l1_sectors) * sector /
                    (l1_bytes_per_cycle * clock * std::max(prediction.sms, 1U));
  const double l2 = static_cast<double>(prediction.l2_sectors) * sector /
                    (slice_bytes_per_cycle * clock * std::max(device.l2.slices, 1U));
  const double dram =
      device.dram.bandwidth_bytes_per_s > 0
          ? static_cast<double>(prediction.dram_bytes) / device.dram.bandwidth_bytes_per_s
          : 0;
  return std::max({l1, l2, dram});
}

}  // namespace

CachePrediction predict_caches(const AccessRuns& runs, const gpu::Device& device,
                               const PredictOptions& options) {
  return CacheModel(runs, device, options).run();
}

Sensitivity predict_sensitivity(const AccessRuns& runs, const gpu::Device& device,
                                const PredictOptions& options) {
  Sensitivity result;
  result.whole = predict_caches(runs, device, options);
  PredictOptions halved = options;
  halved.l2_share = options.l2_share / 2;
  result.half = predict_caches(runs, device, halved);
  result.time_s = least_time_s(result.whole, device);
  if (result.time_s <= 0) return result;
  result.half_l2_slowdown = least_time_s(result.half, device) / result.time_s;
  result.dram_demand_bytes_s = static_cast<double>(result.whole.dram_bytes) / result.time_s;
  if (device.dram.bandwidth_bytes_per_s > 0)
    result.dram_demand_share = result.dram_demand_bytes_s / device.dram.bandwidth_bytes_per_s;
  return result;
}

}  // namespace demarc::locality
