// demarc serve: starts the server of a card's division with a configuration.
#include "demarc/serve/run.hpp"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "demarc/device/device_ref.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct ServeOptions {
  serve::ServePlan plan;
  std::string device;
  std::string mps;
  std::string survivors;
  bool check = false;
};

Result<void> run_serve(ServeOptions& options) {
  if (!options.device.empty()) {
    DEMARC_TRY(const auto card, gpu::parse_ref_as<gpu::CardRef>(
                                    options.device, "only a real GPU is served; give cuda:N"));
    options.plan.card = card.index;
  }
  if (!options.mps.empty()) {
    const auto use = serve::parse_mps_use(options.mps);
    if (!use) return invalid_input("--mps {}", use.error().message);
    options.plan.mps = *use;
  }
  if (!options.survivors.empty()) {
    const auto survivors = serve::parse_survivors(options.survivors);
    if (!survivors) return invalid_input("--survivors {}", survivors.error().message);
    options.plan.survivors = *survivors;
  }
  if (options.check) {
    DEMARC_TRY(const auto config, plan_config(options.plan));
    DEMARC_CHECK(check_without_card(config));
    return emit("", config_to_text(config));
  }
  options.plan.tell = tell_of("serve");
  std::error_code ignored;
  options.plan.program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  return serve::run(options.plan);
}

const RegisterVerb registered_serve({
    1,
    "serve",
    "divide a card among the programs of tenants, until SIGTERM",
    "demarc serve --config demarc.toml",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<ServeOptions>();
      app.add_option("--config", options->plan.config,
                     "file with the tenants (TOML, docs/serve.md); SIGHUP reads it again")
          ->required();
      app.add_option("--device", options->device, "GPU: cuda:N (default: the configuration's)");
      app.add_option("--socket", options->plan.socket,
                     "path of the socket (default: the configuration's, else $DEMARC_SOCKET, else "
                     "in $XDG_RUNTIME_DIR or /run)");
      app.add_option("--mps", options->mps,
                     "on, off or auto: share the card by MPS, take turns, or use MPS if it is "
                     "installed (default: the configuration's)");
      app.add_option("--end-when-idle", options->plan.end_when_idle,
                     "end after this many seconds without a connection (default: never)")
          ->check(CLI::Range(0.1, 1e6));
      app.add_option("--survivors", options->survivors,
                     "refuse, wait or end: what to do about programs of a server that was killed "
                     "(default: refuse to start)");
      app.add_flag("--check", options->check,
                   "check the configuration, without a card, and show what each tenant is to have");
      return [options] { return run_serve(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
