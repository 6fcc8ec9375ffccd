// Orders the points of a sweep by the time that they are expected to take.
#include "order.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace demarc::sweep {

// First the points of a diagonal, which meets each value of each axis: after these something is
// known of all points.
Order::Order(const Plan& plan, std::vector<std::uint64_t> left)
    : plan_(plan), left_(std::move(left)) {
  for (const Axis& axis : plan.axes()) of_value_.emplace_back(axis.size());
  const std::size_t longest =
      std::max_element(plan.axes().begin(), plan.axes().end(), [](const Axis& a, const Axis& b) {
        return a.size() < b.size();
      })->size();
  std::vector<std::uint64_t> sorted;
  for (std::size_t k = 0; k < longest; ++k) {
    std::uint64_t index = 0;
    for (const Axis& axis : plan.axes()) {
      index = index * axis.size() + k % axis.size();
    }
    if (std::binary_search(left_.begin(), left_.end(), index)) sorted.push_back(index);
  }
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const auto on_diagonal = [&](std::uint64_t index) {
    return std::binary_search(sorted.begin(), sorted.end(), index);
  };
  left_.erase(std::remove_if(left_.begin(), left_.end(), on_diagonal), left_.end());
  left_.insert(left_.begin(), sorted.begin(), sorted.end());
  sort_at_ = std::max<std::uint64_t>(sorted.size(), 8);
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
