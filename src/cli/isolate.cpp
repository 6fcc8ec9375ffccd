// demarc isolate: runs the interference study.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "demarc/base/files.hpp"
#include "demarc/report/isolate_page.hpp"
#include "demarc/study/planted.hpp"
#include "demarc/study/remote_lane.hpp"
#include "demarc/study/study.hpp"
#include "help.hpp"
#include "study_options.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct IsolateOptions {
  StudyOptions common;
  std::string modes = "none,mps,green,mask,affinity,mask+color";
  std::string victims = "mm,fwt,va,sp,sn,cfd,gaussian,nn";
  std::string aggressors = "mm,fwt,va";
  std::vector<std::string> victim_commands;
  std::vector<std::string> aggressor_commands;
  study::StoppingRule rule;
  std::uint32_t rounds = 2;
  bool p99 = false;
  std::string json;
  std::string resume;
  std::string baseline;
  std::string html;
  std::string csv;
  bool verbose = false;
  bool worker = false;
  bool forecast = false;
  int ended_by = 0;                    // a signal, if one ended the study early
  std::vector<std::string> run_given;  // of run_options
};

// Options on how things are run, which --forecast does not.
constexpr std::string_view run_options[] = {
    "--warm-up", "--samples", "--max-samples", "--p99",      "--precision", "--longest",
    "--rounds",  "--seed",    "--resume",      "--baseline", "--masks",     "--colors",
    "--split",   "--clock",   "--dispatch",    "--locality", "--threads",   "--victim-priority"};

// What commands of the plan cannot be combined with.
Result<void> check_commands(const IsolateOptions& options, const study::Plan& plan) {
  const study::Workload* const command = study::first_command(plan);
  if (command == nullptr) return {};
  if (!options.common.real()) {
    return invalid_input("--device {} runs kernels, not the command '{}': use cuda:N",
                         options.common.device, command->name);
  }
  if (options.common.victim_priority == 0) return {};
  return invalid_input(
      "--victim-priority does not support the command '{}': victims are processes of their own, "
      "whose streams have no priority",
      command->name);
}

// The workloads of a comma list, and the commands. An empty list is an error unless there are
// commands.
Result<std::vector<study::Workload>> workloads_of(const std::string& list,
                                                  const std::vector<std::string>& commands,
                                                  std::string_view option) {
  std::vector<study::Workload> workloads;
  if (!list.empty() || commands.empty()) {
    DEMARC_TRY(workloads, study::parse_workloads(list, option));
  }
  for (const std::string& command : commands) {
    workloads.push_back(study::command_workload(command));
  }
  return workloads;
}

Result<study::Plan> plan_of(const IsolateOptions& options) {
  study::Plan plan;
  plan.parts = options.common.parts;
  plan.rule = options.rule;
  plan.rounds = options.rounds;
  plan.seed = options.common.seed;
  DEMARC_TRY(plan.modes, study::parse_modes(options.modes));
  DEMARC_TRY(plan.victims, workloads_of(options.victims, options.victim_commands, "--victims"));
  DEMARC_TRY(plan.aggressors,
             workloads_of(options.aggressors, options.aggressor_commands, "--aggressors"));
  DEMARC_CHECK(check_commands(options, plan));
  DEMARC_CHECK(study::check_plan(plan));
  if (options.p99) study::carry_p99(plan);
  return plan;
}

// What the options mean apart from any device.
Result<study::Plan> parse_options(IsolateOptions& options) {
  DEMARC_TRY(auto plan, plan_of(options));
  DEMARC_CHECK(options.common.parse(plan.modes, "--modes"));
  const auto command = std::find_if(plan.victims.begin(), plan.victims.end(), study::is_command);
  if (options.common.clock() == study::Clock::requests && command != plan.victims.end()) {
    return invalid_input(
        "--clock requests does not support the command '{}': a command's runs follow each other",
        command->name);
  }
  return plan;
}

Result<void> check_forecast(const IsolateOptions& options) {
  if (!options.forecast) return {};
  for (const std::string_view option : run_options) {
    const auto& given = options.run_given;
    if (std::find(given.begin(), given.end(), option) == given.end()) continue;
    return invalid_input("--forecast runs nothing and does not support {}: leave out one of them",
                         option);
  }
  return {};
}

