// demarc isolate: the interference study.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/gpu/device.hpp"
#include "demarc/report/isolate_page.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "demarc/study/planted.hpp"
#include "demarc/study/remote_lane.hpp"
#include "demarc/study/sim_executor.hpp"
#include "demarc/study/study.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct IsolateOptions {
  std::string device = "cuda:0";
  std::uint32_t parts = 2;
  std::string modes = "none,mps,green,mask,affinity,mask+color";
  std::string victims = "mm,fwt,va,sp,sn,cfd,gaussian,nn";
  std::string aggressors = "mm,fwt,va";
  std::vector<std::string> aggressor_commands;
  study::StoppingRule rule;
  std::uint32_t rounds = 2;
  bool p99 = false;
  std::string split = "gpc-aligned";
  std::vector<std::string> masks;
  std::vector<std::uint32_t> colors;
  std::string description;
  std::string clock = "gpu";
  std::string dispatch;
  std::vector<std::string> locality;
  int victim_priority = 0;
  double settle_seconds = 8;
  std::uint64_t seed = 1;
  std::string json;
  std::string html;
  unsigned threads = 0;
  bool worker = false;
  std::optional<std::uint32_t> sync_domain;
  bool forecast = false;
  bool modes_given = false;        // on the command line
  bool samples_given = false;      // any of the options on how often
  std::vector<std::string> given;  // of device_options and run_options
};

// Options that not every device can follow; the planted model follows none of them.
struct DeviceOption {
  std::string_view name;
  bool real;  // cuda:N follows it
  bool simulated;
  std::string_view instead;
};
constexpr DeviceOption device_options[] = {
    {"--masks", true, true, "it has no memory to colour; use cuda:N or sim:NAME"},
    {"--colors", true, true, "it has no memory to colour; use cuda:N or sim:NAME"},
    {"--description", true, false, "NAME is its description already; use cuda:N"},
    {"--split", true, true, "it has no TPCs to deal out; use cuda:N or sim:NAME"},
    {"--clock", true, false, "it has one way to take a time; leave it out or use cuda:N"},
    {"--victim-priority", true, false, "its streams have no priorities; use cuda:N"},
    {"--aggressor-cmd", true, false, "it runs kernels, not commands; use cuda:N"},
    {"--settle", true, false, "it runs kernels, not commands; use cuda:N"},
    {"--dispatch", false, true, "its hardware places the blocks; use sim:NAME"},
    {"--locality", false, true, "its hardware places the blocks; use sim:NAME"},
    {"--threads", false, true, "only simulated cells run side by side; use sim:NAME"},
    {"--forecast", true, true, "it has no description of a GPU; use cuda:N or sim:NAME"},
};

// Options on how things are run, which --forecast does not.
constexpr std::string_view run_options[] = {
    "--warm-up",   "--samples",  "--most-samples", "--p99",
    "--precision", "--longest",  "--rounds",       "--seed",
    "--masks",     "--colors",   "--split",        "--clock",
    "--dispatch",  "--locality", "--threads",      "--victim-priority"};

// What the options mean apart from any device.
struct ParsedOptions {
  study::Plan plan;
  partition::SplitStrategy split{};
  std::vector<std::uint64_t> masks;
  study::Clock clock{};
  std::map<std::string, sim::BlockSharing> sharing;
};

Result<study::Plan> plan_of(const IsolateOptions& options) {
  study::Plan plan;
  plan.parts = options.parts;
  plan.rule = options.rule;
  plan.rounds = options.rounds;
  plan.seed = options.seed;
  DEMARC_TRY(plan.modes, study::parse_modes(options.modes));
  DEMARC_TRY(plan.victims, study::parse_workloads(options.victims, "--victims"));
  DEMARC_TRY(plan.aggressors, study::parse_workloads(options.aggressors, "--aggressors"));
  for (const std::string& command : options.aggressor_commands) {
    plan.aggressors.push_back({command, "cmd:" + command});
  }
  DEMARC_CHECK(study::check_plan(plan));
  if (options.p99) study::carry_p99(plan);
  return plan;
}

