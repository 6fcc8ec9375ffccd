// demarc schedule: thread-block dispatch, the SimTBS model.
#include <cstdio>
#include <cstdlib>

#include "demarc/base/files.hpp"
#include "demarc/sim/tb_report.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct ScheduleOptions {
  std::string config, policy = "all", model = "simtbs", out;
  bool classic = false, json = false, verbose = false;
};

// The published program's own output and exit status; 2 and 4 are among them.
Result<void> schedule_classic(const ScheduleOptions& options, sim::TbModel model) {
  DEMARC_TRY(const std::string text, read_file(options.config));
  const std::string policy = options.policy == "all" ? "rr" : options.policy;
  const sim::ClassicOutput output =
      sim::run_classic(text, options.config, policy, model, options.verbose);
  DEMARC_CHECK(emit(options.out, output.out));
  if (output.exit_status == 0) return {};
  std::fwrite(output.err.data(), 1, output.err.size(), stderr);
  std::exit(output.exit_status);
}

Result<void> run_schedule(const ScheduleOptions& options) {
  if (options.config.empty()) {
    return invalid_input("no configuration: give CONF, or a subcommand (see --help)");
  }
  DEMARC_TRY(const sim::TbModel model, sim::parse_tb_model(options.model));
  if (options.classic) return schedule_classic(options, model);
  DEMARC_TRY(const std::string text, read_file(options.config));
  DEMARC_TRY(const sim::TbConfig config, sim::parse_tb_config(text, options.config));
  sim::TbStudyRequest request;
  if (options.policy != "all") request.policies = {options.policy};
  request.model = model;
  request.json = options.json;
  request.kernels = options.verbose;
  DEMARC_TRY(const std::string report, sim::report_schedule(config, request));
  return emit(options.out, report);
}

const RegisterVerb schedule_verb({
    .order = 100,
    .name = "schedule",
    .summary = "thread-block scheduling simulation (SimTBS model)",
    .example = "demarc schedule examples/dispatch/uniform.conf --policy all",
    .declare =
        [](CLI::App& app) {
          auto options = std::make_shared<ScheduleOptions>();
          app.add_option("config", options->config, "SimTBS configuration file");
          app.add_option("--policy,-p", options->policy,
                         "dispatch policy, or all (--classic: rr when not given)");
          app.add_option("--model", options->model, "simtbs, simtbs-2020 or corrected");
          app.add_flag("--classic", options->classic,
                       "print what the published program prints, with its exit status");
          app.add_flag("-v,--verbose", options->verbose, "per tick (--classic) and per kernel");
          app.add_flag("--json", options->json, "JSON (schema demarc.schedule/1)");
          app.add_option("--out", options->out, "write to this file instead of standard output");
          return [options, command = &app]() -> Result<void> {
            if (!command->get_subcommands().empty()) return {};
            return run_schedule(*options);
          };
        },
});

}  // namespace
}  // namespace demarc::cli
