// Launches one kernel, which adds to words of memory, in every way that a program may choose.
#include <cstdint>
#include <fstream>
#include <vector>

#include "subject_card.hpp"

namespace subject {

constexpr const char* counting_module = R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 added = 5;
.visible .entry count(.param .u64 p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r4, [%rd1];
  ld.global.u32 %r5, [added];
  add.u32 %r4, %r4, %r5;
  st.global.u32 [%rd1], %r4;
  ret;
}
)";

// The module has no variable, which would take memory of the tenant.
int count_on(unsigned long long memory, std::size_t count) {
  std::string text = counting_module;
  const std::string variable = ".visible .global .align 4 .u32 added = 5;\n";
  const std::string read = "ld.global.u32 %r5, [added]";
  text.erase(text.find(variable), variable.size());
  text.replace(text.find(read), read.size(), "mov.u32 %r5, 5");
  void* arguments[] = {&memory};
  return call("cuLaunchKernel", kernel_of(loaded_module(text.c_str()), "count"),
              static_cast<unsigned>(count / 64), 1U, 1U, 64U, 1U, 1U, 0U,
              static_cast<void*>(nullptr), static_cast<void**>(arguments),
              static_cast<void**>(nullptr));
}

std::string counted(const char* image) {
  if (image == nullptr) image = counting_module;
  constexpr std::size_t count = 16384;
  unsigned long long memory = 0;
  void* module = nullptr;
  void* function = nullptr;
  std::vector<unsigned> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<unsigned>(i * 3);
  call("cuCtxSetCurrent", context);
  int code = call("cuMemAlloc_v2", &memory, count * sizeof(unsigned));
  if (code != 0) return "allocation " + std::to_string(code);
  code = call("cuMemcpyHtoD_v2", memory, static_cast<const void*>(numbers.data()),
              count * sizeof(unsigned));
  if (code != 0) return "upload " + std::to_string(code);
  code = call("cuModuleLoadData", &module, static_cast<const void*>(image));
  if (code != 0) return "module " + std::to_string(code);
  code = call("cuModuleGetFunction", &function, module, "count");
  void* arguments[] = {&memory};
  if (code == 0) {
    code = call("cuLaunchKernel", function, static_cast<unsigned>(count / 64), 1U, 1U, 64U, 1U, 1U,
                0U, static_cast<void*>(nullptr), static_cast<void**>(arguments),
                static_cast<void**>(nullptr));
  }
  if (code != 0) return "launch " + std::to_string(code);
  code =
      call("cuMemcpyDtoH_v2", static_cast<void*>(numbers.data()), memory, count * sizeof(unsigned));
  if (code != 0) return "download " + std::to_string(code);
  for (std::size_t i = 0; i < count; ++i) {
    if (numbers[i] != i * 3 + 5) return "wrong at " + std::to_string(i);
  }
  return "right";
}

int counted_by(unsigned added) {
  unsigned long long variable = 0;
  std::size_t bytes = 0;
  void* module = loaded_module(counting_module);
  call("cuModuleGetGlobal_v2", &variable, &bytes, module, "added");
  call("cuMemcpyHtoD_v2", variable, static_cast<const void*>(&added), bytes);
  return launch_on_words(kernel_of(module, "count"));
}

int counted_for_a_newer_card() {
  std::string text = counting_module;
  text.replace(text.find("8.0"), 3, "8.6");
  text.replace(text.find("sm_90"), 5, "sm_100");
  return launch_on_words(kernel_of(loaded_module(text.c_str()), "count"));
}

int counted_unseen() {
  void* module = loaded_module(counting_module);
  const auto find = reinterpret_cast<void* (*)(void*, const char*)>(
      ::dlsym(::dlopen(driver_path.c_str(), RTLD_NOW), "fake_function"));
  return launch_on_words(find(module, "count"));
}

int counted_from_buffer(std::size_t bytes) {
  void* function = kernel_of(loaded_module(counting_module), "count");
  unsigned long long memory = memory_for_words();
  void* extra[] = {reinterpret_cast<void*>(1), &memory,  // NOLINT: BUFFER_POINTER
                   reinterpret_cast<void*>(2), &bytes,   // NOLINT: BUFFER_SIZE
                   nullptr};
  return launch_with(function, nullptr, extra);
}

int counted_without_arguments() {
  return launch_with(kernel_of(loaded_module(counting_module), "count"), nullptr);
}

int counted_with_shared(unsigned bytes) {
  void* function = kernel_of(loaded_module(counting_module), "count");
  unsigned long long memory = memory_for_words();
  void* arguments[] = {&memory};
  return launch_with(function, arguments, nullptr, bytes);
}

int counted_nowhere() {
  unsigned long long memory = 8;
  void* arguments[] = {&memory};
  return launch_with(kernel_of(loaded_module(counting_module), "count"), arguments);
}

