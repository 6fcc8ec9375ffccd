// demarc schedule generate: makes workloads for the SimTBS model.
#include "demarc/base/files.hpp"
#include "demarc/sim/dispatch/tb_generate.hpp"
#include "schedule_commands.hpp"

namespace demarc::cli {
namespace {

struct GenerateOptions {
  std::string base, mix = "uniform", generation = "2021", output;
  std::uint32_t level = 80, sms = 16, units = 8, ticks = 10000;
  std::uint64_t seed = 1;
};

Result<void> run_generate(const GenerateOptions& options) {
  DEMARC_TRY(const auto generation, sim::parse_tb_generation(options.generation));
  DEMARC_TRY(const auto mix, sim::parse_tb_mix(options.mix));
  const sim::TbMachine machine{options.sms, options.units};
  sim::TbConfig config = sim::paper_config(machine, mix, options.level, options.ticks);
  if (!options.base.empty()) {
    DEMARC_TRY(const std::string text, read_file(options.base));
    DEMARC_TRY(config, sim::parse_tb_config(text, options.base));
  } else if (generation == sim::TbGeneration::published_2020) {
    DEMARC_TRY(config, sim::paper_config_of_2020(machine, mix, options.level, options.ticks));
  }
  DEMARC_TRY(config, sim::generate_workload(std::move(config), generation, options.seed));
  return emit(options.output, sim::print_tb_config(config));
}

}  // namespace

ScheduleCommand declare_schedule_generate(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand("generate", "make a workload from a seed");
  app->footer("Example: demarc schedule generate --mix extreme --level 120 --seed 7 -o x.conf");
  auto options = std::make_shared<GenerateOptions>();
  app->add_option(
         "--config", options->base,
         "take the machine and its *workload, or a list of kernels to pick from, from this file")
      ->type_name("FILE");
  app->add_option("--mix", options->mix,
                  "mix of kernels, without --config: uniform, extreme or multi")
      ->type_name("NAME");
  const auto number = [&](const char* name, std::uint32_t& value, const char* help,
                          std::uint32_t most) {
    return app->add_option(name, value, help)->check(CLI::Range(1U, most).description(""));
  };
  number("--level", options->level, "nominal load, without --config", 100000)
      ->type_name(percent_type);
  number("--sms", options->sms, "number of SMs, without --config", 4096);
  number("--units", options->units, "units per SM, without --config", 4096);
  number("--ticks", options->ticks, "length of the workload, without --config", 1000000000);
  app->add_option("--generation", options->generation,
                  "rules of generation: 2021, 2020 or corrected")
      ->type_name("NAME");
  app->add_option("--seed", options->seed, "seed; the same seed gives the same workload");
  add_output(*app, options->output);
  return {app, [options, app]() -> Result<void> {
            for (const char* name : {"--mix", "--level", "--sms", "--units", "--ticks"}) {
              if (options->base.empty() || app->count(name) == 0) continue;
              return invalid_input("{}: --config {} already says this; leave one out", name,
                                   options->base);
            }
            return run_generate(*options);
          }};
}

}  // namespace demarc::cli
