// Groups of tasks that share a partition, before its TPCs are chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "demarc/sim/schedulability/schedulability.hpp"

namespace demarc::sim {

struct Share {
  std::vector<std::size_t> tasks;
  std::vector<Nanoseconds> bounds;  // [TPCs - 1]: no job takes longer; the sum of the job times
  Nanoseconds limit;                // the shortest period or deadline
  std::uint32_t tpcs = 0;           // the fewest on which it holds its deadlines

  [[nodiscard]] Nanoseconds bound_on(std::uint32_t count) const { return bounds.at(count - 1); }
};

// One task alone; nothing when it does not hold its deadline on the whole GPU.
[[nodiscard]] std::optional<Share> share_of(const TaskSet& set, std::size_t task);

// Shares, in an order that merging keeps: the merged one stands where the first of the two stood.
class Shares {
 public:
  explicit Shares(std::vector<Share> shares);

  [[nodiscard]] std::uint64_t tpcs() const { return tpcs_; }
  [[nodiscard]] std::size_t count() const { return alive_; }
  // Merges the two that save most TPCs, the first of equals. False, and nothing is done, when no
  // two hold their deadlines together and save at least `least` (below 0: cost at most -least).
  bool merge_best(std::int64_t least);
  void remove_widest(std::vector<std::size_t>& tasks);  // what it held goes behind `tasks`

  [[nodiscard]] std::vector<Share> take();

 private:
  struct Partner {
    std::int64_t saved = 0;
    std::size_t with = 0;  // 0: there is none, for partners come behind
  };
  [[nodiscard]] std::optional<std::int64_t> saved_by(std::size_t a, std::size_t b) const;
  void find_partner(std::size_t a);

  std::vector<std::optional<Share>> shares_;
  std::vector<Partner> partners_;  // the best behind each
  std::uint64_t tpcs_ = 0;
  std::size_t alive_ = 0;
  bool partners_known_ = false;
};

}  // namespace demarc::sim
