// Generates workloads of the SimTBS model from a seed, under the rules that are asked for.
#include "demarc/sim/dispatch/tb_generate.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <queue>
#include <utility>

#include "demarc/base/random.hpp"
#include "dispatch/sm_overhead.hpp"

namespace demarc::sim {
namespace {

constexpr std::size_t max_choices_of_kernels = 32;

class WorkloadGenerator {
 public:
  WorkloadGenerator(TbConfig config, TbGeneration generation, std::uint64_t seed)
      : config_(std::move(config)),
        generation_(generation),
        random_(seed),
        overhead_(config_),
        pool_(config_.kernels),
        pool_fields_(config_.fields) {
    config_.kernels.clear();
    config_.fields.clear();
  }

  Result<TbConfig> generate() {
    DEMARC_CHECK(check());
    use_.resize(config_.sm.n_sched);
    const double level = config_.workload.level;
    const bool instantaneous = generation_ == TbGeneration::published_2020;
    double sum = 0;
    for (TbTicks t; t < config_.max_simtime; ++t) {
      sum += nominal_use();
      draw();
      // At t = 0 the published program divides 0 by 0 and accepts nothing.
      const bool accepted = instantaneous ? nominal_use_with_candidate() <= level
                                          : t > 0_ticks && sum / t.raw() <= level;
      if (accepted) accept(t);
      while (!running_.empty() && running_.top().end == t.raw()) {
        add_use(running_.top().kernel, -1);
        running_.pop();
      }
    }
    return std::move(config_);
  }

 private:
  struct Running {
    std::uint64_t end;  // in ticks; may be more than TbTicks can hold
    KernelIndex kernel;
    friend bool operator<(const Running& a, const Running& b) { return a.end > b.end; }
  };

  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
    return invalid_input("{}:{}: {}", config_.source, config_.workload.line,
                         fmt::format(format, std::forward<Args>(args)...));
  }

  Result<void> check() {
    const TbWorkload& workload = config_.workload;
    if (!workload.present) {
      return invalid_input("{}: a *workload section is needed to generate kernels", config_.source);
    }
    if (config_.max_simtime == 0_ticks) {
      return invalid_input("{}: max_simtime must be above 0 to generate kernels", config_.source);
    }
    if (workload.from_kernels) {
      if (pool_.empty())
        return fail("a level alone picks kernels from *kernel, but that section is empty");
      return {};
    }
    if (workload.requests.size() != config_.resources() ||
        workload.memory.size() != config_.memory.size()) {
      return fail(
          "{} requests and {} memory ranges are given for {} SM resources and {} memories; give "
          "one for each",
          workload.requests.size(), workload.memory.size(), config_.resources(),
          config_.memory.size());
    }
    const std::uint32_t gap = generation_ == TbGeneration::corrected ? 0 : 2;
    for (const IntRange& range : {workload.n_tb, workload.duration}) {
      if (range.high < range.low || range.high - range.low < gap || (gap == 0 && range.low == 0)) {
        return fail("range {}-{} is too narrow to draw from: these rules need b >= a + {}",
                    range.low, range.high, gap);
      }
    }
    for (const IntRange& range : workload.memory) {
      if (range.high < range.low || (gap > 0 && range.high == range.low)) {
        return fail("memory range {}-{} is too narrow to draw from", range.low, range.high);
      }
    }
    return {};
  }

  std::uint32_t below(std::uint64_t bound) {
    return static_cast<std::uint32_t>(random_.below(bound));
  }

  std::uint32_t draw_range(const IntRange& range) {
    if (generation_ == TbGeneration::corrected) {
      return range.low + below(std::uint64_t{range.high} - range.low + 1);
    }
    return below(range.high - range.low - 1) + 1;
  }

  std::uint32_t draw_memory(const IntRange& range) {
    if (generation_ == TbGeneration::published_2020) return below(100) + 1;
    if (generation_ == TbGeneration::corrected) {
      return range.low + below(std::uint64_t{range.high} - range.low + 1);
    }
    return range.low + below(range.high - range.low) + 1;
  }

