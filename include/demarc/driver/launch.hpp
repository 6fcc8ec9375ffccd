// Modules, functions and launches.
#pragma once

#include <string>
#include <tuple>

#include "demarc/driver/stream.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::cuda {

class Function;

class Module {
 public:
  // `image` is PTX text or a cubin; `source` names it in errors.
  static Result<Module> load(GpuPointer gpu, const std::string& image, std::string source);
  ~Module();
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;

  [[nodiscard]] Result<Function> function(const std::string& name) const;
  // Address and size of a __device__ variable.
  [[nodiscard]] Result<std::pair<DevicePointer, std::size_t>> global(const std::string& name) const;
  [[nodiscard]] CuModule handle() const { return handle_; }

 private:
  Module(GpuPointer gpu, CuModule handle, std::string source)
      : gpu_(std::move(gpu)), handle_(handle), source_(std::move(source)) {}
  GpuPointer gpu_;
  CuModule handle_ = nullptr;
  std::string source_;
};

// The machine code that the driver makes of PTX text for this GPU; `source` names it in errors.
// missing_capability if the driver has no linker.
[[nodiscard]] Result<std::string> assemble(const GpuPointer& gpu, const std::string& ptx,
                                           const std::string& source);

// Valid as long as its Module.
class Function {
 public:
  Function(GpuPointer gpu, CuFunction handle, std::string name)
      : gpu_(std::move(gpu)), handle_(handle), name_(std::move(name)) {}
  [[nodiscard]] CuFunction handle() const { return handle_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const GpuPointer& gpu() const { return gpu_; }
  [[nodiscard]] Result<int> attribute(CuFunctionAttribute attribute) const;
  [[nodiscard]] Result<void> set(CuFunctionAttribute attribute, int value) const;
  // Lets a launch have that much dynamic shared memory, also more than 48 KiB.
  [[nodiscard]] Result<void> allow_dynamic_shared(std::uint32_t bytes) const;
  // Lets a launch have clusters of that many blocks, also more than the 8 that every card takes.
  [[nodiscard]] Result<void> allow_cluster(std::uint64_t blocks) const;
  // Blocks of that size that one SM holds at a time.
  [[nodiscard]] Result<std::uint32_t> blocks_per_sm(std::uint32_t threads,
                                                    std::size_t shared_bytes) const;

 private:
  GpuPointer gpu_;
  CuFunction handle_;
  std::string name_;
};

struct LaunchShape {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_bytes = 0;        // dynamic shared memory
  std::uint32_t cluster[3] = {0, 1, 1};  // blocks of a cluster; 0 along x: as the kernel says
  bool overlapped = false;  // may be launched before the one in front of it in the stream has
                            // ended; the kernel waits itself (griddepcontrol.wait)

  static LaunchShape line(std::uint32_t blocks, std::uint32_t threads) {
    LaunchShape shape;
    shape.grid[0] = blocks;
    shape.block[0] = threads;
    return shape;
  }
};

// Grid, block and dynamic shared memory of a kernel of a launch.
[[nodiscard]] LaunchShape shape_of(const gpu::KernelLaunch& kernel);

// `arguments` are pointers to the kernel's arguments in order, of exactly their types' sizes.
[[nodiscard]] Result<void> launch_raw(const Stream& stream, const Function& function,
                                      const LaunchShape& shape, void** arguments);

// launch(stream, function, LaunchShape::line(66, 256), buffer.address(), std::uint32_t{7})
template <class... Arguments>
[[nodiscard]] Result<void> launch(const Stream& stream, const Function& function,
                                  const LaunchShape& shape, Arguments... arguments) {
  void* pointers[sizeof...(Arguments) + 1] = {static_cast<void*>(&arguments)..., nullptr};
  return launch_raw(stream, function, shape, pointers);
}

}  // namespace demarc::cuda
