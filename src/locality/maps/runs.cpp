// Counts the requests and sectors of runs, and writes out the loops of runs.
#include "demarc/locality/runs.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace demarc::locality {
namespace {

constexpr std::uint64_t run_sector_bytes = 32;

// Sectors that the lanes of one warp instruction touch; lanes arrive as parts of runs.
class RequestSectors {
 public:
  void add(std::uint64_t address, std::int64_t stride, std::uint32_t count, std::uint32_t bytes) {
    std::uint64_t step = static_cast<std::uint64_t>(stride);
    if (stride < 0) {
      address += step * (count - 1);
      step = static_cast<std::uint64_t>(-stride);
    }
    const std::uint64_t first = address / run_sector_bytes;
    const std::uint64_t last = (address + step * (count - 1) + bytes - 1) / run_sector_bytes;
    // Without gaps of a sector or more, all sectors between the ends are touched.
    if (step <= std::max<std::uint64_t>(run_sector_bytes, bytes)) {
      push(first, last);
      return;
    }
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint64_t lane = address + step * k;
      push(lane / run_sector_bytes, (lane + bytes - 1) / run_sector_bytes);
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

std::uint32_t loop_index(AccessRuns& runs, const Loop& loop) {
  // Loops of one kernel are few; where they are many the same one may be listed again.
  constexpr std::size_t looked_at = 64;
  for (std::size_t i = runs.loops.size(); i > 0 && runs.loops.size() - i < looked_at; --i)
    if (runs.loops[i - 1] == loop) return static_cast<std::uint32_t>(i - 1);
  runs.loops.push_back(loop);
  return static_cast<std::uint32_t>(runs.loops.size() - 1);
}

AccessRuns expanded(const AccessRuns& runs) {
  AccessRuns result = runs;
  result.runs.clear();
  result.loops = {Loop{}};
  for (Run run : runs.runs) {
    const Loop& loop = runs.loop_of(run);
    run.loop = 0;
    for (std::uint32_t trip = 0; trip < loop.trips; ++trip) {
      result.runs.push_back(run);
      run.address += static_cast<std::uint64_t>(loop.stride);
      ++run.request;
      run.step += loop.steps;
    }
  }
  return result;
}

namespace {

// A run's lanes in one warp.
struct Part {
  std::uint64_t key = 0;  // access, request, warp
  const Run* run = nullptr;
  std::uint16_t first = 0;  // position in the run
  std::uint16_t count = 0;
};

// Requests of a warp and their sectors.
class WarpRequests {
 public:
  explicit WarpRequests(const AccessRuns& runs) : runs_(runs) {}

  std::uint64_t requests = 0;
  std::uint64_t sectors = 0;

  // The parts of one request, and of those in the trips after.
  void count(const Part* begin, const Part* end) {
    requests = sectors = 0;
    std::uint32_t done = 0;
    // Lanes may leave the loop in different trips.
    while (true) {
      std::uint32_t until = std::numeric_limits<std::uint32_t>::max();
      active_.clear();
      for (const Part* part = begin; part != end; ++part) {
        const std::uint32_t trips = runs_.loop_of(*part->run).trips;
        if (trips <= done) continue;
        until = std::min(until, trips);
        active_.push_back(part);
      }
      if (active_.empty()) return;
      count_trips(done, until);
      done = until;
    }
  }

 private:
  // Trips begin .. end - 1, in which the same lanes are active.
  void count_trips(std::uint32_t begin, std::uint32_t end) {
    requests += end - begin;
    const std::int64_t stride = runs_.loop_of(*active_.front()->run).stride;
    const bool together = std::all_of(active_.begin(), active_.end(), [&](const Part* part) {
      return runs_.loop_of(*part->run).stride == stride;
    });
    // Moved by whole sectors, lanes touch as many.
    const std::uint64_t offset = static_cast<std::uint64_t>(stride) % run_sector_bytes;
    const std::uint64_t period = together ? run_sector_bytes / std::gcd(run_sector_bytes, offset)
                                          : std::uint64_t{end} - begin;
    for (std::uint64_t phase = 0; phase < period && begin + phase < end; ++phase)
      sectors += sectors_in(begin + phase) * (ceil_div(end - begin - phase, period));
  }
  std::uint64_t sectors_in(std::uint64_t trip) {
    for (const Part* part : active_) {
      const Run& run = *part->run;
      const auto moved = static_cast<std::uint64_t>(runs_.loop_of(run).stride) * trip;
      request_.add(run.address + moved + static_cast<std::uint64_t>(run.stride) * part->first,
                   run.stride, part->count, runs_.accesses[run.access].bytes);
    }
    return request_.finish();
  }

  const AccessRuns& runs_;
  std::vector<const Part*> active_;
  RequestSectors request_;
};

}  // namespace

void count_requests(AccessRuns& runs) {
  std::vector<double> sectors(runs.accesses.size(), 0);
  for (Access& access : runs.accesses) access.executed = access.requests = 0;
  const std::vector<std::size_t> starts = block_starts(runs);
  std::vector<Part> parts;
  WarpRequests warp_requests(runs);
  for (std::uint32_t block = 0; block < runs.blocks(); ++block) {
    parts.clear();
    for (std::size_t r = starts[block]; r < starts[block + 1]; ++r) {
      const Run& run = runs.runs[r];
      runs.accesses[run.access].executed += std::uint64_t{run.count} * runs.loop_of(run).trips;
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
    for (std::size_t i = 0; i < parts.size();) {
      std::size_t next = i + 1;
      while (next < parts.size() && parts[next].key == parts[i].key) ++next;
      warp_requests.count(parts.data() + i, parts.data() + next);
      Access& access = runs.accesses[parts[i].run->access];
      access.requests += warp_requests.requests;
      sectors[parts[i].run->access] += static_cast<double>(warp_requests.sectors);
      i = next;
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
  result.loops = runs.loops;
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
