// demarc emulate: runs a launch on the CPU, checks its memory accesses and writes traces.
#include <filesystem>
#include <memory>
#include <optional>

#include "buffer_options.hpp"
#include "demarc/base/json.hpp"
#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"
#include "launch_options.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct EmulateOptions {
  LaunchOptions launch;
  BufferOptions buffers;
  std::string trace;
  std::optional<std::string> import;
  std::string instruction_set = "automatic";
  unsigned threads = 0;
  std::uint64_t limit = emulate::default_instruction_limit;
  std::uint32_t resident = 0;
  bool checks = true;
  std::string json;
};

std::string emulate_text(const emulate::Outcome& outcome, std::string_view check) {
  std::string text = outcome.printed;
  for (const emulate::KernelStatistics& kernel : outcome.kernels) {
    const double rate = static_cast<double>(kernel.thread_instructions) / kernel.seconds * 1e-6;
    text += fmt::format(
        "{}: {} blocks, {} warps, {} thread instructions, {} warp instructions, {} memory "
        "accesses, {} divergent "
        "branches; {:.3f} s, {:.0f} million thread instructions/s\n",
        kernel.kernel, kernel.blocks, kernel.warps, kernel.thread_instructions,
        kernel.warp_instructions, kernel.memory_accesses, kernel.divergent_branches, kernel.seconds,
        rate);
  }
  for (const std::string& kernel : outcome.ordered_kernels) {
    text += fmt::format(
        "{}: blocks ran on one thread, because an atomic's result is used or does not commute, or "
        "because a loop looks at global memory that other blocks may change\n",
        kernel);
  }
  for (const ptx::Diagnostic& approximation : outcome.approximations) {
    text += fmt::format("approximated: {} (first in line {}): {}\n", approximation.text,
                        approximation.line, approximation.message);
  }
  return text + (check == "passed" ? "the outputs meet the reference\n" : "");
}

Json emulate_json(const emulate::Outcome& outcome, const std::string& check) {
  Json json = {{"schema", "demarc.emulate/1"},
               {"instruction_set", emulate::to_string(outcome.instruction_set)},
               {"threads", outcome.threads},
               {"check", check},
               {"printed", outcome.printed},
               {"ordered_kernels", outcome.ordered_kernels},
               {"approximations", Json::array()},
               {"kernels", Json::array()},
               {"findings", Json::array()}};
  for (const ptx::Diagnostic& approximation : outcome.approximations) {
    json["approximations"].push_back({{"line", approximation.line},
                                      {"instruction", approximation.text},
                                      {"detail", approximation.message}});
  }
  for (const emulate::KernelStatistics& kernel : outcome.kernels) {
    json["kernels"].push_back({{"kernel", kernel.kernel},
                               {"blocks", kernel.blocks},
                               {"warps", kernel.warps},
                               {"thread_instructions", kernel.thread_instructions},
                               {"warp_instructions", kernel.warp_instructions},
                               {"memory_accesses", kernel.memory_accesses},
                               {"divergent_branches", kernel.divergent_branches},
                               {"barriers", kernel.barriers},
                               {"seconds", kernel.seconds},
                               {"cpu_seconds", kernel.cpu_seconds}});
  }
  for (const emulate::Finding& finding : outcome.findings) {
    json["findings"].push_back({{"kind", emulate::to_string(finding.kind)},
                                {"kernel", finding.kernel},
                                {"block", finding.block},
                                {"thread", finding.thread},
                                {"line", finding.line},
                                {"source", finding.source},
                                {"instruction", finding.instruction},
                                {"detail", finding.detail},
                                {"count", finding.count}});
  }
  return json;
}

Result<void> import_trace(const EmulateOptions& given) {
  std::error_code absent;
  if (std::filesystem::equivalent(*given.import, given.trace, absent))
    return invalid_input("--trace {}: that is the file to import; name another", given.trace);
  emulate::TraceFileWriter writer(given.trace);
  DEMARC_TRY(const auto kernels, emulate::read_accelsim_trace(*given.import, writer));
  std::string text;
  for (const emulate::ImportedKernel& kernel : kernels) {
    text += fmt::format("{}: {} blocks, {} warps, {} warp instructions, {} memory accesses\n",
                        kernel.kernel, kernel.blocks, kernel.warps, kernel.warp_instructions,
                        kernel.memory_accesses);
  }
  return emit({}, text);
}

