// The driver's symbols for modules, functions, launches and graphs.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "fake_link.hpp"
#include "fake_told.hpp"

using namespace demarc::fake;  // NOLINT: exported symbols are not in a namespace
using namespace demarc::cuda;  // NOLINT

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

// The content of a file that holds a module.
std::string file_content(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Kernels that name a register %spills keep 24 bytes in local memory while .minnctapersm limits
// their registers, those that name %stack keep 8 in any case,
// %stack16 16, and %busy 32 unless the driver is told to optimise little.
CuResult make_module(FakeGpu& gpu, CuModule& module, const void* image, bool calm = false) {
  auto made = std::make_unique<FakeModule>();
  if (auto code = code_in(static_cast<const char*>(image))) {
    made->text = std::move(code->ptx);
    made->reading = code->reading;
  } else {
    made->text = static_cast<const char*>(image);
  }
  // What is not text runs as the text of this file.
  const char* of_machine_code = std::getenv("DEMARC_FAKE_MACHINE_CODE");
  if (of_machine_code != nullptr && made->text.find(".version") == std::string::npos) {
    made->text = file_content(of_machine_code);
  }
  const std::string& text = made->text;
  for (std::size_t at = text.find(".entry "); at != std::string::npos;
       at = text.find(".entry ", at + 1)) {
    const std::size_t begin = at + 7;
    const std::size_t end = text.find_first_of("( \n", begin);
    auto function = std::make_unique<FakeFunction>();
    function->name = text.substr(begin, end - begin);
    function->module = made.get();
    const std::string body = text.substr(at, text.find(".entry ", begin) - at);
    const auto names = [&](const char* word) { return body.find(word) != std::string::npos; };
    if (names("%spills") && names(".minnctapersm")) function->local_bytes = 24;
    if (names("%stack")) function->local_bytes = names("%stack16") ? 16 : 8;
    if (names("%busy") && !calm) function->local_bytes = 32;
    made->functions[function->name] = std::move(function);
  }
  module = reinterpret_cast<CuModule>(made.get());
  gpu.modules[module] = std::move(made);
  return cu_success;
}

// CU_JIT_OPTIMIZATION_LEVEL is 1.
bool is_calm(unsigned count, const int* options, void* const* values) {
  constexpr int level = 7;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == level) return reinterpret_cast<std::uintptr_t>(values[i]) == 1;
  }
  return false;
}

// A library is a handle of its own: the driver takes none where it expects a module, and no null.
constexpr std::uintptr_t library_mark = 2;
CuLibrary library_of(CuModule module) {
  return reinterpret_cast<CuLibrary>(reinterpret_cast<std::uintptr_t>(module) | library_mark);
}
CuModule module_of(CuLibrary library) {
  const auto number = reinterpret_cast<std::uintptr_t>(library) & ~library_mark;
  return reinterpret_cast<CuModule>(number);  // NOLINT(performance-no-int-to-ptr)
}
bool is_module(CuModule module) {
  return module != nullptr && (reinterpret_cast<std::uintptr_t>(module) & library_mark) == 0;
}

CuResult find_function(CuFunction& function, CuModule module, const char* name) {
  return on_card([&](FakeGpu&) {
    if (!is_module(module)) return error_handle;
    auto& from = *reinterpret_cast<FakeModule*>(module);
    const auto found = from.functions.find(name);
    if (found == from.functions.end()) return error_not_found;
    function = reinterpret_cast<CuFunction>(found->second.get());
    return load_function(from, *found->second);
  });
}
CuResult find_variable(DevicePointer* address, std::size_t* bytes, CuModule module,
                       const char* name) {
  return on_card([&](FakeGpu&) {
    if (!is_module(module)) return error_handle;
    auto& from = *reinterpret_cast<FakeModule*>(module);
    if (const CuResult code = load_module(from); code != cu_success) return code;
    const auto found = from.loaded->variable(name);
    if (!found) return error_not_found;
    if (address != nullptr) *address = found->address;
    if (bytes != nullptr) *bytes = found->bytes;
    return cu_success;
  });
}

// A library's kernel is a handle of its own: it is launched as a function is, and the driver tells
// nothing of it as of a function.
constexpr std::uintptr_t kernel_mark = 1;
CuKernel kernel_of(CuFunction function) {
  return reinterpret_cast<CuKernel>(reinterpret_cast<std::uintptr_t>(function) | kernel_mark);
}
CuFunction of_context(const void* kernel) {
  const auto number = reinterpret_cast<std::uintptr_t>(kernel) & ~kernel_mark;
  return reinterpret_cast<CuFunction>(number);  // NOLINT(performance-no-int-to-ptr)
}
bool is_function(CuFunction function) {
  return of_context(function) == function;
}
FakeFunction* launched(CuFunction function) {
  return reinterpret_cast<FakeFunction*>(of_context(function));
}

}  // namespace

