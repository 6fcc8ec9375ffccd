// Runs the cells of a study on a simulated GPU, several of them at a time.
#include "demarc/study/sim_executor.hpp"

#include <algorithm>
#include <map>

#include "demarc/base/hash.hpp"
#include "demarc/device/device_ref.hpp"
#include "fidelity.hpp"
#include "part_colors.hpp"
#include "sim/sim_memory.hpp"
#include "sim/sim_workload.hpp"
#include "sim/simulated_ahead.hpp"

namespace demarc::study {
namespace {

constexpr std::uint32_t ptx_target = 90;
constexpr std::uint64_t max_parts = 4;  // each with as much memory
constexpr std::uint64_t max_neighbour_bytes = std::uint64_t{32} << 20U;
constexpr std::uint64_t max_neighbour_accesses = std::uint64_t{1} << 17U;

constexpr std::size_t settled_runs = 32;
constexpr std::size_t rate_launches =
    4;  // runs of a victim while its neighbour's rate alone is measured

// By more than two per cent. Refreshes of the DRAM make one.
bool kernel_times_differ(std::span<const sim::Cycles> runs) {
  const auto [least, most] = std::minmax_element(runs.begin(), runs.end());
  return (most->raw() - least->raw()) * 50 > most->raw();
}

class SimStudy {
 public:
  SimStudy(gpu::Device device, sim::memory::Spec spec, const SimExecutorOptions& options,
           const sim::PolicyInfo* policy)
      : device_(std::move(device)), spec_(std::move(spec)), options_(options), policy_(policy) {}

  [[nodiscard]] const gpu::Device& device() const { return device_; }
  [[nodiscard]] const sim::memory::Spec& spec() const { return spec_; }

  [[nodiscard]] std::map<std::string, std::string> settings() const {
    std::map<std::string, std::string> settings{
        {"split", std::string(partition::to_string(options_.split))},
        {"masks", fmt::format("{:#x}", fmt::join(options_.masks, ","))},
        {"colors", fmt::format("{}", fmt::join(options_.colors, ","))},
        {"dispatch", options_.dispatch},
        {"device", fmt::format("{:016x}", hash_of(device_to_json(device_)))}};
    for (const auto& [workload, sharing] : options_.sharing) {
      std::uint64_t digest = 0;
      for (const sim::SharedPlaces& set : sharing.sets()) {
        digest = hash_of(digest, set.places);
        for (const sim::BlockNumber block : set.blocks) digest = hash_of(digest, block.raw());
      }
      settings["locality " + workload] = fmt::format("{:016x}", digest);
    }
    std::erase_if(settings, [](const auto& setting) { return setting.second.empty(); });
    return settings;
  }

  Result<const SimWorkload*> workload(const std::string& spec) {
    if (const auto known = workloads_.find(spec); known != workloads_.end()) return &known->second;
    DEMARC_TRY(SimWorkload loaded, load_sim_workload(spec, ptx_target, device_.l2.size_bytes));
    if (loaded.bytes > device_.dram.size_bytes / max_parts) {
      return invalid_input("{}: its addresses span {} bytes; a workload on {} may span at most {}",
                           spec, loaded.bytes, device_.name, device_.dram.size_bytes / max_parts);
    }
    return &workloads_.emplace(spec, std::move(loaded)).first->second;
  }

