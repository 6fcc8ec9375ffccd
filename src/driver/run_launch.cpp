// Runs a whole launch on a card: fills buffers, runs the kernels in order, reads back.
#include "demarc/driver/run_launch.hpp"

#include <algorithm>
#include <variant>

#include "demarc/driver/memory.hpp"
#include "kernel_call.hpp"

namespace demarc::cuda {
namespace {

Result<KernelRun> run_kernel(const Stream& stream, const Module& module,
                             const gpu::KernelLaunch& kernel,
                             const std::vector<std::uint64_t>& addresses,
                             std::chrono::milliseconds limit) {
  DEMARC_TRY(KernelCall call, KernelCall::prepare(module, kernel, addresses));
  KernelRun run;
  run.kernel = kernel.kernel;
  DEMARC_TRY(const int registers, call.function().attribute(function_registers));
  run.registers = static_cast<std::uint32_t>(registers);
  DEMARC_TRY(run.blocks_per_sm,
             call.function().blocks_per_sm(static_cast<std::uint32_t>(kernel.block.count()),
                                           kernel.dynamic_shared_bytes));
  DEMARC_TRY(const Event begin, Event::create(stream.gpu()));
  DEMARC_TRY(const Event end, Event::create(stream.gpu()));
  DEMARC_CHECK(begin.record(stream));
  DEMARC_CHECK(call.launch(stream, shape_of(kernel)));
  DEMARC_CHECK(end.record(stream));
  DEMARC_CHECK(stream.wait(limit));
  DEMARC_TRY(run.milliseconds, end.milliseconds_since(begin));
  return run;
}

// A buffer of a launch, on the card or in host memory.
class LaunchBuffer {
 public:
  static Result<LaunchBuffer> place(const GpuPointer& gpu, const gpu::Buffer& buffer) {
    const std::size_t bytes = std::max<std::size_t>(buffer.bytes, 4);
    if (buffer.host) {
      DEMARC_TRY(HostBuffer placed, HostBuffer::allocate(gpu, bytes));
      return LaunchBuffer(std::move(placed));
    }
    DEMARC_TRY(DeviceBuffer placed, DeviceBuffer::allocate(gpu, bytes));
    return LaunchBuffer(std::move(placed));
  }
  [[nodiscard]] DevicePointer address() const {
    return std::visit([](const auto& placed) { return placed.address(); }, memory_);
  }
  [[nodiscard]] Result<void> upload(std::span<const std::byte> from) const {
    if (const auto* device = std::get_if<DeviceBuffer>(&memory_)) {
      return device->upload(from.data(), from.size());
    }
    std::copy(from.begin(), from.end(), std::get<HostBuffer>(memory_).bytes().begin());
    return {};
  }
  [[nodiscard]] Result<void> download(std::span<std::byte> to) const {
    if (const auto* device = std::get_if<DeviceBuffer>(&memory_)) {
      return device->download(to.data(), to.size());
    }
    std::copy_n(std::get<HostBuffer>(memory_).bytes().begin(), to.size(), to.begin());
    return {};
  }

 private:
  explicit LaunchBuffer(std::variant<DeviceBuffer, HostBuffer> memory)
      : memory_(std::move(memory)) {}
  std::variant<DeviceBuffer, HostBuffer> memory_;
};

}  // namespace

Result<LaunchRun> run_launch(const GpuPointer& gpu, const gpu::Launch& launch,
                             const std::string& image, const std::string& source,
                             std::chrono::milliseconds limit) {
  DEMARC_CHECK(gpu::refuse_fixed_addresses(launch));
  for (const gpu::KernelLaunch& kernel : launch.kernels)
    DEMARC_CHECK(gpu::refuse_images(kernel, "`demarc run` does"));
  LaunchRun run;
  std::vector<LaunchBuffer> buffers;
  for (const gpu::Buffer& buffer : launch.buffers) {
    DEMARC_TRY(LaunchBuffer placed, LaunchBuffer::place(gpu, buffer));
    run.addresses.push_back(placed.address());
    buffers.push_back(std::move(placed));
  }
  DEMARC_TRY(run.buffers, gpu::initial_memory(launch, run.addresses));
  for (std::size_t i = 0; i < buffers.size(); ++i) DEMARC_CHECK(buffers[i].upload(run.buffers[i]));

  DEMARC_TRY(const Module module, Module::load(gpu, image, source));
  DEMARC_CHECK(set_variables(gpu, module, launch, run.addresses));
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    DEMARC_TRY(KernelRun one, run_kernel(stream, module, kernel, run.addresses, limit));
    run.kernels.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < buffers.size(); ++i)
    DEMARC_CHECK(buffers[i].download(run.buffers[i]));
  return run;
}

}  // namespace demarc::cuda