Result<ParsedOptions> parse_options(const IsolateOptions& options) {
  ParsedOptions parsed;
  DEMARC_TRY(parsed.plan, plan_of(options));
  const auto& aggressors = parsed.plan.aggressors;
  if (options.victim_priority != 0 &&
      std::any_of(aggressors.begin(), aggressors.end(), study::is_command)) {
    return invalid_input(
        "--victim-priority: beside a command the victim is a process of its own, whose streams "
        "have "
        "no priority; leave it out");
  }
  if (!(options.settle_seconds >= 0 && options.settle_seconds <= 3600)) {
    return invalid_input("--settle {}: give 0 to 3600 seconds", options.settle_seconds);
  }
  DEMARC_TRY(parsed.split, partition::parse_split_strategy(options.split));
  for (const std::string& mask : options.masks) {
    DEMARC_TRY(const auto value, parse_u64(mask, "--masks"));
    parsed.masks.push_back(value);
  }
  if (options.colors.size() > options.parts) {
    return invalid_input("--colors: {} colours for {} parts; give one a part at most",
                         options.colors.size(), options.parts);
  }
  DEMARC_TRY(parsed.clock, study::parse_clock(options.clock));
  if (!options.locality.empty() && options.dispatch != "locality") {
    return invalid_input("--locality is read by --dispatch locality only; add that");
  }
  if (options.dispatch == "locality" && options.locality.empty()) {
    return invalid_input("--dispatch locality reads who shares what: add --locality MAP.json");
  }
  for (const std::string& option : options.locality) {
    const std::size_t equals = option.find('=');
    const std::string file = equals == std::string::npos ? option : option.substr(equals + 1);
    DEMARC_TRY(const std::string text, read_file(file));
    DEMARC_TRY(parsed.sharing[equals == std::string::npos ? "" : option.substr(0, equals)],
               sim::parse_block_sharing(text, file));
  }
  const auto& modes = parsed.plan.modes;
  if ((!options.masks.empty() || !options.colors.empty()) &&
      std::none_of(modes.begin(), modes.end(), [](const study::Mode& m) { return m.color; })) {
    return invalid_input("{}: no mode of --modes has colours; add one such as mask+color",
                         options.masks.empty() ? "--colors" : "--masks");
  }
  return parsed;
}

Result<void> check_device(const IsolateOptions& options) {
  const bool real = options.device.starts_with("cuda:");
  const bool simulated = options.device.starts_with("sim:");
  if (!real && !simulated && !options.device.starts_with("planted:")) {
    return invalid_input("--device {}: write cuda:N, sim:NAME, or planted:h100 for a model",
                         options.device);
  }
  for (const DeviceOption& option : device_options) {
    if ((real && option.real) || (simulated && option.simulated)) continue;
    if (std::find(options.given.begin(), options.given.end(), option.name) == options.given.end()) {
      continue;
    }
    return invalid_input("{} cannot be followed by --device {}: {}", option.name, options.device,
                         option.instead);
  }
  return {};
}

Result<void> check_forecast(const IsolateOptions& options) {
  if (!options.forecast) return {};
  for (const std::string_view option : run_options) {
    if (std::find(options.given.begin(), options.given.end(), option) == options.given.end()) {
      continue;
    }
    return invalid_input("{} says how to run, and --forecast runs nothing: leave one of them out",
                         option);
  }
  return {};
}

