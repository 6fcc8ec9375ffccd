// In which order points run: the dearest first, as far as the points that ran tell, so that none of
// them is begun when all others are done.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "demarc/sweep/plan.hpp"

namespace demarc::sweep {

class Order {
 public:
  // `left`: the points to run, ascending.
  Order(const Plan& plan, std::vector<std::uint64_t> left);

  [[nodiscard]] bool empty() const { return next_ == left_.size() && again_.empty(); }
  [[nodiscard]] std::uint64_t count() const { return left_.size() - next_ + again_.size(); }
  // The next one to run. Only when not empty().
  [[nodiscard]] std::uint64_t take();
  // A point whose process was lost: it runs next.
  void give_back(std::uint64_t index) { again_.push_back(index); }
  // What a point took.
  void learn(std::uint64_t index, double seconds);
  // What a point is expected to take; nothing while nothing is known of a value of it.
  [[nodiscard]] std::optional<double> expected(std::uint64_t index) const;

 private:
  struct Sum {
    double logarithms = 0;
    std::uint64_t count = 0;
    [[nodiscard]] double mean() const { return logarithms / static_cast<double>(count); }
  };
  void sort();

  const Plan& plan_;
  std::vector<std::uint64_t> left_, again_;
  std::size_t next_ = 0;
  // A point's seconds are taken to be a product: one factor for each of its values.
  std::vector<std::vector<Sum>> of_value_;  // [axis][position]
  Sum all_;
  std::uint64_t sort_at_ = 0;  // when so many are known
};

}  // namespace demarc::sweep
