#include "demarc/study/gpu_executor.hpp"

#include <unistd.h>

#include <filesystem>

#include "gpu/gpu_lane.hpp"
#include "gpu/process_stage.hpp"
#include "gpu/workload_reader.hpp"

namespace demarc::study {
namespace {

class LaneStage : public Stage {
 public:
  LaneStage(std::vector<std::unique_ptr<Lane>> lanes, std::string account)
      : lanes_(std::move(lanes)), account_(std::move(account)) {}
  std::uint32_t lanes() const override { return static_cast<std::uint32_t>(lanes_.size()); }
  Lane& lane(std::uint32_t index) override { return *lanes_.at(index); }
  std::string account() const override { return account_; }

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::string account_;
};

class GpuExecutor : public Executor {
 public:
  GpuExecutor(cuda::GpuPointer gpu, GpuExecutorOptions options)
      : gpu_(std::move(gpu)),
        options_(std::move(options)),
        plain_(make_plain_memory(gpu_)),
        reader_(make_workload_reader(gpu_->compute_capability().major * 10U +
                                     gpu_->compute_capability().minor)) {}

  DeviceContext context() const override {
    DeviceContext out;
    out.device = fmt::format("cuda:{}", options_.device);
    out.name = gpu_->name();
    out.driver = gpu_->driver().driver_version();
    out.sms = gpu_->sm_count();
    return out;
  }

  Result<std::unique_ptr<Stage>> whole() override {
    DEMARC_TRY(auto stream, new_stream());
    std::vector<std::unique_ptr<Lane>> lanes;
    lanes.push_back(make_gpu_lane(plain_set(0), std::move(stream)));
    return std::make_unique<LaneStage>(std::move(lanes), "the whole GPU");
  }

  Result<std::unique_ptr<Stage>> divide(const Mode& mode, std::uint32_t parts) override {
    if (mode.back_end == "mps" || mode.back_end == "timeslice") return processes(mode, parts);
    if (mode.back_end != "none" || mode.color) {
      return missing_capability("'{}' is not available on {}", mode.name(), gpu_->name());
    }
    std::vector<std::unique_ptr<Lane>> lanes;
    for (std::uint32_t part = 0; part < parts; ++part) {
      DEMARC_TRY(auto stream, new_stream());
      lanes.push_back(
          make_choosing_lane(make_gpu_lane(plain_set(part), std::move(stream)),
                             make_command_lane({}, {}, options_.command_settle_seconds)));
    }
    return std::make_unique<LaneStage>(std::move(lanes), "streams of one process");
  }

 private:
  Result<std::shared_ptr<const cuda::Stream>> new_stream() {
    DEMARC_TRY(auto stream, cuda::Stream::create(gpu_));
    return std::make_shared<const cuda::Stream>(std::move(stream));
  }

  std::shared_ptr<ResidentSet> plain_set(std::uint32_t part) {
    while (plain_sets_.size() <= part) {
      plain_sets_.push_back(std::make_shared<ResidentSet>(gpu_, plain_, reader_, LaunchForm{}));
    }
    return plain_sets_[part];
  }

  Result<std::unique_ptr<Stage>> processes(const Mode& mode, std::uint32_t parts) {
    std::unique_ptr<MpsDaemon> daemon;
    Environment environment;
    std::string account = fmt::format("{} processes that take turns", parts);
    if (mode.back_end == "mps") {
      DEMARC_TRY(daemon, MpsDaemon::start(options_.device));
      environment = daemon->environment();
      const std::uint32_t share = 100 / parts;
      environment.emplace_back("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(share));
      account = fmt::format("{} MPS clients with {} % of the threads each", parts, share);
    }
    const std::vector<std::string> argv{options_.program, "isolate", "--device",
                                        fmt::format("cuda:{}", options_.device), "--worker"};
    return make_process_stage(argv, std::vector<Environment>(parts, environment),
                              options_.command_settle_seconds, std::move(daemon),
                              std::move(account));
  }

  cuda::GpuPointer gpu_;
  GpuExecutorOptions options_;
  std::shared_ptr<MemorySource> plain_;
  WorkloadReader reader_;
  std::vector<std::shared_ptr<ResidentSet>> plain_sets_;
};

}  // namespace

Result<std::unique_ptr<Executor>> make_gpu_executor(const GpuExecutorOptions& options) {
  DEMARC_TRY(auto driver, cuda::Driver::load());
  DEMARC_TRY(auto gpu, cuda::Gpu::open(std::move(driver), options.device));
  return std::make_unique<GpuExecutor>(std::move(gpu), options);
}

}  // namespace demarc::study
