// Progress of anything that may take over two seconds. The library reports; the listener decides
// what to show.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace demarc {

// Called with the share done in [0, 1] and what is being done now. May be empty. Called from one
// thread at a time.
using Progress = std::function<void(double share, std::string_view what)>;

inline void report_progress(const Progress& progress, double share, std::string_view what) {
  if (progress) progress(share, what);
}

// "7.0 s", "12.5 min", "3.1 h"
[[nodiscard]] std::string duration_text(double seconds);

// Words for one Progress. `seconds` is the time since the work began. If a share is below one that
// was already shown, the shown one counts, so the display never goes backwards.
class ProgressWords {
 public:
  static constexpr double line_seconds = 10;

  // "40 %, 15.0 s left: running cells", once every line_seconds; nothing in between.
  [[nodiscard]] std::optional<std::string> line(double seconds, double share,
                                                std::string_view what);
  // "[####      ]  40% 15.0 s left: running cells"; it has no time before there is a share to
  // estimate it from.
  [[nodiscard]] std::string bar(double seconds, double share, std::string_view what);

 private:
  double forward(double share);

  double shown_ = 0;
  double next_line_ = line_seconds;
};

}  // namespace demarc
