// A lane on a GPU in this process: a stream confined to a part, and the memory of that part.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "demarc/study/gpu_executor.hpp"
#include "gpu/resident_launch.hpp"

namespace demarc::study {

// Resolves a workload's spec.
using WorkloadReader = std::function<Result<LoadedLaunch>(const Workload& workload)>;

// Workloads resident in one memory, kept until it is full, so that going back and forth between
// them costs nothing. One lane uses a set at a time; lanes of different modes may take turns.
class ResidentSet {
 public:
  ResidentSet(cuda::GpuPointer gpu, std::shared_ptr<MemorySource> memory, WorkloadReader reader,
              LaunchForm form)
      : gpu_(std::move(gpu)),
        memory_(std::move(memory)),
        host_(make_host_memory(gpu_)),
        reader_(std::move(reader)),
        form_(form) {}

  // Valid until the next call.
  Result<ResidentLaunch*> get(const Workload& workload, const cuda::Stream& stream);
  [[nodiscard]] const cuda::GpuPointer& gpu() const { return gpu_; }
  [[nodiscard]] const MemorySource& memory() const { return *memory_; }

 private:
  cuda::GpuPointer gpu_;
  // Where the launch's buffers lie: on the card or in the host, not some here and some there.
  [[nodiscard]] Result<MemorySource*> memory_of(const gpu::Launch& launch) const;

  std::shared_ptr<MemorySource> memory_;
  std::shared_ptr<MemorySource> host_;  // for workloads that use memory of the host
  WorkloadReader reader_;
  LaunchForm form_;
  std::map<std::string, std::unique_ptr<ResidentLaunch>, std::less<>> resident_;
};

// The looping runs in a thread of its own. `stream` stays the caller's when it is a view (its
// deleter decides).
[[nodiscard]] std::unique_ptr<Lane> make_gpu_lane(std::shared_ptr<ResidentSet> set,
                                                  std::shared_ptr<const cuda::Stream> stream,
                                                  Clock clock);

}  // namespace demarc::study
