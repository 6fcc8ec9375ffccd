#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

namespace demarc::study {
namespace {

void close_descriptor(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

std::vector<std::string> merged_environment(const Environment& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : changes) {
      replaced = replaced || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
    }
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : changes) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<Child> Child::spawn(const std::vector<std::string>& argv, const Environment& environment,
                           bool piped) {
  int to_child[2] = {-1, -1};
  int from_child[2] = {-1, -1};
  if (piped && (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0)) {
    return missing_capability("cannot make a pipe: {}", std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (piped) {
    posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables = merged_environment(environment);
  Child child;
  const int failure = ::posix_spawnp(&child.pid_, arguments.front().c_str(), &actions, &attributes,
                                     pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close_descriptor(to_child[0]);
  close_descriptor(from_child[1]);
  child.input_ = to_child[1];
  child.output_ = from_child[0];
  if (failure != 0) {
    child.pid_ = -1;
    return missing_capability("cannot start '{}': {}", argv.front(), std::strerror(failure));
  }
  return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  end(0);
  pid_ = std::exchange(other.pid_, -1);
  input_ = std::exchange(other.input_, -1);
  output_ = std::exchange(other.output_, -1);
  return *this;
}

Child::~Child() {
  end(2);
}

bool Child::running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) == 0) return true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  pid_ = -1;
  return false;
}

std::optional<int> Child::wait(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (running()) {
    if (std::chrono::steady_clock::now() >= until) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return exit_code_;
}

void Child::end(double grace_seconds) {
  close_descriptor(input_);
  close_descriptor(output_);
  const pid_t group = pid_;
  if (group <= 0 || wait(grace_seconds)) return;
  ::kill(-group, SIGTERM);
  if (wait(2)) return;
  ::kill(-group, SIGKILL);
  (void)wait(2);
}

}  // namespace demarc::study
