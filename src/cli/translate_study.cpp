// demarc translate study: shows the paper's figures beside ours.
#include "demarc/base/files.hpp"
#include "demarc/report/translation_page.hpp"
#include "translate_commands.hpp"

namespace demarc::cli {
namespace {

struct TranslateStudyOptions {
  MachineOptions machine;
  std::string apps = "all";
  std::vector<std::string> variants;
  unsigned threads = 0;
  std::string json;
  bool list_variants = false;
  bool readings = false;
  std::string html;
  std::string output;
};

std::string variant_list() {
  std::string text;
  for (const auto& variant : sim::translation::study_variants())
    text += fmt::format("{:<22} {}\n", variant.name, variant.meaning);
  return text;
}

Result<void> run_translate_study(const TranslateStudyOptions& options) {
  if (options.list_variants) return emit("", variant_list());
  sim::translation::StudyOptions study_options;
  DEMARC_TRY(study_options.base, options.machine.settings());
  DEMARC_TRY(study_options.apps, application_names(options.apps));
  study_options.variants = options.variants;
  if (options.readings) {
    if (!options.variants.empty())
      return invalid_input("--readings names its variants; leave out --variants");
    if (options.machine.names("split"))
      return invalid_input("--readings tries every split; leave out --split");
    if (options.machine.names("gmmu_fill"))
      return invalid_input("--readings tries both values; leave out --set gmmu_fill");
    study_options.variants = sim::translation::reading_variants();
    study_options.bypass = false;
    study_options.base.split = sim::translation::Split::roundrobin;
    study_options.base.gmmu_fill = sim::translation::GmmuFill::local;
  }
  study_options.threads = options.threads;
  DEMARC_TRY(const auto study, reproduce_paper(study_options, terminal_progress()));
  if (!options.html.empty()) {
    DEMARC_CHECK(emit(options.html, report::translation_study_page(study, command_line())));
  }
  return emit_result(
      options.json, options.output, [&] { return sim::translation::study_json(study); },
      [&] {
        return options.readings ? sim::translation::readings_text(study)
                                : sim::translation::study_text(study, text_parts());
      });
}

}  // namespace

TranslateCommand declare_translate_study(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "study", "repeat the figures 4 to 7 of the paper under each setting that it may have used");
  app->footer(
      "Example: demarc translate study --html study.html\n"
      "         demarc translate study --readings\n"
      "--set megabytes=8 gives a first look; the paper's 64 MB take far longer.");
  auto options = std::make_shared<TranslateStudyOptions>();
  options->machine.declare(*app);
  app->add_option("--app", options->apps, "applications: a comma list, or all");
  app->add_option("--variants", options->variants,
                  "settings to try in addition to the defaults (comma list; default: all)")
      ->delimiter(',');
  app->add_flag("--readings", options->readings,
                "try gmmu_fill=local and any under every split, side by side: two readings of what "
                "a GMMU keeps");
  app->add_flag("--list-variants", options->list_variants, "print the settings that are tried");
  app->add_option("--threads", options->threads,
                  "runs at a time; 0 means all cores; the results do not depend on it");
  add_output(*app, "--html", options->html, "write a page with the figures to this file");
  add_json(*app, options->json, "the figures", {"demarc.translate.study/1"});
  add_output(*app, options->output);
  return {app, [options] { return run_translate_study(*options); }};
}

}  // namespace demarc::cli
