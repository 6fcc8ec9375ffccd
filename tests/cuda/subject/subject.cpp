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

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "subject_card.hpp"
#include "subject_signals.hpp"

using namespace subject;  // NOLINT: one program

namespace {

char** rest = nullptr;        // NOLINT: of the steps, from the present one on
int first_parent = 0;         // NOLINT
void* last_kernel = nullptr;  // NOLINT

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

// As the library that hooks does, with this token, or else with what the environment tells.
void claim_hook(const std::string& known) {
  const char* control = std::getenv("DEMARC_CONTROL");
  const char* name = control == nullptr ? nullptr : std::strchr(control, '#');
  const std::string half = name == nullptr ? "" : std::string(name + 1, 16);
  const unsigned long token = known.empty() ? std::strtoul(half.c_str(), nullptr, 16)
                                            : std::strtoul(known.c_str(), nullptr, 10);
  ::unsetenv("CUDA_INJECTION64_PATH");
  note("claim " + std::to_string(::ioctl(-1, 0x44656d01UL, token) == 0 ? 0 : errno));
}

void ask_for_supervisor(unsigned long command) {
  note("present " + std::to_string(::ioctl(-1, command, 0UL) == 0 ? 0 : errno));
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

// The rest is done by a process that has left its parents behind, once they have ended: then the
// pipe is at its end.
void leave_parents() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  if (::fork() != 0) std::exit(0);
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
  wait_no_longer();
  ::close(ends[1]);
  char nothing = 0;
  while (::read(ends[0], &nothing, 1) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
}

void kill_parent() {
  ::kill(first_parent, SIGKILL);
  while (::getppid() == first_parent) ::sched_yield();
}

// What destructors that ran before gave back has other content.
void launch_at_the_end() {
  std::vector<std::vector<char>> used;
  for (std::size_t bytes = 16; bytes <= std::size_t{1} << 20U; bytes += bytes / 4) {
    for (int i = 0; i < 16; ++i) used.emplace_back(bytes, '\x5a');
  }
  launch(last_kernel);
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
    last_kernel = launch();
  } else if (name == "cluster") {
    launch_cluster(static_cast<unsigned>(number));
  } else if (name == "cooperative") {
    launch_cooperatively(static_cast<unsigned>(number));
  } else if (name == "cooperative-by-attribute") {
    launch_with_cooperation(static_cast<unsigned>(number));
  } else if (name == "launch-untold") {
    launch_untold();
  } else if (name == "take-table") {
    take_callback_table();
  } else if (name == "switch-hook-off") {
    switch_hook_off();
  } else if (name == "second-driver") {
    start_second_driver(argument);
  } else if (name == "driver-in-namespace") {
    start_driver_in_namespace();
  } else if (name == "load-launching") {
    load_launching();
  } else if (name == "claim-hook") {
    claim_hook(argument);
  } else if (name == "host-memory") {
    take_host_memory();
  } else if (name == "wait-for") {
    while (::access(argument.c_str(), F_OK) != 0) ::usleep(1000);
  } else if (name == "replay") {
    note("replay " + replayed());
  } else if (name == "count") {
    note("count " + counted());
  } else if (name == "count-by") {
    note("count by " + std::to_string(counted_by(static_cast<unsigned>(number))));
  } else if (name == "count-for-a-newer-card") {
    note("count " + std::to_string(counted_for_a_newer_card()));
  } else if (name == "count-spilling") {
    note("count " + std::to_string(counted_spilling()));
  } else if (name == "count-unseen") {
    note("count " + std::to_string(counted_unseen()));
  } else if (name == "count-from-buffer") {
    note("count " + std::to_string(counted_from_buffer(static_cast<std::size_t>(number))));
  } else if (name == "count-without-arguments") {
    note("count " + std::to_string(counted_without_arguments()));
  } else if (name == "count-with-shared") {
    note("count " + std::to_string(counted_with_shared(static_cast<unsigned>(number))));
  } else if (name == "count-nowhere") {
    note("count " + std::to_string(counted_nowhere()));
  } else if (name == "count-in-unreadable-memory") {
    note("count " + std::to_string(counted_in_unreadable_memory()));
  } else if (name == "count-beside-a-capture") {
    note("count " + std::to_string(counted_beside_a_capture()));
  } else if (name == "count-from-file") {
    note("count " + std::to_string(counted_from_file(argument)));
  } else if (name == "count-from-library-file") {
    note("count " + std::to_string(counted_from_library_file(argument)));
  } else if (name == "count-by-library") {
    note("count " +
         std::to_string(counted_by_library(static_cast<unsigned>(number), LaunchedAs::kernel)));
  } else if (name == "count-by-library-function") {
    note("count " +
         std::to_string(counted_by_library(static_cast<unsigned>(number), LaunchedAs::function)));
  } else if (name == "count-by-library-module") {
    note("count " + std::to_string(counted_by_library(static_cast<unsigned>(number),
                                                      LaunchedAs::function_of_module)));
  } else if (name == "count-of-fat-binary") {
    note("count " + std::to_string(counted_of_fat_binary()));
  } else if (name == "count-cooperatively") {
    note("count " + std::to_string(counted_cooperatively()));
  } else if (name == "count-after-options") {
    note("count " + std::to_string(counted_after_options()));
  } else if (name == "launch-what-ptx-lacks") {
    note("lines " + std::to_string(launched_what_ptx_lacks()));
  } else if (name == "fetch") {
    note("fetch " + std::to_string(fetched()));
  } else if (name == "keep") {
    note("keep " + std::to_string(kept()));
  } else if (name == "follow") {
    note("follow " + (number == 0 ? followed() : followed(static_cast<std::size_t>(number))));
  } else if (name == "count-as-compiled-by") {
    note("count " + counted_as_compiled_by(argument));
  } else if (name == "multiply") {
    note("product " + multiplied());
  } else if (name == "count-in-host-memory") {
    note("host " + std::to_string(counted_in_host_memory()));
  } else if (name == "share") {
    note("share " + std::to_string(share(argument)));
  } else if (name == "borrow") {
    note("borrow " + std::to_string(borrow(argument)));
  } else if (name == "count-on-shared") {
    note("count on shared " + std::to_string(count_on_shared()));
  } else if (name == "read-shared") {
    note("shared " + read_shared(static_cast<unsigned>(number)));
  } else if (name == "give-shared-back") {
    note("give back " + std::to_string(give_shared_back()));
  } else if (name == "free-shared") {
    note("free " + std::to_string(free_shared()));
  } else if (name == "touch") {
    std::ofstream(argument, std::ios::app).flush();
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
  } else if (name == "fail-next") {
    call("fake_fail_next_launch", number);
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
  } else if (name == "at-exit") {
    int version = 0;
    call("cuDriverGetVersion", &version);  // the driver is loaded, and no library of Demarc's yet
    std::atexit(launch_at_the_end);
  } else if (name == "exit") {
    std::exit(number);
  } else if (name == "_exit") {
    std::_Exit(number);
  } else if (name == "die") {
    ::raise(number);
  } else if (name == "die-in-child") {
    die_in_child(number);
  } else if (name == "die-beside-calls") {
    die_beside_calls(number, *++rest);
  } else if (name == "die-in-a-call") {
    die_in_a_call(number, *++rest);
  } else if (name == "die-twice") {
    const std::string socket = *++rest;
    die_twice(number, socket, std::atoi(*++rest));
  } else if (name == "other-files") {
    take_numbers_of_files();
  } else if (name == "default") {
    ::signal(number, SIG_DFL);
  } else if (name == "ignore") {
    ::signal(number, SIG_IGN);
  } else if (name == "take-own") {
    ::signal(number, [](int) { note("own"); });
  } else if (name == "pause") {
    ::pause();
  } else if (name == "abort") {
    std::abort();
  } else if (name == "process") {
    note("process " + std::to_string(::getpid()));
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
    send_to_parent_and_take(first_parent, number);
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

// As a tool of this program's own: it was not asked for. NOLINTNEXTLINE
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  note("injected");
  return 1;
}

int main(int count, char** arguments) {
  if (count < 3) return 64;
  wait_no_longer();
  driver_path = arguments[1];
  log_path = arguments[2];
  first_parent = ::getppid();
  for (rest = arguments + 3; *rest != nullptr; ++rest) {
    if (std::strcmp(*rest, "end-main-thread") == 0) {
      // The rest is done by another thread, once this one is gone.
      std::thread([] {
        while (::access("/proc/self/maps", R_OK) == 0 &&
               std::ifstream("/proc/self/maps").peek() > 0) {
          ::usleep(1000);
        }
        while (*++rest != nullptr) {
          if (!do_step(*rest)) std::exit(64);
        }
        std::exit(0);
      }).detach();
      ::pthread_exit(nullptr);
    }
    if (!do_step(*rest)) return 64;
  }
  return 0;
}
