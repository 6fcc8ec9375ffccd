// Puts pages in the order of their remainders, and cuts remainders into runs by L2 side.
#include "demarc/color/remainder_order.hpp"

#include <algorithm>

namespace demarc::color {

std::vector<std::uint32_t> order_by_remainder(const RemainderModel& model,
                                              std::span<const PageRemainder> pages) {
  constexpr double needed_agreement = 0.75;
  const RemainderHash& hash = model.hash;
  std::vector<std::vector<std::uint32_t>> of_remainder(hash.modulus);
  for (std::uint32_t i = 0; i < pages.size(); ++i) {
    if (pages[i].agreement >= needed_agreement) of_remainder[pages[i].remainder].push_back(i);
  }
  for (auto& list : of_remainder) std::reverse(list.begin(), list.end());
  const std::uint64_t step = hash.page_bytes / hash.unit_bytes() % hash.modulus;
  std::vector<std::uint32_t> order;
  for (std::uint64_t next = 0; !of_remainder[next].empty(); next = (next + step) % hash.modulus) {
    order.push_back(of_remainder[next].back());
    of_remainder[next].pop_back();
  }
  return order;
}

std::vector<std::uint32_t> sides_of_remainders(const RemainderModel& model,
                                               std::span<const std::uint32_t> sides) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t remainder = 0; remainder < model.hash.modulus; ++remainder) {
    double sum[2] = {0, 0};
    std::size_t count[2] = {0, 0};
    for (const std::uint32_t slice : {remainder, model.hash.modulus + remainder}) {
      const auto center = model.kinds.centers.row(model.kind_of[slice]);
      for (std::size_t i = 0; i < center.size(); ++i) {
        sum[sides[i]] += static_cast<double>(center[i]);
        ++count[sides[i]];
      }
    }
    const double near0 = sum[0] / static_cast<double>(std::max<std::size_t>(count[0], 1));
    const double near1 = sum[1] / static_cast<double>(std::max<std::size_t>(count[1], 1));
    out.push_back(near0 < near1 ? 0 : 1);
  }
  return out;
}

namespace {

// The fewest remainders that `some` neighbouring stacks can have of a side's `count` remainders and
// `stacks` stacks, which differ by one remainder at most.
std::uint32_t fewest(std::uint32_t count, std::uint32_t some, std::uint32_t stacks) {
  const std::uint32_t larger = count % stacks;
  return some * (count / stacks) + (some + larger > stacks ? some + larger - stacks : 0);
}

}  // namespace

Result<void> check_remainder_parts(std::uint32_t parts, std::uint32_t paths) {
  if (paths % 2 == 0 &&
      (parts == 2 || (parts == 3 && paths % 6 == 0) || (parts == 4 && paths >= 4))) {
    return {};
  }
  return missing_capability(
      "{} parts of {} paths to memory: remainders divide into 2, into 3 if three parts can have "
      "as many paths each, and into 4 if each L2 side has two paths or more",
      parts, paths);
}

Result<std::vector<RemainderColoring::Window>> windows_by_side(
    std::span<const std::uint32_t> side_of_remainder, std::uint32_t parts, std::uint32_t paths) {
  DEMARC_CHECK(check_remainder_parts(parts, paths));
  const auto modulus = static_cast<std::uint32_t>(side_of_remainder.size());
  std::uint32_t begin = modulus;
  std::uint32_t changes = 0;
  for (std::uint32_t i = 0; i < modulus; ++i) {
    const std::uint32_t before = side_of_remainder[(i + modulus - 1) % modulus];
    if (before == side_of_remainder[i]) continue;
    ++changes;
    if (side_of_remainder[i] == 0) begin = i;
  }
  if (changes != 2) {
    return check_failed("colours: the L2 sides of the remainders change {} times, not twice",
                        changes);
  }
  const auto near =
      static_cast<std::uint32_t>(std::count(side_of_remainder.begin(), side_of_remainder.end(), 0));
  std::vector<RemainderColoring::Window> windows;
  const auto add = [&](std::uint32_t first, std::uint32_t count) {
    windows.push_back({(begin + first) % modulus, count});
  };
  const std::uint32_t far = modulus - near;
  const std::uint32_t stacks =
      paths / 2;  // a path is a memory stack, whose slices follow each other
  if (parts == 2) {
    add(0, near);
    add(near, far);
  } else if (parts == 3) {
    // Two thirds of a side's stacks, the last third with the first one of the other side, and two
    // thirds of that side. Which stacks are the larger ones is not known, so a remainder may stay
    // empty where two parts meet.
    const std::uint32_t third = stacks / 3;
    const std::uint32_t last = fewest(near, third, stacks);
    add(0, fewest(near, 2 * third, stacks));
    add(near - last, last + fewest(far, third, stacks));
    add(modulus - fewest(far, 2 * third, stacks), fewest(far, 2 * third, stacks));
  } else {
    // A quarter is one of the outer two stacks of a side; what lies between them (the third stack,
    // on an H200) stays empty.
    for (const auto& [first, count] : {std::pair{0U, near}, std::pair{near, far}}) {
      const std::uint32_t one = fewest(count, 1, stacks);
      add(first, one);
      add(first + count - one, one);
    }
  }
  return windows;
}

}  // namespace demarc::color
