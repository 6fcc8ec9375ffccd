// Probes a memory from slices to conflicts and words the verdict on it.
#include "demarc/probe/probe.hpp"

#include <algorithm>
#include <bit>
#include <chrono>

#include "demarc/base/text.hpp"
#include "demarc/color/color_scheme.hpp"
#include "progress_part.hpp"

namespace demarc::probe {
namespace {

void count_colors(std::span<const std::uint64_t> dram, std::span<const std::uint64_t> all,
                  MemoryReport& report) {
  for (std::uint64_t granularity = 1024; granularity <= std::uint64_t{1} << 21U; granularity *= 2) {
    const auto colors = [&](std::span<const std::uint64_t> masks) {
      return std::uint32_t{1} << gpu::masks_at_granularity(masks, granularity).size();
    };
    report.colors.push_back({granularity, colors(dram), colors(all)});
    if (report.colors.back().dram == 1 && report.colors.back().all == 1) break;
  }
}

std::string color_sentence(const MemoryReport& report) {
  std::string text = "colours by masks:";
  for (const auto& entry : report.colors) {
    if (entry.dram == 1 && entry.all == 1) continue;
    text += fmt::format(" {} at {} KiB", entry.all, entry.granularity / 1024);
    if (entry.dram != entry.all) text += fmt::format(" ({} for DRAM reads alone)", entry.dram);
    text += ",";
  }
  if (text.back() == ',') {
    text.pop_back();
  } else {
    text += " none";
  }
  return text;
}

Result<void> probe_physical(TimedMemory& memory, const ProbeOptions& options, Random& random,
                            const Progress& progress, MemoryReport& report) {
  DEMARC_TRY(report.bank, find_bank_hash(memory, options.hash, random, part_of(progress, 0, 0.3)));
  DEMARC_TRY(report.set, find_set_hash(memory, options.hash, random, part_of(progress, 0.3, 0.9)));
  const HashFinding& bank = *report.bank;
  const HashFinding& set = *report.set;
  gpu::AddressMap& map = report.map;
  map.address_bits = memory.facts().address_bits;
  map.bank = bank.hash;
  map.set = set.hash;
  map.cache_ways = set.ways;
  report.decided = bank.decided && set.decided;
  for (const HashFinding* finding : {&bank, &set}) {
    if (!finding->decided) {
      report.verdict.push_back(
          fmt::format("the {} hash could not be decided: {}", finding->what, finding->reason));
    }
  }
  if (!report.decided) return {};
  map.module.rows = gpu::common_masks(bank.hash.rows, set.hash.rows);
  map.slices = map.module.count();
  map.interleave_bytes =
      map.module.empty() ? 0 : std::uint64_t{1} << std::countr_zero(map.module.rows.front());
  DEMARC_TRY(report.module, measure_module(memory, bank.hash, set.hash, map.module, random,
                                           part_of(progress, 0.9, 1)));
  const MissRegisters& registers = report.module->miss_registers;
  map.miss_registers = registers.number;
  const bool isolated = report.module->isolated.value_or(false);
  report.verdict.push_back(fmt::format("{} modules, {} banks, {} sets of {} lines of {} bytes",
                                       map.module.count(), map.bank.count(), map.set.count(),
                                       map.cache_ways, memory.facts().line_bytes));
  report.verdict.push_back(
      isolated ? "traffic to one module does not slow accesses to another: colours made of modules "
                 "isolate"
      : report.module->isolated
          ? "traffic to one module slows accesses to another: colours do not isolate"
          : "there is only one module, so there is no other module whose traffic could slow it");
  report.verdict.push_back(
      registers.number != 0 ? fmt::format("a module has {} miss-status registers: {}",
                                          registers.number, registers.reason)
                            : fmt::format("the miss-status registers of a module were not seen: {}",
                                          registers.reason));
  count_colors(
      map.module.rows,
      isolated ? std::span<const std::uint64_t>(map.module.rows) : std::span<const std::uint64_t>(),
      report);
  report.verdict.push_back(color_sentence(report));
  return {};
}

std::string mask_list(std::span<const std::uint64_t> masks) {
  std::string text;
  for (const auto mask : masks) text += fmt::format("{}{:#x}", text.empty() ? "" : ", ", mask);
  return text.empty() ? "none" : text;
}

void judge_conflicts(const ConflictFinding& conflicts, MemoryReport& report) {
  for (const auto& entry : conflicts.masks) report.map.isolation.push_back(entry.other);
  count_colors(conflicts.isolating_dram, conflicts.isolating, report);
  if (conflicts.isolating.empty()) {
    report.verdict.push_back(
        "no linear mask keeps DRAM reads, writes and L2 hits apart at the same time");
  } else {
    report.verdict.push_back(
        fmt::format("masks that keep reads, writes and L2 hits of two colours apart: {} (and their "
                    "sums)",
                    mask_list(conflicts.isolating)));
  }
  report.verdict.push_back(fmt::format("masks that keep at least DRAM reads apart: {}",
                                       mask_list(conflicts.isolating_dram)));
  report.verdict.push_back(color_sentence(report));
}

// Lengths of the runs of remainders of one group, around the modulus.
std::vector<std::uint32_t> runs_of(std::span<const std::uint32_t> group_of) {
  const std::size_t n = group_of.size();
  std::size_t begin = 0;
  while (begin < n && group_of[begin] == group_of[(begin + n - 1) % n]) ++begin;
  std::vector<std::uint32_t> runs;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = (begin + i) % n;
    if (i == 0 || group_of[at] != group_of[(at + n - 1) % n]) runs.push_back(0);
    ++runs.back();
  }
  return runs;
}

void judge_remainders(const RemainderConflicts& conflicts, MemoryReport& report) {
  const auto runs = runs_of(conflicts.group_of);
  report.verdict.push_back(fmt::format(
      "remainders that share a path to memory, in runs of {}: {} groups; reads next to writes "
      "to another group have a slowdown of at most {:.2f}x, to the same group of at least {:.2f}x",
      joined(runs, ", "), conflicts.groups, conflicts.max_other, conflicts.least_same));
  const bool colors = conflicts.groups >= 2 && runs.size() == conflicts.groups;
  if (colors) report.map.remainder_runs = runs;
  report.verdict.push_back(conflicts.groups < 2 ? "colours by remainders: none, all share one path"
                           : colors ? "colours by remainders: runs of them, each of whole groups"
                                    : "colours by remainders: none, since those of a group do "
                                      "not follow each other");
}

Result<void> probe_hidden(TimedMemory& memory, const ProbeOptions& options,
                          const Progress& progress, MemoryReport& report) {
  const MemoryFacts& facts = memory.facts();
  DEMARC_TRY(report.slices, find_slices(memory, options.slices, part_of(progress, 0, 0.15)));
  const SliceFinding& slices = *report.slices;
  gpu::AddressMap& map = report.map;
  map = map_of_slices(facts, slices);
  const auto kinds = slices.model.clusters.sizes.size();
  report.verdict.push_back(slices.reason);
  if (!slices.decided) {
    report.verdict.push_back("memory colours could not be decided on this memory");
    return {};
  }
  report.verdict.push_back(fmt::format(
      "linear masks: {}: {} modules, constant over {} bytes", mask_list(slices.model.masks),
      map.module.count(), slices.model.masks.front() & (~slices.model.masks.front() + 1)));
  report.verdict.push_back(
      slices.remainders
          ? fmt::format("{} slices: inside a module the remainder modulo {} of a number whose "
                        "digits are {}, from the lowest ({:.1f} % of the chunks of a page)",
                        slices.remainders->slices, slices.remainders->stage.modulus,
                        mask_list(slices.remainders->stage.number.rows),
                        slices.remainders->agreement * 100)
      : map.slices != 0
          ? fmt::format("{} slices: one for each module", map.slices)
          : fmt::format(
                "the number of slices was not seen: {} kinds of chunks in {} modules, and no "
                "closed form was found for what differs inside a module; slices that look "
                "alike are one kind",
                kinds, map.module.count()));
  const std::uint64_t pages =
      options.pages == 0 ? facts.pages : std::min(options.pages, facts.pages);
  DEMARC_TRY(report.pages, find_page_constants(memory, slices, options.slices, pages,
                                               options.samples, part_of(progress, 0.15, 0.4)));
  report.verdict.push_back(fmt::format("constants of {} pages in {:.1f} s, {} uncertain", pages,
                                       report.pages->seconds, report.pages->uncertain));
  DEMARC_TRY(report.conflicts, measure_conflicts(memory, slices, *report.pages, options.conflicts,
                                                 part_of(progress, 0.4, 0.9)));
  judge_conflicts(*report.conflicts, report);
  if (report.conflicts->isolating.empty() && slices.remainder_model) {
    DEMARC_TRY(
        report.remainder_conflicts,
        measure_remainder_conflicts(memory, slices, options.slices, part_of(progress, 0.9, 1)));
    judge_remainders(*report.remainder_conflicts, report);
  }
  report.decided = report.pages->uncertain * 100 <= pages && !report.conflicts->masks.empty();
  if (!report.decided) report.verdict.push_back("too many page constants are uncertain");
  return {};
}

// By what was found, as `serve` will read it in the description; where physical addresses are
// known, by the modules, if they isolate.
WindowFinding judge_windows(const MemoryReport& report) {
  constexpr std::uint64_t driver_page_bytes = std::uint64_t{2} << 20U;
  if (!report.decided) {
    return {false, {}, "the structure of the memory could not be decided"};
  }
  gpu::Device device;
  device.name = report.facts.name;
  device.address_map = report.map;
  const bool physical = report.facts.physical_addresses;
  const bool isolate = physical ? report.module->isolated.value_or(false)
                                : color::color_scheme(device, 2).has_value();
  if (!isolate) {
    return {true,
            {},
            "no colours were found that isolate, so there is nothing that a page table could "
            "divide"};
  }
  const auto found = physical ? color::page_colors(report.map.module.rows, driver_page_bytes)
                              : color::page_colors(device);
  if (!found) return {true, {}, found.error().message};
  return {true, *found, {}};
}

}  // namespace

Result<MemoryReport> probe_memory(TimedMemory& memory, const ProbeOptions& options,
                                  const Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  MemoryReport report;
  report.facts = memory.facts();
  Random random(options.seed);
  if (report.facts.physical_addresses) {
    DEMARC_CHECK(probe_physical(memory, options, random, progress, report));
  } else {
    DEMARC_CHECK(probe_hidden(memory, options, progress, report));
  }
  report.windows = judge_windows(report);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report_progress(progress, 1, "done");
  return report;
}

}  // namespace demarc::probe
