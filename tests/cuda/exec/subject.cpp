// A program that `demarc exec` has to hold: does the steps of its command line, in order, and adds
// a line about each to a file.
//   demarc_exec_subject DRIVER LOG STEP...
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string driver_path;  // NOLINTBEGIN: of this small program alone
std::string log_path;
char** rest = nullptr;  // of the steps, from the present one on
int first_parent = 0;
void* context = nullptr;  // NOLINTEND: of the card

void note(const std::string& line) {
  const int file = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (::write(file, text.data(), text.size()) < 0) std::perror("log");
  ::close(file);
}

template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  void* driver = ::dlopen(driver_path.c_str(), RTLD_NOW);
  const auto function =
      driver == nullptr ? nullptr : reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, name));
  return function == nullptr ? -1 : function(arguments...);
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

// Of a module with a __managed__ variable.
void load_managed() {
  void* module = nullptr;
  call("cuCtxSetCurrent", context);
  const std::string text =
      std::string(idle_module) + ".visible .global .attribute(.managed) .align 4 .u32 total;\n";
  note("managed " +
       std::to_string(call("cuModuleLoadData", &module, static_cast<const void*>(text.c_str()))));
}

void* idle_kernel() {
  void* module = nullptr;
  void* function = nullptr;
  call("cuCtxSetCurrent", context);
  if (call("cuModuleLoadData", &module, static_cast<const void*>(idle_module)) != 0) return nullptr;
  call("cuModuleGetFunction", &function, module, "demarc_idle");
  return function;
}

// Of the driver: a launch with thread-block clusters.
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

void launch() {
  void* function = idle_kernel();
  if (function == nullptr) return;
  const int code =
      call("cuLaunchKernel", function, 5U, 1U, 1U, 32U, 1U, 1U, 0U, static_cast<void*>(nullptr),
           static_cast<void**>(nullptr), static_cast<void**>(nullptr));
  note("launch " + std::to_string(code));
}

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

// 16384 numbers go to the card, each gets 5 more there, and they come back.
std::string counted(const char* image = counting_module) {
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

// The same with what a compiler in the program, NVRTC in this library, gives as machine code.
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

// A launch of that kernel on pinned memory of the host.
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

// Whether a kernel is found of which the stand-in keeps 8 bytes per thread in local memory.
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

// A graph of a kernel with local variables, twice.
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

// What libdemarc_preload.so says of this program, in one line.
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

// Where all colours lie: the window's address, which is known, times the number of the two colours.
void look_into_the_arena() {
  unsigned long long memory = 0;
  char seen[16] = {};
  call("cuCtxSetCurrent", context);
  call("cuMemAlloc_v2", &memory, std::size_t{4096});
  note("look " +
       std::to_string(call("cuMemcpyDtoH_v2", static_cast<void*>(seen), memory * 2, sizeof seen)));
}

// A child without exec, where the driver works no more.
void allocate_in_child() {
  unsigned long long memory = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    note("child " + std::to_string(call("cuMemAlloc_v2", &memory, std::size_t{4096})));
    std::_Exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

// As the driver does on its device file, with the parameters where no memory is.
void ask_for_context(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  const int code = ::ioctl(file, 25UL, 8UL) == 0 ? 0 : errno;
  ::close(file);
  note(std::string("ask ") + path + " " + std::to_string(code));
}

void ask_for_supervisor(unsigned long command) {
  note("present " + std::to_string(::ioctl(-1, command, 0UL) == 0 ? 0 : errno));
}

// As a profiler does: the driver's callbacks have one subscriber a process.
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

std::vector<char*> remaining() {
  std::vector<char*> arguments{const_cast<char*>("/proc/self/exe"), driver_path.data(),
                               log_path.data()};
  for (char** step = rest + 1; *step != nullptr; ++step) arguments.push_back(*step);
  arguments.push_back(nullptr);
  return arguments;
}

void become(bool with_environment) {
  char* nothing[] = {nullptr};
  ::execve("/proc/self/exe", remaining().data(), with_environment ? environ : nothing);
  note("exec failed");
}

void spawn() {
  pid_t child = 0;
  int status = 0;
  ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, remaining().data(), environ);
  ::waitpid(child, &status, 0);
  std::exit(WEXITSTATUS(status));
}

// The rest is done by a process that has left its parents behind.
void leave_parents() {
  if (::fork() != 0) std::exit(0);
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
}

sigset_t passed_on() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) ::sigaddset(&set, signal);
  return set;
}

void block_signals() {
  const sigset_t set = passed_on();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

void take_signal(const std::string& who) {
  const sigset_t set = passed_on();
  int signal = 0;
  ::sigwait(&set, &signal);
  note(who + " got " + std::to_string(signal));
}

// A child of a session of its own takes a signal as well; both know it before it is sent.
void send_to_parent_and_take(int signal) {
  block_signals();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    take_signal("grandchild");
    std::_Exit(0);
  }
  ::kill(first_parent, signal);
  take_signal("program");
  ::waitpid(child, nullptr, 0);
}

