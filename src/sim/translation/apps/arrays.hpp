// Lays an application's arrays out one after the other, each on pages of its own.
#pragma once

#include <cmath>
#include <cstdint>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/translation/application.hpp"

namespace demarc::sim::translation {

class ArrayLayout {
 public:
  explicit ArrayLayout(const Settings& settings) : page_(settings.page_bytes) {}
  // Where an array of `bytes` begins.
  Address add(std::uint64_t bytes) {
    const Address start = next_;
    next_ = next_ + round_up(bytes, page_);
    return start;
  }
  [[nodiscard]] std::uint64_t bytes() const { return next_ - Address(); }

 private:
  std::uint64_t page_;
  Address next_;
};

// 64 lanes reading `width` bytes each, contiguous from `first`.
inline void touch_wave(MemoryInstruction& out, Address first, std::uint32_t width) {
  out.touch_range(first, std::uint64_t{wave_lanes} * width);
}

// The side of a square whose points take `bytes_per_point` of `bytes`, rounded down to a multiple.
inline std::uint64_t square_side(std::uint64_t bytes, double bytes_per_point,
                                 std::uint32_t multiple) {
  const double side = std::sqrt(static_cast<double>(bytes) / bytes_per_point);
  return static_cast<std::uint64_t>(side) / multiple * multiple;
}

inline std::uint32_t iterations_of(const Settings& settings, std::uint32_t own) {
  return settings.iterations == 0 ? own : settings.iterations;
}

inline std::uint64_t data_bytes(const Settings& settings) {
  return std::uint64_t{settings.megabytes} << 20;
}

template <class Class, class Own>
std::unique_ptr<Application> make(const Settings& settings) {
  return std::make_unique<Class>(settings, settings.applications.of<Own>());
}

ApplicationInfo relu();
ApplicationInfo fir();
ApplicationInfo max_pooling();
ApplicationInfo page_rank();
ApplicationInfo matrix_transpose();
ApplicationInfo kmeans();
ApplicationInfo fft();
ApplicationInfo stencil();
ApplicationInfo aes();

}  // namespace demarc::sim::translation