Result<std::unique_ptr<study::Executor>> open_device(const IsolateOptions& options,
                                                     const ParsedOptions& parsed) {
  if (options.device.starts_with("planted:")) {
    DEMARC_TRY(auto model, study::planted_model(options.device.substr(8)));
    return study::make_planted_executor(std::move(model), options.seed);
  }
  if (options.device.starts_with("sim:")) {
    study::SimExecutorOptions sim;
    sim.device = options.device.substr(4);
    sim.seed = options.seed;
    sim.threads = options.threads;
    sim.split = parsed.split;
    sim.masks = parsed.masks;
    sim.colors = options.colors;
    sim.dispatch = options.dispatch;
    sim.sharing = parsed.sharing;
    return study::make_sim_executor(sim);
  }
  DEMARC_TRY(const gpu::DeviceRef ref, gpu::parse_device_ref(options.device));
  study::GpuExecutorOptions gpu;
  gpu.device = ref.index;
  gpu.program = "/proc/self/exe";
  study::take_away_on_signals();
  gpu.split = parsed.split;
  gpu.masks = parsed.masks;
  gpu.colors = options.colors;
  gpu.description = options.description;
  gpu.clock = parsed.clock;
  gpu.victim_priority = options.victim_priority;
  gpu.sync_domain = options.sync_domain;
  gpu.command_settle_seconds = options.settle_seconds;
  return study::make_gpu_executor(gpu);
}

// One lane over the whole device for another process; see demarc/study/remote_lane.hpp.
Result<void> serve(const IsolateOptions& options) {
  DEMARC_TRY(const auto parsed, parse_options(options));
  DEMARC_TRY(const auto executor, open_device(options, parsed));
  DEMARC_TRY(const auto stage, executor->whole());
  return study::serve_lane(stage->lane(0), STDIN_FILENO, STDOUT_FILENO);
}

// A simulation repeats exactly: a few launches say it all. Modes are those that a simulated GPU
// has, or that commands can be part of.
IsolateOptions for_device(IsolateOptions options) {
  if (!options.device.starts_with("sim:")) {
    if (!options.modes_given && !options.aggressor_commands.empty()) {
      options.modes = study::modes_for_commands();
    }
    return options;
  }
  if (!options.samples_given) {
    options.rule.warm_up = 1;
    options.rule.least = options.rule.most = 3;
    options.rounds = 1;
  }
  if (!options.modes_given) options.modes = "none,mps,mask,mask+color";
  return options;
}

Result<void> isolate(const IsolateOptions& given) {
  const IsolateOptions options = for_device(given);
  DEMARC_CHECK(check_device(options));
  if (options.worker) return serve(options);
  DEMARC_CHECK(check_forecast(options));
  DEMARC_TRY(const auto parsed, parse_options(options));
  DEMARC_TRY(const auto executor, open_device(options, parsed));
  DEMARC_TRY(const auto result,
             options.forecast ? study::forecast_study(parsed.plan, *executor)
                              : study::run_study(parsed.plan, *executor, terminal_progress()));
  if (!options.json.empty()) {
    DEMARC_CHECK(emit(options.json, study::study_json(result, command_line())));
  }
  if (!options.html.empty()) {
    DEMARC_CHECK(write_file(options.html, report::isolate_page(result, command_line())));
  }
  if (options.json != "-") DEMARC_CHECK(emit("-", study::study_text(result)));
  if (!result.errors.empty()) {
    return check_failed("{} of the study's cells and modes ended with an error, the first: {}",
                        result.errors.size(), result.errors.front());
  }
  return {};
}

