// A launch made ready on a GPU: modules loaded, buffers placed and filled, arguments packed.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/cuda/launch.hpp"
#include "demarc/gpu/launch.hpp"
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
};

class ResidentLaunch {
 public:
  // `stream` is used for the filling and for finding out which buffers the kernels write; it must
  // outlive the object.
  static Result<std::unique_ptr<ResidentLaunch>> make(const cuda::GpuPointer& gpu,
                                                      MemorySource& memory, LoadedLaunch loaded,
                                                      const LaunchForm& form,
                                                      const cuda::Stream& stream);

  // All kernels once, in order; does not wait. Leaves the buffers as the kernels leave them.
  [[nodiscard]] Result<void> enqueue(const cuda::Stream& stream) const;

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

  ResidentLaunch() = default;
  Result<void> place_buffers(MemorySource& memory);
  Result<void> fill(PlacedBuffer& to, std::size_t buffer) const;
  Result<void> load_kernels(const cuda::GpuPointer& gpu, MemorySource& memory,
                            const LaunchForm& form);
  Result<void> load_support(const cuda::GpuPointer& gpu, const MemorySource& memory);
  Result<void> make_affine(MemorySource& memory, const LaunchForm& form, std::uint32_t sms,
                           Kernel& kernel);
  Result<void> find_written(MemorySource& memory, const cuda::Stream& stream);
  Result<void> restore(const cuda::Stream& stream) const;
  Result<std::uint64_t> digest(const cuda::Stream& stream, std::size_t buffer);
  Result<std::uint64_t> output_digest(const cuda::Stream& stream);
  Result<std::string> difference(const std::vector<std::vector<std::byte>>& expected);
  Result<std::vector<std::vector<std::byte>>> read_outputs() const;

  LoadedLaunch loaded_;
  std::vector<cuda::Module> modules_;
  std::vector<Kernel> kernels_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<const gpu::Memory> initial_;         // released once written buffers are known
  std::vector<std::vector<std::byte>> expected_;       // outputs of the first run, when inexact
  std::vector<std::unique_ptr<PlacedBuffer>> queues_;  // of affine kernels, one each
  std::unique_ptr<PlacedBuffer> result_;
  std::unique_ptr<cuda::Function> copy_;
  std::unique_ptr<cuda::Function> digest_;
  bool exact_ = true;
};

}  // namespace demarc::study
