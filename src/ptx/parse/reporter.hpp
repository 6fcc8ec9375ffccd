// Collects diagnostics; finds line and column of an offset when there is something to say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/ptx/diagnostic.hpp"

namespace demarc::ptx {

class Reporter {
 public:
  Reporter(std::string_view text, std::size_t most) : text_(text), most_(most) {}

  void report(Severity severity, std::uint32_t offset, std::string message);

  // While muted, reports are dropped: for text that may turn out to be something else.
  void mute(bool muted) { muted_ = muted; }

  // Sorted by place.
  [[nodiscard]] Diagnostics take();

 private:
  std::string_view text_;
  std::size_t most_;
  Diagnostics diagnostics_;
  bool muted_ = false;
  std::vector<std::uint32_t> line_starts_;  // made at the first report
};

// Names and numbers of the text as they may stand in a message: short, printable.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t most = 160);

}  // namespace demarc::ptx
