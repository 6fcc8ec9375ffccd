// Decides which tasks share a partition. Each share knows its best partner, so a merge costs one
// row of pairs and not all of them.
#include "schedulability/shares.hpp"

#include <algorithm>
#include <limits>

namespace demarc::sim {
namespace {

Nanoseconds saturating_sum(Nanoseconds a, Nanoseconds b) {
  constexpr Nanoseconds most(std::numeric_limits<std::uint64_t>::max());
  return a > most - b ? most : a + b;
}

// The fewest TPCs on which the two hold their deadlines together.
std::optional<std::uint32_t> tpcs_together(const Share& a, const Share& b) {
  const Nanoseconds limit = std::min(a.limit, b.limit);
  for (std::size_t i = 0; i < a.bounds.size(); ++i) {
    if (saturating_sum(a.bounds[i], b.bounds[i]) <= limit) return static_cast<std::uint32_t>(i) + 1;
  }
  return {};
}

}  // namespace

std::optional<Share> share_of(const TaskSet& set, std::size_t task) {
  Share share{{task}, {}, std::min(set.tasks[task].period, set.tasks[task].deadline), 0};
  for (std::uint32_t tpcs = 1; tpcs <= set.spec.topology.tpc_count(); ++tpcs) {
    share.bounds.push_back(job_time(set, task, tpcs));
    if (share.tpcs == 0 && share.bounds.back() <= share.limit) share.tpcs = tpcs;
  }
  return share.tpcs == 0 ? std::nullopt : std::optional(std::move(share));
}

Shares::Shares(std::vector<Share> shares) : alive_(shares.size()) {
  for (Share& share : shares) {
    tpcs_ += share.tpcs;
    shares_.emplace_back(std::move(share));
  }
  partners_.resize(shares_.size());
}

std::optional<std::int64_t> Shares::saved_by(std::size_t a, std::size_t b) const {
  const auto together = tpcs_together(*shares_[a], *shares_[b]);
  if (!together) return {};
  return std::int64_t{shares_[a]->tpcs} + shares_[b]->tpcs - *together;
}

void Shares::find_partner(std::size_t a) {
  partners_[a] = {};
  for (std::size_t b = a + 1; b < shares_.size(); ++b) {
    if (!shares_[b]) continue;
    const auto saved = saved_by(a, b);
    if (saved && (partners_[a].with == 0 || *saved > partners_[a].saved))
      partners_[a] = {*saved, b};
  }
}

bool Shares::merge_best(std::int64_t least) {
  for (std::size_t a = 0; a < shares_.size() && !partners_known_; ++a) {
    if (shares_[a]) find_partner(a);
  }
  partners_known_ = true;
  std::size_t first = shares_.size();
  for (std::size_t a = 0; a < shares_.size(); ++a) {
    if (!shares_[a] || partners_[a].with == 0 || partners_[a].saved < least) continue;
    if (first == shares_.size() || partners_[a].saved > partners_[first].saved) first = a;
  }
  if (first == shares_.size()) return false;
  const std::size_t second = partners_[first].with;
  Share& merged = *shares_[first];
  const Share& other = *shares_[second];
  tpcs_ -= static_cast<std::uint64_t>(merged.tpcs) + other.tpcs;
  merged.tpcs = tpcs_together(merged, other).value();
  tpcs_ += merged.tpcs;
  merged.limit = std::min(merged.limit, other.limit);
  for (std::size_t i = 0; i < merged.bounds.size(); ++i)
    merged.bounds[i] = saturating_sum(merged.bounds[i], other.bounds[i]);
  merged.tasks.insert(merged.tasks.end(), other.tasks.begin(), other.tasks.end());
  shares_[second].reset();
  --alive_;
  find_partner(first);
  for (std::size_t a = 0; a < second; ++a) {
    if (!shares_[a] || a == first) continue;
    Partner& partner = partners_[a];
    if (partner.with == first || partner.with == second) {
      find_partner(a);
    } else if (const auto saved = a < first ? saved_by(a, first) : std::nullopt;
               saved && (partner.with == 0 || *saved > partner.saved ||
                         (*saved == partner.saved && first < partner.with))) {
      partner = {*saved, first};
    }
  }
  return true;
}

void Shares::remove_widest(std::vector<std::size_t>& tasks) {
  const auto widest = std::max_element(
      shares_.begin(), shares_.end(),
      [](const auto& a, const auto& b) { return (a ? a->tpcs : 0) < (b ? b->tpcs : 0); });
  if (widest == shares_.end() || !*widest) return;
  tasks.insert(tasks.end(), (*widest)->tasks.begin(), (*widest)->tasks.end());
  tpcs_ -= (*widest)->tpcs;
  widest->reset();
  --alive_;
  partners_known_ = false;
}

std::vector<Share> Shares::take() {
  std::vector<Share> left;
  for (auto& share : shares_) {
    if (share) left.push_back(std::move(*share));
  }
  shares_.clear();
  return left;
}

}  // namespace demarc::sim