Result<std::unique_ptr<study::Executor>> open_device(const StudyOptions& options) {
  if (options.planted() == nullptr) return options.open();
  DEMARC_TRY(auto model, study::planted_model(options.planted()->name));
  return study::make_planted_executor(std::move(model), options.seed);
}

// One lane over the whole device for another process; see demarc/study/remote_lane.hpp.
Result<void> serve(IsolateOptions& options) {
  DEMARC_CHECK(parse_options(options));
  DEMARC_TRY(const auto executor, open_device(options.common));
  DEMARC_TRY(const auto stage, executor->whole());
  return study::serve_lane(stage->lane(0), STDIN_FILENO, STDOUT_FILENO);
}

// A simulation repeats exactly: a few launches say it all. Modes are those that a simulated GPU
// has, or that commands can be part of.
void suit_device(IsolateOptions& options, const CLI::App& given) {
  const bool modes_given = given.count("--modes") > 0;
  if (!options.common.simulated()) {
    const bool commands = !options.victim_commands.empty() || !options.aggressor_commands.empty();
    if (!modes_given && commands) options.modes = study::modes_for_commands();
    // Commands stand in for the default kernels.
    const auto clear_default = [&given](const char* option, const std::vector<std::string>& instead,
                                        std::string& list) {
      if (given.count(option) == 0 && !instead.empty()) list.clear();
    };
    clear_default("--victims", options.victim_commands, options.victims);
    clear_default("--aggressors", options.aggressor_commands, options.aggressors);
    return;
  }
  constexpr const char* how_often[] = {"--warm-up", "--samples", "--max-samples", "--p99",
                                       "--rounds"};
  if (std::none_of(std::begin(how_often), std::end(how_often),
                   [&](const char* name) { return given.count(name) > 0; })) {
    options.rule.warm_up = 1;
    options.rule.least = options.rule.most = 3;
    options.rounds = 1;
  }
  if (!modes_given) options.modes = "none,mps,mask,mask+color";
  // Victims of many launches wait before each of them for a neighbour that streams, which would
  // make up most of the work, and nn streams as va does.
  if (given.count("--victims") == 0) options.victims = "mm,va,sp,cfd";
}

// The study in a file of --json; nothing if no file is named.
Result<std::optional<study::StudyResult>> study_in(const std::string& file) {
  if (file.empty()) return std::nullopt;
  DEMARC_TRY(const std::string text, read_file(file));
  return study::read_study(text, file);
}

// The cells that --resume takes over. The result goes to the same file unless --json names another.
Result<std::optional<study::StudyResult>> earlier_study(IsolateOptions& options,
                                                        const study::Plan& plan,
                                                        const study::Executor& executor) {
  DEMARC_TRY(auto earlier, study_in(options.resume));
  if (!earlier) return std::nullopt;
  DEMARC_CHECK(study::check_same_study(*earlier, options.resume, plan, executor));
  if (options.json.empty()) options.json = options.resume;
  return earlier;
}

// Writes what was measured to the file of --json: at most five times per second, and so that
// writing takes little of the study's time however large the file becomes.
class Keeper {
 public:
  // A pipe or a device gets the study once, at its end.
  explicit Keeper(std::string file) : file_(std::move(file)) {
    std::error_code ignored;
    const auto kind = std::filesystem::status(file_, ignored).type();
    if (kind != std::filesystem::file_type::regular &&
        kind != std::filesystem::file_type::not_found) {
      file_.clear();
    }
  }
  void keep(const std::function<study::StudyResult()>& so_far) {
    const auto begun = std::chrono::steady_clock::now();
    if (file_.empty() || file_ == "-" || begun < next_) return;
    const auto kept = write_file(file_, study::study_json(so_far(), command_line()));
    if (!kept && !failed_) tell_of("isolate")(kept.error().message);
    failed_ = !kept;
    const auto ended = std::chrono::steady_clock::now();
    next_ = ended + std::max<std::chrono::nanoseconds>(pause, 20 * (ended - begun));
  }

 private:
  static constexpr std::chrono::milliseconds pause{200};
  std::string file_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + pause;
  bool failed_ = false;
};

