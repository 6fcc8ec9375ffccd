// Makes folders of studies, finds them again, and removes them with everything that belongs to
// them.
#include "gpu/study_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/card/mps_clients.hpp"
#include "demarc/study/gpu_executor.hpp"

namespace demarc::study {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "demarc-study-";
constexpr const char* mark_variable = "DEMARC_STUDY";
// A folder that is younger may not be locked yet.
constexpr std::time_t settled_seconds = 10;
constexpr double patience = 2;  // seconds until what does not heed SIGTERM is killed
// A server of leases first ends the programs in its parts, for which it has 10 s.
constexpr double more_for_servers = 10;

// The folders of this process. Whoever takes them away for good never gives the lock back.
struct Registry {
  std::mutex mutex;
  std::vector<fs::path> folders;
};
Registry& registry() {
  static auto* const only = new Registry;  // outlives every static object that holds a folder
  return *only;
}

bool carries(const std::string& environment, const std::string& entry) {
  for (std::size_t at = environment.find(entry); at != std::string::npos;
       at = environment.find(entry, at + 1)) {
    const std::size_t end = at + entry.size();
    if ((at == 0 || environment[at - 1] == '\0') &&
        (end == environment.size() || environment[end] == '\0')) {
      return true;
    }
  }
  return false;
}

// Whether a child of this process has no environment yet, so that its mark is not known: the kernel
// shows none while a program is being started.
bool is_starting_any() {
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const auto environment = read_file((process.path() / "environ").string());
    const auto stat = read_file((process.path() / "stat").string());
    if (!environment || !environment->empty() || !stat) continue;
    long parent = 0;
    char state = 0;
    const std::size_t name = stat->rfind(')');
    if (name != std::string::npos &&
        std::sscanf(stat->c_str() + name + 1, " %c %ld", &state, &parent) == 2 && state != 'Z' &&
        parent == ::getpid()) {
      return true;
    }
  }
  return false;
}

// Sends the signal to every process that carries the mark; how many there were. The descriptor
// stands for the process that was looked at, even if its number is used again in between.
int signal_marked(const std::string& mark, int number) {
  const std::string entry = fmt::format("{}={}", mark_variable, mark);
  int found = 0;
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (pid == ::getpid()) continue;
    const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0) continue;
    const auto environment = read_file((process.path() / "environ").string());
    if (environment && carries(*environment, entry)) {
      ++found;
      ::syscall(SYS_pidfd_send_signal, descriptor, number, nullptr, 0);
    }
    ::close(descriptor);
  }
  return found;
}

// SIGTERM, and SIGKILL to those that stay so long.
void end_marked(const std::string& mark, double patience_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  const std::chrono::duration<double> limit(patience_seconds);
  const auto soon = std::chrono::milliseconds(5);
  while (is_starting_any() && Clock::now() - begun < limit) std::this_thread::sleep_for(soon);
  for (int number = SIGTERM; signal_marked(mark, number) != 0;) {
    const auto waited = Clock::now() - begun;
    if (waited > limit + std::chrono::seconds(10)) return;  // not even that ends them
    number = waited < limit ? 0 : SIGKILL;
    std::this_thread::sleep_for(soon);
  }
}

std::string daemon_mark(const fs::path& folder) {
  return (folder / "mps").string();
}

Environment environment_of_daemon(const fs::path& folder) {
  const std::string mps = (folder / "mps").string();
  return {{mark_variable, daemon_mark(folder)},
          {"CUDA_MPS_PIPE_DIRECTORY", mps},
          {"CUDA_MPS_LOG_DIRECTORY", mps}};
}

void end_daemon_of(const fs::path& folder, double patience_seconds = patience) {
  std::error_code ignored;
  if (!fs::exists(folder / "mps", ignored)) return;
  ProcessOptions options;
  options.set = environment_of_daemon(folder);
  options.set.front().second.clear();  // the control program is not to be ended
  options.error = ChildStream::null;
  (void)run_process({"/bin/sh", "-c", fmt::format("echo quit | {}", cuda::mps_control)}, options,
                    20);
  end_marked(daemon_mark(folder), patience_seconds);
  fs::remove_all(folder / "mps", ignored);
}

std::string lease_mark(const fs::path& folder) {
  return (folder / "leases").string();
}

void end_leases_of(const fs::path& folder, double patience_seconds = patience) {
  std::error_code ignored;
  if (!fs::exists(folder / "leases", ignored)) return;
  end_marked(lease_mark(folder), patience_seconds + more_for_servers);
  fs::remove_all(folder / "leases", ignored);
}

