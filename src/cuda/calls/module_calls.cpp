// Loads code of a program in its rewritten form and watches what is launched of it.
#include "calls/module_calls.hpp"

#include <algorithm>
#include <utility>

#include "calls/own_calls.hpp"
#include "calls/relaxed_capture.hpp"
#include "demarc/fatbin/files.hpp"

namespace demarc::cuda {
namespace {

using Place = WindowCopies::Place;

// What loading code copies goes this way, whatever streams of the program are being captured.
CuStream own_stream() {
  constexpr std::uintptr_t of_the_thread = 2;        // CU_STREAM_PER_THREAD
  return reinterpret_cast<CuStream>(of_the_thread);  // NOLINT: the driver's own number
}

// Of a library that a program loads.
struct LibraryOptions {
  std::vector<int> names;
  std::vector<void*> values;
};

// The rewritten text goes after the call, whatever the program promises of its own code: the driver
// has to copy it.
LibraryOptions without_promise(const DriverCall& call) {
  constexpr int binary_is_preserved = 1;  // CU_LIBRARY_BINARY_IS_PRESERVED
  const auto* names = call.argument<const int*>(40);
  const auto* values = call.argument<void* const*>(48);
  const auto count = names == nullptr ? 0 : call.argument<unsigned>(56);
  LibraryOptions kept;
  for (unsigned i = 0; i < count; ++i) {
    if (names[i] == binary_is_preserved) continue;
    kept.names.push_back(names[i]);
    kept.values.push_back(values == nullptr ? nullptr : values[i]);
  }
  return kept;
}

std::uint64_t aligned(std::uint64_t address, std::uint64_t alignment) {
  return (address + alignment - 1) / alignment * alignment;
}

std::uint64_t product(const unsigned (&grid)[3], const unsigned (&block)[3]) {
  std::uint64_t threads = 1;
  for (const unsigned size : grid) threads *= size;
  for (const unsigned size : block) threads *= size;
  return threads;
}

// The parameters of a kernel node: a function, or in their second version a kernel.
template <class T>
T node_member(const char* params, std::size_t offset) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T is a handle, which is a pointer
  std::memcpy(&value, params + offset, sizeof(T));
  return value;
}

}  // namespace

std::span<const CallRow<ModuleCalls>> ModuleCalls::rows() {
  static constexpr CallRow<ModuleCalls> table[] = {
      {"cuModuleLoadData", &ModuleCalls::load_module},
      {"cuModuleLoadFatBinary", &ModuleCalls::load_module},
      {"cuModuleLoadDataEx", &ModuleCalls::load_module_ex},
      {"cuModuleLoad", &ModuleCalls::load_module_file},
      {"cuLibraryLoadData", &ModuleCalls::load_library},
      {"cuLibraryLoadFromFile", &ModuleCalls::load_library_file},
      {"cuModuleUnload", &ModuleCalls::unload},
      {"cuLibraryUnload", &ModuleCalls::unload},
      {"cuModuleGetGlobal_v2", &ModuleCalls::variable},
      {"cuLibraryGetGlobal", &ModuleCalls::variable},
      {"cuLaunchKernel", &ModuleCalls::launch},
      {"cuLaunchCooperativeKernel", &ModuleCalls::launch},
      {"cuLaunchKernelEx", &ModuleCalls::launch_ex},
      {"cuGraphAddKernelNode", &ModuleCalls::node<32>},
      {"cuGraphAddKernelNode_v2", &ModuleCalls::node<32>},
      {"cuGraphKernelNodeSetParams", &ModuleCalls::node<8>},
      {"cuGraphKernelNodeSetParams_v2", &ModuleCalls::node<8>},
      {"cuGraphExecKernelNodeSetParams", &ModuleCalls::node<16>},
      {"cuGraphExecKernelNodeSetParams_v2", &ModuleCalls::node<16>},
  };
  return table;
}

