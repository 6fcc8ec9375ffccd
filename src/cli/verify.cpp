// demarc verify: proves from inside a GPU that a partition or its colours hold.
#include "demarc/card/verify.hpp"

#include <memory>

#include "demarc/base/numbers.hpp"
#include "demarc/card/verify_colors.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/device_ref.hpp"
#include "help.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct VerifyOptions {
  std::string device = "cuda:0";
  std::string mode;
  std::string sms;  // a number, or a percentage of the card's SMs
  cuda::VerifyPlan plan;
  std::string colors;
  std::vector<std::string> color_masks;
  std::string description;
  std::uint32_t color_count = 2;
  double max_slowdown = 1.15;
  std::string json;
};

Result<cuda::VerifyColorsPlan> colors_plan_of(const VerifyOptions& options, std::uint32_t device) {
  if (!options.plan.choice.empty()) {
    return invalid_input("--colors proves memory; prove TPCs in a separate run");
  }
  cuda::VerifyColorsPlan plan;
  plan.device = device;
  plan.max_slowdown = options.max_slowdown;
  for (const std::string& text : options.color_masks) {
    DEMARC_TRY(const std::uint64_t mask, parse_u64(text, "--color-masks"));
    plan.masks.push_back(mask);
  }
  if (!options.description.empty()) DEMARC_CHECK(gpu::find_device(options.description));
  plan.description = options.description;
  plan.color_count = options.color_count;
  constexpr std::uint32_t last_color = 63;
  DEMARC_TRY(plan.colors, parse_index_list(options.colors, last_color, "--colors"));
  return plan;
}

Result<void> run_verify_colors(const VerifyOptions& options, const cuda::VerifyColorsPlan& plan) {
  DEMARC_TRY(const auto report, cuda::verify_colors(plan));
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return report_to_json(report); },
      [&] { return report_to_text(report); }));
  if (report.holds) return {};
  return check_failed("the colours {} are not kept apart", options.colors);
}

Result<void> run_verify(VerifyOptions& options) {
  DEMARC_TRY(const auto card, gpu::parse_ref_as<gpu::CardRef>(
                                  options.device, "only a real GPU can be verified; give cuda:N"));
  partition::TpcChoice& choice = options.plan.choice;
  if (!options.sms.empty()) DEMARC_CHECK(partition::read_sms(options.sms, "--sms", choice));
  DEMARC_CHECK(partition::check_choice(choice));
  if (!options.colors.empty()) {
    DEMARC_TRY(const auto plan, colors_plan_of(options, card.index));
    DEMARC_CHECK(tell_of_others("verify", options.device));
    return run_verify_colors(options, plan);
  }
  options.plan.device = card.index;
  if (!options.mode.empty()) {
    DEMARC_TRY(options.plan.mode, partition::parse_mode(options.mode));
  }
  DEMARC_CHECK(tell_of_others("verify", options.device));
  DEMARC_TRY(const auto report, cuda::verify(options.plan));
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return report_to_json(report); },
      [&] { return report_to_text(report); }));
  if (report.holds) return {};
  if (report.unconfined()) {
    return check_failed(
        "{} is in no partition: start it under demarc exec, or give --mode to make and verify a "
        "partition",
        report.subject());
  }
  return check_failed("blocks ran outside the TPCs {}", to_string(report.expected));
}

const RegisterVerb registered_verify({
    5,
    "verify",
    "prove from inside the GPU that a partition keeps programs apart",
    "demarc exec --tpcs 0-15 -- demarc verify --tpcs 0-15",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<VerifyOptions>();
      auto& choice = options->plan.choice;
      app.add_option("--device", options->device, "GPU: cuda:N");
      app.add_option("--tpcs", choice.tpcs, "TPCs that blocks may use, such as 0-15,20");
      app.add_option("--gpcs", choice.gpcs, "all TPCs of these GPCs");
      app.add_option("--sms", options->sms,
                     "the first TPCs that together have at least this many SMs, such as 66, or "
                     "this percentage of the SMs, such as 50%")
          ->option_text("NUMBER|PERCENT%");
      app.add_option(
          "--mode", options->mode,
          fmt::format(
              "make a partition of this kind and verify it: {} (default: verify this process as it "
              "is)",
              partition::mode_names(
                  [](const partition::ModeTraits& traits) { return traits.confines; }, ", ")));
      app.add_option("--blocks-per-sm", options->plan.blocks_per_sm,
                     "number of probe blocks per SM, for each way to launch");
      CLI::Option* colors = app.add_option("--colors,--colours", options->colors,
                                           "memory colours that must be kept apart, such as 0 or "
                                           "0,3; verify these and not TPCs");
      app.add_option("--color-masks,--colour-masks", options->color_masks,
                     "masks of the colouring, such as 0xc4000 (default: the colours of the card's "
                     "description)")
          ->delimiter(',')
          ->needs(colors);
      app.add_option("--color-count,--colour-count", options->color_count,
                     "number of colours into which the description divides the memory")
          ->needs(colors);
      app.add_option("--description", options->description,
                     "description of the card's memory: a file or a name (default: the built-in "
                     "one of the card)")
          ->needs(colors);
      app.add_option("--max-slowdown", options->max_slowdown,
                     "largest slowdown, as a factor, that neighbours in other colours may cause");
      add_json(app, options->json, "the proof", {"demarc.verify/2", "demarc.verify.colors/2"});
      group_options(app, "TPCs", {"--tpcs", "--gpcs", "--sms", "--mode", "--blocks-per-sm"});
      group_options(
          app, "Colours",
          {"--colors", "--color-masks", "--color-count", "--description", "--max-slowdown"});
      return [options] { return run_verify(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
