// The hash functions published for two cards (Fractional GPUs, RTAS 2019, Figure 6 and Table III),
// as lists of address bits, index bit 0 first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace demarc::gpu::published {

inline std::uint64_t x(std::initializer_list<int> bits) {
  std::uint64_t mask = 0;
  for (const int bit : bits) mask |= std::uint64_t{1} << bit;
  return mask;
}

inline std::vector<std::uint64_t> gtx1080_bank() {
  return {
      x({10, 12, 16, 20, 23, 26, 29, 30}),         x({11, 12, 13, 15, 17, 20, 21, 23, 25, 26, 30}),
      x({12, 13, 18, 19, 22, 25, 26, 27, 30, 31}), x({13, 15, 20, 24, 26, 29, 32}),
      x({15, 16, 21, 22, 23, 25, 26, 28, 29}),     x({16, 19, 23, 27, 30}),
      x({17, 20, 22, 23, 24, 27, 28, 29, 31})};
}

inline std::vector<std::uint64_t> gtx1080_module() {
  auto bank = gtx1080_bank();
  return {bank[0], bank[1], bank[2]};
}

inline std::vector<std::uint64_t> gtx1080_set() {
  auto rows = gtx1080_module();
  for (const auto row : {x({7, 8, 16, 17, 23, 26, 31}), x({8, 10, 12, 16, 17, 21, 24, 25, 26, 27}),
                         x({9, 10, 18, 25, 29, 30, 31}), x({13, 14, 20, 23, 28, 29, 30}),
                         x({14, 15, 17, 20, 21, 23, 24, 28, 31}),
                         x({15, 16, 19, 20, 23, 24, 25, 26, 28, 29, 30, 32}),
                         x({16, 17, 18, 19, 21, 22, 23, 25, 27, 28, 30})}) {
    rows.push_back(row);
  }
  return rows;
}

inline std::vector<std::uint64_t> v100_bank() {
  return {x({10, 11, 20, 23, 25, 28, 30, 33}),        x({11, 12, 16, 20, 25, 26, 29, 30, 32, 33}),
          x({12, 16, 17, 19, 23, 25, 26, 27, 31}),    x({13, 24, 26, 27, 28, 30, 31, 33}),
          x({15, 17, 19, 20, 27, 28, 30, 31, 32}),    x({16, 19, 20, 23, 27, 29, 31, 33}),
          x({17, 18, 23, 24, 25, 27, 28, 30, 31}),    x({18, 21, 25, 29, 32}),
          x({19, 20, 22, 24, 25, 26, 29, 30, 31, 33})};
}

inline std::vector<std::uint64_t> v100_set() {
  return {x({10, 17, 20, 22, 24, 26, 27, 28, 30, 32, 33}),
          x({11, 12, 18, 24, 26, 28, 29, 30, 31, 32}),
          x({12, 13, 22, 26, 27, 28, 29, 30, 31, 33}),
          x({13, 14, 22, 24, 30, 31, 32, 33}),
          x({15, 18, 22, 23, 26, 29, 30, 31, 32, 33}),
          x({7, 15, 21, 23, 24, 25, 28, 32}),
          x({8, 9, 15, 19, 21, 23, 24, 25, 28, 29, 31}),
          x({9, 15, 19, 21, 22, 24, 25, 26, 27, 30, 31, 32, 33}),
          x({14, 19, 20, 24, 25, 27, 28, 29, 30, 31, 32, 33}),
          x({16, 19, 21, 22, 25, 26, 28, 30, 32})};
}

inline std::vector<std::uint64_t> v100_module() {
  return {x({10, 13, 17, 19, 24, 25, 26, 29, 30, 32, 33}),
          x({11, 13, 15, 23, 24, 26, 27, 29, 30, 31}),
          x({12, 15, 16, 18, 20, 21, 23, 26, 28, 29, 30}), x({13, 19, 20, 22, 25, 27, 28, 29}),
          x({15, 18, 22, 23, 26, 29, 30, 31, 32, 33})};
}

}  // namespace demarc::gpu::published