ModuleCalls::Kind ModuleCalls::module_kind(unsigned count, int* options, void** values) const {
  const DriverApi& api = means_.api;
  return {[&api, count, options, values](Handle* handle, const char* text) {
            CuModule module = nullptr;
            const CuResult code = api.cuModuleLoadDataEx(&module, text, count, options, values);
            *handle = module;
            return code;
          },
          [&api](Handle handle) {
            return api.cuModuleUnload(static_cast<CuModule>(const_cast<void*>(handle)));
          },
          [&api](CuFunction* function, Handle handle, const char* name) {
            return api.cuModuleGetFunction(function,
                                           static_cast<CuModule>(const_cast<void*>(handle)), name);
          },
          [&api](DevicePointer* address, Handle handle, const char* name) {
            return api.cuModuleGetGlobal_v2(address, nullptr,
                                            static_cast<CuModule>(const_cast<void*>(handle)), name);
          }};
}

// The driver lets a kernel of a library stand for its function of the current context.
ModuleCalls::Kind ModuleCalls::library_kind(const DriverCall& call) const {
  const DriverApi& api = means_.api;
  return {[&api, call](Handle* handle, const char* text) {
            CuLibrary library = nullptr;
            LibraryOptions kept = without_promise(call);
            const CuResult code = api.cuLibraryLoadData(
                &library, text, call.argument<int*>(16), call.argument<void**>(24),
                call.argument<unsigned>(32), kept.names.data(), kept.values.data(),
                static_cast<unsigned>(kept.names.size()));
            *handle = library;
            return code;
          },
          [&api](Handle handle) {
            return api.cuLibraryUnload(static_cast<CuLibrary>(const_cast<void*>(handle)));
          },
          [&api](CuFunction* function, Handle handle, const char* name) {
            CuKernel kernel = nullptr;
            const CuResult code = api.cuLibraryGetKernel(
                &kernel, static_cast<CuLibrary>(const_cast<void*>(handle)), name);
            *function = reinterpret_cast<CuFunction>(kernel);
            return code;
          },
          [&api](DevicePointer* address, Handle handle, const char* name) {
            return api.cuLibraryGetGlobal(address, nullptr,
                                          static_cast<CuLibrary>(const_cast<void*>(handle)), name);
          },
          true};
}

CallAnswer ModuleCalls::load_module(const DriverCall& call) {
  return load_from(call.argument<Handle*>(0), call.argument<const void*>(8),
                   module_kind(0, nullptr, nullptr));
}

CallAnswer ModuleCalls::load_module_ex(const DriverCall& call) {
  return load_from(
      call.argument<Handle*>(0), call.argument<const void*>(8),
      module_kind(call.argument<unsigned>(16), call.argument<int*>(24), call.argument<void**>(32)));
}

CallAnswer ModuleCalls::load_module_file(const DriverCall& call) {
  return load_file(call.argument<Handle*>(0), call.argument<const char*>(8),
                   module_kind(0, nullptr, nullptr));
}

CallAnswer ModuleCalls::load_library(const DriverCall& call) {
  return load_from(call.argument<Handle*>(0), call.argument<const void*>(8), library_kind(call));
}

CallAnswer ModuleCalls::load_library_file(const DriverCall& call) {
  return load_file(call.argument<Handle*>(0), call.argument<const char*>(8), library_kind(call));
}

CuResult ModuleCalls::load_from(Handle* handle, const void* image, const Kind& kind) {
  if (handle == nullptr || image == nullptr) return cu_error_invalid_value;
  const auto found = fatbin::image_at(image, "a module of the program");
  if (found) return load(handle, *found, kind);
  means_.tell(found.error().message);
  return cu_error_no_binary;
}

CuResult ModuleCalls::load_file(Handle* handle, const char* path, const Kind& kind) {
  if (handle == nullptr || path == nullptr) return cu_error_invalid_value;
  const auto file = fatbin::read_images(path);
  if (!file) {
    means_.tell(file.error().message);
    return cu_error_no_binary;
  }
  if (file->images.size() == 1) return load(handle, file->images.front().image, kind);
  means_.tell(fmt::format("{}: it holds {} images; one can be loaded", path, file->images.size()));
  return cu_error_no_binary;
}