Result<study::StudyResult> run_plan(IsolateOptions& options, const study::Plan& plan,
                                    study::Executor& executor) {
  DEMARC_TRY(const auto earlier, earlier_study(options, plan, executor));
  Keeper keeper(options.json);
  study::RunOptions run;
  run.progress = terminal_progress();
  run.measured = [&](const auto& so_far) { keeper.keep(so_far); };
  run.stop = [] { return study::asked_to_end() != 0; };
  run.earlier = earlier ? &*earlier : nullptr;
  study::end_gently_on_signals([] {
    tell_of("isolate")(
        "the study ends after the cell in progress; a second signal ends it at once");
  });
  return study::run_study(plan, executor, run);
}

Result<void> check_baseline_stays(const IsolateOptions& options) {
  const std::string& written = options.json.empty() ? options.resume : options.json;
  std::error_code ignored;
  if (options.baseline.empty() ||
      !std::filesystem::equivalent(options.baseline, written, ignored)) {
    return {};
  }
  return invalid_input(
      "--baseline {}: the results of this run would overwrite it; give another file by --json",
      options.baseline);
}

// How a run that measured less than its plan is continued.
std::string continuation(const IsolateOptions& options) {
  if (options.json.empty() || options.json == "-") return "";
  return fmt::format("; the same command line with `--resume {}` measures the rest", options.json);
}

void end_by(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

study::TextDetail detail_of(const IsolateOptions& options) {
  if (quiet()) return study::TextDetail::results;
  return options.verbose ? study::TextDetail::everything : study::TextDetail::usual;
}

Result<void> isolate(IsolateOptions& options) {
  DEMARC_CHECK(options.common.check_device());
  if (options.worker) return serve(options);
  DEMARC_CHECK(check_forecast(options));
  DEMARC_TRY(const auto plan, parse_options(options));
  if (options.common.planted() == nullptr) {
    DEMARC_CHECK(study::check_bundled(plan.victims, "--victims"));
    DEMARC_CHECK(study::check_bundled(plan.aggressors, "--aggressors"));
  }
  DEMARC_CHECK(check_driver(options.common.device));
  if (!options.forecast) DEMARC_CHECK(tell_of_others("isolate", options.common.device));
  DEMARC_TRY(const auto baseline, study_in(options.baseline));
  DEMARC_CHECK(check_baseline_stays(options));
  DEMARC_TRY(const auto executor, open_device(options.common));
  DEMARC_TRY(auto result, options.forecast ? study::forecast_study(plan, *executor)
                                           : run_plan(options, plan, *executor));
  if (baseline) result.comparison = compare_studies(*baseline, options.baseline, result);
  if (!options.html.empty()) {
    DEMARC_CHECK(emit(options.html, report::isolate_page(result, command_line())));
  }
  if (!options.csv.empty()) DEMARC_CHECK(emit(options.csv, study::study_csv(result)));
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return study::study_json(result, command_line()); },
      [&] { return study::study_text(result, detail_of(options)); }));
  if (const int signal = study::asked_to_end(); signal != 0 && !result.interrupted.empty()) {
    tell_of("isolate")(result.interrupted + continuation(options));
    options.ended_by = signal;
    return {};
  }
  if (!result.errors.empty()) {
    return check_failed("{} of the study's cells and modes ended with an error; the first is: {}{}",
                        result.errors.size(), result.errors.front(), continuation(options));
  }
  return study::check_possible(result);
}

