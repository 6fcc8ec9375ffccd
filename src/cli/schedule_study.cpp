// demarc schedule study and compare: policies over many generated workloads.
#include "demarc/base/files.hpp"
#include "demarc/report/schedule_page.hpp"
#include "schedule_commands.hpp"

namespace demarc::cli {
namespace {

struct StudyCommandOptions {
  sim::TbStudyOptions study;
  std::string html, out;
  bool json = false;
};

std::shared_ptr<StudyCommandOptions> declare_study_options(CLI::App& app) {
  auto options = std::make_shared<StudyCommandOptions>();
  app.add_option("--seeds", options->study.seeds, "workloads of each setting")
      ->check(CLI::Range(1U, 100000U));
  app.add_option("--seed", options->study.first_seed, "first seed");
  app.add_option("--ticks", options->study.ticks, "length of each run")
      ->check(CLI::Range(1U, 1000000000U));
  app.add_option("--threads", options->study.threads, "0: all cores");
  add_output(app, "--html", options->html, "write a page here");
  add_output(app, "--out", options->out, "write the table here instead of standard output");
  app.add_flag("--json", options->json, "JSON (schema demarc.schedule.study/1)");
  return options;
}

Result<void> emit_study(const StudyCommandOptions& options, const sim::TbStudy& study,
                        const std::string& page) {
  if (!options.html.empty()) DEMARC_CHECK(write_file(options.html, page));
  return emit(options.out, options.json ? sim::study_json(study) : sim::study_table(study));
}

}  // namespace

ScheduleCommand declare_schedule_study(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "study", "Figures 6-9 of the SimTBS paper, as published and corrected, side by side");
  app->footer("Example: demarc schedule study --html study.html");
  auto options = declare_study_options(*app);
  return {app, [options]() -> Result<void> {
            DEMARC_TRY(const auto study, sim::reproduce_paper(options->study, terminal_progress()));
            return emit_study(*options, study,
                              report::schedule_study_page(study, "demarc schedule study"));
          }};
}

ScheduleCommand declare_schedule_compare(CLI::App& verb) {
  CLI::App* app =
      verb.add_subcommand("compare", "every policy over loads, mixes and machine sizes");
  app->footer("Example: demarc schedule compare --sms 16,132 --levels 80 --html compare.html");
  auto options = declare_study_options(*app);
  options->study.seeds = 3;
  options->study.ticks = 3000;
  app->add_option("--sms", options->study.sizes, "machine sizes")
      ->delimiter(',')
      ->check(CLI::Range(1U, 4096U));
  app->add_option("--levels", options->study.levels, "nominal loads in per cent")->delimiter(',');
  return {app, [options]() -> Result<void> {
            DEMARC_TRY(const auto study,
                       sim::compare_policies(options->study, terminal_progress()));
            return emit_study(*options, study,
                              report::schedule_compare_page(study, "demarc schedule compare"));
          }};
}

}  // namespace demarc::cli
