// demarc capture: takes launches out of a running program, as launch files.
#include "demarc/guest/capture.hpp"

#include <cstdlib>
#include <memory>

#include "demarc/base/json.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/symbols.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct LaunchCaptureOptions {
  cuda::LaunchCapturePlan plan;
  std::string folder = "capture";
  std::string max_bytes = "1 GiB";
  std::string json;
};

std::string capture_text(const cuda::LaunchCaptureOutcome& outcome) {
  std::string text;
  for (const auto& file : outcome.captured) text += "demarc capture: " + file.string() + "\n";
  for (const std::string& line : outcome.left) text += "demarc capture: not taken: " + line + "\n";
  return text;
}

Json capture_json(const cuda::LaunchCaptureOutcome& outcome) {
  Json files = Json::array();
  for (const auto& file : outcome.captured) files.push_back(file.string());
  return {{"schema", "demarc.capture/1"},
          {"exit_code", outcome.exit_code},
          {"launches", std::move(files)},
          {"left", outcome.left},
          {"kernels", outcome.launched}};
}

Result<void> nothing_taken(const LaunchCaptureOptions& options,
                           const cuda::LaunchCaptureOutcome& outcome) {
  if (!outcome.left.empty()) return check_failed("no launch was taken");
  if (outcome.launched.empty()) {
    return check_failed("no launch was taken: the program launched no kernel");
  }
  return check_failed(
      "no launch was taken: the program launched none of {} {} times or more; it launched: {}",
      options.plan.kernels.empty() ? "its kernels" : "the kernels asked for", options.plan.skip + 1,
      symbol_list(outcome.launched));
}

Result<void> capture_program(LaunchCaptureOptions& options) {
  options.plan.folder = options.folder;
  DEMARC_TRY(options.plan.max_bytes, parse_bytes(options.max_bytes, "--max-bytes"));
  DEMARC_TRY(const cuda::LaunchCaptureOutcome outcome, cuda::run_launch_capture(options.plan));
  if (!options.json.empty() && options.json != "-") {
    DEMARC_CHECK(emit(options.json, json_text(capture_json(outcome), 2) + "\n"));
  }
  // Standard output is the program's.
  fmt::print(
      stderr, "{}",
      options.json == "-" ? json_text(capture_json(outcome), 2) + "\n" : capture_text(outcome));
  if (outcome.captured.empty()) return nothing_taken(options, outcome);
  // The program's own exit code, as demarc exec passes it on.
  if (outcome.exit_code != 0) std::exit(outcome.exit_code);
  return {};
}

const RegisterVerb capture_verb({
    .order = 205,
    .name = "capture",
    .summary = "take launches out of a running program: PTX, launch file and buffers",
    .example = "demarc capture --kernel saxpy -o saxpy -- ./app",
    .declare = [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<LaunchCaptureOptions>();
      app.add_option("-o,--output", options->folder,
                     "folder that gets a folder for each launch; it must be new or empty")
          ->capture_default_str();
      app.add_option("--kernel", options->plan.kernels,
                     "take only launches of this kernel, by its name in PTX or C++; may be "
                     "repeated (default: all)")
          ->expected(1);
      app.add_option("--skip", options->plan.skip,
                     "number of launches of each kernel to skip first")
          ->capture_default_str();
      app.add_option("--launches", options->plan.launches,
                     "number of launches of each kernel to take")
          ->capture_default_str();
      app.add_option("--max-bytes", options->max_bytes,
                     "largest number of bytes that the buffers of a launch may have")
          ->capture_default_str();
      app.add_option("--library", options->plan.library,
                     "path of libdemarc_capture.so (default: the one next to this program)");
      add_json(app, options->json, "what was taken", {"demarc.capture/1"});
      app.add_option("command", options->plan.command, "the program and its arguments, after --")
          ->required();
      return [options] { return capture_program(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
