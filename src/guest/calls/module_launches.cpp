// Answers launches of code that a program has loaded, and nodes of it that are added to graphs.
#include <algorithm>
#include <iterator>
#include <utility>

#include "calls/module_calls.hpp"
#include "calls/own_calls.hpp"

namespace demarc::cuda {
namespace {

std::uint64_t product(const unsigned (&grid)[3], const unsigned (&block)[3]) {
  std::uint64_t threads = 1;
  for (const unsigned size : grid) threads *= size;
  for (const unsigned size : block) threads *= size;
  return threads;
}

bool is_overlap(const CuLaunchAttribute& one) {
  return one.id == CuLaunchAttribute::programmatic_serialization;
}

// Those of a launch, and that which lets it begin early if `overlap`.
std::vector<CuLaunchAttribute> attributes_of(const CuLaunchConfig& config, bool overlap) {
  std::vector<CuLaunchAttribute> kept;
  kept.reserve(config.attribute_count + std::size_t{1});
  std::remove_copy_if(config.attributes, config.attributes + config.attribute_count,
                      std::back_inserter(kept), is_overlap);
  if (!overlap) return kept;
  CuLaunchAttribute early{};
  early.id = CuLaunchAttribute::programmatic_serialization;
  early.value.flag = 1;
  kept.push_back(early);
  return kept;
}

}  // namespace

ModuleCalls::Known ModuleCalls::known(const std::shared_ptr<Loaded>& module,
                                      const std::string& kernel) {
  const auto found = module->facts.find(kernel);
  return {module, &found->first, &found->second};
}

// Libraries load many more kernels than they launch, and only these are named.
void ModuleCalls::count_launch(const Known& kernel) const {
  auto* launches = kernel.facts->launches.load(std::memory_order_relaxed);
  if (launches == nullptr) {
    launches = &means_.record.counter(Recorded::kernel, *kernel.name);
    kernel.facts->launches.store(launches, std::memory_order_relaxed);
  }
  launches->fetch_add(1, std::memory_order_relaxed);
}

ModuleCalls::Known ModuleCalls::find(CuFunction function) {
  const auto look = [&]() -> Known {
    const std::shared_lock lock(mutex_);
    const auto found = functions_.find(function);
    return found == functions_.end() ? Known{} : found->second;
  };
  if (auto found = look()) return found;
  // A library's kernel as the function of a context.
  const OwnCalls own;
  const std::unique_lock lock(mutex_);
  for (const auto& [handle, loaded] : loaded_) {
    if (!loaded->library) continue;
    for (const auto& [name, kernel] : loaded->kernels) {
      CuFunction of_context = nullptr;
      if (means_.api.cuKernelGetFunction == nullptr ||
          means_.api.cuKernelGetFunction(&of_context, reinterpret_cast<CuKernel>(kernel)) !=
              cu_success ||
          of_context != function) {
        continue;
      }
      return functions_.emplace(function, known(loaded, name)).first->second;
    }
  }
  return {};
}

CallAnswer ModuleCalls::judge(const Launch& launch) {
  const Known found = find(launch.function);
  if (!found) {
    if (means_.windows.launches(launch.function)) return std::nullopt;
    means_.tell("the program tried to launch a kernel that was not loaded through Demarc");
    return cu_error_not_supported;
  }
  Loaded& module = *found.module;
  const OwnCalls own;
  if (const CallAnswer refusal = refused_context(module)) return refusal;
  if (const CallAnswer refusal = refused_arguments(found, launch.arguments)) return refusal;
  note_capture(module, launch.config.stream);
  CallAnswer answer;
  if (module.image.needs().local_bytes != 0) {
    const std::uint64_t threads = product(launch.config.grid, launch.config.block);
    answer = means_.locals.launch(
        module.users, launch.config.stream,
        [&](const LocalUsers::Work& wait) { return make_room(module, threads, wait); },
        [&] { return launch_apart(launch); });
  } else if (may_overlap(launch)) {
    answer = launch_with_attributes(launch, true);
  }
  if (!answer || *answer == cu_success) {
    count_launch(found);
  }
  return answer;
}

// A launch that may begin before the one ahead of it in its stream has ended would share the local
// variables with it; the program allows this and does not need it.
CuResult ModuleCalls::launch_apart(const Launch& launch) const {
  if (launch.cooperative) return cu_error_not_supported;
  const auto& [grid, block, shared_bytes, stream, attributes, count] = launch.config;
  if (count == 0) {
    return means_.api.cuLaunchKernel(launch.function, grid[0], grid[1], grid[2], block[0], block[1],
                                     block[2], shared_bytes, stream, launch.arguments.each,
                                     launch.arguments.extra);
  }
  return launch_with_attributes(launch, false);
}

CuResult ModuleCalls::launch_with_attributes(const Launch& launch, bool overlap) const {
  CuLaunchConfig own = launch.config;
  const std::vector<CuLaunchAttribute> attributes = attributes_of(own, overlap);
  own.attributes = attributes.data();
  own.attribute_count = static_cast<unsigned>(attributes.size());
  return means_.api.cuLaunchKernelEx(&own, launch.function, launch.arguments.each,
                                     launch.arguments.extra);
}

// All blocks of a cooperative launch have to be there at once.
bool ModuleCalls::may_overlap(const Launch& launch) const {
  const auto* attributes = launch.config.attributes;
  return means_.changes.overlapped && !launch.cooperative &&
         means_.api.cuLaunchKernelEx != nullptr &&
         std::none_of(attributes, attributes + launch.config.attribute_count,
                      [](const CuLaunchAttribute& one) {
                        return one.id == CuLaunchAttribute::cooperative && one.value.flag != 0;
                      });
}

// Coloured code would make something else of such an address, and fault. One that lies in memory is
// not seen here.
CallAnswer ModuleCalls::refused_arguments(const Known& kernel,
                                          const KernelArguments& arguments) const {
  if (means_.host_memory == nullptr || !means_.host_memory->load(std::memory_order_relaxed)) {
    return std::nullopt;
  }
  constexpr std::uint64_t least = std::uint64_t{1} << 32U;  // below it no address of the host's
  constexpr int memory_type = 2;
  bool found = false;
  arguments.for_each_word(kernel.facts->parameters, [&](std::uint64_t word) {
    if (found || word < least || means_.memory.in_window(word)) return;
    unsigned type = 0;
    found = means_.api.cuPointerGetAttribute(&type, memory_type, word) == cu_success;
  });
  if (!found) return std::nullopt;
  means_.tell(fmt::format(
      "kernel '{}' would get an address of host memory, which coloured kernels cannot reach",
      *kernel.name));
  return cu_error_not_supported;
}

// The driver gives each context that a library is used in constants of its own.
CallAnswer ModuleCalls::refused_context(const Loaded& loaded) const {
  if (!loaded.library) return std::nullopt;
  const OwnCalls own;
  CuContext context = nullptr;
  if (means_.api.cuCtxGetCurrent(&context) == cu_success && context == loaded.context) {
    return std::nullopt;
  }
  means_.tell(
      "the program tried to launch a kernel of a library in another context than the one that "
      "loaded the library; nothing tells it the colours there");
  return cu_error_not_supported;
}

// What the driver does not tell of a stream it does not capture either.
void ModuleCalls::note_capture(Loaded& loaded, CuStream stream) const {
  if (!means_.locals.any_capture() || loaded.in_graphs.load()) return;
  StreamCapture capture;
  if (StreamCapture::find(means_.api, stream, capture) == cu_success &&
      capture.state != StreamCapture::State::none) {
    loaded.in_graphs.store(true);
  }
}

template <class Parameters>
CallAnswer ModuleCalls::launch(const DriverCall& call) {
  const auto given = call.parameters<Parameters>();
  constexpr bool cooperative = std::is_same_v<Parameters, LaunchCooperative>;
  void** extra = nullptr;
  if constexpr (!cooperative) extra = given.extra;
  const CuLaunchConfig config{{given.grid_x, given.grid_y, given.grid_z},
                              {given.block_x, given.block_y, given.block_z},
                              given.shared_bytes,
                              stream_of(call, given),
                              nullptr,
                              0};
  return judge({given.function, config, {given.arguments, extra}, cooperative});
}

CallAnswer ModuleCalls::launch_ex(const DriverCall& call) {
  const auto [config, function, arguments, extra] = call.parameters<LaunchKernelEx>();
  if (config == nullptr) return std::nullopt;
  Launch launch{function, *config, {arguments, extra}};
  launch.config.stream = meant_stream(call, config->stream);
  return judge(launch);
}

CallAnswer ModuleCalls::judge_node(CuFunction function, CuKernel kernel,
                                   const KernelArguments& arguments) {
  const CuFunction one = function != nullptr ? function : reinterpret_cast<CuFunction>(kernel);
  const Known found = find(one);
  if (!found) {
    if (means_.windows.launches(one)) return std::nullopt;
    means_.tell("the program tried to add a kernel that was not loaded through Demarc to a graph");
    return cu_error_not_supported;
  }
  if (const CallAnswer refusal = refused_context(*found.module)) return refusal;
  const OwnCalls own;
  if (const CallAnswer refusal = refused_arguments(found, arguments)) return refusal;
  if (found.module->image.needs().local_bytes != 0) {
    means_.tell(
        "a kernel with local variables cannot be added to a graph by hand, because nothing keeps "
        "it apart from others there; capture its launch instead");
    return cu_error_not_supported;
  }
  found.module->in_graphs.store(true);
  count_launch(found);
  return std::nullopt;
}

template <class Parameters>
CallAnswer ModuleCalls::node(const DriverCall& call) {
  const auto* params = call.parameters<Parameters>().params;
  if (params == nullptr) return std::nullopt;
  CuKernel kernel = nullptr;
  if constexpr (requires { params->kernel; }) kernel = params->kernel;
  return judge_node(params->function, kernel, {params->arguments, params->extra});
}

std::span<const CallRow<ModuleCalls>> ModuleCalls::rows() {
  static constexpr CallRow<ModuleCalls> table[] = {
      {DriverFunction::cuModuleLoadData, &ModuleCalls::load_module},
      {DriverFunction::cuModuleLoadFatBinary, &ModuleCalls::load_module},
      {DriverFunction::cuModuleLoadDataEx, &ModuleCalls::load_module_ex},
      {DriverFunction::cuModuleLoad, &ModuleCalls::load_module_file},
      {DriverFunction::cuLibraryLoadData, &ModuleCalls::load_library},
      {DriverFunction::cuLibraryLoadFromFile, &ModuleCalls::load_library_file},
      {DriverFunction::cuModuleUnload, &ModuleCalls::unload},
      {DriverFunction::cuLibraryUnload, &ModuleCalls::unload},
      {DriverFunction::cuModuleGetGlobal_v2, &ModuleCalls::variable},
      {DriverFunction::cuLibraryGetGlobal, &ModuleCalls::variable},
      {DriverFunction::cuLaunchKernel, &ModuleCalls::launch<LaunchKernel>},
      {DriverFunction::cuLaunchCooperativeKernel, &ModuleCalls::launch<LaunchCooperative>},
      {DriverFunction::cuLaunchKernelEx, &ModuleCalls::launch_ex},
      {DriverFunction::cuGraphAddKernelNode, &ModuleCalls::node<AddNode<CuKernelNodeV1>>},
      {DriverFunction::cuGraphAddKernelNode_v2, &ModuleCalls::node<AddNode<CuKernelNode>>},
      {DriverFunction::cuGraphKernelNodeSetParams,
       &ModuleCalls::node<NodeParams<const CuKernelNodeV1>>},
      {DriverFunction::cuGraphKernelNodeSetParams_v2,
       &ModuleCalls::node<NodeParams<const CuKernelNode>>},
      {DriverFunction::cuGraphExecKernelNodeSetParams,
       &ModuleCalls::node<LaunchedNodeParams<CuKernelNodeV1>>},
      {DriverFunction::cuGraphExecKernelNodeSetParams_v2,
       &ModuleCalls::node<LaunchedNodeParams<CuKernelNode>>},
  };
  return table;
}

}  // namespace demarc::cuda