CuResult ModuleCalls::load(Handle* handle, const fatbin::Image& image, const Kind& kind) {
  auto read = ColoredImage::read(image, means_.target, "a module of the program");
  if (!read) {
    means_.tell(read.error().message);
    return cu_error_no_binary;
  }
  const OwnCalls own;
  const RelaxedCapture relaxed(means_.api);
  const auto loaded = std::make_shared<Loaded>(std::move(*read));
  Handle made = nullptr;
  CuResult code = load_contained(&made, *loaded, kind);
  if (code != cu_success) return code;
  for (const auto& [name, why] : loaded->image.refused()) means_.tell(why);
  means_.counters.left_out.fetch_add(loaded->image.refused().size());
  code = place(made, *loaded, kind);
  if (code != cu_success) {
    kind.unload(made);
    if (loaded->variables != 0) means_.memory.release(loaded->variables);
    return code;
  }
  loaded->library = kind.library;
  const std::unique_lock lock(mutex_);
  // The handles may have been those of a context that has gone.
  loaded_.insert_or_assign(made, loaded);
  for (const auto& [name, function] : loaded->kernels)
    functions_.insert_or_assign(function, loaded);
  *handle = made;
  return cu_success;
}

CuResult ModuleCalls::load_contained(Handle* handle, Loaded& loaded, const Kind& kind) {
  for (;;) {
    const auto text = loaded.image.text(means_.code);
    if (!text) {
      means_.tell(text.error().message);
      return cu_error_no_binary;
    }
    CuResult code = kind.load(handle, text->c_str());
    if (code != cu_success) return code;
    code = find_kernels(*handle, loaded, kind);
    bool spilled = false;
    for (const auto& [name, function] : loaded.kernels) {
      int bytes = 0;
      if (code == cu_success) {
        code = means_.api.cuFuncGetAttribute(&bytes, function_local_bytes, function);
      }
      if (bytes == 0) continue;
      loaded.image.spills(name, bytes);
      spilled = true;
    }
    if (code == cu_success && !spilled) return cu_success;
    kind.unload(*handle);
    if (code != cu_success) return code;
  }
}

CuResult ModuleCalls::find_kernels(Handle handle, Loaded& loaded, const Kind& kind) const {
  loaded.kernels.clear();
  for (const std::string& name : loaded.image.kernels()) {
    CuFunction function = nullptr;
    const CuResult code = kind.function(&function, handle, name.c_str());
    if (code != cu_success) return code;
    loaded.kernels.emplace(name, function);
  }
  return cu_success;
}

// Variables get their first contents, the module learns where all lies.
CuResult ModuleCalls::place(Handle handle, Loaded& loaded, const Kind& kind) {
  const ptx::ColoredBlock& block = loaded.image.needs().variables;
  if (block.bytes != 0) {
    const auto made = means_.memory.allocate(block.bytes + block.alignment);
    if (!made) {
      means_.tell(made.error().message);
      return cu_error_out_of_memory;
    }
    loaded.variables = *made;
    loaded.places.variables = aligned(*made, block.alignment);
    auto content = block.content(loaded.places.variables);
    content.resize(block.bytes);  // what is named without a value is zero
    const Place to{Place::Kind::window, loaded.places.variables, block.bytes};
    const Place from{Place::Kind::host, reinterpret_cast<DevicePointer>(content.data()),
                     block.bytes};
    CuResult code = means_.copies.copy(to, from, {block.bytes, 1}, own_stream());
    if (code == cu_success) code = means_.api.cuStreamSynchronize(own_stream());
    if (code != cu_success) return code;
  }
  if (loaded.kernels.empty()) return cu_success;
  const CuResult code = kind.variable(&loaded.constants, handle, ptx::colored_constants_name);
  return code == cu_success ? write_constants(loaded) : code;
}

