// What `demarc capture` asks of the library that it has loaded into a program, and what that writes
// down for it.
#pragma once

#include <string>
#include <vector>

#include "demarc/guest/capture.hpp"

namespace demarc::cuda {

inline constexpr const char* capture_variable = "DEMARC_CAPTURE";
// Behind the name of a folder that is not whole yet.
inline constexpr const char* capture_part = ".part";

// As the value of that variable, and back. The folder is absolute there.
[[nodiscard]] std::string order_text(const LaunchCapturePlan& plan);
[[nodiscard]] Result<LaunchCapturePlan> read_order(const std::string& text);

// The file in the folder that all processes of the program append to, until it has ended. Each line
// has a kind, a blank and a text.
class LaunchCaptureLog {
 public:
  enum class Kind : char { captured = 'c', left = 'l', launched = 'k', failed = 'f' };
  struct Line {
    Kind kind;
    std::string text;
  };

  explicit LaunchCaptureLog(const std::filesystem::path& folder);
  void add(Kind kind, const std::string& text) const;
  // In the order in which they were added; none where there is no file.
  [[nodiscard]] std::vector<Line> lines() const;
  void remove() const;

 private:
  std::filesystem::path path_;
};

}  // namespace demarc::cuda