const RegisterVerb isolate_verb{
    {100, "isolate",
     "measure how much co-located programs slow each other, and which partition stops it",
     "demarc isolate --device cuda:0 --parts 2 --modes none,mps,mask,mask+color --html out.html",
     [](CLI::App& app) -> std::function<Result<void>()> {
       auto options = std::make_shared<IsolateOptions>();
       options->common.declare(app, "GPU: cuda:N, sim:NAME (simulated), or planted:h100 (a model)");
       app.add_option("--modes", options->modes, "partitioning modes (comma list)");
       app.footer(
           app.get_footer() + "\n\nModes:\n" + partition::modes_help() +
           "\n"
           "Append +color to a mode of one process to divide the memory, too, or +windows to "
           "divide it by pages\n"
           "of 4 KiB (simulated cards with known TLBs). Then append +graph, +overlapped, "
           "+graph+overlapped or\n"
           "+fused to choose how the victim's kernels are launched.\n"
           "Append +common-domain to any mode but tenant to let the parts share a memory "
           "synchronisation domain.\n"
           "\n"
           "Commands: --victim-cmd and --aggressor-cmd start their commands under demarc "
           "exec. A run of a victim\n"
           "lasts from its first kernel launch to its end, which must come with exit code 0 "
           "within 10 minutes.\n"
           "An aggressor must launch kernels whenever a victim is timed.\n"
           "Modes for commands: " +
           study::modes_for_commands() + ".");
       app.add_option("--victims", options->victims,
                      "workloads to time: bundled kernels, launch:FILE.json[@SCALE] or, on "
                      "sim:NAME, stream:FILE (on sim:NAME mm,va,sp,cfd)");
       app.add_option(
           "--aggressors", options->aggressors,
           "workloads of the other parts, in the same form; on cuda:N also copy_in and copy_out");
       app.add_option("--victim-cmd", options->victim_commands,
                      "command line to time in place of the default victims; may be repeated");
       app.add_option("--aggressor-cmd", options->aggressor_commands,
                      "command line of the other parts in place of the default aggressors; may be "
                      "repeated");
       app.add_option("--warm-up", options->rule.warm_up,
                      "launches of each cell that are not timed, per round (on sim:NAME 1)");
       app.add_option("--samples", options->rule.least,
                      "least number of launches timed per cell and round (on sim:NAME 3)");
       app.add_option("--max-samples", options->rule.most,
                      "largest number of launches timed per cell and round (on sim:NAME 3)");
       app.add_flag(
           "--p99", options->p99,
           "time 1000 launches per cell, which a p99 needs, unless --longest ends a round earlier");
       app.add_option(
           "--precision", options->rule.precision,
           "a cell's round ends when the 95 % half width of the mean is within this share of it");
       app.add_option("--longest", options->rule.longest_seconds,
                      "seconds that a cell may take in each round");
       app.add_option("--settle", options->common.settle_seconds,
                      "seconds from the start of a command until victims are timed");
       app.add_option("--rounds", options->rounds,
                      "number of passes through all cells (on sim:NAME 1)");
       app.add_flag(
           "--forecast", options->forecast,
           "run nothing; predict from PTX which workloads load the memory and which mode suits");
       app.add_option("--resume", options->resume,
                      "go on from this file of --json, which a run with the same options left: "
                      "measure only what it lacks")
           ->type_name("FILE");
       app.add_option("--baseline", options->baseline,
                      "compare each cell with that of an earlier study, in this file of --json")
           ->type_name("FILE");
       add_json(app, options->json, "the result with raw samples", {"demarc.isolate/4"});
       add_output(app, "--csv", options->csv,
                  "write the cells to this file as CSV, one row per cell, in microseconds");
       app.add_flag("-v,--verbose", options->verbose, "also show the parameters of a simulated GPU")
           ->group("Messages");
       add_output(app, "--html", options->html, "write a page with the figures to this file");
       app.add_flag("--worker", options->worker)->group("");  // hidden: a lane for another process
       app.add_option("--sync-domain", options->common.sync_domain)->group("");  // of it
       group_options(app, "Partition", {"--modes"});
       group_options(app, "Workloads",
                     {"--victims", "--aggressors", "--victim-cmd", "--aggressor-cmd", "--settle"});
       group_options(app, "Measurement",
                     {"--warm-up", "--samples", "--max-samples", "--p99", "--precision",
                      "--longest", "--rounds", "--resume", "--baseline"});
       return [=, &app]() -> Result<void> {
         DEMARC_CHECK(options->common.note_given(app));
         for (const std::string_view option : run_options) {
           if (app.count(std::string(option)) > 0) options->run_given.emplace_back(option);
         }
         suit_device(*options, app);
         auto done = isolate(*options);
         // Once nothing of the study is left, so that a shell sees what has ended it.
         if (done && options->ended_by != 0) end_by(options->ended_by);
         return done;
       };
     }}};

}  // namespace
}  // namespace demarc::cli
