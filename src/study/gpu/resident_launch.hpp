// What a lane runs. ResidentLaunch is a launch made ready on a GPU: modules loaded, buffers placed
// and filled, arguments packed.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/driver/launch.hpp"
#include "demarc/launch/launch.hpp"
#include "demarc/ptx/timed.hpp"
#include "demarc/study/executor.hpp"
#include "gpu/right_of_way.hpp"
#include "gpu/support_kernels.hpp"

namespace demarc::study {

// What a copy engine does with a neighbour's buffer, once for each launch of a run.
enum class CopyDirection { none, to_card, to_host };

// A workload resolved: the launch and the PTX text its kernels are in.
struct LoadedLaunch {
  gpu::Launch launch;
  CopyDirection copies = CopyDirection::none;  // else its first buffer is copied, and nothing run
  std::string ptx;
  // First contents of the buffers where they do not depend on addresses, zeros left out; else null.
  std::shared_ptr<const gpu::Memory> contents;
};

// How kernels are changed before they run.
struct LaunchForm {
  // SMs that SM-affine kernels keep to, bit s of word s / 32; nothing: kernels stay as they are.
  std::optional<std::array<std::uint32_t, 8>> affine_sms;
  // How the launches of a run follow each other; one launch alone is never fused.
  Launches launches = Launches::separate;
  // SMs of a part that runs nothing else: a fused launch fills them. 0: there is no such part.
  std::uint32_t own_sms = 0;
  // Null, or what the launch gives way to: each launch is then cut into slices, which are launches
  // whose blocks fill the GPU eight times, in the order of the blocks. Two slices at most wait for
  // the GPU or run.
  std::shared_ptr<const RightOfWay> gives_way_to;
  std::chrono::milliseconds longest_slice{60000};
  // Kernels note their times on the GPU's clock; not for graphs, whose arguments stay.
  bool stamps = false;
  // Few are expected to ask what a run computes: what checked_run() needs is made at its first
  // call, and first contents in the host are kept until then.
  bool neighbour = false;
};

// What a lane runs again and again.
class LaneWork {
 public:
  LaneWork() = default;
  virtual ~LaneWork() = default;
  LaneWork(const LaneWork&) = delete;
  LaneWork& operator=(const LaneWork&) = delete;
  // One run; does not wait.
  [[nodiscard]] virtual Result<void> enqueue(const cuda::Stream& stream) const = 0;
};

// When one run was on the GPU, by its own clock.
struct RunTime {
  double span_ns = 0;     // from the first kernel's beginning to the last one's end
  double kernels_ns = 0;  // the kernels alone, gaps left out
};

class ResidentLaunch : public LaneWork {
 public:
  // `stream` is used for the filling and for finding out which buffers the kernels write; it and
  // `memory` must outlive the object.
  static Result<std::unique_ptr<ResidentLaunch>> make(const cuda::GpuPointer& gpu,
                                                      MemorySource& memory,
                                                      std::shared_ptr<const SupportKernels> support,
                                                      LoadedLaunch loaded, const LaunchForm& form,
                                                      const cuda::Stream& stream);

  ~ResidentLaunch() override;

  // All kernels once, in order. Leaves the buffers as the kernels leave them. With stamps, the
  // run's times go to place `run`, below stamped_runs.
  [[nodiscard]] Result<void> enqueue(const cuda::Stream& stream) const override {
    return enqueue(stream, 0);
  }
  [[nodiscard]] Result<void> enqueue(const cuda::Stream& stream, std::uint32_t run) const;

  static constexpr std::uint32_t stamped_runs = 26;
  [[nodiscard]] bool stamped() const { return stamps_ != nullptr; }
  [[nodiscard]] std::size_t launches() const { return kernels_.size(); }
  // Times of the runs in places [0, runs), which must have ended; empty without stamps.
  [[nodiscard]] Result<std::vector<RunTime>> run_times(std::uint32_t runs) const;

