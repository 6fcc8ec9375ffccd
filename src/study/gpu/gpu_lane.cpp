// A lane of a GPU: a part's stream, the workloads that are resident, and the loop of a neighbour.
#include "gpu/gpu_lane.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "gpu/copy_work.hpp"
#include "gpu/launch_loop.hpp"

namespace demarc::study {
namespace {

class GpuLane : public Lane {
 public:
  GpuLane(std::shared_ptr<ResidentSet> set, std::shared_ptr<const cuda::Stream> stream, Clock clock,
          std::shared_ptr<RightOfWay> way)
      : set_(std::move(set)), stream_(std::move(stream)), clock_(clock), way_(std::move(way)) {}

  Result<void> load(const Workload& workload) override {
    work_ = nullptr;  // the set may give up what it had
    launch_ = nullptr;
    DEMARC_TRY(const Resident resident, set_->get(workload, *stream_));
    work_ = resident.work;
    launch_ = resident.launch;
    return {};
  }

  Result<void> unload() override {
    work_ = nullptr;
    launch_ = nullptr;
    set_->clear();
    return {};
  }

  // Runs are enqueued in batches, so that the GPU always has the next one waiting and the host's
  // part of a launch stays out of the times; one more run in front of each batch takes the delay
  // until the queue has filled and is not counted.
  Result<std::vector<double>> sample(std::uint32_t count, double longest_seconds) override {
    constexpr std::uint32_t batch = ResidentLaunch::stamped_runs - 1;
    const double begun = steady_seconds();
    runs_.clear();
    DEMARC_CHECK(check_timed());
    by_events_ = clock_ != Clock::gpu || !launch_->stamped();
    DEMARC_CHECK(make_events(std::min(count, batch) + 1));
    if (clock_ == Clock::requests) return sample_requests(count, longest_seconds);
    const RightOfWay::Holder holder(way_.get());
    std::vector<double> times;
    while (times.size() < count && (times.empty() || steady_seconds() - begun < longest_seconds)) {
      const auto runs =
          std::min<std::uint32_t>(batch, count - static_cast<std::uint32_t>(times.size()));
      DEMARC_CHECK(launch_->enqueue(*stream_));
      if (by_events_) DEMARC_CHECK(events_[0].record(*stream_));
      for (std::uint32_t i = 0; i < runs; ++i) {
        DEMARC_CHECK(launch_->enqueue(*stream_, i + 1));
        // An event between two runs would keep the second from being launched early.
        if (by_events_) DEMARC_CHECK(events_[i + 1].record(*stream_));
      }
      DEMARC_CHECK(stream_->wait());
      DEMARC_CHECK(add_times(runs, times));
    }
    return times;
  }

  std::vector<double> last_runs() const override { return runs_; }
  Result<Outputs> outputs() override {
    DEMARC_CHECK(check_timed());
    return launch_->checked_run(*stream_);
  }

  Result<void> start() override {
    DEMARC_CHECK(check_loaded());
    std::vector<cuda::Event> marks;
    for (int i = 0; i < max_ahead; ++i) {
      DEMARC_TRY(auto event, cuda::Event::create(set_->gpu()));
      marks.push_back(std::move(event));
    }
    loop_ = std::make_unique<LaunchLoop>(*set_->gpu(), *stream_, *work_, std::move(marks));
    auto begun = loop_->wait_for_first();
    if (!begun) loop_.reset();  // what did not start is not stopped
    return begun;
  }

  Result<double> stop() override {
    if (!loop_) return 0.0;
    auto rate = loop_->finish();
    loop_.reset();
    return rate;
  }

 private:
  static constexpr int max_ahead = 8;  // runs that wait for the GPU

  [[nodiscard]] Result<void> check_loaded() const {
    if (work_ != nullptr) return {};
    return invalid_input("a lane without a loaded workload cannot run");
  }

  [[nodiscard]] Result<void> check_timed() const {
    DEMARC_CHECK(check_loaded());
    if (launch_ != nullptr) return {};
    return invalid_input("copies by the copy engines can be an aggressor, but not a victim");
  }