  // The SMs of each part and, with colours, the colouring.
  struct Division {
    std::vector<partition::Partition> parts;
    std::vector<std::vector<gpu::SmIndex>> sms;
    std::optional<color::Coloring> coloring;
    std::vector<std::uint32_t> colors;  // of each part
    PageSize pages = PageSize::large;
    std::uint32_t threads_per_sm = 0;
  };
  [[nodiscard]] Result<Division> divide(const Mode& mode, std::uint32_t parts) const {
    Division division;
    if (!mode.traits().simulated) {
      return missing_capability(
          "the simulated GPU has no {}; it has {}", partition::to_string(mode.division),
          partition::mode_names(
              [](const partition::ModeTraits& traits) { return traits.simulated; }, ", "));
    }
    if (mode.launches != Launches::separate) {
      return missing_capability("{}: the simulated GPU runs launches one after the other only",
                                mode.name());
    }
    if (mode.common_domain) {
      return missing_capability("{}: the simulated GPU has no memory synchronisation domains",
                                mode.name());
    }
    if (mode.traits().confines && parts > 1) {
      DEMARC_TRY(division.parts, mode.traits().throttles
                                     ? partition::throttled_split(device_.topology, parts)
                                     : partition::split(device_.topology, parts, options_.split));
    } else {
      division.parts.assign(parts, {"all", gpu::all_tpcs(device_.topology)});
    }
    for (const auto& part : division.parts) {
      division.sms.push_back(gpu::sms_of(device_.topology, part.tpcs));
    }
    if (mode.traits().shares) division.threads_per_sm = spec_.threads / parts;
    if (mode.color) {
      DEMARC_TRY(division.coloring, choose_coloring(device_, parts, options_.masks));
      DEMARC_TRY(division.colors,
                 colors_of_parts(division.coloring->colors(), parts, options_.colors));
      if (mode.windows) {
        DEMARC_CHECK(check_windows(device_, *division.coloring));
        division.pages = PageSize::small;
      }
    }
    return division;
  }

  // The workloads of a cell, which stay where they are while threads use them.
  struct Pair {
    const SimWorkload* victim = nullptr;
    const SimWorkload* aggressor = nullptr;  // null: idle neighbours
  };
  [[nodiscard]] Pair pair_of(const CellKey& key) const {
    return {&workloads_.at(key.victim),
            key.aggressor.empty() ? nullptr : &workloads_.at(key.aggressor)};
  }

  // What a simulation gives: the first launches of the victim are left out, each of the next is a
  // sample, and the last samples can be means of several launches.
  struct Wanted {
    std::uint64_t left_out = 0;
    std::uint64_t warm_up = 0;
    std::uint64_t samples = 0;
  };
  [[nodiscard]] Result<CellTimes> run(const CellKey& key, const Pair& pair, const Mode& mode,
                                      const Wanted& wanted) const {
    const std::uint64_t begin = wanted.left_out + wanted.warm_up;
    DEMARC_TRY(const Division division, divide(mode, key.parts));
    sim::memory::Simulation gpu(spec_);
    SimMemory memory(device_, spec_, options_.seed);
    const auto join = [&](std::uint32_t part, const SimWorkload& workload, std::string name) {
      auto translation = division.coloring
                             ? memory.colored(workload.base, workload.bytes, *division.coloring,
                                              division.colors[part], division.pages)
                             : memory.plain(workload.base, workload.bytes);
      const auto sharing = sharing_of(name);
      return gpu.add_client({std::move(name), division.sms[part], workload.source(),
                             std::move(translation), division.threads_per_sm, policy_, sharing});
    };
    const sim::memory::ClientIndex victim = join(0, *pair.victim, key.victim);
    std::vector<sim::memory::ClientIndex> others;
    for (std::uint32_t part = 1; part < key.parts && pair.aggressor != nullptr; ++part) {
      others.push_back(join(part, *pair.aggressor, key.aggressor));
    }
    DEMARC_CHECK(gpu.run_launches(victim, begin + wanted.samples));
    // A neighbour's run has phases, and a shorter victim has to see all of them. A sample is then
    // the mean of several runs.
    const auto& runs = gpu.statistics(victim).run_cycles;
    std::size_t counted = begin;
    sim::Cycles seen;
    const auto saw_all_of = [&](sim::memory::ClientIndex other) {
      const auto& others_runs = gpu.statistics(other).run_cycles;
      return !others_runs.empty() && seen >= others_runs.back();
    };
    while (true) {
      for (; counted < runs.size(); ++counted) seen += runs[counted];
      if (std::all_of(others.begin(), others.end(), saw_all_of)) break;
      DEMARC_CHECK(gpu.run_launches(victim, runs.size() + wanted.samples));
    }
    // With colours no neighbour reaches the victim, but its runs may still differ: their mean needs
    // many. The first runs decide, which are the same next to any neighbour.
    const auto first =
        std::span(gpu.statistics(victim).kernel_cycles).subspan(begin, wanted.samples);
    if (division.coloring && kernel_times_differ(first)) {
      DEMARC_CHECK(gpu.run_launches(victim, std::max(runs.size(), begin + settled_runs)));
    }
    const std::span<const sim::Cycles> kernels = gpu.statistics(victim).kernel_cycles;
    CellTimes times;
    times.launches = kernels.size();
    for (const sim::Cycles cycles : kernels.subspan(wanted.left_out, wanted.warm_up)) {
      times.ns.push_back(in_ns(static_cast<double>(cycles.raw())));
    }
    const std::span<const sim::Cycles> taken = kernels.subspan(begin);
    for (std::size_t sample = 0; sample < wanted.samples; ++sample) {
      double sum = 0;
      std::size_t count = 0;
      for (std::size_t i = sample; i < taken.size(); i += wanted.samples) {
        sum += static_cast<double>(taken[i].raw());
        ++count;
      }
      times.ns.push_back(in_ns(sum / static_cast<double>(count)));
    }
    for (const sim::memory::ClientIndex other : others) {
      times.aggressor_rate += static_cast<double>(gpu.statistics(other).run_cycles.size()) /
                              (static_cast<double>(gpu.now().raw()) / spec_.clock_hz);
    }
    return times;
  }