void kill_parent() {
  ::kill(first_parent, SIGKILL);
  while (::getppid() == first_parent) ::sched_yield();
}

bool do_step(const std::string& step) {
  const std::size_t mark = step.find('=');
  const std::string name = step.substr(0, mark);
  const std::string argument = mark == std::string::npos ? "" : step.substr(mark + 1);
  const int number = std::atoi(argument.c_str());
  if (name == "init") {
    note("init " + std::to_string(call("cuInit", 0U)));
  } else if (name == "context") {
    make_context();
  } else if (name == "release") {
    call("cuDevicePrimaryCtxRelease_v2", 0);
  } else if (name == "context-in-thread") {
    std::thread(make_context).join();
  } else if (name == "launch") {
    launch();
  } else if (name == "cluster") {
    launch_cluster(static_cast<unsigned>(number));
  } else if (name == "host-memory") {
    take_host_memory();
  } else if (name == "wait-for") {
    while (::access(argument.c_str(), F_OK) != 0) ::usleep(1000);
  } else if (name == "replay") {
    note("replay " + replayed());
  } else if (name == "count") {
    note("count " + counted());
  } else if (name == "count-as-compiled-by") {
    note("count " + counted_as_compiled_by(argument));
  } else if (name == "count-in-host-memory") {
    note("host " + std::to_string(counted_in_host_memory()));
  } else if (name == "spill") {
    note("spilling " + std::to_string(find_spilling()));
  } else if (name == "early-launches") {
    note("early " + std::to_string(call("fake_early_launches")));
  } else if (name == "map-memory") {
    unsigned long long handle = 0;
    const int for_others[8] = {1, 1, 1, 0};  // pinned, by file descriptor, of card 0
    note("map " + std::to_string(call("cuMemCreate", &handle, std::size_t{2 << 20},
                                      static_cast<const void*>(&for_others[0]), 0ULL)));
  } else if (name == "open-library") {
    note(::dlopen(argument.c_str(), RTLD_NOW) == nullptr ? "no library" : "library");
  } else if (name == "map-code") {
    const int file = ::open(argument.c_str(), O_RDONLY | O_CLOEXEC);
    void* code = ::mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    note(code == MAP_FAILED ? "no code" : "code");
    ::close(file);
  } else if (name == "look-into-arena") {
    look_into_the_arena();
  } else if (name == "allocate-in-child") {
    allocate_in_child();
  } else if (name == "managed") {
    load_managed();
  } else if (name == "tenant-report") {
    note("report " + tenant_report());
  } else if (name == "own-domain") {
    const unsigned char domains[64] = {static_cast<unsigned char>(number), 1};
    call("cuCtxSetCurrent", context);
    call("cuStreamSetAttribute", static_cast<void*>(nullptr), 9, static_cast<const void*>(domains));
  } else if (name == "describe-as") {
    call("fake_describe_as", number);
  } else if (name == "domain") {
    note("domain " + std::to_string(call("fake_last_domain")));
  } else if (name == "ask") {
    ask_for_context(argument.c_str());
  } else if (name == "present") {
    ask_for_supervisor(std::strtoul(argument.c_str(), nullptr, 0));
  } else if (name == "exit") {
    std::exit(number);
  } else if (name == "_exit") {
    std::_Exit(number);
  } else if (name == "die") {
    ::raise(number);
  } else if (name == "exec") {
    become(true);
  } else if (name == "exec-without-environment") {
    become(false);
  } else if (name == "spawn") {
    spawn();
  } else if (name == "daemon") {
    leave_parents();
  } else if (name == "close-files") {
    ::close_range(3, ~0U, 0);
  } else if (name == "set") {
    ::putenv(const_cast<char*>(std::strchr(*rest, '=') + 1));
  } else if (name == "subscribe") {
    subscribe_first();
  } else if (name == "show") {
    const char* value = std::getenv(argument.c_str());
    note(argument + " " + (value == nullptr ? "none" : value));
  } else if (name == "signal") {
    send_to_parent_and_take(number);
  } else if (name == "block") {
    block_signals();
  } else if (name == "take") {
    take_signal("program");
  } else if (name == "send") {
    ::kill(first_parent, number);
  } else if (name == "kill-parent") {
    kill_parent();
  } else {
    return false;
  }
  return true;
}

}  // namespace

// As a tool of this program's own: nobody has asked for it. NOLINTNEXTLINE
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  note("injected");
  return 1;
}

int main(int count, char** arguments) {
  if (count < 3) return 64;
  driver_path = arguments[1];
  log_path = arguments[2];
  first_parent = ::getppid();
  for (rest = arguments + 3; *rest != nullptr; ++rest) {
    if (!do_step(*rest)) return 64;
  }
  return 0;
}
