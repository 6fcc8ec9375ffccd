// demarc run: runs a launch on a real GPU and checks its outputs.
#include "demarc/driver/run_launch.hpp"

#include <memory>

#include "buffer_options.hpp"
#include "demarc/base/json.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"
#include "launch_options.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct RunOptions {
  LaunchOptions launch;
  BufferOptions buffers;
  std::string device = "cuda:0";
  double limit_s = 60;
  std::string json;
};

std::string run_text(const cuda::LaunchRun& run, const std::string& check) {
  std::string text;
  for (const cuda::KernelRun& kernel : run.kernels)
    text += fmt::format("{}: {:.3f} ms, {} registers per thread, {} blocks per SM\n", kernel.kernel,
                        kernel.milliseconds, kernel.registers, kernel.blocks_per_sm);
  return text + (check == "passed" ? "the outputs meet the reference\n" : "");
}

Json run_json(const cuda::LaunchRun& run, const std::string& device, const std::string& check) {
  Json kernels = Json::array();
  for (const cuda::KernelRun& kernel : run.kernels)
    kernels.push_back({{"kernel", kernel.kernel},
                       {"milliseconds", kernel.milliseconds},
                       {"registers", kernel.registers},
                       {"blocks_per_sm", kernel.blocks_per_sm}});
  return {{"schema", "demarc.run/1"},
          {"device", device},
          {"check", check},
          {"kernels", std::move(kernels)}};
}

Result<void> run_on_card(const RunOptions& options) {
  DEMARC_TRY(const auto card,
             gpu::parse_ref_as<gpu::CardRef>(
                 options.device, "run needs a real GPU, cuda:N; demarc emulate runs on the CPU"));
  DEMARC_TRY(const workload::LoadedLaunch loaded, options.launch.load());
  DEMARC_TRY(const std::vector<ShownBuffer> shown, options.buffers.choose(loaded.launch));
  DEMARC_CHECK(tell_of_others("run", options.device));
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const auto gpu, cuda::Gpu::open(driver, card.index));
  const std::chrono::milliseconds limit{static_cast<std::int64_t>(options.limit_s * 1000)};
  DEMARC_TRY(const cuda::LaunchRun run,
             cuda::run_launch(gpu, loaded.launch, loaded.ptx, loaded.ptx_name, limit));
  Result<void> checked = workload::check(loaded.launch, run.addresses, run.buffers);
  const char* verdict = !loaded.launch.check.exists() ? "none" : (checked ? "passed" : "failed");
  DEMARC_CHECK(write_buffers(shown, loaded.launch, run.buffers));
  // The driver has taken the text, so it may have what our parser does not know.
  const auto unset =
      workload::unset_constants(ptx::parse(loaded.ptx, loaded.ptx_name).module, loaded.launch);
  warn_of_unset("run", unset);
  DEMARC_CHECK(emit_result(
      options.json, {},
      [&] {
        Json json = run_json(run, gpu->name(), verdict);
        json["warnings"] = unset_json(unset);
        json["buffers"] = buffers_json(shown, loaded.launch, run.buffers);
        return json_text(json, 2) + "\n";
      },
      [&] { return run_text(run, verdict) + buffers_text(shown, loaded.launch, run.buffers); }));
  return checked;
}

const RegisterVerb run_verb({
    .order = 204,
    .name = "run",
    .summary = "run a launch on a real GPU and check its outputs",
    .example = "demarc run bundled:hotspot",
    .declare = [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<RunOptions>();
      options->launch.declare(app);
      options->buffers.declare(app);
      app.add_option("--device", options->device, "GPU: cuda:N");
      app.add_option("--limit", options->limit_s, "seconds that a kernel may take")
          ->check(CLI::Range(0.001, 86400.0));
      add_json(app, options->json, "times and verdict", {"demarc.run/1"});
      return [options] { return run_on_card(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