int counted_in_unreadable_memory() {
  void* function = kernel_of(loaded_module(counting_module), "count");
  unsigned long long memory = memory_for_words();
  call("fake_make_unreadable", memory);
  void* arguments[] = {&memory};
  return launch_with(function, arguments);
}

// The stand-in's compiler keeps 8 bytes of kernels with such a register in local memory.
int counted_spilling() {
  std::string text = counting_module;
  text.insert(text.find("ld.param"), ".reg .b32 %stack;\n  mov.u32 %stack, %tid.x;\n  ");
  return launch_on_words(kernel_of(loaded_module(text.c_str()), "count"));
}

int counted_from_file(const std::string& path) {
  std::ofstream(path) << counting_module;
  void* module = nullptr;
  call("cuCtxSetCurrent", context);
  call("cuModuleLoad", &module, path.c_str());
  return launch_on_words(kernel_of(module, "count"));
}

int counted_from_library_file(const std::string& path) {
  std::ofstream(path) << counting_module;
  void* library = nullptr;
  void* kernel = nullptr;
  void* nothing = nullptr;
  call("cuCtxSetCurrent", context);
  call("cuLibraryLoadFromFile", &library, path.c_str(), nothing, nothing, 0U, nothing, nothing, 0U);
  call("cuLibraryGetKernel", &kernel, library, "count");
  return launch_on_words(kernel);
}

int counted_after_options() {
  void* module = nullptr;
  void* nothing = nullptr;
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadDataEx", &module, static_cast<const void*>(counting_module), 0U, nothing,
       nothing);
  return launch_on_words(kernel_of(module, "count"));
}

int counted_of_fat_binary() {
  void* module = nullptr;
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadFatBinary", &module, static_cast<const void*>(counting_module));
  return launch_on_words(kernel_of(module, "count"));
}

int counted_cooperatively() {
  void* function = kernel_of(loaded_module(counting_module), "count");
  unsigned long long memory = memory_for_words();
  void* arguments[] = {&memory};
  return call("cuLaunchCooperativeKernel", function, 1U, 1U, 1U, 64U, 1U, 1U, 0U,
              static_cast<void*>(nullptr), static_cast<void**>(arguments));
}

int counted_by_library(unsigned added, LaunchedAs as) {
  void* library = nullptr;
  void* kernel = nullptr;
  void* module = nullptr;
  void* function = nullptr;
  void* nothing = nullptr;
  unsigned long long variable = 0;
  std::size_t bytes = 0;
  call("cuCtxSetCurrent", context);
  call("cuLibraryLoadData", &library, static_cast<const void*>(counting_module), nothing, nothing,
       0U, nothing, nothing, 0U);
  call("cuLibraryGetGlobal", &variable, &bytes, library, "added");
  call("cuMemcpyHtoD_v2", variable, static_cast<const void*>(&added), bytes);
  call("cuLibraryGetKernel", &kernel, library, "count");
  if (as == LaunchedAs::kernel) return launch_on_words(kernel);
  if (as == LaunchedAs::function) {
    call("cuKernelGetFunction", &function, kernel);
    return launch_on_words(function);
  }
  call("cuLibraryGetModule", &module, library);
  return launch_on_words(kernel_of(module, "count"));
}

int counted_beside_a_capture() {
  void* stream = nullptr;
  void* graph = nullptr;
  void* function = kernel_of(loaded_module(counting_module), "count");
  call("cuStreamCreateWithPriority", &stream, 1U, 0);
  call("cuStreamBeginCapture_v2", stream, 1);
  const int code = launch_on_words(function);
  call("cuStreamEndCapture", stream, &graph);
  return code;
}

std::string counted_as_compiled_by(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ::dlerror();
  const auto size =
      reinterpret_cast<int (*)(const char*, std::size_t*)>(::dlsym(library, "nvrtcGetCUBINSize"));
  const auto code =
      reinterpret_cast<int (*)(const char*, char*)>(::dlsym(library, "nvrtcGetCUBIN"));
  std::size_t bytes = 0;
  size(counting_module, &bytes);
  std::string image(bytes, '\0');
  code(counting_module, image.data());
  return counted(image.c_str());
}

int counted_in_host_memory() {
  void* memory = nullptr;
  void* module = nullptr;
  void* function = nullptr;
  call("cuCtxSetCurrent", context);
  if (call("cuMemHostAlloc", &memory, std::size_t{256}, 0U) != 0) return -1;
  call("cuModuleLoadData", &module, static_cast<const void*>(counting_module));
  call("cuModuleGetFunction", &function, module, "count");
  void* arguments[] = {&memory};
  return call("cuLaunchKernel", function, 1U, 1U, 1U, 64U, 1U, 1U, 0U, static_cast<void*>(nullptr),
              static_cast<void**>(arguments), static_cast<void**>(nullptr));
}

}  // namespace subject