  // The next samples of the cell. Each launch is in one sample at most, so a later batch or round
  // goes on where the one before it ended.
  Result<std::vector<double>> take(const CellKey& key, const Mode& mode, std::uint32_t count) {
    std::size_t& given = given_[key];
    DEMARC_TRY(const CellTimes* times, cell_with(key, mode, given + count));
    const auto next = times->ns.begin() + static_cast<std::ptrdiff_t>(given);
    given += count;
    return std::vector<double>(next, next + count);
  }
  Result<double> aggressor_rate(const CellKey& key, const Mode& mode) {
    DEMARC_TRY(const CellTimes* times, cell_with(key, mode, 0));
    if (times->ns.empty()) {
      DEMARC_TRY(times, cell_with(key, mode, rate_launches));
    }
    return times->aggressor_rate;
  }

  [[nodiscard]] std::shared_ptr<const sim::BlockSharing> sharing_of(
      const std::string& workload) const {
    auto found = options_.sharing.find(workload);
    if (found == options_.sharing.end()) found = options_.sharing.find("");
    if (found == options_.sharing.end()) return nullptr;
    // Not owned: options_ outlives the simulation.
    return {std::shared_ptr<void>(), &found->second};
  }

  // Begins to simulate the cells side by side, in the order of the visits. Each is a simulation of
  // its own, so the order in which they end does not matter.
  Result<void> prepare(const Plan& plan, const std::vector<PlannedVisit>& visits,
                       const Progress& progress) {
    ahead_.reset();
    for (const auto* list : {&plan.victims, &plan.aggressors}) {
      for (const Workload& workload : *list) {
        report_progress(progress, 0, "emulating " + workload.name);
        DEMARC_TRY(const SimWorkload* loaded, this->workload(workload.spec));
        (void)loaded;
      }
    }
    given_.clear();
    struct Cell {
      CellKey key;
      Mode mode;
      std::uint64_t visits = 0;
    };
    std::vector<Cell> cells;
    for (const PlannedVisit& planned : visits) {
      const Mode mode = planned.mode ? plan.modes[*planned.mode] : Mode();
      if (planned.mode) {
        const auto division = divide(mode, plan.parts);
        if (!division && division.error().kind != ErrorKind::missing_capability) {
          return tl::unexpected(division.error());
        }
        if (!division) continue;  // said when the mode's turn comes
      }
      const auto& aggressor = planned.visit.aggressor;
      const CellKey key{planned.mode ? mode.name() : "", planned.mode ? plan.parts : 1,
                        plan.victims[planned.visit.victim].spec,
                        aggressor ? plan.aggressors[*aggressor].spec : ""};
      if (given_.try_emplace(key, planned.taken).second) cells.push_back({key, mode});
      const auto same = [&key](const Cell& cell) { return cell.key == key; };
      std::find_if(cells.begin(), cells.end(), same)->visits += planned.mode ? plan.rounds : 1;
    }
    const StoppingRule& rule = plan.rule;
    std::vector<SimulatedAhead::Job> jobs;
    for (const auto& [key, mode, visits_of_cell] : cells) {
      // Each visit warms up. The first does before the samples that may be means.
      const Wanted wanted{0, rule.warm_up,
                          visits_of_cell * rule.most + (visits_of_cell - 1) * rule.warm_up};
      const auto known = cells_.find(key);
      if (known != cells_.end() && known->second.ns.size() >= wanted.warm_up + wanted.samples) {
        continue;
      }
      jobs.push_back({key, [this, key = key, pair = pair_of(key), mode = mode, wanted] {
                        return run(key, pair, mode, wanted);
                      }});
    }
    ahead_ = std::make_unique<SimulatedAhead>(std::move(jobs), options_.threads);
    return {};
  }

