// demarc schedule generate: workloads for the SimTBS model.
#include "demarc/base/files.hpp"
#include "demarc/sim/tb_generate.hpp"
#include "schedule_commands.hpp"

namespace demarc::cli {
namespace {

struct GenerateOptions {
  std::string base, mix = "uniform", generation = "2021", out;
  std::uint32_t level = 80, sms = 16, units = 8, ticks = 10000;
  std::uint64_t seed = 1;
};

Result<void> run_generate(const GenerateOptions& options) {
  DEMARC_TRY(const auto generation, sim::parse_tb_generation(options.generation));
  DEMARC_TRY(const auto mix, sim::parse_tb_mix(options.mix));
  if (options.sms == 0 || options.units == 0 || options.ticks == 0) {
    return invalid_input("--sms, --units and --ticks must be above 0");
  }
  sim::TbConfig config =
      sim::paper_config({options.sms, options.units}, mix, options.level, options.ticks);
  if (!options.base.empty()) {
    DEMARC_TRY(const std::string text, read_file(options.base));
    DEMARC_TRY(config, sim::parse_tb_config(text, options.base));
  }
  DEMARC_TRY(config, sim::generate_workload(std::move(config), generation, options.seed));
  return emit(options.out, sim::print_tb_config(config));
}

}  // namespace

ScheduleCommand declare_schedule_generate(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand("generate", "make a workload, seeded");
  app->footer("Example: demarc schedule generate --mix extreme --level 120 --seed 7 --out x.conf");
  auto options = std::make_shared<GenerateOptions>();
  app->add_option("--config", options->base,
                  "take machine and *workload (or a kernel list to pick from) from this file");
  app->add_option("--mix", options->mix, "uniform, extreme or multi, without --config");
  app->add_option("--level", options->level, "nominal load in per cent, without --config");
  app->add_option("--sms", options->sms, "SMs, without --config");
  app->add_option("--units", options->units, "units of an SM, without --config");
  app->add_option("--ticks", options->ticks, "length, without --config");
  app->add_option("--generation", options->generation, "whose rules: 2021, 2020 or corrected");
  app->add_option("--seed", options->seed, "the same seed gives the same workload");
  add_output(*app, "--out", options->out, "write here instead of standard output");
  return {app, [options, app]() -> Result<void> {
            for (const char* name : {"--mix", "--level", "--sms", "--units", "--ticks"}) {
              if (options->base.empty() || app->count(name) == 0) continue;
              return invalid_input("{}: --config {} says that; leave one out", name, options->base);
            }
            return run_generate(*options);
          }};
}

}  // namespace demarc::cli
