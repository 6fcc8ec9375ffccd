// Packs arguments and sets variables as a launch says.
#include "kernel_call.hpp"

#include <cstring>

#include "tensor_argument.hpp"

namespace demarc::cuda {

Result<KernelCall> KernelCall::prepare(const Module& module, const gpu::KernelLaunch& kernel,
                                       const std::vector<std::uint64_t>& addresses,
                                       const std::vector<std::uint32_t>& added) {
  DEMARC_TRY(Function function, module.function(kernel.kernel));
  KernelCall call(std::move(function));
  DEMARC_CHECK(call.function_.allow_dynamic_shared(kernel.dynamic_shared_bytes));
  if (kernel.cluster) DEMARC_CHECK(call.function_.allow_cluster(kernel.cluster->count()));
  for (const gpu::Argument& argument : kernel.arguments) {
    const auto* const map = std::get_if<gpu::TensorMap>(&argument);
    if (map == nullptr) {
      call.arguments_.push_back(gpu::pack_argument(argument, addresses));
      continue;
    }
    DEMARC_TRY(std::vector<std::byte> made, tensor_argument(call.function_.gpu(), *map, addresses));
    call.arguments_.push_back(std::move(made));
  }
  for (const std::uint32_t value : added) {
    auto& bytes = call.arguments_.emplace_back(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
  }
  return call;
}

Result<void> KernelCall::launch(const Stream& stream, const LaunchShape& shape) {
  std::vector<void*> pointers;
  pointers.reserve(arguments_.size() + 1);
  for (std::vector<std::byte>& argument : arguments_) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return launch_raw(stream, function_, shape, pointers.data());
}

Result<void> set_variables(const GpuPointer& gpu, const Module& module, const gpu::Launch& launch,
                           const std::vector<std::uint64_t>& addresses) {
  for (std::size_t i = 0; i < launch.variables.size(); ++i) {
    const std::string& name = launch.variables[i].name;
    DEMARC_TRY(const auto place, module.global(name));
    std::vector<std::byte> content(place.second);
    DEMARC_CHECK(gpu::fill_variable(launch, i, addresses, content));
    const std::string what = fmt::format("cannot set the variable '{}'", name);
    DEMARC_CHECK(
        gpu->check(gpu->api().cuMemcpyHtoD_v2(place.first, content.data(), content.size()), what));
    DEMARC_CHECK(gpu->check(gpu->api().cuStreamSynchronize(nullptr), what));
  }
  return {};
}

}  // namespace demarc::cuda
