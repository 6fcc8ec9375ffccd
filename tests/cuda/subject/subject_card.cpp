// Gives the confined program its steps on the card: contexts, launches, host memory.
#include "subject_card.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace subject {

void note(const std::string& line) {
  const int file = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (::write(file, text.data(), text.size()) < 0) std::perror("log");
  ::close(file);
}

void make_context() {
  int device = 0;
  const int ready = call("cuInit", 0U);
  call("cuDeviceGet", &device, 0);
  const int code = ready != 0 ? ready : call("cuDevicePrimaryCtxRetain", &context, device);
  note("context " + std::to_string(code));
}

void take_host_memory() {
  void* memory = nullptr;
  call("cuCtxSetCurrent", context);
  const int code = call("cuMemHostAlloc", &memory, std::size_t{64}, 0U);
  note("host memory " + std::to_string(code));
  if (code == 0) call("cuMemFreeHost", memory);
}

constexpr const char* idle_module = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry demarc_idle()
{
  ret;
}
)";

void load_managed() {
  void* module = nullptr;
  call("cuCtxSetCurrent", context);
  const std::string text =
      std::string(idle_module) + ".visible .global .attribute(.managed) .align 4 .u32 total;\n";
  note("managed " +
       std::to_string(call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str()))));
}

void load_launching() {
  void* module = nullptr;
  call("cuCtxSetCurrent", context);
  const std::string text =
      std::string(idle_module) +
      ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n";
  note("launching " +
       std::to_string(call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str()))));
}

void* loaded_module(const char* text) {
  void* module = nullptr;
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadData", &module, static_cast<const void*>(text));
  return module;
}

void* kernel_of(void* module, const char* name) {
  void* function = nullptr;
  if (module != nullptr) call("cuModuleGetFunction", &function, module, name);
  return function;
}

static void* idle_kernel() {
  return kernel_of(loaded_module(idle_module), "demarc_idle");
}

unsigned long long memory_for_words() {
  unsigned long long memory = 0;
  call("cuMemAlloc_v2", &memory, 64 * sizeof(unsigned));
  return memory;
}

int launch_with(void* function, void** arguments, void** extra, unsigned shared) {
  return call("cuLaunchKernel", function, 1U, 1U, 1U, 64U, 1U, 1U, shared,
              static_cast<void*>(nullptr), arguments, extra);
}

int launch_on_words(void* function) {
  unsigned long long memory = memory_for_words();
  void* arguments[] = {&memory};
  return launch_with(function, arguments);
}

void launch_cluster(unsigned blocks) {
  struct {
    int id = 4;
    int pad = 0;
    unsigned size[16] = {};
  } attribute;
  attribute.size[0] = blocks;
  attribute.size[1] = attribute.size[2] = 1;
  struct {
    unsigned grid[3], block[3], shared;
    void* stream;
    void* attributes;
    unsigned count;
  } config = {{blocks, 1, 1}, {32, 1, 1}, 0, nullptr, &attribute, 1};
  const int code = call("cuLaunchKernelEx", static_cast<const void*>(&config), idle_kernel(),
                        static_cast<void**>(nullptr), static_cast<void**>(nullptr));
  note("cluster " + std::to_string(code));
}

void launch_cooperatively(unsigned blocks) {
  note("cooperative " +
       std::to_string(call("cuLaunchCooperativeKernel", idle_kernel(), blocks, 1U, 1U, 32U, 1U, 1U,
                           0U, static_cast<void*>(nullptr), static_cast<void**>(nullptr))));
}

void launch_with_cooperation(unsigned blocks) {
  struct {
    int id = 2;
    int pad = 0;
    int flag[16] = {1};
  } attribute;
  struct {
    unsigned grid[3], block[3], shared;
    void* stream;
    void* attributes;
    unsigned count;
  } config = {{blocks, 1, 1}, {32, 1, 1}, 0, nullptr, &attribute, 1};
  note("cooperative " +
       std::to_string(call("cuLaunchKernelEx", static_cast<const void*>(&config), idle_kernel(),
                           static_cast<void**>(nullptr), static_cast<void**>(nullptr))));
}

void launch_untold() {
  note("untold " + std::to_string(call("fake_launch_untold", idle_kernel())));
}

