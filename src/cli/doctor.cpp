// demarc doctor: says what works on this machine, and what would make the rest work.
#include "demarc/exec/doctor.hpp"

#include <memory>

#include "demarc/device/device_ref.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct DoctorOptions {
  std::string device = "cuda:0";
  cuda::DoctorPlan plan;
  std::string json;
};

Result<void> run_doctor(DoctorOptions& options) {
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

const RegisterVerb registered_doctor({
    15,
    "doctor",
    "check what this machine has for confining programs, and say what would make the rest work",
    "demarc doctor --device cuda:0",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<DoctorOptions>();
      app.add_option("--device", options->device, "GPU: cuda:N")->capture_default_str();
      app.add_option("--description", options->plan.description,
                     "description of the card's memory: a file of demarc probe memory -o, or a "
                     "name (default: the built-in one of the card)");
      app.add_option("--preload", options->plan.preload,
                     "path of libdemarc_preload.so (default: the one beside this program)");
      add_json(app, options->json, "the checks", {"demarc.doctor/1"});
      return [options] { return run_doctor(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
