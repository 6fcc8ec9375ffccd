// The command line of demarc-device-plugin. CMake makes its main(), because clang-tidy looks at all
// of src as one unit, and src/cli already has one.
#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>

#include "demarc/base/standard_error.hpp"
#include "demarc/base/version.hpp"
#include "demarc/lease/sockets.hpp"
#include "plugin.hpp"

namespace demarc::plugin {
namespace {

struct Options {
  PluginOptions plugin;
  double every = 1;  // s
};

// Until SIGTERM or SIGINT, which are blocked in all threads.
Result<void> run(const Options& options) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  timespec pause{};
  pause.tv_sec = static_cast<std::time_t>(options.every);
  pause.tv_nsec = static_cast<long>((options.every - std::floor(options.every)) * 1e9);
  Plugin plugin(options.plugin);
  do {
    DEMARC_CHECK(plugin.turn());
  } while (::sigtimedwait(&ends, nullptr, &pause) == -1);
  return {};
}

Result<void> start(Options options) {
  auto& places = options.plugin.places;
  DEMARC_TRY(places.socket, lease::find_socket(places.socket));
  DEMARC_TRY(places, serve::find_places(places));
  options.plugin.tell = [](const std::string& line) {
    say_to_standard_error(fmt::format("demarc-device-plugin: {}\n", line));
  };
  return run(options);
}

int run_words(int argc, char** argv) {
  CLI::App app{"The tenants of demarc serve as resources of Kubernetes: demarc.dev/NAME for each.",
               "demarc-device-plugin"};
  app.set_version_flag("--version", std::string("demarc-device-plugin ") + version());
  Options options;
  app.add_option("--socket", options.plugin.places.socket,
                 "of the server (default: DEMARC_SOCKET, else as clients of demarc serve find it)");
  app.add_option("--kubelet", options.plugin.folder, "folder of the kubelet's sockets")
      ->capture_default_str();
  app.add_option("--program", options.plugin.places.program,
                 "path of demarc that containers get (default: beside this one)");
  app.add_option("--preload", options.plugin.places.preload,
                 "path of libdemarc_preload.so that containers get");
  app.add_option("--cdi", options.plugin.cdi_devices,
                 "a CDI device that containers also get, such as nvidia.com/gpu=0; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--every", options.every, "seconds between two looks at server and kubelet")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.footer(
      "Exit codes: 0 told to end, 1 wrong input, 2 the machine lacks what is asked, or the kubelet "
      "refuses.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  const auto done = start(std::move(options));
  if (done) return 0;
  say_to_standard_error(fmt::format("demarc-device-plugin: {}\n", done.error().message));
  return static_cast<int>(done.error().kind);
}

}  // namespace

int run_program(int argc, char** argv) {
  try {
    return run_words(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "demarc-device-plugin: %s\n", error.what());
  }
  return static_cast<int>(ErrorKind::missing_capability);
}

}  // namespace demarc::plugin
