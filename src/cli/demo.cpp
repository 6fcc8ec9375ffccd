// demarc demo: runs the main studies on bundled kernels.
#include "demarc/report/demo.hpp"

#include <fmt/format.h>

#include <filesystem>
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

// The second page lies next to the first and has its name with "-locality", unless it has a name
// of its own. Pages in one folder link to each other. Gives the files that are written.
std::vector<std::string> name_pages(DemoVerbOptions& options) {
  std::vector<std::string> files;
  const std::filesystem::path first(options.html);
  if (options.locality_html.empty() && options.html != "-") {
    options.locality_html =
        (first.parent_path() / (first.stem().string() + "-locality" + first.extension().string()))
            .string();
  }
  const std::filesystem::path second(options.locality_html);
  if (options.html != "-") files.push_back(options.html);
  if (!second.empty() && second != "-") files.push_back(options.locality_html);
  if (files.size() == 2 && first.parent_path() == second.parent_path()) {
    options.demo.interference_link = first.filename().string();
    options.demo.locality_link = second.filename().string();
  }
  return files;
}

Result<void> run_demo_verb(DemoVerbOptions& options) {
  options.demo.command = command_line();
  const std::vector<std::string> files = name_pages(options);
  for (const std::string& file : files) DEMARC_CHECK(check_writable(file));
  DEMARC_TRY(const report::Demo demo, report::run_demo(options.demo, terminal_progress()));
  DEMARC_CHECK(emit(options.html, demo.page));
  if (!options.locality_html.empty()) {
    DEMARC_CHECK(emit(options.locality_html, demo.locality_page));
  }
  return emit_result(
      options.json, "-", [&] { return demo.json; },
      [&] { return fmt::format("{}\nThe pages: {}\n", demo.summary, fmt::join(files, " and ")); });
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
