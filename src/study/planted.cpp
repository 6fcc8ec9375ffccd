// Answers a study from a planted model of interference, with noise from a seed.
#include "demarc/study/planted.hpp"

#include <cmath>

#include "demarc/base/hash.hpp"
#include "demarc/base/random.hpp"
#include "demarc/base/text.hpp"
#include "demarc/device/device_ref.hpp"

namespace demarc::study {
namespace {

// What the lanes of one stage share: who loops now.
struct StageState {
  const PlantedModel* model = nullptr;
  Mode mode;
  std::uint32_t parts = 1;
  const PlantedDemand* looping = nullptr;
  Random random{0};
};

class PlantedLane : public Lane {
 public:
  explicit PlantedLane(std::shared_ptr<StageState> state) : state_(std::move(state)) {}

  Result<void> load(const Workload& workload) override {
    const auto found = state_->model->workloads.find(workload.spec);
    if (found == state_->model->workloads.end()) {
      std::vector<std::string> names;
      for (const auto& [name, demand] : state_->model->workloads) names.push_back(name);
      return invalid_input("'{}' is not a workload of the planted model '{}'; its workloads are {}",
                           workload.spec, state_->model->name, joined(names, ", "));
    }
    demand_ = &found->second;
    digest_ = hash_of(found->first);
    return {};
  }

  Result<std::vector<double>> sample(std::uint32_t count, double) override {
    std::vector<double> times;
    times.reserve(count);
    const double truth =
        planted_time(*state_->model, *demand_, state_->looping, state_->mode, state_->parts);
    for (std::uint32_t i = 0; i < count; ++i) {
      times.push_back(truth * std::exp(state_->model->jitter * state_->random.normal()));
    }
    return times;
  }

  bool computes_times() const override { return true; }
  Result<Outputs> outputs() override {
    const bool wrong = demand_->wrong_under_load && state_->looping != nullptr;
    return Outputs{digest_ ^ (wrong ? 1U : 0U), true, {}};
  }

  Result<void> start() override {
    state_->looping = demand_;
    return {};
  }
  Result<double> stop() override {
    if (demand_ == nullptr) return 0.0;
    state_->looping = nullptr;
    return 1e9 / demand_->solo_ns;
  }

 private:
  std::shared_ptr<StageState> state_;
  const PlantedDemand* demand_ = nullptr;
  std::uint64_t digest_ = 0;
};

class PlantedStage : public Stage {
 public:
  PlantedStage(const PlantedModel& model, Mode mode, std::uint32_t parts, std::uint64_t seed) {
    auto state = std::make_shared<StageState>();
    state->model = &model;
    state->mode = mode;
    state->parts = parts;
    state->random = Random(seed);
    for (std::uint32_t i = 0; i < parts; ++i) lanes_.emplace_back(state);
  }
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return lanes_.at(index); }
  std::string account() const override { return "planted"; }

 private:
  std::vector<PlantedLane> lanes_;
};

class PlantedExecutor : public Executor {
 public:
  PlantedExecutor(PlantedModel model, std::uint64_t seed) : model_(std::move(model)), seed_(seed) {}

  DeviceContext context() const override {
    DeviceContext out;
    out.device = to_string(gpu::PlantedRef{model_.name});
    out.name = "planted model " + model_.name;
    out.sms = model_.sms;
    out.measured = false;
    return out;
  }

  Result<std::unique_ptr<Stage>> whole() override {
    return std::make_unique<PlantedStage>(model_, Mode{}, 1, seed_);
  }

  Result<std::unique_ptr<Stage>> divide(const Mode& mode, std::uint32_t parts) override {
    if (const auto why = model_.unavailable.find(mode.division); why != model_.unavailable.end()) {
      return missing_capability("{}", why->second);
    }
    if (mode.windows) {
      return missing_capability("{}: a synthetic card has no page tables, so it has no windows",
                                mode.name());
    }
    return std::make_unique<PlantedStage>(model_, mode, parts, ++seed_);
  }

 private:
  PlantedModel model_;
  std::uint64_t seed_;
};

bool splits_sms(const Mode& mode) {
  const partition::ModeTraits& traits = mode.traits();
  return traits.confines || traits.shares || traits.leased;
}

}  // namespace

double planted_time(const PlantedModel& model, const PlantedDemand& victim,
                    const PlantedDemand* aggressor, const Mode& mode, std::uint32_t parts) {
  const double neighbours = aggressor == nullptr ? 0 : static_cast<double>(parts - 1);
  double compute = victim.compute;
  double memory = 1 - victim.compute;
  if (splits_sms(mode)) compute *= static_cast<double>(parts);
  if (mode.divides_memory()) memory *= static_cast<double>(parts);
  if (!splits_sms(mode)) compute *= 1 + model.shared_sm_penalty * neighbours;
  if (aggressor != nullptr) {
    memory *= 1 + neighbours * aggressor->pressure * (mode.divides_memory() ? model.leak : 1);
  }
  return victim.solo_ns * (compute + memory);
}

Result<PlantedModel> planted_model(std::string_view name) {
  if (name != "h100") {
    return invalid_input("--device planted:{}: there is no such model; write planted:h100", name);
  }
  PlantedModel model;
  model.name = "h100";
  model.jitter = 0.004;
  model.leak = 0.01;
  model.workloads = {
      {"mm", {800e3, 0.90, 0.4}},        {"fwt", {400e3, 0.25, 1.3}},
      {"va", {300e3, 0.05, 1.6}},        {"sp", {350e3, 0.10, 1.1}},
      {"sn", {250e3, 0.60, 0.7}},        {"cfd", {500e3, 0.30, 1.0}},
      {"gaussian", {450e3, 0.50, 0.6}},  {"nn", {200e3, 0.20, 0.9}},
      {"dram_read", {600e3, 0.02, 1.0}}, {"dram_write", {600e3, 0.02, 2.4}},
      {"l2_read", {300e3, 0.10, 0.3}},   {"l2_write", {300e3, 0.10, 2.0}},
      {"chase", {900e3, 0.05, 0}},       {"atomics", {400e3, 0.20, 1.2}},
      {"compute", {500e3, 1.0, 0}},
  };
  return model;
}

std::unique_ptr<Executor> make_planted_executor(PlantedModel model, std::uint64_t seed) {
  return std::make_unique<PlantedExecutor>(std::move(model), seed);
}

}  // namespace demarc::study
