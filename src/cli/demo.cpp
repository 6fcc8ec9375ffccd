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
  std::string locality_html;
  std::string json;
  report::DemoOptions demo;
};

Result<void> run_demo_verb(DemoVerbOptions& options) {
  options.demo.command = command_line();
  const std::vector<std::string> files =
      report::name_pages(options.html, options.locality_html, options.demo);
  for (const std::string& file : files) DEMARC_CHECK(check_writable(file));
  DEMARC_TRY(const report::Demo demo, report::run_demo(options.demo, terminal_progress()));
  DEMARC_CHECK(emit(options.html, demo.page));
  if (!options.locality_html.empty()) {
    DEMARC_CHECK(emit(options.locality_html, demo.locality_page));
  }
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return demo.json; },
      [&] { return fmt::format("{}\nThe pages: {}\n", demo.summary, fmt::join(files, " and ")); }));
  return demo.possible;
}

const RegisterVerb demo_verb({
    .order = 105,
    .name = "demo",
    .summary =
        "show interference on a simulated GPU, and the locality of seven workloads, on two pages",
    .example = "demarc demo",
    .declare =
        [](CLI::App& app) {
          auto options = std::make_shared<DemoVerbOptions>();
          report::DemoOptions& demo = options->demo;
          add_output(app, "--html", options->html, "write the page on interference to this file");
          add_output(app, "--locality-html", options->locality_html,
                     "write the page on locality to this file (default: next to that of --html, "
                     "with -locality in its name)");
          add_json(app, options->json, "both studies", {"demarc.demo/2"});
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
