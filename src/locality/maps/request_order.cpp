// Numbers the requests of warps whose lanes went different ways, and joins their runs.
#include "maps/request_order.hpp"

#include <algorithm>

namespace demarc::locality {
namespace {

// Trips of closed loops that become runs of their own, in one block: 0.2 GiB.
constexpr std::uint64_t max_expanded = std::uint64_t{1} << 22U;

class RequestOrder {
 public:
  RequestOrder(AccessRuns& runs, std::size_t first, const Slice& slice,
               std::vector<std::uint32_t>& trips, std::size_t depth)
      : runs_(runs), first_(first), slice_(slice), trips_(trips), depth_(depth) {}

  bool number() {
    if (!expand_mixed_loops()) return false;
    order_.resize(runs_.runs.size() - first_);
    for (std::uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      const int way = compare(a, b);
      return way != 0 ? way < 0 : a < b;
    });
    requests_.assign(slice_.accesses.size(), 0);
    for (std::size_t i = 0; i < order_.size();) i = number_together(i);
    return true;
  }

 private:
  [[nodiscard]] Run& run(std::uint32_t i) { return runs_.runs[first_ + i]; }

  // < 0, 0, > 0 as the run a is made before, with or after b; loops by their first trip.
  int compare(std::uint32_t a, std::uint32_t b) {
    const std::vector<std::uint64_t>& p = slice_.order[run(a).access];
    const std::vector<std::uint64_t>& q = slice_.order[run(b).access];
    for (std::size_t level = 0;; ++level) {
      if (p[level] != q[level]) return p[level] < q[level] ? -1 : 1;
      // Equal places are a loop around both, or the access itself.
      if (level + 1 == p.size()) return 0;
      const std::uint32_t i = trips_[a * depth_ + level];
      const std::uint32_t j = trips_[b * depth_ + level];
      if (i != j) return i < j ? -1 : 1;
    }
  }

  // Do the trips of both stand in the same entry of the same loop?
  bool same_loop(std::uint32_t a, std::uint32_t b) {
    const auto& loops = slice_.loops_of_access[run(a).access];
    if (run(a).loop == 0 || run(b).loop == 0 || loops != slice_.loops_of_access[run(b).access])
      return false;
    for (std::size_t level = 0; level + 1 < loops.size(); ++level)
      if (trips_[a * depth_ + level] != trips_[b * depth_ + level]) return false;
    return true;
  }

  // The runs of one request, or of one loop; gives the first that is not among them.
  std::size_t number_together(std::size_t begin) {
    std::size_t end = begin + 1;
    const auto together = [&](std::size_t i) {
      return compare(order_[begin], order_[i]) == 0 || same_loop(order_[begin], order_[i]);
    };
    while (end < order_.size() && together(end)) ++end;
    std::uint32_t position = 0;
    std::uint32_t most = 0;
    for (std::size_t i = begin; i < end;) {
      std::uint32_t trips = 0;
      std::size_t next = i;
      for (; next < end && compare(order_[i], order_[next]) == 0; ++next) {
        Run& one = run(order_[next]);
        trips = std::max(trips, runs_.loop_of(one).trips);
        one.request = requests_[one.access];
        one.step = step_ + position;
      }
      requests_[run(order_[i]).access] += trips;
      most = std::max(most, trips);
      ++position;
      i = next;
    }
    for (std::size_t i = begin; i < end; ++i) {
      Run& one = run(order_[i]);
      if (one.loop == 0) continue;
      Loop loop = runs_.loop_of(one);
      loop.steps = position;
      one.loop = loop_index(runs_, loop);
    }
    step_ += position * most;
    return end;
  }

  // Where some lanes were followed trip by trip through a loop, all are. False: too many.
  bool expand_mixed_loops() {
    std::uint64_t expanded = 0;
    std::vector<bool> closed(slice_.loop_headers.size(), false);
    std::vector<bool> open(slice_.loop_headers.size(), false);
    for (std::size_t i = first_; i < runs_.runs.size(); ++i) {
      const auto& loops = slice_.loops_of_access[runs_.runs[i].access];
      if (!loops.empty()) (runs_.runs[i].loop != 0 ? closed : open)[loops.back()] = true;
    }
    std::vector<Run> all;
    std::vector<std::uint32_t> trips;
    bool mixed = false;
    for (std::size_t i = first_; i < runs_.runs.size(); ++i) {
      Run one = runs_.runs[i];
      const auto& loops = slice_.loops_of_access[one.access];
      const auto levels = trips_.begin() + static_cast<std::ptrdiff_t>((i - first_) * depth_);
      const Loop loop = runs_.loop_of(one);
      const bool expands = one.loop != 0 && open[loops.back()] && closed[loops.back()];
      mixed = mixed || expands;
      if (expands) one.loop = 0;
      if (expands && (expanded += loop.trips) > max_expanded) return false;
      for (std::uint32_t t = 0; t < (expands ? loop.trips : 1); ++t) {
        all.push_back(one);
        trips.insert(trips.end(), levels, levels + static_cast<std::ptrdiff_t>(depth_));
        if (!expands) continue;
        trips[trips.size() - depth_ + loops.size() - 1] = t;
        one.address += static_cast<std::uint64_t>(loop.stride);
      }
    }
    if (!mixed) return true;
    runs_.runs.resize(first_);
    runs_.runs.insert(runs_.runs.end(), all.begin(), all.end());
    trips_ = std::move(trips);
    return true;
  }

  AccessRuns& runs_;
  std::size_t first_;
  const Slice& slice_;
  std::vector<std::uint32_t>& trips_;
  std::size_t depth_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> requests_;
  std::uint32_t step_ = 0;
};

std::uint64_t last_address(const Run& run) {
  return run.address + static_cast<std::uint64_t>(run.stride) * (run.count - 1);
}

bool continues(const AccessRuns& runs, const Run& a, const Run& b) {
  if (a.access != b.access || a.request != b.request || a.thread + a.count != b.thread ||
      runs.loop_of(a) != runs.loop_of(b))
    return false;
  const auto gap = static_cast<std::int64_t>(b.address - last_address(a));
  return (a.count == 1 || a.stride == gap) && (b.count == 1 || b.stride == gap);
}

}  // namespace

bool number_requests(AccessRuns& runs, std::size_t first, const Slice& slice,
                     std::vector<std::uint32_t>& trips, std::size_t depth) {
  return RequestOrder(runs, first, slice, trips, depth).number();
}

void join_runs(AccessRuns& runs, std::size_t first) {
  const auto begin = runs.runs.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, runs.runs.end(), [](const Run& a, const Run& b) {
    if (a.access != b.access) return a.access < b.access;
    return a.request != b.request ? a.request < b.request : a.thread < b.thread;
  });
  std::size_t out = first;
  for (std::size_t i = first; i < runs.runs.size(); ++i) {
    const Run run = runs.runs[i];
    if (out > first && continues(runs, runs.runs[out - 1], run)) {
      Run& before = runs.runs[out - 1];
      before.stride = static_cast<std::int64_t>(run.address - last_address(before));
      before.count += run.count;
    } else {
      runs.runs[out++] = run;
    }
  }
  runs.runs.resize(out);
}

}  // namespace demarc::locality
