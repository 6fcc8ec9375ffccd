// demarc demo: runs the main studies on bundled kernels.
#include "demarc/report/demo.hpp"

#include <fmt/format.h>

#include <memory>

#include "demarc/base/files.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct DemoVerbOptions {
  std::string html = "demarc-demo.html";
  std::string json;
  report::DemoOptions demo;
};

Result<void> run_demo_verb(DemoVerbOptions& options) {
  options.demo.command = command_line();
  if (options.html != "-") DEMARC_CHECK(check_writable(options.html));
  DEMARC_TRY(const report::Demo demo, report::run_demo(options.demo, terminal_progress()));
  DEMARC_CHECK(emit(options.html, demo.page));
  return emit_result(
      options.json, "-", [&] { return demo.json; },
      [&] { return fmt::format("{}\nThe page: {}\n", demo.summary, options.html); });
}

const RegisterVerb demo_verb({
    .order = 105,
    .name = "demo",
    .summary =
        "show interference on a simulated GPU, and the locality of seven workloads, on one page",
    .example = "demarc demo",
    .declare =
        [](CLI::App& app) {
          auto options = std::make_shared<DemoVerbOptions>();
          report::DemoOptions& demo = options->demo;
          add_output(app, "--html", options->html, "write the page to this file");
          add_json(app, options->json, "both studies", {"demarc.demo/1"});
          app.add_option("--victims", demo.victims,
                         "bundled kernels timed in one half of a simulated GTX 1080 (comma list)");
          app.add_option("--aggressors", demo.aggressors,
                         "bundled kernels that run in the other half (comma list)");
          app.add_option("--device", demo.device,
                         "simulated GPU whose caches are predicted: sim:NAME");
          return [options] { return run_demo_verb(*options); };
        },
});

}  // namespace
}  // namespace demarc::cli
