// A lane on a GPU in this process: a stream confined to a part, and the memory of that part.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "demarc/study/gpu_executor.hpp"
#include "gpu/resident_launch.hpp"

namespace demarc::study {

// Resolves a workload's spec.
using WorkloadReader = std::function<Result<LoadedLaunch>(const Workload& workload)>;

// A workload that is resident. `launch` is null for copies: they can be run, not timed.
struct Resident {
  const LaneWork* work = nullptr;
  ResidentLaunch* launch = nullptr;
};

// Workloads resident in one memory, kept until it is full, so that going back and forth between
// them costs nothing. One lane uses a set at a time; lanes of different modes may take turns.
class ResidentSet {
 public:
  ResidentSet(cuda::GpuPointer gpu, std::shared_ptr<MemorySource> memory, WorkloadReader reader,
              LaunchForm form)
      : gpu_(std::move(gpu)), reader_(std::move(reader)), form_(std::move(form)) {
    host_.memory = make_host_memory(gpu_, memory->colored());
    card_.memory = std::move(memory);
  }

  // Valid until the next call.
  Result<Resident> get(const Workload& workload, const cuda::Stream& stream);
  // What get() gave is gone, and its memory is free.
  void clear() { resident_.clear(); }
  [[nodiscard]] const cuda::GpuPointer& gpu() const { return gpu_; }

 private:
  // Host memory does not say when there is too little of it.
  static constexpr std::size_t max_resident = 64;

  // A memory, and the kernels that work on it once they are needed.
  struct Place {
    std::shared_ptr<MemorySource> memory;
    std::shared_ptr<const SupportKernels> support;
  };
  // Where the launch's buffers lie: on the card or in the host, not some here and some there.
  [[nodiscard]] Result<Place*> place_of(const gpu::Launch& launch);
  Result<std::unique_ptr<LaneWork>> make(const LoadedLaunch& loaded, const cuda::Stream& stream);

  cuda::GpuPointer gpu_;
  Place card_;
  Place host_;  // for workloads that use host memory
  WorkloadReader reader_;
  LaunchForm form_;
  std::map<std::string, std::unique_ptr<LaneWork>, std::less<>> resident_;
};

// The looping runs in a thread of its own. `stream` stays the caller's when it is a view (its
// deleter decides). `way`: the lane has the right of way while it is timed; null: there is none.
[[nodiscard]] std::unique_ptr<Lane> make_gpu_lane(std::shared_ptr<ResidentSet> set,
                                                  std::shared_ptr<const cuda::Stream> stream,
                                                  Clock clock,
                                                  std::shared_ptr<RightOfWay> way = nullptr);

}  // namespace demarc::study
