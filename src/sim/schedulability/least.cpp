// Finds the fewest TPCs on which a task set holds its deadlines, however many a plan uses.
#include <algorithm>
#include <bit>
#include <limits>

#include "demarc/sim/schedulability/schedulability.hpp"
#include "schedulability/shares.hpp"

namespace demarc::sim {
namespace {

// Up to this many tasks every way to share is tried: 3^12 pairs of a set and a part of it, for each
// number of partitions.
constexpr std::size_t max_tried = 12;
constexpr std::uint64_t never = std::numeric_limits<std::uint32_t>::max();

TaskGroup group_of(const Share& share) {
  return {share.tasks, share.tpcs};
}

class EveryWay {
 public:
  EveryWay(std::vector<Share> shares, std::size_t max_partitions)
      : shares_(std::move(shares)), most_(std::min(max_partitions, shares_.size())) {}

  std::optional<LeastTpcs> find() {
    const std::size_t sets = std::size_t{1} << shares_.size();
    alone_.assign(sets, never);
    for (std::size_t set = 1; set < sets; ++set) alone_[set] = tpcs_of(set);
    // best[set] with one partition more at a time; part_[partitions][set]: the one added.
    std::vector<std::uint64_t> best(sets, never);
    best[0] = 0;
    for (std::size_t partitions = 1; partitions <= most_; ++partitions) {
      std::vector<std::uint64_t> more = best;
      std::vector<std::size_t> part(sets, 0);
      for (std::size_t set = 1; set < sets; ++set) {
        const std::size_t lowest = set & (0 - set);  // is in the part that is added
        for (std::size_t of = set; of != 0; of = (of - 1) & set) {
          if ((of & lowest) == 0 || alone_[of] == never || best[set ^ of] == never) continue;
          const std::uint64_t tpcs = alone_[of] + best[set ^ of];
          if (tpcs >= more[set]) continue;
          more[set] = tpcs;
          part[set] = of;
        }
      }
      best = std::move(more);
      part_.push_back(std::move(part));
    }
    const std::size_t all = sets - 1;
    if (best[all] == never) return {};
    LeastTpcs least{best[all], true, {}};
    std::size_t left = all;
    for (std::size_t partitions = most_; partitions-- > 0;) {
      const std::size_t part = part_[partitions][left];
      if (part == 0) continue;  // as good with one partition less
      least.groups.push_back(group(part));
      left ^= part;
    }
    return least;
  }

 private:
  [[nodiscard]] std::uint64_t tpcs_of(std::size_t set) const {
    Nanoseconds limit(std::numeric_limits<std::uint64_t>::max());
    for (std::size_t rest = set; rest != 0; rest &= rest - 1) {
      limit = std::min(limit, share(rest).limit);
    }
    for (std::size_t i = 0; i < shares_.front().bounds.size(); ++i) {
      Nanoseconds left = limit;
      bool holds = true;
      for (std::size_t rest = set; rest != 0 && holds; rest &= rest - 1) {
        const Nanoseconds bound = share(rest).bounds[i];
        holds = bound <= left;
        if (holds) left = left - bound;
      }
      if (holds) return i + 1;
    }
    return never;
  }
  // For the lowest task of a set.
  [[nodiscard]] const Share& share(std::size_t set) const {
    return shares_[static_cast<std::size_t>(std::countr_zero(set))];
  }
  [[nodiscard]] TaskGroup group(std::size_t set) const {
    TaskGroup made{{}, static_cast<std::uint32_t>(alone_[set])};
    for (std::size_t rest = set; rest != 0; rest &= rest - 1) {
      made.tasks.push_back(share(rest).tasks.front());
    }
    return made;
  }

  std::vector<Share> shares_;
  std::size_t most_;
  std::vector<std::uint64_t> alone_;            // TPCs of one partition, by set of tasks
  std::vector<std::vector<std::size_t>> part_;  // [partitions - 1][set]; 0: none was added
};

}  // namespace

std::optional<LeastTpcs> least_tpcs(const TaskSet& set) {
  std::vector<Share> alone;
  for (std::size_t t = 0; t < set.tasks.size(); ++t) {
    auto share = share_of(set, t);
    if (!share) return {};
    alone.push_back(std::move(*share));
  }
  if (alone.empty()) return {};
  const std::size_t most = max_partitions(set);
  if (alone.size() <= max_tried) return EveryWay(std::move(alone), most).find();
  Shares groups(std::move(alone));
  while (groups.merge_best(1)) {
  }
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::min();
  while (groups.count() > most) {
    if (!groups.merge_best(any)) return {};
  }
  LeastTpcs found{groups.tpcs(), false, {}};
  for (const Share& share : groups.take()) found.groups.push_back(group_of(share));
  return found;
}

}  // namespace demarc::sim
