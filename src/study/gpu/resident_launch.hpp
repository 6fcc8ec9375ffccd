// A launch made ready on a GPU: modules loaded, buffers placed and filled, arguments packed.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/cuda/launch.hpp"
#include "demarc/gpu/launch.hpp"
#include "demarc/ptx/timed.hpp"
#include "demarc/study/executor.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

// A workload resolved: the launch and the PTX text its kernels are in.
struct LoadedLaunch {
  gpu::Launch launch;
  std::string ptx;
  // First contents of the buffers where they do not depend on addresses; else null.
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
  // Kernels note their times on the GPU's clock; not for graphs, whose arguments stay.
  bool stamps = false;
};

// When one run was on the GPU, by its own clock.
struct RunTime {
  double span_ns = 0;     // from the first kernel's beginning to the last one's end
  double kernels_ns = 0;  // the kernels alone, gaps left out
};

class ResidentLaunch {
 public:
  // `stream` is used for the filling and for finding out which buffers the kernels write; it must
  // outlive the object.
  static Result<std::unique_ptr<ResidentLaunch>> make(const cuda::GpuPointer& gpu,
                                                      MemorySource& memory, LoadedLaunch loaded,
                                                      const LaunchForm& form,
                                                      const cuda::Stream& stream);

  ~ResidentLaunch();
  ResidentLaunch(const ResidentLaunch&) = delete;
  ResidentLaunch& operator=(const ResidentLaunch&) = delete;

  // All kernels once, in order; does not wait. Leaves the buffers as the kernels leave them. With
  // stamps, the run's times go to place `run`, below stamped_runs.
  [[nodiscard]] Result<void> enqueue(const cuda::Stream& stream, std::uint32_t run = 0) const;

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
  };
  struct Buffer {
    std::unique_ptr<PlacedBuffer> placed;
    std::unique_ptr<PlacedBuffer> pristine;  // of buffers that the kernels write
    std::uint64_t words = 0;
  };

  explicit ResidentLaunch(cuda::GpuPointer gpu) : gpu_(std::move(gpu)) {}
  Result<void> place_buffers(MemorySource& memory);
  Result<void> fill(PlacedBuffer& to, std::size_t buffer) const;
  Result<void> load_kernels(MemorySource& memory, const LaunchForm& form);
  Result<void> add_kernel(MemorySource& memory, const LaunchForm& form, const cuda::Module& module,
                          const gpu::KernelLaunch& kernel);
  Result<void> add_fused(MemorySource& memory, const LaunchForm& form, const cuda::Module& module,
                         const ptx::Module& original);
  Result<void> enqueue_kernels(const cuda::Stream& stream, std::uint32_t run) const;
  Result<void> capture(const cuda::Stream& stream) const;
  Result<void> load_support(const MemorySource& memory);
  Result<void> make_affine(MemorySource& memory, const LaunchForm& form, std::uint32_t sms,
                           Kernel& kernel);
  Result<void> find_written(MemorySource& memory, const cuda::Stream& stream);
  Result<void> restore(const cuda::Stream& stream) const;
  Result<std::uint64_t> digest(const cuda::Stream& stream, std::size_t buffer);
  Result<std::uint64_t> output_digest(const cuda::Stream& stream);
  Result<std::string> difference(const std::vector<std::vector<std::byte>>& expected);
  Result<std::vector<std::vector<std::byte>>> read_outputs() const;

  cuda::GpuPointer gpu_;
  LoadedLaunch loaded_;
  std::vector<std::unique_ptr<LoadedProgram>> modules_;
  std::vector<Kernel> kernels_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<const gpu::Memory> initial_;    // released once written buffers are known
  std::vector<std::vector<std::byte>> expected_;  // outputs of the first run, when inexact
  // Queues of affine kernels, one each; steps and state of a fused one.
  std::vector<std::unique_ptr<PlacedBuffer>> queues_;
  std::unique_ptr<PlacedBuffer> stamps_;  // null: no stamps
  bool as_graph_ = false;
  mutable cuda::CuGraphExec graph_ = nullptr;  // captured at the first run
  std::unique_ptr<PlacedBuffer> result_;
  std::unique_ptr<cuda::Function> copy_;
  std::unique_ptr<cuda::Function> digest_;
  bool exact_ = true;
};

}  // namespace demarc::study
