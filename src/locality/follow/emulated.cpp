// Runs a launch in the emulator and turns its accesses into runs.
#include "follow/emulated.hpp"

#include <algorithm>

#include "demarc/emulate/emulate.hpp"
#include "follow/run_collector.hpp"

namespace demarc::locality {
namespace {

// A thread loses this one access; all others are carried out.
bool goes_on_after(emulate::FindingKind kind) {
  return kind == emulate::FindingKind::out_of_bounds || kind == emulate::FindingKind::misaligned;
}

}  // namespace

Result<EmulatedRuns> emulate_runs(const ptx::Module& module, const gpu::Launch& launch,
                                  const std::vector<std::size_t>& wanted,
                                  const std::vector<Access>& accesses, unsigned threads,
                                  const Effort& effort, const Progress& progress) {
  std::uint64_t bytes = 0;
  for (const gpu::Buffer& buffer : launch.buffers) bytes += buffer.bytes;
  if (bytes > effort.emulated_buffer_bytes)
    return missing_capability(
        "its addresses have no closed form, and its {} bytes of buffers are more than the {} that "
        "may be emulated",
        bytes, effort.emulated_buffer_bytes);
  gpu::Launch part = launch;
  part.kernels.resize(wanted.back() + 1);
  emulate::Options options;
  options.check_uninitialised = false;
  options.check_races = false;
  options.threads = threads;
  options.instruction_limit = effort.instruction_limit;
  options.progress = [&](double share, std::string_view what) {
    report_progress(progress, 0.7 * share, what);  // as the closed forms; the maps take the rest
  };
  options.source = module.source_name;
  RunCollector collector(wanted, accesses, effort, texel_accesses(module, launch));
  DEMARC_TRY(const emulate::Outcome outcome, emulate::run(module, part, options, &collector));
  EmulatedRuns result = collector.take();
  for (const emulate::Finding& finding : outcome.findings) {
    const std::string words = emulate::describe(finding, module.source_name);
    if (!goes_on_after(finding.kind))
      return check_failed("the kernel does not run to its end: {}", words);
    result.findings.push_back(words);
  }
  if (!collector.gave_up()) return result;
  Effort all_runs = effort;
  all_runs.max_runs_of_block = ~std::uint64_t{0};
  return emulate_runs(module, launch, wanted, accesses, threads, all_runs, progress);
}

}  // namespace demarc::locality