static const void* const* callback_table = nullptr;

void take_callback_table() {
  const unsigned char id[16] = {0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
                                0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b};
  note("table " + std::to_string(call("cuGetExportTable", &callback_table,
                                      static_cast<const unsigned char*>(id))));
}

void switch_hook_off() {
  using Enable = int (*)(std::uint32_t, std::uint32_t, int, int);
  const auto enable = reinterpret_cast<Enable>(const_cast<void*>(callback_table[6]));
  note("off " + std::to_string(enable(0, 1, 0xb, 1)));
}

static void make_context_of(void* driver) {
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto retain =
      reinterpret_cast<int (*)(void**, int)>(::dlsym(driver, "cuDevicePrimaryCtxRetain"));
  void* made = nullptr;
  const int ready = init(0);
  note("second context " + std::to_string(ready != 0 ? ready : retain(&made, 0)));
}

void start_second_driver(const std::string& path) {
  make_context_of(::dlopen(path.c_str(), RTLD_NOW));
}

void start_driver_in_namespace() {
  make_context_of(::dlmopen(LM_ID_NEWLM, driver_path.c_str(), RTLD_NOW));
}

void* launch() {
  void* function = idle_kernel();
  if (function != nullptr) launch(function);
  return function;
}

void launch(void* function) {
  const int code =
      call("cuLaunchKernel", function, 5U, 1U, 1U, 32U, 1U, 1U, 0U, static_cast<void*>(nullptr),
           static_cast<void**>(nullptr), static_cast<void**>(nullptr));
  note("launch " + std::to_string(code));
}

int launched_what_ptx_lacks() {
  const std::string text = std::string(idle_module) + "// .entry demarc_self_lines(\n";
  void* function = kernel_of(loaded_module(text.c_str()), "demarc_self_lines");
  unsigned long long lines = memory_for_words();
  unsigned long long bytes = 128;
  unsigned count = 1;
  void* arguments[] = {&lines, &bytes, &count};
  return launch_with(function, arguments);
}

int fetched() {
  constexpr const char* text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry fetch(.param .u64 p)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<2>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  setp.gt.u32 %p1, %r1, 64;
  @%p1 tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%r1}];
  ret;
}
)";
  return launch_on_words(kernel_of(loaded_module(text), "fetch"));
}

// Adds 1 to the words behind the address that lies in memory, whose address lies in a structure.
constexpr const char* following_module = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry follow(.param .align 8 .b8 p[16])
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p+8];
  ld.global.u64 %rd2, [%rd1];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.u32 %r2, [%rd2];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd2], %r2;
  ret;
}
)";

std::string followed(std::size_t bytes) {
  unsigned long long words = 0;
  unsigned long long place = 0;
  void* module = nullptr;
  void* function = nullptr;
  std::vector<unsigned> numbers(64, 41);
  call("cuCtxSetCurrent", context);
  int code = call("cuMemAlloc_v2", &words, numbers.size() * sizeof(unsigned));
  if (code == 0) code = call("cuMemAlloc_v2", &place, bytes);
  if (code == 0) {
    code = call("cuMemcpyHtoD_v2", words, static_cast<const void*>(numbers.data()),
                numbers.size() * sizeof(unsigned));
  }
  if (code == 0) {
    code = call("cuMemcpyHtoD_v2", place, static_cast<const void*>(&words), sizeof words);
  }
  if (code == 0)
    code = call("cuModuleLoadData", &module, static_cast<const void*>(following_module));
  if (code == 0) code = call("cuModuleGetFunction", &function, module, "follow");
  const unsigned long long structure[2] = {1, place};
  void* arguments[] = {const_cast<unsigned long long*>(structure)};
  if (code == 0) {
    code =
        call("cuLaunchKernel", function, 1U, 1U, 1U, 64U, 1U, 1U, 0U, static_cast<void*>(nullptr),
             static_cast<void**>(arguments), static_cast<void**>(nullptr));
  }
  return code == 0 ? "right" : "failed " + std::to_string(code);
}

