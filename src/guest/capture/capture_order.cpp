// Hands the plan of a capture to the program through its environment, and reads what it logged.
#include "demarc/guest/capture_order.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

#include "demarc/base/json.hpp"

namespace demarc::cuda {

std::string order_text(const LaunchCapturePlan& plan) {
  return Json{{"folder", std::filesystem::absolute(plan.folder).string()},
              {"kernels", plan.kernels},
              {"skip", plan.skip},
              {"launches", plan.launches},
              {"most_bytes", plan.max_bytes}}
      .dump();
}

Result<LaunchCapturePlan> read_order(const std::string& text) {
  const Json order = Json::parse(text, nullptr, false);
  if (!order.is_object() || !order.contains("folder")) {
    return invalid_input("{}: this is not the value that demarc capture sets", capture_variable);
  }
  LaunchCapturePlan plan;
  plan.folder = order["folder"].get<std::string>();
  plan.kernels = order["kernels"].get<std::vector<std::string>>();
  plan.skip = order["skip"].get<std::uint64_t>();
  plan.launches = order["launches"].get<std::uint64_t>();
  plan.max_bytes = order["most_bytes"].get<std::uint64_t>();
  return plan;
}

LaunchCaptureLog::LaunchCaptureLog(const std::filesystem::path& folder)
    : path_(folder / ".demarc-capture") {}

// One write each, so that lines of several processes do not mix.
void LaunchCaptureLog::add(Kind kind, const std::string& text) const {
  std::string line{static_cast<char>(kind), ' '};
  for (const char one : text) line += one == '\n' ? ' ' : one;
  line += '\n';
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  static_cast<void>(!::write(file, line.data(), line.size()));
  ::close(file);
}

std::vector<LaunchCaptureLog::Line> LaunchCaptureLog::lines() const {
  std::ifstream file(path_);
  std::vector<Line> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.size() >= 2) lines.push_back({static_cast<Kind>(line[0]), line.substr(2)});
  }
  return lines;
}

void LaunchCaptureLog::remove() const {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace demarc::cuda
