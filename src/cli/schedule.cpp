// demarc schedule: simulates thread-block dispatch by the SimTBS model and the hardware pipeline.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/report/schedule_page.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"
#include "schedule_commands.hpp"

namespace demarc::cli {
namespace {

std::string policy_names() {
  std::string names;
  for (const sim::PolicyInfo& info : sim::dispatch_policies()) {
    names += names.empty() ? "" : ", ";
    names += info.name;
  }
  return names;
}

struct ScheduleOptions {
  std::string config, policy = "all", model = "simtbs", output, json, timeline, svg;
  std::vector<std::string> locality;
  bool classic = false, verbose = false;
  std::vector<std::string> given;  // on the command line
};

// Options that would be without effect are refused.
Result<void> check_given(const ScheduleOptions& options) {
  const auto refuse = [&](std::initializer_list<std::string_view> names,
                          std::string_view why) -> Result<void> {
    for (const std::string_view name : names) {
      if (std::find(options.given.begin(), options.given.end(), name) == options.given.end()) {
        continue;
      }
      return invalid_input("{}: {}", name, why);
    }
    return {};
  };
  if (options.config.ends_with(".json")) {
    DEMARC_CHECK(refuse({"--policy", "--model", "--locality", "--classic", "--verbose"},
                        "a scenario of the hardware pipeline follows the hardware's rules; leave "
                        "the option out, or give a SimTBS configuration"));
  }
  if (options.classic) {
    if (options.policy == "all") {
      DEMARC_CHECK(refuse({"--policy"}, "--classic prints one policy; name it"));
    }
    DEMARC_CHECK(refuse({"--json", "--timeline", "--svg", "--locality"},
                        "--classic prints what the published program prints; leave one out"));
  }
  if (options.policy != "all" && options.policy != "locality") {
    DEMARC_CHECK(refuse({"--locality"}, "only the policy locality reads this; add -p locality"));
  }
  return {};
}

// The published program's own output and exit status; 2 and 4 are among them.
Result<void> schedule_classic(const ScheduleOptions& options, sim::TbModel model) {
  DEMARC_TRY(const std::string text, read_file(options.config));
  const std::string policy = options.policy == "all" ? "rr" : options.policy;
  const sim::ClassicOutput output =
      sim::run_classic(text, options.config, policy, model, options.verbose);
  // A run that was refused has no output, and then no file is written either.
  if (output.exit_status == 0 || !output.out.empty())
    DEMARC_CHECK(emit(options.output, output.out));
  if (output.exit_status == 0) return {};
  std::fwrite(output.err.data(), 1, output.err.size(), stderr);
  std::exit(output.exit_status);
}

Result<void> write_timeline(const ScheduleOptions& options, const sim::DispatchTimeline& timeline) {
  if (!options.timeline.empty()) {
    DEMARC_CHECK(write_file(options.timeline, report::schedule_trace(timeline)));
  }
  if (!options.svg.empty()) DEMARC_CHECK(write_file(options.svg, report::schedule_svg(timeline)));
  return {};
}

// "[TYPE=]FILE" of each --locality.
Result<std::map<std::uint32_t, sim::BlockSharing>> read_sharing(
    const std::vector<std::string>& options) {
  std::map<std::uint32_t, sim::BlockSharing> sharing;
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    std::uint64_t type = 0;
    std::string file = option;
    if (equals != std::string::npos) {
      DEMARC_TRY(type, parse_u64(option.substr(0, equals), "--locality TYPE=FILE"));
      file = option.substr(equals + 1);
    }
    DEMARC_TRY(const std::string text, read_file(file));
    DEMARC_TRY(sharing[static_cast<std::uint32_t>(type)], sim::parse_block_sharing(text, file));
  }
  return sharing;
}

// A scenario of the hardware pipeline.
Result<void> run_scenario(const ScheduleOptions& options, const std::string& text) {
  DEMARC_TRY(const auto scenario, sim::parse_scenario(text, options.config));
  // The pipeline knows kernels, not files.
  DEMARC_TRY(const auto run,
             sim::run_pipeline(scenario.spec, scenario.kernels, true).map_error([&](Error error) {
               error.message = fmt::format("{}: {}", options.config, error.message);
               return error;
             }));
  DEMARC_CHECK(write_timeline(options, sim::pipeline_timeline(scenario, run)));
  const auto report = [&](bool json) { return sim::report_scenario(scenario, run, json); };
  return emit_result(
      options.json, options.output, [&] { return report(true); }, [&] { return report(false); });
}

Result<void> run_schedule(const ScheduleOptions& options) {
  if (options.config.empty()) {
    return invalid_input(
        "no configuration was given: name a file or a subcommand (generate, study, compare, plan)");
  }
  if (options.config.find_first_of("./") == std::string::npos &&
      !std::filesystem::exists(options.config)) {
    return invalid_input(
        "{}: neither a file nor a subcommand; subcommands are generate, study, compare, plan",
        options.config);
  }
  DEMARC_CHECK(check_given(options));
  DEMARC_TRY(const sim::TbModel model, sim::parse_tb_model(options.model));
  if (options.classic) return schedule_classic(options, model);
  DEMARC_TRY(const std::string text, read_file(options.config));
  if (options.config.ends_with(".json")) return run_scenario(options, text);
  DEMARC_TRY(const sim::TbConfig config, sim::parse_tb_config(text, options.config));
  sim::TbStudyRequest request;
  if (options.policy != "all") request.policies = {options.policy};
  request.model = model;
  request.kernels = options.verbose;
  DEMARC_TRY(request.sharing, read_sharing(options.locality));
  if (!options.timeline.empty() || !options.svg.empty()) {
    sim::TbOptions run;
    run.model = model;
    run.policy = options.policy == "all" ? "rr" : options.policy;
    run.sharing = request.sharing;
    DEMARC_TRY(const auto timeline, sim::tb_timeline(config, run));
    DEMARC_CHECK(write_timeline(options, timeline));
  }
  DEMARC_TRY(const auto report, sim::report_schedule(config, request));
  return emit_result(
      options.json, options.output, [&] { return report.json; }, [&] { return report.table; });
}

const RegisterVerb schedule_verb({
    .order = 206,
    .name = "schedule",
    .summary = "simulate thread-block scheduling (SimTBS model, hardware pipeline model)",
    .example = "demarc schedule examples/dispatch/fig12_slots_full.json --svg fig12.svg",
    .declare =
        [](CLI::App& app) {
          auto options = std::make_shared<ScheduleOptions>();
          app.add_option("config", options->config,
                         "SimTBS configuration (schedule generate makes one), or scenario of the "
                         "hardware pipeline (.json)")
              ->type_name("FILE");
          app.add_option("--policy,-p", options->policy,
                         fmt::format("dispatch policy: {}, or all", policy_names()))
              ->type_name("NAME");
          app.add_option("--model", options->model, "cost model: simtbs, simtbs-2020 or corrected")
              ->type_name("NAME");
          app.add_option("--locality", options->locality,
                         "map for the policy locality, made by demarc locality --json --maps "
                         "--granularity 32; TYPE: for kernels of that type")
              ->type_name("[TYPE=]FILE");
          app.add_flag("--classic", options->classic,
                       "print what the published program prints, with its exit status; the policy "
                       "is rr unless -p names one");
          app.add_flag("-v,--verbose", options->verbose,
                       "show every kernel, and with --classic every tick");
          add_json(app, options->json, "the result",
                   {"demarc.schedule/1", "demarc.schedule.hardware/1"});
          add_output(app, options->output);
          add_output(app, "--timeline", options->timeline,
                     "write a Perfetto trace to this file; the policy is rr unless -p names one");
          add_output(app, "--svg", options->svg,
                     "write a picture to this file; the policy is rr unless -p names one");
          const std::vector<ScheduleCommand> commands = {
              declare_schedule_generate(app), declare_schedule_study(app),
              declare_schedule_compare(app), declare_schedule_plan(app)};
          return [options, commands, &app]() -> Result<void> {
            for (const char* name : {"config", "--policy", "--model", "--locality", "--classic",
                                     "--verbose", "--json", "--output", "--timeline", "--svg"}) {
              if (app.count(name) > 0) options->given.emplace_back(name);
            }
            for (const ScheduleCommand& command : commands) {
              if (!command.app->parsed()) continue;
              if (options->given.empty()) return command.run();
              const std::string& name = options->given.front();
              return invalid_input(
                  "{} before {} would have no effect; {}",
                  name == "config" ? options->config : name, command.app->get_name(),
                  "leave it out, or put it after the subcommand if that has this option");
            }
            return run_schedule(*options);
          };
        },
});

}  // namespace
}  // namespace demarc::cli
