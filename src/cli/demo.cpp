// demarc demo: the main job on bundled kernels.
#include <fmt/format.h>

#include <memory>

#include "demarc/report/locality_page.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct DemoOptions {
  std::string html;
  std::string device = "sim:h100-sxm";
};

Result<void> run_demo_verb(const DemoOptions& options) {
  DEMARC_TRY(
      const report::Demo demo,
      report::run_demo(options.device, "demarc demo --html " + options.html, terminal_progress()));
  DEMARC_CHECK(emit(options.html, demo.page));
  return emit("-", fmt::format("{}\nThe page: {}\n", demo.summary, options.html));
}

const RegisterVerb demo_verb({
    .order = 5,
    .name = "demo",
    .summary =
        "who disturbs whom on a simulated GPU, and the locality of seven workloads, as one page",
    .example = "demarc demo --html demo.html",
    .declare =
        [](CLI::App& app) {
          auto options = std::make_shared<DemoOptions>();
          add_output(app, "--html", options->html, "the page to write")->required();
          app.add_option("--device", options->device, "whose caches are predicted: sim:NAME")
              ->capture_default_str();
          return [options] { return run_demo_verb(*options); };
        },
});

}  // namespace
}  // namespace demarc::cli
