// demarc probe: finds out how a card's memory and its address translation are built.
#include "demarc/probe/probe.hpp"

#include <memory>

#include "demarc/device/device_ref.hpp"
#include "demarc/probe/open_memory.hpp"
#include "demarc/probe/open_translation.hpp"
#include "demarc/probe/translation.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct ProbeMemoryOptions {
  std::string device = "cuda:0";
  std::string output;
  std::string json;
  double gib = 8;
  std::uint64_t seed = 1;
};

Result<void> run_probe_memory(const ProbeMemoryOptions& options) {
  const auto bytes = static_cast<std::uint64_t>(options.gib * (std::uint64_t{1} << 30U));
  DEMARC_CHECK(tell_of_others("probe", options.device));
  DEMARC_TRY(probe::OpenedMemory opened, probe::open_memory(options.device, bytes, options.seed));
  probe::ProbeOptions probe_options;
  probe_options.seed = options.seed;
  DEMARC_TRY(const probe::MemoryReport report,
             probe::probe_memory(*opened.memory, probe_options, terminal_progress()));
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return probe::report_to_json(report); },
      [&] { return probe::report_to_text(report); }));
  if (!report.decided) {
    return check_failed("{}: the structure of the memory could not be decided", report.facts.name);
  }
  if (options.output.empty()) return {};
  opened.device.address_map = report.map;
  return gpu::write_device(options.output, opened.device);
}

struct ProbeTranslationOptions {
  std::string device = "cuda:0";
  std::string peer;
  std::string json;
  double card_gib = 100;
  double host_gib = 4;
  std::uint64_t seed = 1;
};

Result<void> run_probe_translation(const ProbeTranslationOptions& options) {
  if (!options.peer.empty()) {
    DEMARC_CHECK(gpu::parse_device_ref(options.peer, "--peer", "give cuda:N"));
  }
  for (const std::string& device : {options.device, options.peer}) {
    DEMARC_CHECK(tell_of_others("probe", device));
  }
  DEMARC_TRY(const auto opened, probe::open_translation({.device = options.device,
                                                         .peer = options.peer,
                                                         .card_gib = options.card_gib,
                                                         .host_gib = options.host_gib,
                                                         .seed = options.seed}));
  DEMARC_TRY(
      const probe::TranslationReport report,
      probe::probe_translation(*opened, {.seed = options.seed, .levels = {}}, terminal_progress()));
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return probe::translation_to_json(report); },
      [&] { return probe::translation_to_text(report); }));
  return probe::check_finished(report);
}

void declare_translation(CLI::App& app, ProbeTranslationOptions& options) {
  app.add_option("--device", options.device, "GPU: cuda:N or planted:h200");
  app.add_option("--peer", options.peer,
                 "second card, cuda:N, to reach its memory over the link (default: none)");
  app.add_option("--memory-gib", options.card_gib, "largest number of GiB to take from each card")
      ->check(CLI::Range(0.25, 100.0));
  app.add_option("--host-gib", options.host_gib, "GiB of pinned host memory to take")
      ->check(CLI::Range(0.25, 64.0));
  app.add_option("--seed", options.seed, "seed of the random choices");
  add_json(app, options.json, "the report", {probe::translation_schema});
}

const RegisterVerb registered_probe({
    102,
    "probe",
    "find out how a GPU's memory is built: slices, sets, banks, hash functions, colours, TLBs, "
    "links",
    "demarc probe memory --device cuda:0 -o mycard.json",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<ProbeMemoryOptions>();
      auto translation_options = std::make_shared<ProbeTranslationOptions>();
      app.require_subcommand(1);
      CLI::App* translation = app.add_subcommand("translation",
                                                 "measure TLBs, page walks, links and atomics in "
                                                 "the memory of a card, a second one and the host");
      translation->footer(
          "Example: demarc probe translation --device cuda:0 --json=translation.json");
      declare_translation(*translation, *translation_options);
      CLI::App* memory =
          app.add_subcommand("memory", "find slices, modules, hash functions and colours");
      memory->add_option("--device", options->device, "GPU: cuda:N, sim:NAME or planted:NAME");
      add_output(*memory, "-o,--output", options->output,
                 "write the device description with its address map to this file");
      memory
          ->add_option("--memory-gib", options->gib,
                       "GiB of device memory to take from a real card")
          ->check(CLI::Range(0.25, 4096.0));
      memory->add_option("--seed", options->seed, "seed of the random choices");
      add_json(*memory, options->json, "the report", {probe::report_schema});
      return [options, translation, translation_options] {
        return translation->parsed() ? run_probe_translation(*translation_options)
                                     : run_probe_memory(*options);
      };
    },
});

}  // namespace
}  // namespace demarc::cli