 private:
  [[nodiscard]] double in_ns(double cycles) const { return cycles / spec_.clock_hz * 1e9; }

  // The cell with so many samples. It is waited for if prepare() has begun it; what it lacks is
  // simulated now, and the launches that are in its samples are left out.
  Result<const CellTimes*> cell_with(const CellKey& key, const Mode& mode, std::size_t samples) {
    if (ahead_) {
      if (auto simulated = ahead_->wait_for(key)) {
        if (!*simulated) return tl::unexpected(simulated->error());
        cells_.insert_or_assign(key, std::move(**simulated));
      }
    }
    CellTimes& cell = cells_[key];
    if (cell.ns.size() >= samples) return &cell;
    DEMARC_TRY(const CellTimes more,
               run(key, pair_of(key), mode, {cell.launches, 0, samples - cell.ns.size()}));
    cell.ns.insert(cell.ns.end(), more.ns.begin(), more.ns.end());
    cell.launches = more.launches;
    cell.aggressor_rate = more.aggressor_rate;
    return &cell;
  }

  gpu::Device device_;
  sim::memory::Spec spec_;
  SimExecutorOptions options_;
  const sim::PolicyInfo* policy_;  // null: none
  std::map<std::string, SimWorkload> workloads_;
  std::map<CellKey, CellTimes> cells_;
  std::map<CellKey, std::size_t> given_;   // samples of a cell that lanes have answered with
  std::unique_ptr<SimulatedAhead> ahead_;  // goes first: its threads use the rest
};

struct SimStageState {
  SimStudy* study = nullptr;
  Mode mode;
  CellKey key;  // victim and aggressor as the lanes stand now
};

class SimLane final : public Lane {
 public:
  SimLane(std::shared_ptr<SimStageState> state, bool victim)
      : state_(std::move(state)), victim_(victim) {}

  Result<void> load(const Workload& workload) override {
    DEMARC_TRY(const SimWorkload* loaded, state_->study->workload(workload.spec));
    loaded_ = loaded;
    spec_ = workload.spec;
    if (victim_) state_->key.victim = workload.spec;
    return {};
  }
  Result<std::vector<double>> sample(std::uint32_t count, double) override {
    return state_->study->take(state_->key, state_->mode, count);
  }
  bool computes_times() const override { return true; }
  Result<Outputs> outputs() override { return loaded_->outputs; }
  Result<void> start() override {
    state_->key.aggressor = spec_;
    return {};
  }
  // The rate of all lanes is that of the first one asked: the others add nothing.
  Result<double> stop() override {
    if (state_->key.aggressor.empty()) return 0.0;
    DEMARC_TRY(const double rate, state_->study->aggressor_rate(state_->key, state_->mode));
    state_->key.aggressor.clear();
    return rate;
  }

