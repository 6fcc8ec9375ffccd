// The report of the published program, written with the C library's printf from what the plain
// reference found: what run_classic() must print for any configuration.
#pragma once

#include <cstdio>

#include "plain_reference.hpp"

namespace demarc::sim::plain {

template <class... Args>
std::string printed(const char* format, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

// Time of a kernel alone: batches that fill the machine, each as long as its overhead makes it.
inline std::uint32_t alone(const TbConfig& c, KernelIndex k,
                           const std::vector<std::size_t>& field) {
  const auto request = c.kernel_fields(k);
  std::uint32_t per_sm = ~0U;
  for (std::size_t r = 0; r < c.sm.n_sched; ++r)
    per_sm = std::min(per_sm, c.sm.max[r] / request[r]);
  const std::uint32_t limit = per_sm * c.sm.n_sms;
  double sum = 0;
  for (std::uint32_t left = c.kernels[k].n_tb; left > 0;) {
    const std::uint32_t batch = std::min(left, limit);
    left -= batch;
    const std::uint32_t on_one = (batch + c.sm.n_sms - 1) / c.sm.n_sms;
    const auto cost = [&](std::size_t r) {
      const float ratio = static_cast<float>(on_one * request[r]) / static_cast<float>(c.sm.max[r]);
      return on_one * request[r] == 0 ? 0.0F : Reference::lookup(c.sm_overhead, r, ratio);
    };
    float sm = 0;
    float units = 0;
    float others = 0;
    for (std::size_t r = 0; r < c.sm.n_sched; ++r) sm += cost(r);
    for (std::size_t r = c.sm.n_sched; r < c.sm.n_boundary; ++r) units = std::max(units, cost(r));
    for (std::size_t r = c.sm.n_boundary; r < c.sm.max.size(); ++r)
      others = std::max(others, cost(r));
    sm += units;
    sm += others;
    float memory = 0;
    for (std::size_t m = 0; m < c.memory.size(); ++m) {
      memory += Reference::lookup(
          c.memory_overhead, m,
          static_cast<float>(batch * request[field[m]]) / static_cast<float>(c.memory[m]));
    }
    const float time = static_cast<float>(c.kernels[k].duration.raw()) * (1.0F + (sm + memory));
    sum += time;
  }
  return static_cast<std::uint32_t>(sum);
}

// As of 2020: rounds of as many blocks as fit; SMs hold floor(blocks / SMs) of them.
inline std::uint32_t alone_2020(const Reference& rules, const TbConfig& c, KernelIndex k) {
  const auto request = c.kernel_fields(k);
  const std::uint32_t fit = c.sm.max[0] / request[0] * c.sm.n_sms;
  double sum = 0;
  for (std::uint32_t left = c.kernels[k].n_tb; left > 0;) {
    const std::uint32_t round = std::min(left, fit);
    left -= round;
    const float memory = rules.memory_2020(round * request[1]) / static_cast<float>(round);
    const float overhead = rules.sm_2020(round / c.sm.n_sms * request[0]) + memory;
    sum += static_cast<float>(c.kernels[k].duration.raw()) * (1.0F + overhead);
  }
  return static_cast<std::uint32_t>(sum);
}

inline std::string report_2020(const TbConfig& c, const std::string& policy, const Outcome& o,
                               bool verbose) {
  const Reference rules(c, policy, TbModel::simtbs_2020);
  std::string text;
  const std::uint32_t ticks = o.ticks.raw();
  const double capacity = double{1.0} * c.sm.n_sms * c.sm.max[0];
  double use = 0;
  for (std::size_t t = 0; t < o.use.size(); ++t) {
    const auto now = static_cast<double>(o.use[t][0]);
    use += now;
    if (verbose) text += printed("[%6zu] %.1f\n", t, now / capacity * 100);
  }
  text += printed("policy: %s\nsimulation end: %u\n", policy.c_str(), ticks);
  text += ticks == 0 ? "SM utilization: -nan%\n"
                     : printed("SM utilization: %.2f%%\n", use / ticks / capacity * 100);
  text += "kernel statistics:\n";
  double sum = 0;
  int finished = 0;
  for (const KernelIndex k : c.kernels.keys()) {
    if (o.end[k] == TbTicks(~0U)) continue;
    const double antt =
        double{1.0} * (o.end[k] - c.kernels[k].start + 1_ticks).raw() / alone_2020(rules, c, k);
    if (verbose) text += printed("kernel[%02u]: %.1f\n", k.raw() + 1, 100 * antt);
    sum += antt;
    ++finished;
  }
  if (finished > 0) text += printed("ANTT: %.3f\nKernel: %d\n", sum / finished, finished);
  const auto mean = [&](std::uint64_t amount) {
    return ticks == 0 ? std::string("-nan") : printed("%.1f", static_cast<double>(amount) / ticks);
  };
  return text + "Mem: " + mean(o.memory_use[0]) + "\nTB: " + mean(o.blocks_run) + "\n";
}

inline std::string report(const TbConfig& c, const std::string& policy, TbModel model,
                          const Outcome& o, bool verbose) {
  std::string text;
  const std::uint32_t ticks = o.ticks.raw();
  std::vector<double> use(c.sm.max.size());
  for (std::size_t t = 0; t < o.use.size(); ++t) {
    if (verbose) text += printed("[%6zu]", t);
    for (std::size_t r = 0; r < use.size(); ++r) {
      const auto now = static_cast<double>(o.use[t][r]);
      use[r] += now;
      if (verbose) text += printed(" %.1f", now / (double{1.0} * c.sm.n_sms * c.sm.max[r]) * 100);
    }
    if (verbose) text += "\n";
  }
  text += printed("policy: %s\nsimulation end: %u\nSM utilization: ", policy.c_str(), ticks);
  for (std::size_t r = 0; r < use.size(); ++r) {
    const double capacity = double{1.0} * c.sm.n_sms * c.sm.max[r];
    text += ticks == 0 ? " -nan%" : printed(" %.2f%%", use[r] / ticks / capacity * 100);
  }
  text += "\nkernel statistics:\n";
  const std::vector<std::size_t> field = memory_field(c, model);
  std::uint32_t finished = 0;
  double sum = 0;
  double queue_sum = 0;
  std::array<std::pair<std::uint32_t, double>, 11> types{};
  for (const KernelIndex k : c.kernels.keys()) {
    if (o.end[k] == TbTicks(~0U)) continue;
    const double s = alone(c, k, field);
    const double slowdown = (o.end[k] - o.first[k] + 1_ticks).raw() / s;
    const double queue = (o.end[k] - c.kernels[k].start + 1_ticks).raw() / s;
    if (verbose)
      text += printed("kernel[%02u]: ANTT: %.2f(qdelay: %.2f)\n", k.raw() + 1, slowdown, queue);
    ++finished;
    sum += slowdown;
    queue_sum += queue;
    if (c.kernels[k].type < 1 || c.kernels[k].type > 10) continue;
    ++types[c.kernels[k].type].first;
    types[c.kernels[k].type].second += slowdown;
  }
  const auto rate = [&](std::uint64_t n) {
    return static_cast<double>(static_cast<float>(n) / static_cast<float>(ticks));
  };
  if (finished > 0) {
    text += printed("ANTT: %.3f, %.3f(with queuing delay)\nSTP: %.4f(%u kernels)\n", sum / finished,
                    queue_sum / finished, rate(finished), finished);
    for (std::size_t type = 1; type <= 10; ++type) {
      if (types[type].first == 0) continue;
      text += printed("Kernel Type: %zu\n ANTT: %.3f, STP: %.4f\n", type,
                      types[type].second / types[type].first, rate(types[type].first));
    }
  }
  text += "Mem:";
  for (const std::uint64_t m : o.memory_use) {
    text += ticks == 0 ? " -nan\n" : printed(" %.1f\n", static_cast<double>(m) / ticks);
  }
  text +=
      ticks == 0 ? "\nTB throughput: -nan\n" : printed("\nTB throughput: %.2f\n", rate(o.finished));
  return text;
}

}  // namespace demarc::sim::plain
