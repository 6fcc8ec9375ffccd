// Starts programs by Boost.Process and ends them whole.
#include "demarc/base/process.hpp"

#define BOOST_PROCESS_USE_STD_FS  // where Boost is new enough to ask; older ones link nothing here
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/env.hpp>
#include <boost/process/environment.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/posix.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <thread>

#include "output_tail.hpp"

namespace demarc {
namespace {

namespace bp = boost::process;

// A descriptor above those of the standard streams, closed in programs that are started.
int out_of_the_way(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(fd);
  return moved;
}

// What one start needs; closes in this process what only the child has.
class Streams {
 public:
  ~Streams() {
    for (const int fd : of_child_) ::close(fd);
    for (const int fd : {ours_in, ours_out, ours_kept}) {
      if (fd >= 0) ::close(fd);
    }
  }

  Result<void> open(const ProcessOptions& options) {
    DEMARC_TRY(child[0], connect(options.input, STDIN_FILENO));
    DEMARC_TRY(child[1], connect(options.output, STDOUT_FILENO));
    DEMARC_TRY(child[2], connect(options.error, STDERR_FILENO));
    return {};
  }

  std::array<int, 3> child{};
  int ours_in = -1;
  int ours_out = -1;
  int ours_kept = -1;

 private:
  Result<int> connect(ChildStream stream, int number) {
    if (stream == ChildStream::inherited) return number;
    if (stream == ChildStream::null) return of_child(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (stream == ChildStream::kept && kept_sink_ >= 0) return kept_sink_;
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return of_child(-1);
    for (int& end : ends) end = out_of_the_way(end);
    const bool to_child = number == STDIN_FILENO;
    int& ours = to_child ? ours_in : stream == ChildStream::kept ? ours_kept : ours_out;
    ours = to_child ? ends[1] : ends[0];
    DEMARC_TRY(const int theirs, of_child(to_child ? ends[0] : ends[1]));
    if (stream == ChildStream::kept) kept_sink_ = theirs;
    return theirs;
  }

  Result<int> of_child(int fd) {
    fd = out_of_the_way(fd);
    if (fd < 0) return missing_capability("cannot make a pipe: {}", std::strerror(errno));
    of_child_.push_back(fd);
    return fd;
  }

  std::vector<int> of_child_;
  int kept_sink_ = -1;
};

// In the child: as a program expects to begin.
void begin_child(const ProcessOptions& options, pid_t parent) {
  if (options.own_group) ::setpgid(0, 0);
  if (options.death_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  }
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);  // ours may be ignored, and that would be handed down
  for (const int fd : options.keep_open) ::fcntl(fd, F_SETFD, 0);
  if (options.before_exec) options.before_exec();
}

// By set() and reset(): operator[] and erase() of Boost 1.74 read beyond shorter variables.
bp::environment merged_environment(const ProcessOptions& options) {
  bp::environment merged = boost::this_process::environment();
  for (const std::string& name : options.unset) merged.reset(name);
  for (const auto& [name, value] : options.set) merged.set(name, value);
  return merged;
}

// The child's number, or what went wrong. One at a time: Boost's own pipe between fork and exec is
// for an instant open to children of other threads, and would then stay open as long as they live.
Result<pid_t> start(const std::vector<std::string>& argv, const ProcessOptions& options,
                    const std::string& file, const Streams& streams) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const pid_t parent = ::getpid();
  pid_t failed = -1;
  std::error_code error;
  bp::environment variables = merged_environment(options);
  bp::child child(
      bp::exe = file, bp::args = std::vector<std::string>(argv.begin() + 1, argv.end()), variables,
      bp::posix::fd.bind(STDIN_FILENO, streams.child[0]),
      bp::posix::fd.bind(STDOUT_FILENO, streams.child[1]),
      bp::posix::fd.bind(STDERR_FILENO, streams.child[2]),
      bp::extend::on_exec_setup = [&](auto&) { begin_child(options, parent); },
      bp::extend::on_error = [&](auto& executor, const std::error_code&) { failed = executor.pid; },
      error);
  if (error) {
    if (failed > 0) ::waitpid(failed, nullptr, 0);
    return missing_capability("cannot start '{}': {}", argv.front(), std::strerror(error.value()));
  }
  const pid_t pid = child.id();
  child.detach();                              // ended and waited for here, as a group
  if (options.own_group) ::setpgid(pid, pid);  // whoever comes first
  return pid;
}

void close_descriptor(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

struct Process::State {
  pid_t pid = -1;
  bool own_group = false;
  bool reaped = false;
  int input = -1;
  int output = -1;
  std::optional<ProcessEnd> ended;
  std::optional<OutputTail> tail;
};

std::string ProcessEnd::words() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("exit code {}", exit_code);
}

Result<Process> Process::spawn(const std::vector<std::string>& argv,
                               const ProcessOptions& options) {
  if (argv.empty()) return invalid_input("no program is named");
  const std::string file = find_program(argv.front());
  if (file.empty()) {
    return missing_capability("cannot start '{}': {}", argv.front(), std::strerror(ENOENT));
  }
  Streams streams;
  DEMARC_CHECK(streams.open(options));
  auto state = std::make_unique<State>();
  DEMARC_TRY(state->pid, start(argv, options, file, streams));
  state->own_group = options.own_group;
  state->input = std::exchange(streams.ours_in, -1);
  state->output = std::exchange(streams.ours_out, -1);
  if (streams.ours_kept >= 0) {
    state->tail.emplace(std::exchange(streams.ours_kept, -1), options.kept_bytes);
  }
  return Process(std::move(state));
}

Process::Process(std::unique_ptr<State> state) : state_(std::move(state)) {}
Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&& other) noexcept {
  if (state_) end(0);
  state_ = std::move(other.state_);
  return *this;
}
Process::~Process() {
  if (state_) end(0);
}