FAKE CuResult cuModuleLoadData(CuModule* module, const void* image) {
  return told(
      19, "cuModuleLoadData",
      [&] { return on_card([&](FakeGpu& gpu) { return make_module(gpu, *module, image); }); },
      module, image);
}
FAKE CuResult cuModuleLoadDataEx(CuModule* module, const void* image, unsigned count, int* options,
                                 void** values) {
  return told(
      20, "cuModuleLoadDataEx",
      [&] {
        return on_card([&](FakeGpu& gpu) {
          if (count != 0 && options == nullptr) return error_invalid;
          return make_module(gpu, *module, image, is_calm(count, options, values));
        });
      },
      module, image, count, options, values);
}
FAKE CuResult cuModuleLoadFatBinary(CuModule* module, const void* image) {
  return told(
      21, "cuModuleLoadFatBinary",
      [&] { return on_card([&](FakeGpu& gpu) { return make_module(gpu, *module, image); }); },
      module, image);
}
FAKE CuResult cuModuleLoad(CuModule* module, const char* path) {
  return told(
      18, "cuModuleLoad",
      [&] {
        return on_card(
            [&](FakeGpu& gpu) { return make_module(gpu, *module, file_content(path).c_str()); });
      },
      module, path);
}
FAKE CuResult cuModuleUnload(CuModule module) {
  return told(
      22, "cuModuleUnload",
      [&] {
        FakeGpu::get().modules.erase(module);
        return cu_success;
      },
      module);
}
// Libraries and their kernels are modules and functions of the stand-in's only context.
FAKE CuResult cuLibraryLoadData(CuLibrary* library, const void* image, int* options, void** values,
                                unsigned count, int* library_options, void** library_values,
                                unsigned library_count) {
  return told(
      678, "cuLibraryLoadData",
      [&] {
        return on_card([&](FakeGpu& gpu) {
          CuModule module = nullptr;
          gpu.library_options = 0;
          for (unsigned i = 0; i < library_count; ++i) {
            gpu.library_options |= std::uint64_t{1} << static_cast<unsigned>(library_options[i]);
            if (library_values[i] != nullptr) return error_invalid;  // the stand-in knows no tables
          }
          const CuResult code = make_module(gpu, module, image, is_calm(count, options, values));
          *library = library_of(module);
          return code;
        });
      },
      library, image, options, values, count, library_options, library_values, library_count);
}
FAKE CuResult cuLibraryLoadFromFile(CuLibrary* library, const char* path, int* options,
                                    void** values, unsigned count, int* library_options,
                                    void** library_values, unsigned library_count) {
  return told(
      679, "cuLibraryLoadFromFile",
      [&] {
        return on_card([&](FakeGpu& gpu) {
          CuModule module = nullptr;
          const CuResult code = make_module(gpu, module, file_content(path).c_str());
          *library = library_of(module);
          return code;
        });
      },
      library, path, options, values, count, library_options, library_values, library_count);
}
FAKE CuResult cuLibraryUnload(CuLibrary library) {
  return told(
      680, "cuLibraryUnload",
      [&] {
        FakeGpu::get().modules.erase(module_of(library));
        return cu_success;
      },
      library);
}
FAKE CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) {
  return told(
      23, "cuModuleGetFunction", [&] { return find_function(*function, module, name); }, function,
      module, name);
}
// A way to a kernel that no callback tells of.
FAKE CuFunction fake_function(CuModule module, const char* name) {
  CuFunction function = nullptr;
  find_function(function, module, name);
  return function;
}
FAKE CuResult cuLibraryGetModule(CuModule* module, CuLibrary library) {
  return told(
      682, "cuLibraryGetModule",
      [&] {
        *module = module_of(library);
        return cu_success;
      },
      module, library);
}
FAKE CuResult cuLibraryGetKernel(CuKernel* kernel, CuLibrary library, const char* name) {
  return told(
      681, "cuLibraryGetKernel",
      [&] {
        CuFunction function = nullptr;
        const CuResult code = find_function(function, module_of(library), name);
        if (code == cu_success) *kernel = kernel_of(function);
        return code;
      },
      kernel, library, name);
}
FAKE CuResult cuKernelGetFunction(CuFunction* function, CuKernel kernel) {
  return told(
      683, "cuKernelGetFunction",
      [&] {
        *function = of_context(kernel);
        return is_function(reinterpret_cast<CuFunction>(kernel)) ? error_handle : cu_success;
      },
      function, kernel);
}
FAKE CuResult cuFuncGetName(const char** name, CuFunction function) {
  return on_card([&](FakeGpu&) {
    if (!is_function(function)) return error_handle;
    *name = reinterpret_cast<FakeFunction*>(function)->name.c_str();
    return cu_success;
  });
}
FAKE CuResult cuKernelGetName(const char** name, CuKernel kernel) {
  return on_card([&](FakeGpu&) {
    if (is_function(reinterpret_cast<CuFunction>(kernel))) return error_handle;
    *name = reinterpret_cast<FakeFunction*>(of_context(kernel))->name.c_str();
    return cu_success;
  });
}
FAKE CuResult cuModuleGetGlobal_v2(DevicePointer* address, std::size_t* bytes, CuModule module,
                                   const char* name) {
  return told(
      241, "cuModuleGetGlobal_v2", [&] { return find_variable(address, bytes, module, name); },
      address, bytes, module, name);
}
FAKE CuResult cuLibraryGetGlobal(DevicePointer* address, std::size_t* bytes, CuLibrary library,
                                 const char* name) {
  return told(
      684, "cuLibraryGetGlobal",
      [&] {
        if (is_module(reinterpret_cast<CuModule>(library))) return error_handle;
        return find_variable(address, bytes, module_of(library), name);
      },
      address, bytes, library, name);
}
FAKE CuResult cuFuncGetAttribute(int* value, int attribute, CuFunction function) {
  return on_card([&](FakeGpu&) {
    if (!is_function(function)) return error_handle;
    *value = attribute_of(*reinterpret_cast<FakeFunction*>(function), attribute);
    return cu_success;
  });
}
FAKE CuResult cuFuncSetAttribute(CuFunction handle, int attribute, int value) {
  return on_card([&](FakeGpu&) {
    if (!is_function(handle)) return error_handle;
    auto& function = *reinterpret_cast<FakeFunction*>(handle);
    if (attribute != function_max_dynamic_shared_bytes) return cu_success;
    const int own = attribute_of(function, function_shared_bytes);
    if (value < 0 || value > max_shared_bytes - own) return error_invalid;
    function.dynamic_shared = value;
    return cu_success;
  });
}
FAKE CuResult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CuFunction function,
                                                          int threads, std::size_t shared_bytes) {
  constexpr std::size_t shared_of_an_sm = 227 << 10U;
  if (function == nullptr || threads < 1 || threads > 1024) return error_invalid;
  *blocks = shared_bytes <= shared_of_an_sm ? 1 : 0;
  return cu_success;
}
namespace {
CuResult launch_kernel(CuFunction function, const unsigned (&grid)[3], const unsigned (&block)[3],
                       unsigned shared, CuStream stream, void** arguments, void** extra, int id) {
  const auto lock = locked();
  if (function == nullptr) return error_handle;
  if (block[0] * block[1] * block[2] > 1024) return error_invalid;
  FakeLaunch launch;
  launch.function = launched(function);
  launch.handle = function;
  std::copy(grid, grid + 3, launch.grid);
  std::copy(block, block + 3, launch.block);
  launch.shared = shared;
  launch.arguments = copy_arguments(*launch.function, arguments, extra);
  launch.given = arguments;
  launch.extra = extra;
  return submit(std::move(launch), stream, id);
}
}  // namespace

