// demarc locality: prints locality maps, indices and predicted hit rates of a launch.
#include <memory>
#include <optional>

#include "demarc/locality/analyse.hpp"
#include "demarc/report/locality_page.hpp"
#include "help.hpp"
#include "launch_options.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct LocalityOptions {
  LaunchOptions launch;
  std::string granularity = "element";
  std::string count = "accesses";
  std::string method = "automatic";
  std::string device = "sim:h100-sxm";
  bool loads = false;
  bool stores = false;
  bool atomics = false;
  bool maps = false;
  std::string json;
  std::string output;
  std::string html;
  std::uint32_t gpus = 1;
  std::optional<std::uint32_t> instance;
  locality::Options analysis;
};

Result<void> run_locality(LocalityOptions& options) {
  if (int{options.loads} + int{options.stores} + int{options.atomics} > 1)
    return invalid_input("--loads, --stores and --atomics exclude each other");
  if (options.maps && options.json.empty())
    return invalid_input("--maps adds the cells of the maps to the JSON: give --json too");
  options.analysis.kind = options.stores    ? locality::AccessKind::store
                          : options.atomics ? locality::AccessKind::atomic
                                            : locality::AccessKind::load;
  DEMARC_TRY(options.analysis.granularity, locality::parse_granularity(options.granularity));
  DEMARC_TRY(options.analysis.count, locality::parse_count(options.count));
  if (options.method == "symbolic")
    options.analysis.force = locality::Force::symbolic;
  else if (options.method == "emulated")
    options.analysis.force = locality::Force::emulated;
  else if (options.method != "automatic")
    return invalid_input("--method: '{}' is none of automatic, symbolic, emulated", options.method);
  if (options.instance) options.analysis.instance = *options.instance;
  options.analysis.max_cells = options.maps           ? locality::all_cells
                               : options.html.empty() ? 0
                                                      : report::max_map_cells;
  options.analysis.progress = terminal_progress();

  DEMARC_TRY(const workload::LoadedLaunch loaded, options.launch.load());
  if (const std::string kernel = options.launch.chosen_kernel(); !kernel.empty()) {
    DEMARC_TRY(options.analysis.kernel, workload::kernel_of(loaded.launch, kernel));
  }
  DEMARC_TRY(const report::LocalityStudy study,
             report::study_locality(loaded.ptx, loaded.ptx_name, loaded.launch, options.analysis,
                                    options.device, options.gpus));
  if (!options.html.empty())
    DEMARC_CHECK(emit(options.html, report::locality_page(study, command_line())));
  return emit_result(
      options.json, options.output, [&] { return report::locality_json(study, options.maps); },
      [&] { return report::locality_text(study); });
}

const RegisterVerb registered_locality({
    201,
    "locality",
    "compute locality maps, indices and predicted hit rates of a PTX kernel",
    "demarc locality k.ptx --kernel halo --grid 8 --block 64 --args buf:65536,buf:65536 --json",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<LocalityOptions>();
      options->launch.declare(app);
      options->launch.let_kernel_choose();
      app.add_option("--granularity", options->granularity,
                     "size of a place in the maps: element, 32, 128, 4096, 65536 or 2097152 bytes");
      app.add_option("--count", options->count,
                     "what a cell of a map counts: accesses, multiset or distinct");
      app.add_flag("--loads", options->loads, "map global loads (default)");
      app.add_flag("--stores", options->stores, "map global stores");
      app.add_flag("--atomics", options->atomics, "map global atomics");
      app.add_option("--instance", options->instance,
                     "which launch of the kernel to look at, counted from 0 (default: the one that "
                     "loads most)");
      app.add_option("--method", options->method,
                     "how maps are found: automatic, symbolic (an error if there is no closed "
                     "form) or emulated");
      app.add_option("--device", options->device,
                     "simulated GPU whose caches are predicted: sim:NAME");
      app.add_option("--gpus", options->gpus,
                     "number of GPUs that share the blocks, for the page maps")
          ->check(CLI::Range(1, 64));
      app.add_option("--limit", options->analysis.instruction_limit,
                     "largest number of warp instructions per block that are followed one by one; "
                     "trips of a closed form are not")
          ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62U));
      add_json(app, options->json, "the indices", {"demarc.locality/1"});
      app.add_flag("--maps", options->maps, "add the cells of the maps to the JSON");
      add_output(app, options->output);
      add_output(app, "--html", options->html, "write a page with the maps to this file");
      group_options(app, "Maps",
                    {"--granularity", "--count", "--loads", "--stores", "--atomics", "--instance",
                     "--method", "--device", "--gpus", "--limit"});
      return [options] { return run_locality(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
