// Computes what measured cells say about one neighbour: means and slow runs, compared with those
// beside idle ones.
#include "attack/slowdowns.hpp"

namespace demarc::study {
namespace {

Slowdown slowdown(std::size_t victim, bool whole_runs, std::span<const double> loaded,
                  std::span<const double> idle) {
  Slowdown out;
  out.victim = victim;
  out.whole_runs = whole_runs;
  out.mean_percent = variation_percent(describe(loaded), describe(idle));
  add_neighbour(out.tail, 0, loaded, idle);
  return out;
}

}  // namespace

RankedNeighbour slowdowns_of(const Measured& measured, std::size_t candidate, bool kernels_alone) {
  RankedNeighbour out;
  const std::vector<Cell>& cells = measured.beside[candidate];
  for (std::size_t victim = 0; victim < cells.size(); ++victim) {
    const Cell& loaded = cells[victim];
    const Cell& idle = measured.idle[victim];
    out.runs_per_second += loaded.aggressor_rate / static_cast<double>(cells.size());
    if (out.wrong.empty()) out.wrong = loaded.error;
    out.slowdowns.push_back(slowdown(victim, false, loaded.samples_ns, idle.samples_ns));
    if (!loaded.runs_ns.empty() && !idle.runs_ns.empty()) {
      out.slowdowns.push_back(slowdown(victim, true, loaded.runs_ns, idle.runs_ns));
    }
  }
  for (std::size_t i = 1; i < out.slowdowns.size(); ++i) {
    const Slowdown& one = out.slowdowns[i];
    if (kernels_alone && one.whole_runs) continue;
    if (one.mean_percent.value > out.slowdowns[out.worst_mean].mean_percent.value) {
      out.worst_mean = i;
    }
    if (judged_by(one.tail).percent > judged_by(out.slowdowns[out.worst_tail].tail).percent) {
      out.worst_tail = i;
    }
  }
  return out;
}

bool hurts_more(const RankedNeighbour& a, const RankedNeighbour& b) {
  if (a.wrong.empty() != b.wrong.empty()) return b.wrong.empty();
  return a.slowdowns[a.worst_mean].mean_percent.value >
         b.slowdowns[b.worst_mean].mean_percent.value;
}

}  // namespace demarc::study
