// Forks. The child filters itself, gives away the serving end and becomes the program.
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

// What the child says: that it has the filter (with the serving end), or what failed.
struct Word {
  enum class Step : int { filtered, no_filter, no_program } step;
  int error;
};

struct FileSpace {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int))] = {};
};

void say(int socket, Word word, std::optional<int> file) {
  iovec data[] = {{&word, sizeof word}};
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

// False when the child closed its end without a word. `file` is left alone when none came.
bool hear(int socket, Word& word, int& file) {
  iovec data[] = {{&word, sizeof word}};
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
  if (got != sizeof word) return false;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
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
    say(socket, {Word::Step::no_filter, errno}, {});
    ::_exit(EXIT_FAILURE);
  }
  say(socket, {Word::Step::filtered, {}}, listener);
  ::close(listener);
  // The socket closes as the program begins.
  ::execvp(arguments[0], arguments.data());
  say(socket, {Word::Step::no_program, errno}, {});
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
  Word word{Word::Step::no_filter, ECHILD};
  int file = -1;
  const bool filtered = hear(ends[0], word, file) && word.step == Word::Step::filtered;
  const bool exec_failed = filtered && hear(ends[0], word, file);
  ::close(ends[0]);
  FilterListener listener(file);
  if (filtered && !exec_failed && file >= 0) return StartedProgram{child, std::move(listener)};
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (exec_failed) {
    return invalid_input("{}: cannot be started: {}", plan.command[0], std::strerror(word.error));
  }
  return filter_refused(word.error);
}

}  // namespace demarc::cuda
