// Says how far work has come and how long the rest may take.
#include "demarc/base/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demarc {
namespace {

// "15.0 s left: what". Too early there is nothing to judge by.
std::string with_time_left(double seconds, double share, std::string_view what) {
  constexpr double least_seconds = 2;
  constexpr double least_share = 0.01;
  if (seconds < least_seconds || share < least_share || share >= 1) return std::string(what);
  return fmt::format("{} left: {}", duration_text(seconds * (1 - share) / share), what);
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  if (seconds < 6000) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

double ProgressWords::forward(double share) {
  shown_ = std::clamp(share, shown_, 1.0);
  return shown_;
}

std::optional<std::string> ProgressWords::line(double seconds, double share,
                                               std::string_view what) {
  const double ahead = forward(share);
  if (seconds < next_line_) return std::nullopt;
  next_line_ = seconds + line_seconds;
  return fmt::format("{:.0f} %, {}", ahead * 100, with_time_left(seconds, ahead, what));
}

std::string ProgressWords::bar(double seconds, double share, std::string_view what) {
  constexpr int width = 30;
  const double ahead = forward(share);
  return fmt::format("[{:{}}] {:3.0f}% {}",
                     std::string(static_cast<std::size_t>(ahead * width), '#'), width, ahead * 100,
                     with_time_left(seconds, ahead, what));
}

}  // namespace demarc