  void draw() {
    const TbWorkload& workload = config_.workload;
    if (workload.from_kernels) {
      const KernelIndex k(below(std::min(pool_.size(), max_choices_of_kernels)));
      candidate_ = pool_[k];
      const auto first =
          pool_fields_.begin() + static_cast<std::ptrdiff_t>(k.raw() * config_.fields_per_kernel());
      fields_.assign(first, first + static_cast<std::ptrdiff_t>(config_.fields_per_kernel()));
      return;
    }
    candidate_ = TbKernel{};
    fields_.clear();
    candidate_.n_tb = draw_range(workload.n_tb);
    candidate_.duration = TbTicks(draw_range(workload.duration));
    for (const auto& choices : workload.requests) fields_.push_back(choices[below(choices.size())]);
    for (const IntRange& range : workload.memory) fields_.push_back(draw_memory(range));
  }

  [[nodiscard]] double mean_percent(const TbKernel* extra) const {
    double sum = 0;
    for (std::size_t r = 0; r < use_.size(); ++r) {
      double units = use_[r];
      if (extra != nullptr) units += double{1.0} * extra->n_tb * fields_[r];
      sum += 100.0 * units / (double{1.0} * config_.sm.n_sms * config_.sm.max[r]);
    }
    return sum / static_cast<double>(use_.size());
  }
  [[nodiscard]] double nominal_use() const { return mean_percent(nullptr); }
  [[nodiscard]] double nominal_use_with_candidate() const { return mean_percent(&candidate_); }

  void add_use(KernelIndex kernel, double sign) {
    const auto fields = config_.kernel_fields(kernel);
    for (std::size_t r = 0; r < use_.size(); ++r) {
      use_[r] += sign * config_.kernels[kernel].n_tb * fields[r];
    }
  }

  // For one block alone on the machine.
  [[nodiscard]] float lone_overhead() const {
    if (generation_ == TbGeneration::published_2020) return 0.0F;
    const std::span<const std::uint32_t> memory = std::span(fields_).subspan(config_.resources());
    const float sm = overhead_.sm_cost(fields_.data());
    if (generation_ == TbGeneration::corrected) return sm + overhead_.memory_cost(memory);
    // The published program looks the memory request up in the SM table.
    std::vector<std::uint32_t> as_units(config_.resources());
    for (std::size_t m = 0; m < std::min(memory.size(), as_units.size()); ++m) {
      as_units[m] = memory[m];
    }
    return sm + overhead_.sm_cost(as_units.data());
  }

  void accept(TbTicks t) {
    const float length = static_cast<float>(candidate_.duration.raw()) * (1.0F + lone_overhead());
    candidate_.start = t + 1_ticks;
    const KernelIndex kernel = config_.kernels.next_key();
    config_.add_kernel(candidate_, fields_);
    add_use(kernel, 1);
    running_.push({static_cast<std::uint64_t>(static_cast<float>(t.raw()) + length), kernel});
  }

  TbConfig config_;
  TbGeneration generation_;
  Random random_;
  OverheadModel overhead_;
  PerKernel<TbKernel> pool_;
  LargeArray<std::uint32_t> pool_fields_;
  TbKernel candidate_;
  std::vector<std::uint32_t> fields_;
  std::vector<double> use_;  // nominal units in use, a scheduling resource each
  std::priority_queue<Running> running_;
};

// Three scheduling resources; a third of the overhead each.
void make_multi(TbConfig& config) {
  const std::uint32_t units = config.sm.max[0];
  config.sm = SmSpec{config.sm.n_sms, 3, 3, {units, 2 * units, 2 * units}};
  for (OverheadTable::Row& row : config.sm_overhead.rows) row.cost.assign(3, row.cost[0] / 3);
  config.workload.requests.clear();
  for (const std::uint32_t max : config.sm.max) {
    std::vector<std::uint32_t> choices(std::max(max / 2, 1U));
    std::iota(choices.begin(), choices.end(), 1U);
    config.workload.requests.push_back(std::move(choices));
  }
}

}  // namespace

Result<TbGeneration> parse_tb_generation(std::string_view name) {
  if (name == "2021") return TbGeneration::published_2021;
  if (name == "2020") return TbGeneration::published_2020;
  if (name == "corrected") return TbGeneration::corrected;
  return invalid_input("unknown generation '{}': use 2021, 2020 or corrected", name);
}

Result<TbMix> parse_tb_mix(std::string_view name) {
  if (name == "uniform") return TbMix::uniform;
  if (name == "extreme") return TbMix::extreme;
  if (name == "multi") return TbMix::multi;
  return invalid_input("unknown mix '{}': use uniform, extreme or multi", name);
}