pid_t Process::pid() const {
  return state_->pid;
}
int Process::input() const {
  return state_->input;
}
int Process::output() const {
  return state_->output;
}

// Looks and leaves it a zombie, so that its number and its group's stay its own until end().
std::optional<ProcessEnd> Process::wait(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!state_->ended) {
    siginfo_t info{};
    const int flags = WEXITED | WNOWAIT | (seconds < 0 ? 0 : WNOHANG);
    if (::waitid(P_PID, static_cast<id_t>(state_->pid), &info, flags) != 0 && errno != EINTR) {
      state_->ended = ProcessEnd{EXIT_FAILURE, 0};  // other code waited for it
    } else if (info.si_pid == state_->pid) {
      const bool by_itself = info.si_code == CLD_EXITED;
      state_->ended = ProcessEnd{by_itself ? info.si_status : 128 + info.si_status,
                                 by_itself ? 0 : info.si_status};
    } else if (seconds >= 0) {
      if (std::chrono::steady_clock::now() >= until) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  return state_->ended;
}

void Process::signal(int number) {
  if (running()) ::kill(state_->own_group ? -state_->pid : state_->pid, number);
}

ProcessEnd Process::end(double grace_seconds, double patience_seconds) {
  State& state = *state_;
  close_descriptor(state.input);
  close_descriptor(state.output);
  if (!wait(grace_seconds)) signal(SIGTERM);
  if (!wait(patience_seconds)) signal(SIGKILL);
  const ProcessEnd ended = *wait(-1);
  if (!state.reaped) {
    if (state.own_group) ::kill(-state.pid, SIGKILL);  // those that it left behind
    ::waitpid(state.pid, nullptr, 0);
    state.reaped = true;
  }
  if (state.tail) state.tail->finish();
  return ended;
}

std::string Process::kept() {
  if (!state_->tail) return {};
  if (state_->ended) state_->tail->finish();
  return state_->tail->text();
}

Result<ProcessEnd> run_process(const std::vector<std::string>& argv, const ProcessOptions& options,
                               double seconds) {
  DEMARC_TRY(auto process, Process::spawn(argv, options));
  if (process.wait(seconds)) return process.end(0);
  return check_failed("'{}' did not end within {} s", argv.front(), seconds);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0) {
      return file.string();
    }
  }
  return {};
}

std::filesystem::path program_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::string find_own_library(const std::string& name) {
  const std::filesystem::path folder = program_folder();
  const std::filesystem::path installed = folder / ".." / "lib";
  std::error_code ignored;
  for (const auto& path :
       {folder / name, installed / name, installed / "x86_64-linux-gnu" / name}) {
    if (std::filesystem::exists(path, ignored)) {
      return std::filesystem::canonical(path, ignored).string();
    }
  }
  return {};
}

}  // namespace demarc
