// Ranges of numbers that are free: given out by first fit, joined again where they meet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace demarc {

class FreeRanges {
 public:
  FreeRanges() = default;
  FreeRanges(std::uint64_t begin, std::uint64_t end) { put(begin, end); }

  // begin to end - 1 are free now, and were not. Nothing changes unless begin < end.
  void put(std::uint64_t begin, std::uint64_t end);
  // Takes the first `count` numbers, at least 1, that follow each other from `from` on; gives the
  // first one of them.
  [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t count, std::uint64_t from = 0);
  [[nodiscard]] std::uint64_t longest() const;

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end; no two meet
};

}  // namespace demarc
