// Runs a program with the library that takes launches out of it, and sums up what was taken.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "demarc/base/process.hpp"
#include "demarc/guest/capture.hpp"
#include "demarc/guest/capture_order.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;
constexpr const char* capture_library = "libdemarc_capture.so";
constexpr const char* injection_variable = "CUDA_INJECTION64_PATH";

Result<std::string> find_capture_library(const std::string& wanted) {
  std::error_code ignored;
  if (!wanted.empty()) {
    if (fs::exists(wanted, ignored)) return fs::absolute(wanted).string();
    return invalid_input("{}: this library does not exist", wanted);
  }
  const std::string found = find_own_library(capture_library);
  if (!found.empty()) return found;
  return missing_capability(
      "{} was not found beside {}, where builds and packages put it; give its path by --library",
      capture_library, program_folder().string());
}

// One tool at a time is loaded by the driver.
Result<void> refuse_beside_another_tool() {
  const char* other = std::getenv(injection_variable);
  if (other == nullptr || *other == '\0') return {};
  return invalid_input(
      "{} is set to {}, but the driver loads only one tool into a program and demarc capture is "
      "one; unset it",
      injection_variable, other);
}

// What a program was writing as it ended.
void remove_parts(const fs::path& folder, LaunchCaptureOutcome& outcome) {
  std::error_code ignored;
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == capture_part) parts.push_back(entry.path());
  }
  for (const fs::path& part : parts) {
    fs::remove_all(part, ignored);
    outcome.left.push_back(part.stem().string() + ": the program ended while it was taken");
  }
}

Result<void> make_capture_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return invalid_input("{}: cannot be made: {}", folder.string(), failed.message());
  if (fs::is_empty(folder, failed) && !failed) return {};
  return invalid_input("{}: a new or an empty folder was expected", folder.string());
}

}  // namespace

Result<LaunchCaptureOutcome> run_launch_capture(const LaunchCapturePlan& plan) {
  if (plan.command.empty()) return invalid_input("no command was given: demarc capture ... -- CMD");
  if (plan.launches == 0) return invalid_input("--launches 0: give at least 1");
  DEMARC_CHECK(refuse_beside_another_tool());
  DEMARC_TRY(const std::string library, find_capture_library(plan.library));
  DEMARC_CHECK(make_capture_folder(plan.folder));
  const LaunchCaptureLog log(plan.folder);
  ProcessOptions options;
  options.own_group = false;
  options.input = options.output = ChildStream::inherited;
  options.set = {{injection_variable, library}, {capture_variable, order_text(plan)}};
  const auto ended = run_process(plan.command, options);
  const auto lines = log.lines();
  log.remove();
  if (!ended) {
    std::error_code ignored;
    fs::remove(plan.folder, ignored);
    return tl::unexpected(ended.error());
  }
  LaunchCaptureOutcome outcome;
  outcome.exit_code = ended->exit_code;
  for (const LaunchCaptureLog::Line& line : lines) {
    using Kind = LaunchCaptureLog::Kind;
    if (line.kind == Kind::failed) {
      return missing_capability("the calls of the program cannot be seen: {}", line.text);
    }
    if (line.kind == Kind::captured) outcome.captured.emplace_back(line.text);
    if (line.kind == Kind::left) outcome.left.push_back(line.text);
    if (line.kind == Kind::launched && std::find(outcome.launched.begin(), outcome.launched.end(),
                                                 line.text) == outcome.launched.end()) {
      outcome.launched.push_back(line.text);
    }
  }
  remove_parts(plan.folder, outcome);
  return outcome;
}

}  // namespace demarc::cuda