FAKE CuResult cuLaunchKernel(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CuStream stream, void** arguments, void** extra) {
  return launch_kernel(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared,
                       stream, arguments, extra, 307);
}
// As a private table of the driver launches: no callback of a function tells of it.
FAKE CuResult fake_launch_untold(CuFunction function) {
  return launch_kernel(function, {5, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr, nullptr, 0);
}
FAKE CuResult cuLaunchCooperativeKernel(CuFunction function, unsigned grid_x, unsigned grid_y,
                                        unsigned grid_z, unsigned block_x, unsigned block_y,
                                        unsigned block_z, unsigned shared, CuStream stream,
                                        void** arguments) {
  return launch_kernel(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared,
                       stream, arguments, nullptr, 477);
}
FAKE CuResult cuLaunchKernelEx(const CuLaunchConfig* config, CuFunction function, void** arguments,
                               void** extra) {
  const auto lock = locked();
  FakeLaunch launch;
  launch.function = launched(function);
  launch.handle = function;
  std::copy(config->grid, config->grid + 3, launch.grid);
  std::copy(config->block, config->block + 3, launch.block);
  launch.shared = config->shared_bytes;
  launch.attributes.assign(config->attributes, config->attributes + config->attribute_count);
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    if (config->attributes[i].id == CuLaunchAttribute::programmatic_serialization &&
        config->attributes[i].value.flag != 0) {
      ++FakeGpu::get().early_launches;
    }
    if (config->attributes[i].id == CuLaunchAttribute::cluster_dimension) {
      launch.cluster = config->attributes[i].value.cluster[0];
    }
  }
  launch.arguments = copy_arguments(*launch.function, arguments, extra);
  launch.given = arguments;
  launch.extra = extra;
  return submit(std::move(launch), config->stream, 652);
}