int find_spilling() {
  constexpr const char* text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry spilling()
{
  .reg .b64 %stack;
  ret;
}
)";
  void* module = nullptr;
  void* function = nullptr;
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadData", &module, static_cast<const void*>(text));
  return call("cuModuleGetFunction", &function, module, "spilling");
}

// Each thread keeps its number in a local variable, across a barrier.
constexpr const char* keeping_module = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry keep(.param .u64 p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<6>;
  .local .align 4 .b8 own[8];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  st.local.u32 [own+4], %r1;
  bar.sync 0;
  ld.local.u32 %r4, [own+4];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r4;
  ret;
}
)";

int kept() {
  return launch_on_words(kernel_of(loaded_module(keeping_module), "keep"));
}

std::string replayed() {
  constexpr std::size_t count = 1024;
  unsigned long long memory = 0;
  void* module = nullptr;
  void* function = nullptr;
  void* stream = nullptr;
  void* graph = nullptr;
  void* executable = nullptr;
  call("cuCtxSetCurrent", context);
  int code = call("cuMemAlloc_v2", &memory, count * sizeof(unsigned));
  if (code == 0) {
    code = call("cuModuleLoadData", &module, static_cast<const void*>(keeping_module));
  }
  if (code == 0) code = call("cuModuleGetFunction", &function, module, "keep");
  if (code == 0) code = call("cuStreamCreateWithPriority", &stream, 1U, 0);
  if (code == 0) code = call("cuStreamBeginCapture_v2", stream, 1);
  void* arguments[] = {&memory};
  if (code == 0) {
    code = call("cuLaunchKernel", function, static_cast<unsigned>(count / 64), 1U, 1U, 64U, 1U, 1U,
                0U, stream, static_cast<void**>(arguments), static_cast<void**>(nullptr));
  }
  if (code == 0) code = call("cuStreamEndCapture", stream, &graph);
  if (code == 0) code = call("cuGraphInstantiateWithFlags", &executable, graph, 0ULL);
  for (int time = 0; code == 0 && time < 2; ++time) {
    std::vector<unsigned> numbers(count, 7);
    code = call("cuMemcpyHtoD_v2", memory, static_cast<const void*>(numbers.data()),
                count * sizeof(unsigned));
    if (code == 0) code = call("cuGraphLaunch", executable, stream);
    if (code == 0) code = call("cuStreamSynchronize", stream);
    if (code == 0) {
      code = call("cuMemcpyDtoH_v2", static_cast<void*>(numbers.data()), memory,
                  count * sizeof(unsigned));
    }
    for (std::size_t i = 0; code == 0 && i < count; ++i) {
      if (numbers[i] != i) return "wrong at " + std::to_string(i);
    }
  }
  return code == 0 ? "right" : "failed " + std::to_string(code);
}

std::string tenant_report() {
  const char* preload = std::getenv("CUDA_INJECTION64_PATH");
  void* library = preload == nullptr ? nullptr : ::dlopen(preload, RTLD_NOW | RTLD_NOLOAD);
  const auto function =
      library == nullptr
          ? nullptr
          : reinterpret_cast<const char* (*)()>(::dlsym(library, "demarc_tenant_report"));
  const char* said = function == nullptr ? "no function" : function();
  std::string line = said == nullptr ? "none" : said;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

void look_into_the_arena() {
  unsigned long long memory = 0;
  char seen[16] = {};
  call("cuCtxSetCurrent", context);
  call("cuMemAlloc_v2", &memory, std::size_t{4096});
  note("look " +
       std::to_string(call("cuMemcpyDtoH_v2", static_cast<void*>(seen), memory * 2, sizeof seen)));
}

void subscribe_first() {
  const void* const* table = nullptr;
  const unsigned char any[16] = {};
  std::uint32_t handle = 0;
  call("cuGetExportTable", &table, static_cast<const unsigned char*>(any));
  using Callback = void (*)(void*, int, int, const void*);
  using Subscribe = int (*)(std::uint32_t*, Callback, void*);
  const Callback nothing = [](void*, int, int, const void*) {};
  const auto subscribe = reinterpret_cast<Subscribe>(const_cast<void*>(table[3]));
  note("subscribe " + std::to_string(subscribe(&handle, nothing, nullptr)));
}

}  // namespace subject