  // One run from fresh inputs, waited for. `exact` is known from two runs at the start.
  [[nodiscard]] Result<Outputs> checked_run(const cuda::Stream& stream);

  [[nodiscard]] const gpu::Launch& launch() const { return loaded_.launch; }

 private:
  struct Kernel {
    cuda::Function function;
    cuda::LaunchShape shape;
    std::vector<std::vector<std::byte>> arguments;
    std::uint32_t slice_blocks = 0;  // blocks per launch but the last; 0: it is not cut
  };
  struct Buffer {
    std::unique_ptr<PlacedBuffer> placed;
    std::unique_ptr<PlacedBuffer> pristine;  // of buffers that the kernels write
    std::uint64_t words = 0;
  };

  ResidentLaunch(cuda::GpuPointer gpu, MemorySource& memory,
                 std::shared_ptr<const SupportKernels> support)
      : gpu_(std::move(gpu)), memory_(&memory), support_(std::move(support)) {}
  Result<void> make_ready(const LaunchForm& form, const cuda::Stream& stream);
  Result<void> place_buffers();
  Result<void> fill_buffers(const cuda::Stream& stream);
  Result<void> fill(PlacedBuffer& to, std::size_t buffer, const cuda::Stream& stream) const;
  [[nodiscard]] bool begins_as_zeros(std::size_t buffer) const;
  [[nodiscard]] std::vector<std::uint32_t> first_words(std::size_t buffer) const;
  Result<void> load_kernels(const LaunchForm& form);
  Result<void> add_kernel(const LaunchForm& form, const cuda::Module& module,
                          const gpu::KernelLaunch& kernel);
  Result<void> add_fused(const LaunchForm& form, const cuda::Module& module,
                         const ptx::Module& original);
  Result<void> enqueue_kernels(const cuda::Stream& stream, std::uint32_t run) const;
  Result<void> capture(const cuda::Stream& stream) const;
  Result<void> make_sliced(const LaunchForm& form, Kernel& kernel);
  [[nodiscard]] Result<void> enqueue_slices(const cuda::Stream& stream, const Kernel& kernel,
                                            std::vector<void*> arguments) const;
  [[nodiscard]] Result<void> wait_for_slice(const cuda::Event& end) const;
  Result<void> make_affine(const LaunchForm& form, std::uint32_t sms, Kernel& kernel);
  Result<void> find_written(const cuda::Stream& stream);
  Result<void> restore(const cuda::Stream& stream) const;
  Result<std::uint64_t> digest(const cuda::Stream& stream, std::size_t buffer);
  Result<std::uint64_t> output_digest(const cuda::Stream& stream);
  Result<std::string> difference(const std::vector<std::vector<std::byte>>& expected);
  Result<std::vector<std::vector<std::byte>>> read_outputs() const;

  cuda::GpuPointer gpu_;
  MemorySource* memory_;
  std::shared_ptr<const SupportKernels> support_;
  LoadedLaunch loaded_;
  std::vector<std::unique_ptr<LoadedProgram>> modules_;
  std::vector<Kernel> kernels_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<const gpu::Memory> initial_;    // released once written buffers are known
  std::vector<std::vector<std::byte>> expected_;  // outputs of the first run, when inexact
  // Queues of affine kernels, one each; steps and state of a fused one.
  std::vector<std::unique_ptr<PlacedBuffer>> queues_;
  std::unique_ptr<PlacedBuffer> stamps_;  // null: no stamps
  // What launches in slices need.
  std::shared_ptr<const RightOfWay> gives_way_to_;
  std::vector<cuda::Event> slice_ends_;  // two, used in turns
  mutable std::uint64_t slices_ = 0;     // launched so far
  std::chrono::milliseconds longest_slice_{0};
  bool as_graph_ = false;
  mutable cuda::CuGraphExec graph_ = nullptr;  // captured at the first run
  std::unique_ptr<PlacedBuffer> result_;
  bool written_known_ = false;
  bool exact_ = true;
};

}  // namespace demarc::study
