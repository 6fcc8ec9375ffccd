// demarc doctor: says what works on this machine, and what becomes of a program in a tenant.
#include "demarc/exec/doctor.hpp"

#include <memory>
#include <optional>

#include "demarc/device/device_ref.hpp"
#include "demarc/exec/program_doctor.hpp"
#include "help.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct DoctorOptions {
  std::string device = "cuda:0";
  cuda::DoctorPlan plan;
  cuda::ProgramQuery query;
  std::string json;
};

Result<void> run_machine(DoctorOptions& options) {
  DEMARC_TRY(const auto card,
             gpu::parse_ref_as<gpu::CardRef>(options.device,
                                             "a simulated GPU needs nothing to work; give cuda:N"));
  options.plan.device = card.index;
  const auto checks = cuda::look_at_machine(options.plan);
  DEMARC_CHECK(emit_result(
      options.json, {}, [&] { return checks_to_json(checks, options.device); },
      [&] { return checks_to_text(checks); }));
  return check_confines(checks);
}

// A name of `demarc list devices`, or a file, stands for the card that it describes.
Result<cuda::TenantCard> card_of(const DoctorOptions& options) {
  const auto ref = gpu::parse_device_ref(options.device);
  const auto* simulated = ref ? std::get_if<gpu::SimulatedRef>(&*ref) : nullptr;
  const auto* real = ref ? std::get_if<gpu::CardRef>(&*ref) : nullptr;
  if (real != nullptr) return cuda::tenant_card(real->index, options.plan.description);
  if (ref && simulated == nullptr) {
    return invalid_input("--device {}: give cuda:N, or a name of demarc list devices",
                         options.device);
  }
  if (!options.plan.description.empty()) {
    return invalid_input("--description describes a card cuda:N, but --device {} is a description",
                         options.device);
  }
  DEMARC_TRY(const gpu::Device device,
             gpu::find_device(simulated != nullptr ? simulated->name : options.device));
  return cuda::tenant_card(device);
}

Result<void> run_program(DoctorOptions& options) {
  DEMARC_TRY(auto files, cuda::find_program_files(options.query));
  DEMARC_TRY(auto card, card_of(options));
  const auto findings =
      cuda::look_at_program(std::move(files), std::move(card), terminal_progress());
  DEMARC_CHECK(emit_result(
      options.json, {}, [&] { return findings_to_json(findings, options.device); },
      [&] { return findings_to_text(findings); }));
  return check_isolated(findings);
}

const RegisterVerb registered_doctor({
    3,
    "doctor",
    "say what works on this machine, or what becomes of a program in a part of the card",
    "demarc doctor --device cuda:0\n  demarc doctor --device h100-sxm python3 train.py",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<DoctorOptions>();
      app.add_option("--device", options->device,
                     "GPU: cuda:N; for a program also a name of demarc list devices")
          ->capture_default_str();
      app.add_option("--description", options->plan.description,
                     "description of the card's memory: a file of demarc probe memory -o, or a "
                     "name (default: the built-in one of the card)");
      CLI::Option* preload =
          app.add_option("--preload", options->plan.preload,
                         "path of libdemarc_preload.so (default: the one next to this program)");
      add_json(app, options->json, "the checks, or what was found of the program",
               {"demarc.doctor/1", "demarc.doctor.program/1"});
      CLI::Option* pid =
          app.add_option("--pid", options->query.pid,
                         "look at a process that runs, and at the libraries that it has loaded");
      CLI::Option* command = app.add_option("command", options->query.command,
                                            "program to look at, and its arguments; it is not run");
      app.positionals_at_end();
      app.footer(app.get_footer() +
                 "\n"
                 "\n"
                 "With a program the exit code is 0 if it can be isolated, and 3 if it cannot, if "
                 "only a part can, or if "
                 "that is not known.");
      return [options, pid, command, preload]() -> Result<void> {
        if (pid->count() + command->count() == 0) return run_machine(*options);
        if (preload->count() > 0) {
          return invalid_input("--preload is looked at without a program: leave one of them out");
        }
        return run_program(*options);
      };
    },
});

}  // namespace
}  // namespace demarc::cli
