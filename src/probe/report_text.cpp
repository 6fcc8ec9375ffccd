// Writes the evidence and verdict of a probed memory as text.
#include <algorithm>

#include "demarc/base/text.hpp"
#include "demarc/device/pages.hpp"
#include "demarc/probe/probe.hpp"

namespace demarc::probe {
namespace {

void add_histogram(std::string& out, const Histogram& histogram) {
  const std::uint32_t most = histogram.counts.empty() ? 0
                                                      : *std::max_element(histogram.counts.begin(),
                                                                          histogram.counts.end());
  if (most == 0) return;
  for (std::size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    const std::uint32_t count = histogram.counts[bin];
    if (count == 0) continue;
    // The rare conflicts would not show on a linear scale.
    std::size_t bar = 1;
    for (std::uint32_t rest = count; rest > 1; rest /= 2) bar += 2;
    append(out, "  {:7.0f} cycles {:8} {}\n",
           histogram.low + histogram.bin_width * static_cast<double>(bin), count,
           std::string(bar, '#'));
  }
}

void add_hash(std::string& out, const HashFinding& finding) {
  append(out, "\n{} hash: {}\n", finding.what, finding.reason);
  for (const auto mask : finding.hash.rows) {
    std::string bits;
    for (int bit = 0; bit < 64; ++bit) {
      if (((mask >> bit) & 1U) != 0) bits += fmt::format("{}{}", bits.empty() ? "" : ",", bit);
    }
    append(out, "  X({})\n", bits);
  }
  append(out, "  {} pairs timed, {} conflicts above {:.0f} cycles, {} contradict the hash\n",
         finding.measured, finding.pairs, finding.threshold, finding.wrong_pairs);
  const auto& c = finding.confusion;
  append(out,
         "  fresh addresses          measured same   measured other\n"
         "  predicted same           {:13} {:16}\n"
         "  predicted other          {:13} {:16}\n",
         c.same_same, c.same_other, c.other_same, c.other_other);
  add_histogram(out, finding.times);
}

void add_module(std::string& out, const ModuleFinding& finding) {
  out += "\ncycles of a read by what other threads read at the same time\n  threads";
  for (const auto& curve : finding.curves) append(out, "{:>8}", curve.name);
  out += "\n";
  if (finding.curves.empty()) return;
  for (std::size_t n = 0; n < finding.curves.front().cycles.size(); n += 4) {
    append(out, "  {:7}", n);
    for (const auto& curve : finding.curves) append(out, "{:8.0f}", curve.cycles[n]);
    out += "\n";
  }
}

void add_slices(std::string& out, const SliceFinding& finding) {
  auto sizes = finding.model.clusters.sizes;
  std::sort(sizes.begin(), sizes.end());
  append(out, "\nslices by latency: {}\n  chunks of {} bytes per slice:", finding.reason,
         finding.model.chunk_bytes);
  for (const auto size : sizes) append(out, " {}", size);
  out += "\n  distance to the own centre, in quarters of the noise:";
  for (const auto count : finding.model.clusters.residual_histogram) {
    append(out, " {}", count);
  }
  out += "\n  masks by share of chunks on whose slice they are constant:\n";
  std::size_t shown = 0;
  for (const auto& vote : finding.model.votes) {
    if (++shown > 20) break;
    append(out, "    {:#9x} {:5.1f} %\n", vote.mask, vote.share * 100);
  }
}

void add_conflicts(std::string& out, const ConflictFinding& finding) {
  append(out,
         "\nslowdown of a victim next to an aggressor of the other colour (of the same "
         "colour)\n  {:>9} {:>15} {:>15} {:>15} {:>15}\n",
         "mask", "DRAM, reads", "DRAM, writes", "L2, reads", "L2, writes");
  for (const auto& entry : finding.masks) {
    append(out, "  {:#9x}", entry.other.mask);
    const auto pair = [&](double other, double same) {
      append(out, "   {:5.2f} ({:4.2f})", other, same);
    };
    pair(entry.other.dram_read, entry.same.dram_read);
    pair(entry.other.dram_write, entry.same.dram_write);
    pair(entry.other.l2_read, entry.same.l2_read);
    pair(entry.other.l2_write, entry.same.l2_write);
    append(out, " {}\n",
           entry.isolates        ? "isolates"
           : entry.isolates_dram ? "isolates DRAM reads"
                                 : "");
  }
  if (finding.modules.empty()) return;
  out += "\nslowdown of DRAM reads in a module (row) next to reads in another\n";
  for (const auto& row : finding.modules) {
    out += " ";
    for (const double value : row) append(out, " {:4.2f}", value);
    out += "\n";
  }
}

void add_remainder_conflicts(std::string& out, const RemainderConflicts& conflicts) {
  append(out, "\ngroup of each remainder by reads next to writes ({} pages, {} uncertain):\n ",
         conflicts.pages, conflicts.uncertain);
  for (const std::uint32_t group : conflicts.group_of) append(out, " {}", group);
  out += "\n";
}

void add_windows(std::string& out, const WindowFinding& finding) {
  if (!finding.colors) {
    append(out, "- windows: {}: {}\n", finding.known ? "no" : "not known", finding.reason);
    return;
  }
  append(out,
         "- windows: yes: {} colours change only every {} KiB, so the page table (pages of {} KiB) "
         "can divide them, and code without PTX can run in a tenant\n",
         finding.colors->colors, finding.colors->granule / 1024, gpu::smallest_page_bytes / 1024);
}

}  // namespace

std::string report_to_text(const MemoryReport& report) {
  std::string out;
  append(out, "memory of {}: {} in {:.1f} s\n", report.facts.name,
         report.decided ? "structure found" : "NOT decided", report.seconds);
  for (const auto& sentence : report.verdict) append(out, "- {}\n", sentence);
  add_windows(out, report.windows);
  if (report.bank) add_hash(out, *report.bank);
  if (report.set) add_hash(out, *report.set);
  if (report.module) add_module(out, *report.module);
  if (report.slices) add_slices(out, *report.slices);
  if (report.conflicts) add_conflicts(out, *report.conflicts);
  if (report.remainder_conflicts) add_remainder_conflicts(out, *report.remainder_conflicts);
  return out;
}

}  // namespace demarc::probe