CuResult ModuleCalls::write_constants(const Loaded& loaded) const {
  const auto constants = means_.code.constants(loaded.places);
  const CuResult code = means_.api.cuMemcpyHtoDAsync_v2(loaded.constants, constants.data(),
                                                        constants.size(), own_stream());
  return code == cu_success ? means_.api.cuStreamSynchronize(own_stream()) : code;
}

CallAnswer ModuleCalls::unload(const DriverCall& call) {
  forget(call.argument<Handle>(0));
  return std::nullopt;
}

void ModuleCalls::forget(Handle handle) {
  std::shared_ptr<Loaded> gone;
  {
    const std::unique_lock lock(mutex_);
    const auto found = loaded_.find(handle);
    if (found == loaded_.end()) return;
    gone = found->second;
    loaded_.erase(found);
    std::erase_if(functions_, [&](const auto& one) { return one.second == gone; });
  }
  // Without the lock: what is waited for may itself wait for a launch of another thread. Memory
  // that may still be used stays taken.
  const OwnCalls own;
  const RelaxedCapture relaxed(means_.api);
  if (means_.api.cuCtxSynchronize() == cu_success) {
    for (const DevicePointer address : {gone->variables, gone->local}) {
      if (address != 0) means_.memory.release(address);
    }
  }
  if (gone->launched != nullptr) means_.api.cuEventDestroy_v2(gone->launched);
}

CallAnswer ModuleCalls::variable(const DriverCall& call) {
  const auto handle = call.argument<Handle>(16);
  const auto* name = call.argument<const char*>(24);
  if (name == nullptr) return std::nullopt;
  // By what it says every kernel of the module finds its colours.
  if (name == std::string_view(ptx::colored_constants_name)) return cu_error_not_found;
  const std::shared_lock lock(mutex_);
  const auto found = loaded_.find(handle);
  if (found == loaded_.end()) return std::nullopt;
  const auto& variables = found->second->image.needs().variables.variables;
  const auto placed = std::find_if(variables.begin(), variables.end(),
                                   [&](const auto& one) { return one.name == name; });
  if (placed == variables.end()) return std::nullopt;
  auto* address = call.argument<DevicePointer*>(0);
  auto* bytes = call.argument<std::size_t*>(8);
  if (address != nullptr) *address = found->second->places.variables + placed->offset;
  if (bytes != nullptr) *bytes = placed->bytes;
  return cu_success;
}

std::shared_ptr<ModuleCalls::Loaded> ModuleCalls::owner_of(CuFunction function) {
  const auto look = [&]() -> std::shared_ptr<Loaded> {
    const std::shared_lock lock(mutex_);
    const auto found = functions_.find(function);
    return found == functions_.end() ? nullptr : found->second;
  };
  if (auto known = look()) return known;
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
      functions_.emplace(function, loaded);
      return loaded;
    }
  }
  return nullptr;
}

CuResult ModuleCalls::make_room(Loaded& loaded, std::uint64_t threads) {
  if (threads <= loaded.places.local_threads) return cu_success;
  const ptx::ColoredNeeds& needs = loaded.image.needs();
  if (const CuResult code = means_.api.cuCtxSynchronize(); code != cu_success) return code;
  if (loaded.local != 0) means_.memory.release(std::exchange(loaded.local, 0));
  loaded.places.local_threads = 0;
  const auto made = means_.memory.allocate(needs.local_bytes * threads + needs.local_alignment);
  if (!made) {
    means_.tell(fmt::format("{}: local variables of {} threads, {} bytes each: {}",
                            loaded.image.name(), threads, needs.local_bytes, made.error().message));
    return cu_error_out_of_memory;
  }
  loaded.local = *made;
  loaded.places.local = aligned(*made, needs.local_alignment);
  loaded.places.local_threads = threads;
  return write_constants(loaded);
}

