#include "order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace demarc::sweep {

// First, for each value of each axis, a point that has it: after these something is known of all.
Order::Order(const Plan& plan, std::vector<std::uint64_t> left)
    : plan_(plan), left_(std::move(left)) {
  std::vector<std::vector<bool>> seen;
  std::uint64_t unseen = 0;
  for (const Axis& axis : plan.axes()) {
    seen.emplace_back(axis.values.size(), false);
    of_value_.emplace_back(axis.values.size());
    unseen += axis.values.size();
  }
  std::size_t first = 0;
  // The widest axis needs as many points as it has values; a stride meets those of all axes soon.
  const std::size_t stride = std::max<std::size_t>(left_.size() * 618 / 1000, 1) | 1U;
  for (std::size_t tried = 0; tried < left_.size() && unseen > 0; ++tried) {
    const std::size_t at = first + tried * stride % (left_.size() - first);
    bool useful = false;
    const auto positions = plan.positions(left_[at]);
    for (std::size_t a = 0; a < positions.size(); ++a) useful = useful || !seen[a][positions[a]];
    if (!useful) continue;
    for (std::size_t a = 0; a < positions.size(); ++a) {
      if (seen[a][positions[a]]) continue;
      seen[a][positions[a]] = true;
      --unseen;
    }
    std::swap(left_[first], left_[at]);
    if (++first == left_.size()) break;
  }
  sort_at_ = std::max<std::uint64_t>(first, 8);
}

std::uint64_t Order::take() {
  if (!again_.empty()) {
    const std::uint64_t index = again_.back();
    again_.pop_back();
    return index;
  }
  return left_[next_++];
}

void Order::learn(std::uint64_t index, double seconds) {
  const double logarithm = std::log(std::max(seconds, 1e-6));
  const auto positions = plan_.positions(index);
  for (std::size_t a = 0; a < positions.size(); ++a) {
    Sum& sum = of_value_[a][positions[a]];
    sum.logarithms += logarithm;
    ++sum.count;
  }
  all_.logarithms += logarithm;
  if (++all_.count < sort_at_) return;
  sort_at_ *= 2;
  sort();
}

std::optional<double> Order::expected(std::uint64_t index) const {
  if (all_.count == 0) return {};
  double logarithm = all_.mean();
  const auto positions = plan_.positions(index);
  for (std::size_t a = 0; a < positions.size(); ++a) {
    const Sum& sum = of_value_[a][positions[a]];
    if (sum.count == 0) return {};
    logarithm += sum.mean() - all_.mean();
  }
  return std::exp(logarithm);
}

// Dearest first; those of which nothing is known before them.
void Order::sort() {
  std::vector<std::pair<double, std::uint64_t>> priced;
  priced.reserve(left_.size() - next_);
  for (std::size_t i = next_; i < left_.size(); ++i) {
    priced.emplace_back(-expected(left_[i]).value_or(HUGE_VAL), left_[i]);
  }
  std::sort(priced.begin(), priced.end());
  for (std::size_t i = 0; i < priced.size(); ++i) left_[next_ + i] = priced[i].second;
}

}  // namespace demarc::sweep