Result<void> run_emulate(const EmulateOptions& given) {
  if (given.trace == "-")
    return invalid_input("--trace -: standard output takes the report; name a file or a pipe");
  if (given.import) return import_trace(given);
  DEMARC_TRY(workload::LoadedLaunch loaded, given.launch.load());
  if (const std::string kernel = given.launch.chosen_kernel(); !kernel.empty())
    DEMARC_CHECK(workload::keep_kernel(loaded.launch, kernel));
  DEMARC_TRY(const std::vector<ShownBuffer> shown, given.buffers.choose(loaded.launch));
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(loaded.ptx, loaded.ptx_name));
  emulate::Options options;
  options.threads = given.threads;
  options.instruction_limit = given.limit;
  options.resident_blocks = given.resident;
  options.check_races = given.checks;
  options.check_uninitialised = given.checks;
  options.source = loaded.ptx_name;
  options.progress = terminal_progress();
  for (const auto set : {emulate::InstructionSet::baseline, emulate::InstructionSet::avx2,
                         emulate::InstructionSet::avx512}) {
    if (given.instruction_set == emulate::to_string(set)) options.instruction_set = set;
  }
  std::unique_ptr<emulate::TraceFileWriter> writer;
  if (!given.trace.empty()) writer = std::make_unique<emulate::TraceFileWriter>(given.trace);
  DEMARC_TRY(const emulate::Outcome outcome,
             emulate::run(module, loaded.launch, options, writer.get()));
  DEMARC_CHECK(write_buffers(shown, loaded.launch, outcome.buffers));
  const bool has_check = loaded.launch.check.exists() && outcome.findings.empty();
  Result<void> checked;
  if (has_check) checked = workload::check(loaded.launch, outcome.addresses, outcome.buffers);
  const char* verdict = !has_check ? "none" : (checked ? "passed" : "failed");
  const auto unset = workload::unset_constants(module, loaded.launch);
  warn_of_unset("emulate", unset);
  DEMARC_CHECK(emit_result(
      given.json, {},
      [&] {
        Json json = emulate_json(outcome, verdict);
        json["warnings"] = unset_json(unset);
        json["buffers"] = buffers_json(shown, loaded.launch, outcome.buffers);
        return json_text(json, 2) + "\n";
      },
      [&] {
        return emulate_text(outcome, verdict) + buffers_text(shown, loaded.launch, outcome.buffers);
      }));
  if (!outcome.findings.empty()) {
    std::string text;
    for (const emulate::Finding& finding : outcome.findings) {
      text += (text.empty() ? "" : "\n") + emulate::describe(finding, loaded.ptx_name);
    }
    return check_failed("{}", text);
  }
  return checked;
}

// Last of the options: nothing is run, so of the others only --trace goes with it.
void declare_import(CLI::App& app, EmulateOptions& options) {
  const std::vector<CLI::Option*> others = app.get_options();
  CLI::Option* const import =
      app.add_option("--import", options.import,
                     "run nothing; write this Accel-Sim trace, or the kernels "
                     "of this kernelslist.g, to the file of --trace")
          ->option_text("FILE");
  for (CLI::Option* const other : others) {
    if (other->check_name("--trace")) {
      import->needs(other);
    } else {
      import->excludes(other);
    }
  }
}

const RegisterVerb emulate_verb({
    .order = 200,
    .name = "emulate",
    .summary = "run PTX kernels on the CPU, check their memory accesses, write traces",
    .example = "demarc emulate bundled:vecadd --trace vecadd.trace",
    .declare = [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<EmulateOptions>();
      options->launch.declare(app);
      options->launch.let_kernel_choose();
      options->buffers.declare(app);
      add_output(app, "--trace", options->trace,
                 "write the trace of all warps to this file (docs/trace-format.md)");
      app.add_option("--threads", options->threads,
                     "number of threads that run blocks; 0 means one per core");
      app.add_option("--limit", options->limit,
                     "largest number of warp instructions per block; a block that executes more "
                     "counts as hung")
          ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62U));
      app.add_option("--resident", options->resident,
                     "largest number of blocks that are there at once, if these wait for others; "
                     "0 means as many as an H100 holds");
      app.add_option("--instruction-set", options->instruction_set,
                     "instruction set of this CPU that the emulator uses")
          ->check(CLI::IsMember({"automatic", "baseline", "avx2", "avx512"}));
      app.add_flag("--checks,!--no-checks", options->checks,
                   "check for uninitialised reads and races in shared memory (default); bounds are "
                   "always checked");
      add_json(app, options->json, "statistics and findings", {"demarc.emulate/1"});
      declare_import(app, *options);
      return [options] { return run_emulate(*options); };
    },
});

}  // namespace
}  // namespace demarc::cli