 private:
  std::shared_ptr<SimStageState> state_;
  bool victim_;
  const SimWorkload* loaded_ = nullptr;
  std::string spec_;
};

class SimStage final : public Stage {
 public:
  SimStage(SimStudy& study, const Mode& mode, std::uint32_t parts, std::string account)
      : account_(std::move(account)) {
    auto state = std::make_shared<SimStageState>();
    state->study = &study;
    state->mode = mode;
    state->key.mode = parts == 1 ? "" : mode.name();
    state->key.parts = parts;
    for (std::uint32_t i = 0; i < parts; ++i) lanes_.emplace_back(state, i == 0);
  }
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return lanes_.at(index); }
  std::string account() const override { return account_; }

 private:
  std::vector<SimLane> lanes_;
  std::string account_;
};

class SimExecutor final : public Executor {
 public:
  SimExecutor(SimStudy study, std::string name)
      : study_(std::move(study)), name_(std::move(name)) {}

  DeviceContext context() const override {
    DeviceContext context;
    context.device = to_string(gpu::SimulatedRef{name_});
    context.name = study_.device().name + " (simulated)";
    context.sms = study_.spec().sms();
    context.measured = false;
    context.settings = study_.settings();
    context.model.push_back(sim::memory::spec_text(study_.spec()));
    context.notes.push_back(expected_error(name_));
    return context;
  }
  Result<gpu::Device> description() const override { return study_.device(); }
  Result<WorkloadCode> code_of(const Workload& workload) const override {
    return sim_workload_code(workload.spec, ptx_target, study_.device().l2.size_bytes);
  }
  // Each neighbour's kernel is emulated, and what it did is kept.
  Result<NeighbourMeans> neighbour_means(const Mode& mode, std::uint32_t parts) const override {
    DEMARC_TRY(NeighbourMeans means, Executor::neighbour_means(mode, parts));
    means.bytes = max_neighbour_bytes;
    means.accesses = max_neighbour_accesses;
    means.lacking[Need::module_variables] =
        fmt::format("variables of a module have no place on sim:{}", name_);
    return means;
  }
  Result<void> prepare(const Plan& plan, const std::vector<PlannedVisit>& visits,
                       const Progress& progress) override {
    return study_.prepare(plan, visits, progress);
  }
  Result<std::unique_ptr<Stage>> whole() override {
    return std::make_unique<SimStage>(study_, Mode{}, 1, "the whole GPU");
  }
  Result<std::unique_ptr<Stage>> divide(const Mode& mode, std::uint32_t parts) override {
    DEMARC_TRY(const auto division, study_.divide(mode, parts));
    std::string account;
    for (std::uint32_t i = 0; i < parts; ++i) {
      account += fmt::format("{}part {}: {} SMs, TPCs {}", i == 0 ? "" : "; ", i,
                             division.sms[i].size(), to_string(division.parts[i].tpcs));
      if (division.coloring) account += fmt::format(", colour {}", division.colors[i]);
    }
    if (division.coloring) {
      account += "; colour masks";
      for (const std::uint64_t mask : division.coloring->masks()) {
        account += fmt::format(" {:#x}", mask);
      }
      account += "; simulated colours isolate by construction, not by measurement";
      if (mode.windows) {
        account +=
            ", but windows share TLBs and page walkers, where the simulation is far from a card "
            "(docs/measurements/windows.md)";
      }
    }
    return std::make_unique<SimStage>(study_, mode, parts, account);
  }

 private:
  SimStudy study_;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<Executor>> make_sim_executor(const SimExecutorOptions& options) {
  DEMARC_TRY(gpu::Device device, gpu::find_device(options.device));
  DEMARC_TRY(sim::memory::Spec spec, sim::memory::make_spec(device, options.seed));
  if (!options.masks.empty()) DEMARC_CHECK(choose_coloring(device, 2, options.masks));
  const sim::PolicyInfo* policy = nullptr;
  if (!options.dispatch.empty()) {
    DEMARC_TRY(policy, sim::find_policy(options.dispatch));
  }
  return std::make_unique<SimExecutor>(
      SimStudy(std::move(device), std::move(spec), options, policy), options.device);
}

}  // namespace demarc::study
