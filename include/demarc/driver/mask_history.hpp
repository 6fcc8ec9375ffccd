// The TPCs that a program had, one after the other, and how many launches under each mask.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace demarc::cuda {

// What the launches of a program had at a time.
struct MaskPeriod {
  std::string tpcs;  // "0-15,20"; long ones are cut
  std::uint64_t launches = 0;
};

// Plain data in shared memory, by the numbers that SharedMask gives its masks. It knows the last 16
// masks; what ran under earlier ones is kept as one sum.
class MaskHistory {
 public:
  // Before the mask of this number is published. Processes take turns, as Control::store_mask()
  // has them do.
  void begin(std::uint32_t number, std::string_view tpcs);
  void count(std::uint32_t number) {
    rows_[number % rows_.size()].launches.fetch_add(1, std::memory_order_relaxed);
  }
  // In the order of their numbers, up to `last`.
  [[nodiscard]] std::vector<MaskPeriod> periods(std::uint32_t last) const;

 private:
  struct Row {
    std::array<char, 248> tpcs{};
    std::atomic<std::uint64_t> launches{0};
  };
  std::array<Row, 16> rows_{};
  std::atomic<std::uint64_t> earlier_{0};  // launches under masks whose rows are others' by now
};

}  // namespace demarc::cuda
