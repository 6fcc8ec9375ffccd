// demarc translate: simulates address translation on several GPUs.
#include <algorithm>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/report/translation_page.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/translation/stream.hpp"
#include "demarc/study/split_measurement.hpp"
#include "demarc/workload/load.hpp"
#include "help.hpp"
#include "translate_commands.hpp"

namespace demarc::cli {
namespace {

namespace translation = sim::translation;

struct TranslateOptions {
  MachineOptions machine;
  std::string architecture = "both";
  std::string apps;
  std::string launch;
  std::string scale;
  std::vector<std::string> parameters;
  std::string stream;
  unsigned threads = 0;
  std::string json;
  bool list_settings = false;
  bool print_device = false;
  bool splits = false;
  std::vector<std::string> measure;  // cards
  std::uint32_t runs = 5;
  bool measure_only = false;
  std::string timeline;
  std::string html;
  std::string output;
};

Result<std::vector<translation::Architecture>> architectures_of(const std::string& text) {
  using translation::Architecture;
  if (text == "both") return std::vector{Architecture::centralised, Architecture::distributed};
  if (text == "all") {
    return std::vector{Architecture::centralised, Architecture::distributed, Architecture::bypass};
  }
  for (const auto one :
       {Architecture::centralised, Architecture::distributed, Architecture::bypass}) {
    if (to_string(one) == text) return std::vector{one};
  }
  return invalid_input("--arch: '{}' is not one of centralised, distributed, bypass, both, all",
                       text);
}

std::string settings_list() {
  const translation::Settings defaults;
  std::string text;
  for (const auto& info : translation::setting_table()) {
    text += fmt::format("{:<20} {:<12} {} ({})\n", info.name, info.get(defaults), info.meaning,
                        info.range);
  }
  return text;
}

Result<workload::LoadedLaunch> load_launch(const TranslateOptions& options) {
  workload::LaunchRequest request;
  request.launch_file = options.launch;
  request.options.scale = options.scale;
  for (const std::string& parameter : options.parameters) {
    const auto equals = parameter.find('=');
    if (equals == std::string::npos)
      return invalid_input("--param {}: NAME=VALUE was expected", parameter);
    DEMARC_TRY(request.options.parameters[parameter.substr(0, equals)],
               parse_i64(parameter.substr(equals + 1), "--param " + parameter));
  }
  return workload::load_launch(request);
}

Result<std::unique_ptr<translation::Application>> application_of(
    const TranslateOptions& options, const translation::Settings& settings,
    const workload::LoadedLaunch& loaded) {
  translation::StreamOptions stream;
  stream.page_bytes = settings.page_bytes;
  stream.coalesced_lanes = settings.coalesced_lanes;
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(loaded.ptx, loaded.ptx_name));
  stream.name = loaded.launch.name.empty() ? options.launch : loaded.launch.name;
  return translation::application_of_launch(module, loaded.launch, stream, options.threads);
}

// The application of --launch or --stream.
Result<std::unique_ptr<translation::Application>> outside_application(
    const TranslateOptions& options, const translation::Settings& settings) {
  translation::StreamOptions stream;
  stream.page_bytes = settings.page_bytes;
  stream.coalesced_lanes = settings.coalesced_lanes;
  if (!options.stream.empty()) {
    stream.name = options.stream;
    DEMARC_TRY(const auto packed, sim::memory::read_access_stream(options.stream));
    return translation::application_of_stream(*packed, stream);
  }
  DEMARC_TRY(const workload::LoadedLaunch loaded, load_launch(options));
  return application_of(options, settings, loaded);
}

Result<void> check_options(const TranslateOptions& options) {
  const int sources =
      int{!options.apps.empty()} + int{!options.launch.empty()} + int{!options.stream.empty()};
  if (sources > 1) return invalid_input("--app, --launch and --stream exclude each other");
  if (options.launch.empty() && (!options.scale.empty() || !options.parameters.empty()))
    return invalid_input("--scale and --param belong to --launch");
  if (!options.timeline.empty() && sources == 0) {
    return invalid_input(
        "--timeline shows one application: name it with --app, --launch or --stream");
  }
  if (options.measure.empty() && options.measure_only) {
    return invalid_input("--measure-only belongs to --measure");
  }
  if (!options.measure.empty()) {
    if (options.launch.empty()) {
      return invalid_input("--measure runs a launch on real cards: name it with --launch");
    }
    if (!options.timeline.empty() || !options.html.empty()) {
      return invalid_input("--measure writes no --timeline and no --html");
    }
  }
  if (!options.splits) return {};
  if (!options.launch.empty() || !options.stream.empty() || !options.timeline.empty())
    return invalid_input("--splits shows applications of --app only");
  if (options.machine.names("split"))
    return invalid_input("--splits shows every split; leave --split out");
  if (options.architecture != "both" && options.architecture != "all")
    return invalid_input("--splits shows speed-ups: give --arch both or all");
  return {};
}

// The one application that is not part of a comparison of several.
Result<std::unique_ptr<translation::Application>> single_application(
    const TranslateOptions& options, const translation::Settings& settings) {
  if (options.apps.empty()) return outside_application(options, settings);
  DEMARC_TRY(const auto names, application_names(options.apps));
  if (names.size() > 1)
    return invalid_input("--timeline shows one application; --app names {}", names.size());
  return translation::make_application(names.front(), settings);
}

Result<void> translate_splits(const TranslateOptions& options,
                              const translation::Settings& settings,
                              const std::vector<translation::Architecture>& architectures) {
  DEMARC_TRY(const auto names, application_names(options.apps.empty() ? "all" : options.apps));
  DEMARC_TRY(const auto splits, translation::compare_splits(settings, names, architectures,
                                                            options.threads, terminal_progress()));
  if (!options.html.empty()) {
    DEMARC_CHECK(write_file(options.html, report::translation_splits_page(splits, command_line())));
  }
  return emit_result(
      options.json, options.output, [&] { return translation::splits_json(splits); },
      [&] { return translation::splits_text(splits, text_parts()); });
}

// The cards of --measure.
Result<std::vector<std::uint32_t>> cards_of(const TranslateOptions& options) {
  const std::string given = joined(options.measure, ",");
  if (options.runs == 0) return invalid_input("--runs 0: at least one run was expected");
  std::vector<std::uint32_t> cards;
  for (const std::string& name : options.measure) {
    DEMARC_TRY(const auto card,
               gpu::parse_ref_as<gpu::CardRef>(
                   name, "real GPUs were expected, such as cuda:0,cuda:1", "--measure"));
    if (std::find(cards.begin(), cards.end(), card.index) != cards.end()) {
      return invalid_input("--measure {}: cuda:{} is named twice", given, card.index);
    }
    cards.push_back(card.index);
  }
  return cards;
}

Result<void> translate_measured(const TranslateOptions& options,
                                const translation::Settings& settings,
                                const std::vector<translation::Architecture>& architectures) {
  DEMARC_TRY(const auto cards, cards_of(options));
  for (const std::string& card : options.measure) {
    DEMARC_CHECK(tell_of_others("translate", card));
  }
  auto gpus = study::open_split_cards(cards, settings);
  if (!gpus) {
    return tl::unexpected(Error{gpus.error().kind, "--measure: " + gpus.error().message});
  }
  DEMARC_TRY(const workload::LoadedLaunch loaded, load_launch(options));
  DEMARC_TRY(const auto application, application_of(options, settings, loaded));
  DEMARC_TRY(const auto measured,
             study::measure_split(*gpus, options.runs, settings, loaded, *application));
  translation::Comparison simulated{settings, {}, {}};
  if (!options.measure_only) {
    DEMARC_TRY(simulated, translation::compare_application(settings, *application, architectures,
                                                           options.threads, terminal_progress()));
  }
  return emit_result(
      options.json, options.output, [&] { return study::measured_json(measured, simulated); },
      [&] { return study::measured_text(measured, simulated); });
}

Result<void> translate(const TranslateOptions& options) {
  if (options.list_settings) return emit("", settings_list());
  DEMARC_CHECK(check_options(options));
  DEMARC_TRY(const auto settings, options.machine.settings());
  if (options.print_device)
    return emit(options.output, translation::machine_json(settings, "as printed by demarc"));
  DEMARC_TRY(const auto architectures, architectures_of(options.architecture));
  if (options.splits) return translate_splits(options, settings, architectures);
  if (!options.measure.empty()) return translate_measured(options, settings, architectures);
  translation::Comparison comparison;
  std::vector<translation::Timeline> timelines;
  if (options.launch.empty() && options.stream.empty() && options.timeline.empty()) {
    DEMARC_TRY(const auto names, application_names(options.apps.empty() ? "all" : options.apps));
    DEMARC_TRY(comparison, translation::compare(settings, names, architectures, options.threads,
                                                terminal_progress()));
  } else {
    DEMARC_TRY(const auto application, single_application(options, settings));
    DEMARC_TRY(comparison,
               translation::compare_application(settings, *application, architectures,
                                                options.threads, terminal_progress(),
                                                options.timeline.empty() ? nullptr : &timelines));
  }
  if (!options.timeline.empty()) {
    DEMARC_CHECK(write_file(options.timeline, report::translation_trace(comparison, timelines)));
  }
  if (!options.html.empty()) {
    DEMARC_CHECK(write_file(options.html, report::translation_page(comparison, command_line())));
  }
  return emit_result(
      options.json, options.output, [&] { return translation::to_json(comparison); },
      [&] { return translation::to_text(comparison, text_parts()); });
}

std::function<Result<void>()> declare_translate(CLI::App& app) {
  auto options = std::make_shared<TranslateOptions>();
  app.add_option("--arch", options->architecture,
                 "centralised (one IOMMU), distributed (a GMMU per GPU), bypass (dynamic), both "
                 "(the first two) or all");
  app.add_option(
      "--app", options->apps,
      "applications: a comma list of RL,FIR,MP,PR,MT,KM,FFT,ST,AES, or all (default: all)");
  app.add_option("--launch", options->launch,
                 "launch that the emulator runs, in place of --app: bundled:NAME or a launch file")
      ->option_text("FILE.json");
  app.add_option("--scale", options->scale, "size named in the launch file, such as 64mb");
  app.add_option("--param", options->parameters,
                 "parameter of the launch file, such as n=4096; may be repeated")
      ->option_text("NAME=VALUE");
  app.add_option(
         "--stream", options->stream,
         "access stream or trace of demarc emulate, in place of --app (docs/translation.md)")
      ->option_text("FILE");
  app.add_option("--measure", options->measure,
                 "also run --launch on real GPUs, as many as the machine has; pages lie where the "
                 "simulation puts them")
      ->delimiter(',')
      ->option_text("cuda:0,cuda:1");
  app.add_option("--runs", options->runs, "number of runs of --measure; their median is shown");
  app.add_flag("--measure-only", options->measure_only,
               "with --measure: only measure, simulate nothing");
  options->machine.declare(app);
  app.add_option("--threads", options->threads,
                 "runs at a time; 0 means all cores; the results do not depend on it");
  add_json(app, options->json, "the table",
           {"demarc.translate/1", "demarc.translate.splits/1", "demarc.translate.measured/1"});
  add_output(
      app, "--timeline", options->timeline,
      "write a Perfetto trace of one application to this file (at most 1024 points per curve)");
  add_output(app, "--html", options->html,
             "write the figures as one self-contained page to this file");
  add_output(app, options->output);
  app.add_flag("--splits", options->splits,
               "show the speed-ups under each split of the work side by side");
  app.add_flag("--list-settings", options->list_settings,
               "print every setting with its default, meaning and range");
  app.add_flag("--print-device", options->print_device,
               "print the machine of these options as a file for --device");
  group_options(app, "Work",
                {"--app", "--launch", "--scale", "--param", "--stream", "--arch", "--splits",
                 "--measure", "--runs", "--measure-only"});
  group_options(app, "Machine", {"--list-settings", "--print-device"});
  const TranslateCommand study = declare_translate_study(app);
  return [options, study]() -> Result<void> {
    return study.app->parsed() ? study.run() : translate(*options);
  };
}

const RegisterVerb translate_verb(
    {.order = 207,
     .name = "translate",
     .summary =
         "simulate address translation on several GPUs: centralised, distributed, dynamic bypass",
     .example = "demarc translate --app KM,ST --set megabytes=16",
     .declare = declare_translate});

}  // namespace
}  // namespace demarc::cli
