// Loads modules, finds their functions and variables, and launches kernels.
#include "demarc/driver/launch.hpp"

#include <algorithm>
#include <utility>

namespace demarc::cuda {

Result<Module> Module::load(GpuPointer gpu, const std::string& image, std::string source) {
  DEMARC_TRY(CuModule handle, gpu->ask(fmt::format("{}: the driver refuses the module", source),
                                       gpu->api().cuModuleLoadData, image.c_str()));
  return Module(std::move(gpu), handle, std::move(source));
}

Result<std::string> assemble(const GpuPointer& gpu, const std::string& ptx,
                             const std::string& source) {
  constexpr int type_of_ptx = 1;  // CU_JIT_INPUT_PTX
  const DriverApi& api = gpu->api();
  if (api.cuLinkCreate_v2 == nullptr || api.cuLinkAddData_v2 == nullptr ||
      api.cuLinkComplete == nullptr || api.cuLinkDestroy == nullptr) {
    return missing_capability(
        "{}: the driver has no cuLinkCreate, so it makes no machine code of PTX", source);
  }
  CuLink link = nullptr;
  DEMARC_CHECK(gpu->check(api.cuLinkCreate_v2(0, nullptr, nullptr, &link),
                          fmt::format("{}: cannot begin a link", source)));
  const std::unique_ptr<CUlinkState_st, CuResult (*)(CuLink)> ended(link, api.cuLinkDestroy);
  std::string text = ptx;  // the driver takes it as not constant
  DEMARC_CHECK(gpu->check(api.cuLinkAddData_v2(link, type_of_ptx, text.data(), text.size() + 1,
                                               source.c_str(), 0, nullptr, nullptr),
                          fmt::format("{}: the driver refuses the PTX", source)));
  void* image = nullptr;
  std::size_t bytes = 0;
  DEMARC_CHECK(
      gpu->check(api.cuLinkComplete(link, &image, &bytes), fmt::format("{}: cannot link", source)));
  return std::string(static_cast<const char*>(image), bytes);
}

Module::~Module() {
  if (handle_ != nullptr && !gpu_->stuck()) gpu_->api().cuModuleUnload(handle_);
}

Module::Module(Module&& other) noexcept
    : gpu_(std::move(other.gpu_)),
      handle_(std::exchange(other.handle_, nullptr)),
      source_(std::move(other.source_)) {}

Module& Module::operator=(Module&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(handle_, other.handle_);
  std::swap(source_, other.source_);
  return *this;
}

Result<Function> Module::function(const std::string& name) const {
  DEMARC_TRY(CuFunction handle, gpu_->ask(fmt::format("{}: no kernel '{}'", source_, name),
                                          gpu_->api().cuModuleGetFunction, handle_, name.c_str()));
  return Function(gpu_, handle, name);
}

Result<std::pair<DevicePointer, std::size_t>> Module::global(const std::string& name) const {
  DevicePointer address = 0;
  std::size_t bytes = 0;
  DEMARC_CHECK(
      gpu_->check(gpu_->api().cuModuleGetGlobal_v2(&address, &bytes, handle_, name.c_str()),
                  fmt::format("{}: no variable '{}'", source_, name)));
  return std::pair(address, bytes);
}

Result<int> Function::attribute(CuFunctionAttribute attribute) const {
  return gpu_->ask(fmt::format("cannot read an attribute of kernel '{}'", name_),
                   gpu_->api().cuFuncGetAttribute, attribute, handle_);
}

Result<void> Function::set(CuFunctionAttribute attribute, int value) const {
  return gpu_->check(gpu_->api().cuFuncSetAttribute(handle_, attribute, value),
                     fmt::format("cannot set an attribute of kernel '{}'", name_));
}

Result<void> Function::allow_dynamic_shared(std::uint32_t bytes) const {
  constexpr std::uint32_t without_asking = 48 * 1024;
  if (bytes <= without_asking) return {};
  return set(function_max_dynamic_shared_bytes, static_cast<int>(bytes));
}

Result<void> Function::allow_cluster(std::uint64_t blocks) const {
  constexpr std::uint64_t portable = 8;
  if (blocks <= portable) return {};
  return set(function_non_portable_cluster, 1);
}

LaunchShape shape_of(const gpu::KernelLaunch& kernel) {
  LaunchShape shape;
  const auto set = [](std::uint32_t* to, const gpu::Dim3& from) {
    to[0] = from.x;
    to[1] = from.y;
    to[2] = from.z;
  };
  set(shape.grid, kernel.grid);
  set(shape.block, kernel.block);
  if (kernel.cluster) set(shape.cluster, *kernel.cluster);
  shape.shared_bytes = kernel.dynamic_shared_bytes;
  return shape;
}

Result<std::uint32_t> Function::blocks_per_sm(std::uint32_t threads,
                                              std::size_t shared_bytes) const {
  DEMARC_TRY(const int blocks,
             gpu_->ask(fmt::format("cannot find how many blocks of '{}' an SM holds", name_),
                       gpu_->api().cuOccupancyMaxActiveBlocksPerMultiprocessor, handle_,
                       static_cast<int>(threads), shared_bytes));
  return static_cast<std::uint32_t>(blocks);
}

Result<void> launch_raw(const Stream& stream, const Function& function, const LaunchShape& shape,
                        void** arguments) {
  const DriverApi& api = stream.gpu()->api();
  CuResult code = cu_success;
  if (shape.cluster[0] == 0 && !shape.overlapped) {
    code = api.cuLaunchKernel(function.handle(), shape.grid[0], shape.grid[1], shape.grid[2],
                              shape.block[0], shape.block[1], shape.block[2], shape.shared_bytes,
                              stream.handle(), arguments, nullptr);
  } else {
    if (api.cuLaunchKernelEx == nullptr) {
      return missing_capability("{}: the driver has no launches with attributes",
                                stream.gpu()->name());
    }
    CuLaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (shape.cluster[0] != 0) {
      CuLaunchAttribute& cluster = attributes[count++];
      cluster.id = CuLaunchAttribute::cluster_dimension;
      std::copy_n(shape.cluster, 3, cluster.value.cluster);
    }
    if (shape.overlapped) {
      attributes[count].id = CuLaunchAttribute::programmatic_serialization;
      attributes[count++].value.flag = 1;
    }
    const CuLaunchConfig config{{shape.grid[0], shape.grid[1], shape.grid[2]},
                                {shape.block[0], shape.block[1], shape.block[2]},
                                shape.shared_bytes,
                                stream.handle(),
                                attributes,
                                count};
    code = api.cuLaunchKernelEx(&config, function.handle(), arguments, nullptr);
  }
  return stream.gpu()->check(code, fmt::format("cannot launch kernel '{}'", function.name()));
}

}  // namespace demarc::cuda
