// Writes the report of the published program, byte for byte.
#include <array>
#include <cmath>

#include "demarc/base/text.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"

namespace demarc::sim {
namespace {

class TickPrinter final : public TbObserver {
 public:
  explicit TickPrinter(std::string& out) : out_(out) {}

  void ended(TbTicks tick, TbTicks ticks, const Occupancy& machine) override {
    line_.clear();
    for (std::size_t r = 0; r < machine.resources(); ++r) {
      append(
          line_, " {:.1f}",
          static_cast<double>(machine.total(r)) / static_cast<double>(machine.capacity(r)) * 100.0);
    }
    line_.push_back('\n');
    for (const TbTicks end = tick + ticks; tick != end; ++tick) {
      append(out_, "[{:6}]", tick);
      out_.append(line_);
    }
  }

 private:
  std::string& out_;
  std::string line_;
};

// Beside the ticks, where they are printed: how many blocks ran in each, summed.
class BlockCounter final : public TbObserver {
 public:
  explicit BlockCounter(TickPrinter* printer) : printer_(printer) {}

  void placed(TbTicks /*tick*/, SmIndex /*sm*/, KernelIndex /*kernel*/,
              BlockNumber /*block*/) override {
    ++staying_;
  }
  void finished(TbTicks /*tick*/, SmIndex /*sm*/, KernelIndex /*kernel*/, TbTicks /*placed_tick*/,
                std::uint32_t blocks) override {
    staying_ -= blocks;
    ending_ += blocks;
  }
  void ended(TbTicks tick, TbTicks ticks, const Occupancy& machine) override {
    ran_ += staying_ * ticks.raw() + ending_;
    ending_ = 0;
    if (printer_ != nullptr) printer_->ended(tick, ticks, machine);
  }
  [[nodiscard]] std::uint64_t ran() const { return ran_; }

 private:
  TickPrinter* printer_;
  std::uint64_t staying_ = 0, ending_ = 0, ran_ = 0;
};

// A ratio as the C library prints it where the machine gives 0/0.
std::string ratio_text(double value, int decimals) {
  return std::isnan(value) ? "-nan" : fmt::format("{:.{}f}", value, decimals);
}

double per_tick(double amount, TbTicks ticks) {
  return ticks == 0_ticks ? std::nan("") : amount / ticks.raw();
}

float single_rate(std::uint64_t count, TbTicks ticks) {
  return ticks == 0_ticks ? std::nanf("")
                          : static_cast<float>(count) / static_cast<float>(ticks.raw());
}

struct TypeSum {
  std::uint32_t count = 0;
  double slowdown = 0;
};

void print_kernels(std::string& out, const TbConfig& config, TbTicks ticks,
                   const FiguresOfKernels& figures, bool verbose) {
  constexpr std::uint32_t listed_types = 10;
  std::array<TypeSum, listed_types + 1> types{};
  TypeSum all;
  double queue_slowdown = 0;
  for (const KernelIndex k : figures.keys()) {
    if (!figures[k]) continue;
    if (verbose) {
      append(out, "kernel[{:02}]: ANTT: {:.2f}(qdelay: {:.2f})\n", k.raw() + 1,
             figures[k]->slowdown(), figures[k]->queue_slowdown());
    }
    ++all.count;
    all.slowdown += figures[k]->slowdown();
    queue_slowdown += figures[k]->queue_slowdown();
    const std::uint32_t type = config.kernels[k].type;
    if (type == 0 || type > listed_types) continue;
    ++types[type].count;
    types[type].slowdown += figures[k]->slowdown();
  }
  if (all.count == 0) return;
  append(out, "ANTT: {:.3f}, {:.3f}(with queuing delay)\n", all.slowdown / all.count,
         queue_slowdown / all.count);
  append(out, "STP: {:.4f}({} kernels)\n", single_rate(all.count, ticks), all.count);
  for (std::uint32_t type = 1; type <= listed_types; ++type) {
    if (types[type].count == 0) continue;
    append(out, "Kernel Type: {}\n ANTT: {:.3f}, STP: {:.4f}\n", type,
           types[type].slowdown / types[type].count, single_rate(types[type].count, ticks));
  }
}

// Since `policy:` the report as of 2020.
void print_report_of_2020(std::string& out, const TbRun& run, const FiguresOfKernels& figures,
                          std::uint64_t blocks_run, bool verbose) {
  std::uint32_t count = 0;
  double slowdown = 0;
  for (const KernelIndex k : figures.keys()) {
    if (!figures[k]) continue;
    if (verbose) {
      append(out, "kernel[{:02}]: {:.1f}\n", k.raw() + 1, 100 * figures[k]->queue_slowdown());
    }
    ++count;
    slowdown += figures[k]->queue_slowdown();
  }
  if (count != 0) append(out, "ANTT: {:.3f}\nKernel: {}\n", slowdown / count, count);
  append(out, "Mem: {}\nTB: {}\n",
         ratio_text(per_tick(static_cast<double>(run.memory_use[0]), run.ticks), 1),
         ratio_text(per_tick(static_cast<double>(blocks_run), run.ticks), 1));
}

void print_report_of_2021(std::string& out, const TbConfig& config, const TbRun& run,
                          const FiguresOfKernels& figures, bool verbose) {
  print_kernels(out, config, run.ticks, figures, verbose);
  out += "Mem:";
  for (const std::uint64_t use : run.memory_use) {
    append(out, " {}\n", ratio_text(per_tick(static_cast<double>(use), run.ticks), 1));
  }
  append(out, "\nTB throughput: {}\n", ratio_text(single_rate(run.finished_blocks, run.ticks), 2));
}

}  // namespace

ClassicOutput run_classic(std::string_view text, const std::string& source,
                          const std::string& policy, TbModel model, bool verbose) {
  const auto refused = [](const Error& error, int status) {
    return ClassicOutput{"", error.message + "\n", status};
  };
  if (const auto known = find_policy(policy); !known) return refused(known.error(), 1);
  const auto config = parse_tb_config(text, source);
  if (!config) return refused(config.error(), 2);

  std::string out;
  TickPrinter ticks(out);
  BlockCounter blocks(verbose ? &ticks : nullptr);
  const bool of_2020 = model == TbModel::simtbs_2020;
  TbOptions options;
  options.model = model;
  options.policy = policy;
  if (verbose) options.observer = &ticks;
  if (of_2020) options.observer = &blocks;
  const auto run = simulate(*config, options);
  if (!run) return refused(run.error(), 1);
  if (run->out_of_memory) {
    return {std::move(out), fmt::format("ERROR: out of memory: {}\n\n", *run->out_of_memory), 4};
  }
  const auto figures = kernel_figures(*config, model, *run);
  if (!figures) return refused(figures.error(), 1);

  append(out, "policy: {}\nsimulation end: {}\nSM utilization: ", policy, run->ticks);
  for (std::size_t r = 0; r < config->resources(); ++r) {
    const double mean = per_tick(static_cast<double>(run->sm_use[r]), run->ticks);
    const auto capacity = static_cast<double>(config->sm.n_sms) * config->sm.max[r];
    append(out, "{}{}%", of_2020 ? "" : " ", ratio_text(mean / capacity * 100.0, 2));
  }
  out += "\nkernel statistics:\n";
  if (of_2020) {
    print_report_of_2020(out, *run, *figures, blocks.ran(), verbose);
  } else {
    print_report_of_2021(out, *config, *run, *figures, verbose);
  }
  return {std::move(out), "", 0};
}

}  // namespace demarc::sim
