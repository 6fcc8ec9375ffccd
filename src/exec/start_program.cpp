// Forks. The child filters itself, gives the serving end away and becomes the program.
#include "start_program.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>

namespace demarc::cuda {
namespace {

struct FileSpace {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int))] = {};
};

// The child says an error, or gives the serving end of its filter.
void say(int socket, int error, std::optional<int> file) {
  iovec data[] = {{&error, sizeof error}};
  FileSpace space;
  msghdr message{};
  message.msg_iov = data;
  message.msg_iovlen = std::size(data);
  if (file) {
    message.msg_control = space.bytes;
    message.msg_controllen = sizeof space.bytes;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof *file);
    std::memcpy(CMSG_DATA(header), &*file, sizeof *file);
  }
  ::sendmsg(socket, &message, MSG_NOSIGNAL);
}

// False when the child closed its end without a word. `listener` is left alone when none came.
bool hear(int socket, int& error, std::optional<FilterListener>& listener) {
  iovec data[] = {{&error, sizeof error}};
  FileSpace space;
  msghdr message{};
  message.msg_iov = data;
  message.msg_iovlen = std::size(data);
  message.msg_control = space.bytes;
  message.msg_controllen = sizeof space.bytes;
  ssize_t got{};
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error) return false;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
    int file{};
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
    listener.emplace(file);
  }
  return true;
}

[[noreturn]] void become_program(const ProgramPlan& plan, const sigset_t& signals, int socket) {
  std::vector<char*> arguments;
  for (const std::string& argument : plan.command) {
    arguments.push_back(const_cast<char*>(argument.data()));
  }
  arguments.push_back(nullptr);
  for (const auto& [name, value] : plan.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  const int listener = install_filter();
  if (listener < 0) {
    say(socket, errno, {});
    ::_exit(EXIT_FAILURE);
  }
  say(socket, EMFILE, listener);  // which is the error where the file does not arrive
  // The socket and the serving end close as the program begins.
  ::execvp(arguments[0], arguments.data());
  say(socket, errno, {});
  ::_exit(EXIT_FAILURE);
}

Result<StartedProgram> filter_refused(int error) {
  if (error == EBUSY) {
    return missing_capability(
        "the kernel does not show what the program does, because another supervisor, such as a "
        "container's, watches it already (seccomp: {}); start demarc exec outside of it",
        std::strerror(error));
  }
  if (error == EMFILE || error == ENFILE) {
    return missing_capability(
        "too many files are open to watch the program ({}): raise the limit "
        "(ulimit -n)",
        std::strerror(error));
  }
  return missing_capability(
      "the kernel does not show which processes reach the GPU (seccomp user notification: {}); "
      "Linux 5.9 or later is needed",
      std::strerror(error));
}

}  // namespace

Result<StartedProgram> start_program(const ProgramPlan& plan, const sigset_t& signals) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return missing_capability("cannot make a socket: {}", std::strerror(errno));
  }
  const pid_t child = ::fork();
  if (child == 0) become_program(plan, signals, ends[1]);
  const int fork_error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return missing_capability("cannot start a process: {}", std::strerror(fork_error));
  }
  int error = ECHILD;  // unless it says another
  std::optional<FilterListener> listener;
  hear(ends[0], error, listener);
  const bool exec_failed = listener && hear(ends[0], error, listener);
  ::close(ends[0]);
  if (listener && !exec_failed) return StartedProgram{child, *std::move(listener)};
  ::kill(child, SIGKILL);  // one whose calls would not be seen
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (exec_failed) {
    return invalid_input("{}: cannot be started: {}", plan.command[0], std::strerror(error));
  }
  return filter_refused(error);
}

}  // namespace demarc::cuda