// Launches of kernels with local variables follow each other, because these lie in one place.
CallAnswer ModuleCalls::judge(const Launch& launch, const std::function<CuResult()>& again) {
  const auto loaded = owner_of(launch.function);
  if (loaded == nullptr) {
    means_.tell("a kernel that was not loaded through Demarc was to be launched");
    return cu_error_not_supported;
  }
  if (loaded->image.needs().local_bytes == 0) return std::nullopt;
  const DriverApi& api = means_.api;
  const OwnCalls own;
  const RelaxedCapture relaxed(api);
  const std::lock_guard lock(loaded->launching);
  int capturing = 0;
  if (api.cuStreamIsCapturing != nullptr) {
    const CuResult code = api.cuStreamIsCapturing(launch.stream, &capturing);
    if (code != cu_success) return code;
  }
  if (capturing != 0) {
    means_.tell("a kernel with local variables cannot be a node of a graph");
    return cu_error_not_supported;
  }
  CuResult code = make_room(*loaded, launch.threads);
  if (code == cu_success && loaded->launched == nullptr) {
    code = api.cuEventCreate(&loaded->launched, cu_event_disable_timing);
  } else if (code == cu_success) {
    code = api.cuStreamWaitEvent(launch.stream, loaded->launched, 0);
  }
  if (code == cu_success) code = again();
  return code == cu_success ? api.cuEventRecord(loaded->launched, launch.stream) : code;
}

CallAnswer ModuleCalls::launch(const DriverCall& call) {
  const unsigned grid[3] = {call.argument<unsigned>(8), call.argument<unsigned>(12),
                            call.argument<unsigned>(16)};
  const unsigned block[3] = {call.argument<unsigned>(20), call.argument<unsigned>(24),
                             call.argument<unsigned>(28)};
  const Launch launch{call.argument<CuFunction>(0), product(grid, block),
                      meant_stream(call, call.argument<CuStream>(40))};
  const bool cooperative = call.base_name() == "cuLaunchCooperativeKernel";
  return judge(launch, [&] {
    if (cooperative) return cu_error_not_supported;
    return means_.api.cuLaunchKernel(launch.function, grid[0], grid[1], grid[2], block[0], block[1],
                                     block[2], call.argument<unsigned>(32), launch.stream,
                                     call.argument<void**>(48), call.argument<void**>(56));
  });
}

CallAnswer ModuleCalls::launch_ex(const DriverCall& call) {
  const auto* config = call.argument<const CuLaunchConfig*>(0);
  if (config == nullptr) return std::nullopt;
  CuLaunchConfig own = *config;
  own.stream = meant_stream(call, config->stream);
  return judge({call.argument<CuFunction>(8), product(own.grid, own.block), own.stream}, [&] {
    return means_.api.cuLaunchKernelEx(&own, call.argument<CuFunction>(8),
                                       call.argument<void**>(16), call.argument<void**>(24));
  });
}

CallAnswer ModuleCalls::judge_node(CuFunction function, CuKernel kernel) {
  const auto loaded =
      owner_of(function != nullptr ? function : reinterpret_cast<CuFunction>(kernel));
  if (loaded != nullptr && loaded->image.needs().local_bytes == 0) return std::nullopt;
  means_.tell(loaded == nullptr ? "a kernel that was not loaded through Demarc was to be a node"
                                : "a kernel with local variables cannot be a node of a graph");
  return cu_error_not_supported;
}

// The parameters of the node lie `offset` bytes into the arguments.
template <std::size_t offset>
CallAnswer ModuleCalls::node(const DriverCall& call) {
  const auto* params = call.argument<const char*>(offset);
  if (params == nullptr) return std::nullopt;
  const bool second = call.versioned_name().ends_with("_v2");
  return judge_node(node_member<CuFunction>(params, 0),
                    second ? node_member<CuKernel>(params, 56) : nullptr);
}

}  // namespace demarc::cuda
