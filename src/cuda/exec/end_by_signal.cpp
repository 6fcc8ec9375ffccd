// The handler: asks demarc serve by what may be called in one, and has the signal do what it does
// by default.
#include "exec/end_by_signal.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

#include "demarc/lease/messages.hpp"
#include "demarc/lease/packet.hpp"

namespace demarc::cuda::end_by_signal {
namespace {

// Those that end a process by default, SIGKILL aside.
constexpr int ending_signals[] = {
    SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP,   SIGABRT,   SIGBUS,  SIGFPE,
    SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM,   SIGTERM,   SIGXCPU, SIGXFSZ,
    SIGPROF, SIGPOLL, SIGPWR,  SIGSYS,  SIGVTALRM, SIGSTKFLT,
};
constexpr int patience_ms = 30'000;  // demarc serve gives its daemon of MPS 20 s

// For ever: a signal may come while the process exits.
struct Taker {
  lease::PacketSocket connection;  // asks nothing else: no answer of it is another thread's
  std::string question;
  pid_t process;
};
const Taker* taker = nullptr;
std::atomic<bool> ending{false};

bool work_was_ended() {
  const int file = taker->connection.file();
  if (::send(file, taker->question.data(), taker->question.size(), MSG_NOSIGNAL) < 0) return false;
  pollfd answer{file, POLLIN, 0};
  char answered = 0;
  return ::poll(&answer, 1, patience_ms) == 1 &&
         ::recv(file, &answered, sizeof answered, MSG_DONTWAIT) > 0;
}

void say(std::string_view text) {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

// With all signals blocked in its thread.
void on_signal(int signal) {
  const int error = errno;
  // A child that was forked off has nothing on the card.
  if (::getpid() == taker->process) {
    if (ending.exchange(true)) hold();  // another thread ends it
    if (!work_was_ended()) {
      say("demarc exec: a signal ends this process, and demarc serve could not end its work on the "
          "card: its neighbours' may fail\n");
    }
  }
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(signal, &by_default, nullptr);
  // It comes when the handler returns, where it came first.
  ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
  errno = error;
}

void take(int signal) {
  struct sigaction now {};
  if (::sigaction(signal, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_handler = &on_signal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigfillset(&ours.sa_mask);
  ::sigaction(signal, &ours, nullptr);
}

}  // namespace

Result<void> take_signals(const std::string& socket) {
  DEMARC_TRY(lease::PacketSocket connection, lease::PacketSocket::connect(socket));
  taker = new Taker{std::move(connection), to_text(lease::Request(lease::EndWorkRequest{})),
                    ::getpid()};
  for (const int signal : ending_signals) take(signal);
  return {};
}

void hold() {
  while (ending.load(std::memory_order_relaxed)) ::pause();
}

}  // namespace demarc::cuda::end_by_signal
