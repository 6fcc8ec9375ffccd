#include "demarc/locality/runs.hpp"

#include <algorithm>

namespace demarc::locality {
namespace {

constexpr std::uint64_t sector_bytes = 32;

// Sectors that the lanes of one warp instruction touch; lanes arrive as parts of runs.
class RequestSectors {
 public:
  void add(std::uint64_t address, std::int64_t stride, std::uint32_t count, std::uint32_t bytes) {
    std::uint64_t step = static_cast<std::uint64_t>(stride);
    if (stride < 0) {
      address += step * (count - 1);
      step = static_cast<std::uint64_t>(-stride);
    }
    const std::uint64_t first = address / sector_bytes;
    const std::uint64_t last = (address + step * (count - 1) + bytes - 1) / sector_bytes;
    // Without gaps of a sector or more, all sectors between the ends are touched.
    if (step <= std::max<std::uint64_t>(sector_bytes, bytes)) {
      push(first, last);
      return;
    }
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint64_t lane = address + step * k;
      push(lane / sector_bytes, (lane + bytes - 1) / sector_bytes);
    }
  }
  // The number of distinct sectors; starts anew.
  std::uint64_t finish() {
    if (parts_.size() > 1) std::sort(parts_.begin(), parts_.end());
    std::uint64_t count = 0;
    std::uint64_t next = 0;
    for (const auto& [first, last] : parts_) {
      if (last < next) continue;
      count += last - std::max(first, next) + 1;
      next = last + 1;
    }
    parts_.clear();
    return count;
  }

 private:
  void push(std::uint64_t first, std::uint64_t last) {
    if (!parts_.empty() && parts_.back().second + 1 >= first && parts_.back().first <= first)
      parts_.back().second = std::max(parts_.back().second, last);
    else
      parts_.emplace_back(first, last);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts_;
};

}  // namespace

const char* to_string(AccessKind kind) {
  switch (kind) {
    case AccessKind::load:
      return "load";
    case AccessKind::store:
      return "store";
    case AccessKind::atomic:
      return "atomic";
  }
  return "load";
}

const char* to_string(AccessClass access_class) {
  switch (access_class) {
    case AccessClass::affine:
      return "affine";
    case AccessClass::guarded_affine:
      return "affine under a guard";
    case AccessClass::loop_affine:
      return "loop-affine";
    case AccessClass::data_dependent:
      return "data-dependent";
  }
  return "data-dependent";
}

const char* to_string(Source source) {
  return source == Source::symbolic ? "symbolic" : "emulated";
}

void count_requests(AccessRuns& runs) {
  struct Part {
    std::uint64_t key = 0;  // access, request, warp
    const Run* run = nullptr;
    std::uint16_t first = 0;  // position in the run
    std::uint16_t count = 0;
  };
  std::vector<double> sectors(runs.accesses.size(), 0);
  for (Access& access : runs.accesses) access.executed = access.requests = 0;
  const std::vector<std::size_t> starts = block_starts(runs);
  std::vector<Part> parts;
  RequestSectors request;
  for (std::uint32_t block = 0; block < runs.blocks(); ++block) {
    parts.clear();
    for (std::size_t r = starts[block]; r < starts[block + 1]; ++r) {
      const Run& run = runs.runs[r];
      runs.accesses[run.access].executed += run.count;
      for (std::uint32_t done = 0; done < run.count;) {
        const std::uint32_t warp = (run.thread + done) / 32;
        const std::uint32_t count = std::min(run.count - done, (warp + 1) * 32 - run.thread - done);
        parts.push_back(
            {(std::uint64_t{run.access} << 48U) | (std::uint64_t{run.request} << 8U) | warp, &run,
             static_cast<std::uint16_t>(done), static_cast<std::uint16_t>(count)});
        done += count;
      }
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.key < b.key; });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Run& run = *parts[i].run;
      request.add(run.address + static_cast<std::uint64_t>(run.stride) * parts[i].first, run.stride,
                  parts[i].count, runs.accesses[run.access].bytes);
      if (i + 1 < parts.size() && parts[i + 1].key == parts[i].key) continue;
      ++runs.accesses[run.access].requests;
      sectors[run.access] += static_cast<double>(request.finish());
    }
  }
  for (std::size_t a = 0; a < sectors.size(); ++a) {
    Access& access = runs.accesses[a];
    access.sectors_per_request =
        access.requests > 0 ? sectors[a] / static_cast<double>(access.requests) : 0;
  }
}

AccessRuns only(const AccessRuns& runs, AccessKind kind) {
  AccessRuns result;
  result.grid = runs.grid;
  result.block = runs.block;
  constexpr std::uint16_t dropped = 0xffff;
  std::vector<std::uint16_t> number(runs.accesses.size(), dropped);
  for (std::size_t a = 0; a < runs.accesses.size(); ++a) {
    if (runs.accesses[a].kind != kind) continue;
    number[a] = static_cast<std::uint16_t>(result.accesses.size());
    result.accesses.push_back(runs.accesses[a]);
  }
  result.runs.reserve(runs.runs.size());
  for (const Run& run : runs.runs) {
    if (number[run.access] == dropped) continue;
    result.runs.push_back(run);
    result.runs.back().access = number[run.access];
  }
  return result;
}

std::vector<std::size_t> block_starts(const AccessRuns& runs) {
  std::vector<std::size_t> starts(std::size_t{runs.blocks()} + 1, runs.runs.size());
  std::size_t at = 0;
  for (std::uint32_t block = 0; block < runs.blocks(); ++block) {
    while (at < runs.runs.size() && runs.runs[at].block < block) ++at;
    starts[block] = at;
  }
  return starts;
}

}  // namespace demarc::locality