// Clients first: a daemon waits for them.
void take_away(const fs::path& folder, double patience_seconds = patience) {
  end_marked(folder.string(), patience_seconds);
  end_leases_of(folder, patience_seconds);
  end_daemon_of(folder, patience_seconds);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

// A lock on the folder that goes with this process; -1 while somebody else holds it.
int lock_folder(const fs::path& folder) {
  const int lock = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0 || ::flock(lock, LOCK_EX | LOCK_NB) == 0) return lock;
  ::close(lock);
  return -1;
}

void take_away_if_left(const fs::path& folder, double patience_seconds) {
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) return;
  if (facts.st_uid != ::geteuid() || ::time(nullptr) - facts.st_mtime < settled_seconds) return;
  const int lock = lock_folder(folder);
  if (lock < 0) return;
  take_away(folder, patience_seconds);
  ::close(lock);
}

int signal_pipe[2] = {-1, -1};
pid_t pipe_owner = -1;

// A child between fork and exec has the handler too, and nothing to take away.
void on_signal(int number) {
  const int kept = errno;
  const auto byte = static_cast<char>(number);
  if (::getpid() == pipe_owner && ::write(signal_pipe[1], &byte, 1) != 1) ::_exit(128 + number);
  errno = kept;
}

std::atomic<bool> gentle = false;  // the next SIGINT or SIGTERM only asks
std::atomic<int> ending_signal = 0;
std::function<void()> tell_asked;  // set before `gentle`

[[noreturn]] void serve_signals() {
  char number = 0;
  while (true) {
    if (::read(signal_pipe[0], &number, 1) != 1) continue;
    if (number == SIGHUP || !gentle.exchange(false)) break;
    ending_signal = number;
    if (tell_asked) tell_asked();
  }
  registry().mutex.lock();  // for good: whoever makes or ends a folder now waits for the end
  for (const fs::path& folder : registry().folders) take_away(folder);
  ::signal(number, SIG_DFL);
  ::kill(::getpid(), number);
  while (true) ::pause();
}

}  // namespace

Result<std::shared_ptr<StudyFolder>> StudyFolder::make() {
  take_away_remains(patience);
  const std::lock_guard guard(registry().mutex);
  std::error_code failed;
  const fs::path temporary = fs::temp_directory_path(failed);
  if (failed) {
    return missing_capability("TMPDIR: there is no folder for temporary files: {}",
                              failed.message());
  }
  std::string folder = (temporary / fmt::format("{}XXXXXX", folder_prefix)).string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return missing_capability("cannot make a folder like {}: {}", folder, std::strerror(errno));
  }
  const int lock = lock_folder(folder);
  if (lock < 0) return missing_capability("cannot lock {}: {}", folder, std::strerror(errno));
  registry().folders.emplace_back(folder);
  return std::shared_ptr<StudyFolder>(new StudyFolder(folder, lock));
}

StudyFolder::~StudyFolder() {
  const std::lock_guard guard(registry().mutex);
  take_away(path_);
  ::close(lock_);
  std::erase(registry().folders, path_);
}

Environment StudyFolder::mark() const {
  return {{mark_variable, path_.string()}};
}

Environment StudyFolder::daemon_environment() const {
  return environment_of_daemon(path_);
}

void StudyFolder::end_daemon() {
  const std::lock_guard guard(registry().mutex);
  end_daemon_of(path_);
}

Environment StudyFolder::lease_environment() const {
  return {{mark_variable, lease_mark(path_)}};
}

void StudyFolder::end_leases() {
  const std::lock_guard guard(registry().mutex);
  end_leases_of(path_);
}

void take_away_remains(double patience_seconds) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path(ignored), ignored)) {
    if (entry.path().filename().string().starts_with(folder_prefix)) {
      take_away_if_left(entry.path(), patience_seconds);
    }
  }
}

void take_away_on_signals() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (::pipe2(signal_pipe, O_CLOEXEC) != 0) return;
    pipe_owner = ::getpid();
    std::thread(serve_signals).detach();
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      ::sigaction(number, nullptr, &action);
      if (action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = on_signal;
      action.sa_flags = SA_RESTART;
      ::sigaction(number, &action, nullptr);
    }
  });
}

void end_gently_on_signals(std::function<void()> tell) {
  tell_asked = std::move(tell);
  gentle = true;
  take_away_on_signals();
}

int asked_to_end() {
  return ending_signal;
}

}  // namespace demarc::study
