// demarc attack: searches for the worst neighbour of a partition.
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "demarc/study/attack.hpp"
#include "help.hpp"
#include "study_options.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct AttackOptions {
  StudyOptions common;
  std::string mode = "mask+color";
  std::string victims = "va,mm,fwt,cfd,gaussian,chase";
  std::vector<std::string> without;
  study::AttackPlan plan;
  std::uint32_t screen = 5;
  std::uint32_t samples = 500;
  double longest = 2;
  std::string output;
  std::string json;
};

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

// A simulation repeats exactly and is slow: few runs, fewer neighbours.
void suit_device(AttackOptions& options, const CLI::App& given) {
  if (!options.common.simulated()) return;
  constexpr const char* how_often[] = {"--screen", "--samples", "--rounds"};
  if (std::none_of(std::begin(how_often), std::end(how_often),
                   [&](const char* name) { return given.count(name) > 0; })) {
    options.screen = options.samples = 3;
    options.plan.rounds = 1;
  }
  if (given.count("--candidates") == 0) options.plan.candidates = 100;
}

Result<study::AttackPlan> attack_plan(AttackOptions& options) {
  study::AttackPlan plan = options.plan;
  DEMARC_TRY(const auto modes, study::parse_modes(options.mode, "--mode"));
  if (modes.size() != 1) {
    return invalid_input("--mode {}: demarc attack searches under one mode; give one",
                         options.mode);
  }
  plan.mode = modes.front();
  plan.parts = options.common.parts;
  plan.seed = options.common.seed;
  DEMARC_TRY(plan.victims, study::parse_workloads(options.victims, "--victims"));
  for (const std::string& name : options.without) {
    const auto operation = study::parse_operation(name);
    if (!operation) return invalid_input("--without: {}", operation.error().message);
    plan.without.push_back(*operation);
  }
  plan.screening.least = plan.screening.most = options.screen;
  plan.proof.least = plan.proof.most = options.samples;
  plan.proof.longest_seconds = options.longest;
  if (options.common.simulated()) plan.proof.warm_up = plan.screening.warm_up;
  DEMARC_CHECK(options.common.parse(modes, "--mode"));
  if (plan.kernels_alone && options.common.clock() != study::Clock::gpu) {
    return invalid_input("--clock {} does not support --kernels-alone: it times whole runs",
                         study::clock_name(options.common.clock()));
  }
  return plan;
}

Result<void> attack(AttackOptions& options) {
  const StudyOptions& common = options.common;
  if (common.planted() != nullptr) {
    return invalid_input("--device {}: write cuda:N or sim:NAME", common.device);
  }
  DEMARC_CHECK(common.check_device());
  DEMARC_TRY(const study::AttackPlan plan, attack_plan(options));
  DEMARC_CHECK(study::check_bundled(plan.victims, "--victims"));
  DEMARC_CHECK(check_driver(common.device));
  if (!options.output.empty()) DEMARC_CHECK(study::open_folder(options.output));
  DEMARC_CHECK(tell_of_others("attack", common.device));
  DEMARC_TRY(const auto executor, common.open());
  DEMARC_TRY(const auto result,
             study::run_attack(plan, *executor, terminal_progress(), seconds_now));
  if (!options.output.empty()) DEMARC_CHECK(study::write_ranked(result, options.output));
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return study::attack_json(result, command_line()); },
      [&] { return study::attack_text(result); }));
  if (result.verdict == study::Verdict::held) return {};
  return check_failed("{}", study::verdict_text(result));
}

const RegisterVerb attack_verb{
    {101, "attack",
     "search for the neighbour that slows a partition most, and judge whether that is too much",
     "demarc attack --device cuda:0 --mode mask+color --candidates 1000 -o worst",
     [](CLI::App& app) -> std::function<Result<void>()> {
       auto options = std::make_shared<AttackOptions>();
       options->common.declare(app, "GPU: cuda:N or sim:NAME (simulated)");
       app.add_option("--mode", options->mode,
                      "partition to attack: one of the modes of demarc isolate");
       app.add_option("--victims", options->victims,
                      "workloads to attack: bundled kernels, launch:FILE.json[@SCALE] or, on "
                      "sim:NAME, stream:FILE (comma list)");
       app.add_option("--without", options->without,
                      "operations to leave out: store,host_load,... (default: none)")
           ->delimiter(',');
       study::AttackPlan& plan = options->plan;
       app.add_flag("--kernels-alone", plan.kernels_alone,
                    "judge kernels alone, without the gaps between launches");
       app.add_option("--candidates", plan.candidates, "neighbours to try (on sim:NAME 100)");
       app.add_option("--seconds", plan.seconds,
                      "begin no new generation after this many seconds (default: no limit)")
           ->default_str("");
       app.add_option("--generation", plan.generation, "neighbours that are made at a time");
       app.add_option("--keep", plan.keep,
                      "number of the worst neighbours that are measured again and ranked");
       app.add_option("--screen", options->screen,
                      "launches of a victim timed next to each neighbour (on sim:NAME 3)");
       app.add_option("--samples", options->samples,
                      "launches timed next to each of the worst, per round; 1000 in all give a p99 "
                      "(on sim:NAME 3)");
       app.add_option("--rounds", plan.rounds,
                      "visits to each pair of a victim and one of the worst (on sim:NAME 1)");
       app.add_option("--longest", options->longest, "seconds that a visit may take");
       app.add_option("--max-slowdown", plan.max_slowdown,
                      "largest slowdown of a victim's mean time, as a factor");
       app.add_option("--max-p99-slowdown", plan.max_tail_slowdown,
                      "largest slowdown of a victim's p99, as a factor; with fewer than 1000 runs "
                      "of its worst run");
       app.add_option("-o,--output", options->output,
                      "write the launch files of the worst neighbours to this folder")
           ->option_text("FOLDER");
       add_json(app, options->json, "the search", {"demarc.attack/2"});
       group_options(app, "Partition", {"--mode"});
       group_options(app, "Search",
                     {"--victims", "--without", "--kernels-alone", "--candidates", "--seconds",
                      "--generation", "--keep"});
       group_options(app, "Measurement", {"--screen", "--samples", "--rounds", "--longest"});
       group_options(app, "Verdict", {"--max-slowdown", "--max-p99-slowdown"});
       return [=, &app]() -> Result<void> {
         DEMARC_CHECK(options->common.note_given(app));
         suit_device(*options, app);
         return attack(*options);
       };
     }}};

}  // namespace
}  // namespace demarc::cli
