// demarc schedule study and compare: run policies over many generated workloads.
#include "demarc/base/files.hpp"
#include "demarc/report/schedule_page.hpp"
#include "demarc/sim/dispatch/tb_compare.hpp"
#include "schedule_commands.hpp"

namespace demarc::cli {
namespace {

struct StudyCommandOptions {
  sim::TbStudyOptions study;
  std::string html, output, json, measure = "antt-queue";
  std::vector<std::string> workloads;
  bool verbose = false;
};

std::shared_ptr<StudyCommandOptions> declare_study_options(CLI::App& app, std::uint32_t seeds,
                                                           std::uint32_t ticks) {
  auto options = std::make_shared<StudyCommandOptions>();
  options->study.seeds = seeds;
  options->study.ticks = ticks;
  const auto number = [&](const char* name, auto& value, const char* help, std::uint32_t least,
                          std::uint32_t most) {
    app.add_option(name, value, help)->check(CLI::Range(least, most).description(""));
  };
  number("--seeds", options->study.seeds, "workloads per setting", 1, 100000);
  app.add_option("--seed", options->study.first_seed, "first seed");
  number("--ticks", options->study.ticks, "length of each run", 1, 1000000000);
  number("--threads", options->study.threads, "runs at a time; 0 means all cores", 0, 4096);
  app.add_option("workloads", options->workloads,
                 "SimTBS configurations of one machine; if one has no kernels, its *workload draws "
                 "them for each seed")
      ->type_name("FILE");
  add_output(app, "--html", options->html, "write a page with the figures to this file");
  add_output(app, options->output);
  app.add_flag("-v,--verbose", options->verbose, "also show all figures of every setting");
  add_json(app, options->json, "the cells", {"demarc.schedule.study/1"});
  return options;
}

// `app`: what was given on the command line.
Result<sim::TbStudyOptions> study_of(const StudyCommandOptions& options, const CLI::App& app) {
  sim::TbStudyOptions study = options.study;
  for (const std::string& file : options.workloads) {
    DEMARC_TRY(const std::string text, read_file(file));
    DEMARC_TRY(auto config, sim::parse_tb_config(text, file));
    study.workloads.push_back(std::move(config));
  }
  if (!study.workloads.empty() && app.count("--ticks") > 0) {
    return invalid_input("--ticks: the given workloads have their own length; leave it out");
  }
  return study;
}

Result<void> emit_study(const StudyCommandOptions& options, const sim::TbStudy& study,
                        const std::string& page, const std::string& table) {
  if (!options.html.empty()) DEMARC_CHECK(emit(options.html, page));
  return emit_result(
      options.json, options.output, [&] { return sim::study_json(study); },
      [&] { return options.verbose ? table + "\n" + sim::study_table(study) : table; });
}

}  // namespace

ScheduleCommand declare_schedule_study(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "study",
      "repeat the figures 6 to 9 of the SimTBS paper, or run its policies on your workloads");
  app->footer(
      "Example: demarc schedule study --html study.html\n"
      "         demarc schedule study mine.conf");
  auto options = declare_study_options(*app, 10, 10000);
  return {app, [options, app]() -> Result<void> {
            DEMARC_TRY(const auto asked, study_of(*options, *app));
            DEMARC_TRY(const auto study, sim::reproduce_paper(asked, terminal_progress()));
            const std::string table =
                asked.workloads.empty()
                    ? report::plain_text(report::schedule_published_table(study))
                    : sim::study_table(study);
            return emit_study(*options, study, report::schedule_study_page(study, command_line()),
                              table);
          }};
}

ScheduleCommand declare_schedule_compare(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "compare", "compare every policy over loads, mixes and machine sizes, or on your workloads");
  app->footer(
      "Example: demarc schedule compare --sms 16,132 --levels 80 --html compare.html\n"
      "         demarc schedule compare mine.conf");
  auto options = declare_study_options(*app, 10, 3000);
  app->add_option("--sms", options->study.sizes, "machine sizes (default: 16,32,66,132,264,528)")
      ->delimiter(',')
      ->check(CLI::Range(1U, 4096U).description(""));
  app->add_option("--levels", options->study.levels, "nominal loads (default: 40%,80%,100%)")
      ->type_name(percent_type)
      ->delimiter(',')
      ->check(CLI::Range(1U, 100000U).description(""));
  std::string known;
  for (const sim::TbMeasure& measure : sim::tb_measures()) {
    known += known.empty() ? "" : ", ";
    known += measure.name;
  }
  app->add_option("--measure", options->measure,
                  "measure that the table shows by load and size: " + known)
      ->type_name("NAME");
  return {app, [options, app]() -> Result<void> {
            DEMARC_TRY(const sim::TbMeasure* measure, sim::find_tb_measure(options->measure));
            DEMARC_TRY(const auto asked, study_of(*options, *app));
            DEMARC_TRY(const auto study, sim::compare_policies(asked, terminal_progress()));
            return emit_study(*options, study, report::schedule_compare_page(study, command_line()),
                              sim::compare_table(study, *measure));
          }};
}

}  // namespace demarc::cli
