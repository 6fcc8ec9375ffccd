// Draws random numbers by xoshiro256**, the same from a seed on every machine.
#include "demarc/base/random.hpp"

#include <bit>
#include <cmath>
#include <numbers>

#include "demarc/base/hash.hpp"

namespace demarc {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  return stirred(state);
}

}  // namespace

Random::Random(std::uint64_t seed)
    : s0_(splitmix64(seed)), s1_(splitmix64(seed)), s2_(splitmix64(seed)), s3_(splitmix64(seed)) {}

Random::result_type Random::operator()() {
  const std::uint64_t result = std::rotl(s1_ * 5, 7) * 9;
  const std::uint64_t shifted = s1_ << 17;
  s2_ ^= s0_;
  s3_ ^= s1_;
  s1_ ^= s2_;
  s0_ ^= s3_;
  s2_ ^= shifted;
  s3_ = std::rotl(s3_, 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>((*this)()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold)
      product = static_cast<Wide>((*this)()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::uniform() {
  return static_cast<double>((*this)() >> 11) * 0x1.0p-53;
}

double Random::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace demarc