const RegisterVerb isolate_verb{
    {10, "isolate", "who slows whom under each partitioning mode, and which partition stops it",
     "demarc isolate --device cuda:0 --parts 2 --modes none,mps,mask,mask+color --html out.html",
     [](CLI::App& app) -> std::function<Result<void>()> {
       auto options = std::make_shared<IsolateOptions>();
       app.add_option("--device", options->device,
                      "cuda:N, sim:NAME (simulated), or planted:h100 (a model)");
       app.add_option("--parts", options->parts, "equal parts of the GPU: 2, 3 or 4");
       const CLI::Option* modes = app.add_option(
           "--modes", options->modes,
           "comma list of the modes below; those of one process also +color, then +graph, "
           "+overlapped or +fused for a victim's launches; any also +common-domain: parts share a "
           "memory synchronisation domain");
       app.footer(app.get_footer() + "\n\nModes:\n" + partition::modes_help());
       app.add_option(
           "--victims", options->victims,
           "comma list of bundled kernels, launch:FILE.json or, on sim:NAME, stream:FILE (an "
           "access stream, docs/simulate.md)");
       app.add_option("--aggressors", options->aggressors, "the same, for the other parts");
       app.add_option(
           "--aggressor-cmd", options->aggressor_commands,
           fmt::format("a command line as one more aggressor, under {}; it runs under demarc exec "
                       "and must launch kernels whenever a victim is timed; may be repeated",
                       study::modes_for_commands()));
       const CLI::Option* warm_up = app.add_option("--warm-up", options->rule.warm_up,
                                                   "launches thrown away before each visit");
       const CLI::Option* samples = app.add_option("--samples", options->rule.least,
                                                   "launches timed in each visit at least");
       const CLI::Option* most =
           app.add_option("--most-samples", options->rule.most, "and at most");
       const CLI::Option* p99 = app.add_flag(
           "--p99", options->p99,
           "as many launches as a p99 takes, 1000 of each pair over all rounds, unless --longest "
           "ends a visit first; without, the worst of those timed is given");
       app.add_option("--precision", options->rule.precision,
                      "stop when the 95 % half width of the mean is within this share");
       app.add_option("--longest", options->rule.longest_seconds, "seconds a visit may take");
       app.add_option(
           "--split", options->split,
           "which TPCs a part gets: packed, distributed, gpc-aligned, side-aware, side-aligned");
       app.add_option(
              "--masks", options->masks,
              "colour masks, offsets in 2 MiB pages: 0xc4000,0x18a000 (default: what the card's "
              "description says keeps memory apart)")
           ->delimiter(',');
       app.add_option("--settle", options->settle_seconds,
                      "seconds that a command has from its start until victims are timed")
           ->capture_default_str();
       app.add_option("--description", options->description,
                      "what is known of the card's memory: a file of demarc probe memory -o, or a "
                      "name (default: what is built in for the card)");
       app.add_option("--colors", options->colors, "colour of each part: 1,0 (default: 0,1,...)")
           ->delimiter(',');
       app.add_option("--dispatch", options->dispatch,
                      "who picks the SM of each block on sim:NAME: a policy of demarc schedule "
                      "(default: the SM with the fewest threads)");
       app.add_option("--locality", options->locality,
                      "[WORKLOAD=]FILE: what the blocks of that victim or aggressor share, for "
                      "--dispatch locality: JSON of demarc locality --json --maps");
       app.add_option("--clock", options->clock,
                      "what a time is: gpu, the kernels of a run by the GPU's clock; events, "
                      "between events, with the launch");
       app.add_option("--victim-priority", options->victim_priority,
                      "priority of the victim's stream where parts are streams of one process; "
                      "lower comes first");
       const CLI::Option* rounds =
           app.add_option("--rounds", options->rounds, "times each pair is visited");
       app.add_option("--seed", options->seed, "order of the runs");
       app.add_flag(
           "--forecast", options->forecast,
           "run nothing: say from the kernels' PTX who would press on the memory, whom half "
           "the L2 would cost, and which mode suits");
       add_output(app, "--json", options->json, "result with raw samples; - is standard output");
       add_output(app, "--html", options->html, "one self-contained page with the figures");
       app.add_flag("--worker", options->worker)->group("");  // hidden: a lane for another process
       app.add_option("--sync-domain", options->sync_domain)->group("");  // of it
       app.add_option("--threads", options->threads,
                      "simulated cells side by side; 0: all cores; results do not depend on it");
       return [=, &app] {
         const auto note = [&](std::string_view name) {
           if (app.count(std::string(name)) > 0) options->given.emplace_back(name);
         };
         for (const DeviceOption& option : device_options) note(option.name);
         for (const std::string_view option : run_options) note(option);
         options->modes_given = modes->count() > 0;
         options->samples_given =
             warm_up->count() + samples->count() + most->count() + p99->count() + rounds->count() >
             0;
         return isolate(*options);
       };
     }}};

}  // namespace
}  // namespace demarc::cli
