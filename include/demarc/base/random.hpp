// Reproducible random numbers: the same seed gives the same sequence on every machine and compiler.
#pragma once

#include <cstdint>

namespace demarc {

// xoshiro256** (Blackman, Vigna 2018), seeded through splitmix64. Meets UniformRandomBitGenerator;
// use below() and uniform() rather than <random> distributions, whose results differ between
// standard libraries.
class Random {
 public:
  using result_type = std::uint64_t;
  explicit Random(std::uint64_t seed);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()();

  // Uniform in [0, bound); bound > 0. Unbiased (Lemire 2019).
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1) with 53 bits.
  double uniform();
  // Standard normal (Box-Muller, one value per call).
  double normal();

 private:
  std::uint64_t s0_, s1_, s2_, s3_;
};

}  // namespace demarc