TbConfig paper_config(const TbMachine& machine, TbMix mix, std::uint32_t level,
                      std::uint32_t ticks) {
  TbConfig config;
  config.source = "generated";
  config.max_simtime = TbTicks(ticks);
  config.sm = SmSpec{machine.sms, 1, 1, {machine.units}};
  const std::uint64_t memory = std::uint64_t{15000} * machine.sms * machine.units / 128;
  config.memory = {static_cast<std::uint32_t>(std::max<std::uint64_t>(memory, 1))};
  const auto row = [](OverheadTable& table, float ratio, float cost) {
    table.rows.push_back({ratio, {cost}, 0});
  };
  const float memory_rows[][2] = {{0.1F, 1.2F},  {0.2F, 2.4F},   {0.3F, 3.6F},  {0.4F, 4.8F},
                                  {0.5F, 6.0F},  {0.6F, 7.2F},   {0.7F, 8.4F},  {0.75F, 9.6F},
                                  {0.8F, 10.8F}, {0.85F, 12.0F}, {0.9F, 13.2F}, {1.0F, 14.0F}};
  for (const auto& [ratio, cost] : memory_rows) row(config.memory_overhead, ratio, cost);
  const float sm_rows[][2] = {{0.25F, 0.1F},  {0.375F, 0.11F}, {0.5F, 0.12F}, {0.625F, 0.13F},
                              {0.75F, 0.14F}, {0.875F, 0.15F}, {1.0F, 0.16F}};
  for (const auto& [ratio, cost] : sm_rows) row(config.sm_overhead, ratio, cost);
  TbWorkload& workload = config.workload;
  workload.present = true;
  workload.level = level;
  workload.n_tb = {12, 128};
  workload.duration = {5, 20};
  workload.memory = {{20, 30}};
  std::vector<std::uint32_t> requests{1, machine.units};
  if (mix == TbMix::uniform) {
    requests.resize(machine.units);
    std::iota(requests.begin(), requests.end(), 1U);
  }
  workload.requests = {requests};
  if (mix == TbMix::multi) make_multi(config);
  return config;
}

Result<TbConfig> paper_config_of_2020(const TbMachine& machine, TbMix mix, std::uint32_t level,
                                      std::uint32_t ticks) {
  if (mix == TbMix::multi || machine.units < 2) {
    return invalid_input(
        "the program of 2020 has one resource of at least two units; for another machine use "
        "--generation 2021 or corrected");
  }
  TbConfig config = paper_config(machine, mix, level, ticks);
  config.grammar = TbGrammar::of_2020;
  config.workload.memory = {{1, 100}};
  const std::uint32_t capacity = config.memory[0];
  // Rows at whole units; where a small machine makes two of them one, the later one stays.
  const auto table = [](OverheadTable& into, std::uint32_t most, std::uint32_t of,
                        std::initializer_list<std::pair<std::uint32_t, float>> rows) {
    into.rows.clear();
    for (const auto& [units, cost] : rows) {
      const auto scaled = static_cast<std::uint32_t>(std::uint64_t{units} * most / of);
      const std::uint32_t at = std::max(scaled, 2U);
      if (!into.rows.empty() && row_units(into.rows.back(), most) == at) into.rows.pop_back();
      into.rows.push_back({static_cast<float>(at) / static_cast<float>(most), {cost}, 0});
    }
  };
  table(config.memory_overhead, capacity, 15000,
        {{500, 1.2F},
         {1000, 2.4F},
         {2000, 3.6F},
         {3000, 4.8F},
         {4000, 6.0F},
         {5000, 7.2F},
         {6000, 8.4F},
         {7000, 9.6F},
         {8000, 10.8F},
         {9000, 12.0F},
         {10000, 13.2F},
         {15000, 14.0F}});
  table(config.sm_overhead, machine.units, 8,
        {{2, 0.10F}, {3, 0.11F}, {4, 0.12F}, {5, 0.13F}, {6, 0.14F}, {7, 0.15F}, {8, 0.16F}});
  return config;
}

Result<TbConfig> generate_workload(TbConfig config, TbGeneration generation, std::uint64_t seed) {
  return WorkloadGenerator(std::move(config), generation, seed).generate();
}

}  // namespace demarc::sim
