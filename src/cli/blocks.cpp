// demarc blocks: shows where and when blocks run, as text, JSON, pictures and a trace.
#include <filesystem>
#include <memory>

#include "demarc/base/files.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/report/perfetto.hpp"
#include "demarc/report/schedule_page.hpp"
#include "demarc/study/block_runs.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct BlocksOptions {
  std::string device = "cuda:0";
  std::vector<std::string> experiments = study::block_experiments();
  std::string json;
  std::string folder;
};

constexpr std::size_t max_drawn = 5000;  // blocks; more make no picture

// One process a run, one thread an SM, one slice a block.
std::string trace_of(const std::vector<study::BlockRun>& runs) {
  report::TraceWriter trace;
  for (std::uint32_t i = 0; i < runs.size(); ++i) {
    trace.process(i, runs[i].name);
    for (const study::BlockTime& block : runs[i].blocks) {
      trace.slice(i, block.sm.raw(), runs[i].kernels[block.kernel].name, block.begin_us,
                  block.end_us - block.begin_us);
    }
  }
  return trace.json();
}

std::filesystem::path blocks_trace(const std::string& folder) {
  return std::filesystem::path(folder) / "blocks.trace.json";
}

Result<void> blocks(const BlocksOptions& options) {
  DEMARC_TRY(const auto card, gpu::parse_ref_as<gpu::CardRef>(options.device, "write cuda:N"));
  DEMARC_CHECK(study::prepare_block_experiments(options.experiments));
  DEMARC_CHECK(tell_of_others("blocks", options.device));
  DEMARC_TRY(const auto runs, study::run_block_experiments(card.index, options.experiments));
  std::string text;
  std::size_t faults = 0;
  for (const study::BlockRun& run : runs) {
    text += fmt::format("{:<24} {}\n", run.name, run.finding);
    for (const std::string& fault : study::faults_of(run))
      text += fmt::format("  FAULT: {}\n", fault);
    faults += study::faults_of(run).size();
    if (options.folder.empty() || run.blocks.empty() || run.blocks.size() > max_drawn) continue;
    DEMARC_CHECK(write_file(std::filesystem::path(options.folder) / (run.name + ".svg"),
                            report::schedule_svg(study::block_timeline(run))));
  }
  if (!options.folder.empty()) {
    DEMARC_CHECK(write_file(blocks_trace(options.folder), trace_of(runs)));
  }
  DEMARC_CHECK(emit_result(
      options.json, "-", [&] { return study::block_runs_json(runs, command_line()); },
      [&] { return text; }));
  if (faults != 0)
    return check_failed("{} faults: blocks left their partition or the order of their stream",
                        faults);
  return {};
}

const RegisterVerb blocks_verb{
    {104, "blocks", "show where and when blocks run under masks, as traces and pictures",
     "demarc blocks --experiments figure-3,figure-12 -o figures",
     [](CLI::App& app) -> std::function<Result<void>()> {
       auto options = std::make_shared<BlocksOptions>();
       app.add_option("--device", options->device, "GPU: cuda:N");
       app.add_option(
              "--experiments", options->experiments,
              "figures of 'Hardware Compute Partitioning on NVIDIA GPUs' to repeat (comma list)")
           ->delimiter(',');
       app.add_option("-o,--output", options->folder,
                      "write pictures and a Perfetto trace to this existing folder")
           ->check([](const std::string& folder) {
             const auto writable = check_writable(blocks_trace(folder));
             return writable ? std::string() : writable.error().message;
           });
       add_json(app, options->json, "every block and point", {"demarc.blocks/2"});
       return [options] { return blocks(*options); };
     }}};

}  // namespace
}  // namespace demarc::cli