  // One run at a time, each after as much idle time as the run before it took.
  Result<std::vector<double>> sample_requests(std::uint32_t count, double longest_seconds) {
    const double begun = steady_seconds();
    std::vector<double> times;
    while (times.size() < count && (times.empty() || steady_seconds() - begun < longest_seconds)) {
      const double arrived = steady_seconds();
      {
        const RightOfWay::Holder holder(way_.get());
        DEMARC_CHECK(events_[0].record(*stream_));
        DEMARC_CHECK(launch_->enqueue(*stream_));
        DEMARC_CHECK(events_[1].record(*stream_));
        DEMARC_CHECK(stream_->wait());
      }
      DEMARC_CHECK(add_times(1, times));
      std::this_thread::sleep_for(std::chrono::duration<double>(steady_seconds() - arrived));
    }
    return times;
  }

  // For the `runs` runs enqueued last, behind the one in front of them.
  Result<void> add_times(std::uint32_t runs, std::vector<double>& times) {
    if (by_events_) {
      for (std::uint32_t i = 0; i < runs; ++i) {
        DEMARC_TRY(const double ms, events_[i + 1].milliseconds_since(events_[i]));
        times.push_back(ms * 1e6);
      }
      return {};
    }
    DEMARC_TRY(const auto seen, launch_->run_times(runs + 1));
    for (std::uint32_t i = 0; i < runs; ++i) {
      times.push_back(seen[i + 1].kernels_ns);
      if (launch_->launches() > 1) runs_.push_back(seen[i + 1].span_ns);
    }
    return {};
  }

  Result<void> make_events(std::size_t count) {
    while (events_.size() < count) {
      DEMARC_TRY(auto event, cuda::Event::create(set_->gpu()));
      events_.push_back(std::move(event));
    }
    return {};
  }

  std::shared_ptr<ResidentSet> set_;
  std::shared_ptr<const cuda::Stream> stream_;
  Clock clock_;
  std::shared_ptr<RightOfWay> way_;
  bool by_events_ = false;  // of the sample in hand
  std::vector<double> runs_;
  const LaneWork* work_ = nullptr;
  ResidentLaunch* launch_ = nullptr;
  std::vector<cuda::Event> events_;
  std::unique_ptr<LaunchLoop> loop_;
};

}  // namespace

Result<ResidentSet::Place*> ResidentSet::place_of(const gpu::Launch& launch) {
  const auto& buffers = launch.buffers;
  const auto in_host = std::count_if(buffers.begin(), buffers.end(),
                                     [](const gpu::Buffer& buffer) { return buffer.host; });
  if (in_host != 0 && in_host != static_cast<std::ptrdiff_t>(buffers.size())) {
    return invalid_input(
        "launch '{}': {} of its {} buffers lie in host memory; in a study all or none must "
        "do so",
        launch.name, in_host, buffers.size());
  }
  Place& place = in_host == 0 ? card_ : host_;
  if (!place.support) {
    DEMARC_TRY(auto support, SupportKernels::load(*place.memory));
    place.support = std::make_shared<const SupportKernels>(std::move(support));
  }
  return &place;
}

Result<std::unique_ptr<LaneWork>> ResidentSet::make(const LoadedLaunch& loaded,
                                                    const cuda::Stream& stream) {
  if (loaded.copies != CopyDirection::none) return make_copy_work(gpu_, loaded);
  DEMARC_TRY(const Place* const place, place_of(loaded.launch));
  return ResidentLaunch::make(gpu_, *place->memory, place->support, loaded, form_, stream);
}

Result<Resident> ResidentSet::get(const Workload& workload, const cuda::Stream& stream) {
  auto found = resident_.find(workload.spec);
  if (found == resident_.end()) {
    DEMARC_TRY(const auto loaded, reader_(workload));
    if (resident_.size() >= max_resident) resident_.clear();
    auto made = make(loaded, stream);
    if (!made && made.error().kind == ErrorKind::missing_capability && !resident_.empty()) {
      resident_.clear();  // perhaps the memory is full of workloads used earlier
      made = make(loaded, stream);
    }
    if (!made) {
      return tl::unexpected(Error{made.error().kind, fmt::format("workload '{}': {}", workload.name,
                                                                 made.error().message)});
    }
    found = resident_.emplace(workload.spec, std::move(*made)).first;
  }
  return Resident{found->second.get(), dynamic_cast<ResidentLaunch*>(found->second.get())};
}

std::unique_ptr<Lane> make_gpu_lane(std::shared_ptr<ResidentSet> set,
                                    std::shared_ptr<const cuda::Stream> stream, Clock clock,
                                    std::shared_ptr<RightOfWay> way) {
  return std::make_unique<GpuLane>(std::move(set), std::move(stream), clock, std::move(way));
}

}  // namespace demarc::study
