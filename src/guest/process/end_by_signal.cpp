// The signal handlers: they ask demarc serve, with calls that a handler may make, and then let the
// signal do what it does by default.
#include "process/end_by_signal.hpp"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "demarc/lease/messages.hpp"
#include "demarc/lease/packet.hpp"

namespace demarc::cuda::end_by_signal {
namespace {

// Among those that end a process by default: what a thread brings upon itself, so that it cannot go
// on; and what comes from elsewhere, SIGKILL aside.
constexpr int faults[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
constexpr int requests[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGUSR1, SIGUSR2,
                            SIGPIPE, SIGALRM,   SIGTERM, SIGXCPU, SIGXFSZ,
                            SIGPROF, SIGVTALRM, SIGPOLL, SIGPWR,  SIGSTKFLT};
constexpr int patience_ms = 30'000;  // demarc serve gives its daemon of MPS 20 s

// For ever: a signal may come while the process exits.
struct Taker {
  lease::PacketSocket connection;  // asks nothing else: no answer of it is another thread's
  std::string question;
  std::string answer;
  pid_t process = 0;
  sem_t asked = {};  // by a request, `by`
  std::atomic<int> by{};
};
Taker* taker = nullptr;
std::atomic<bool> ending{false};

// What demarc serve said instead of that it has ended the work.
struct Refusal {
  char text[1024];
  std::size_t bytes = 0;
};

bool work_was_ended(Refusal& refusal) {
  if (!taker->connection.is_open()) return false;
  const int file = taker->connection.file();
  const std::string& question = taker->question;
  if (::send(file, question.data(), question.size(), MSG_NOSIGNAL) < 0) return false;
  pollfd waiting{file, POLLIN, {}};
  if (::poll(&waiting, 1, patience_ms) != 1) return false;
  const ssize_t bytes = ::recv(file, refusal.text, sizeof refusal.text, MSG_DONTWAIT);
  if (bytes > 0) refusal.bytes = static_cast<std::size_t>(bytes);
  return std::string_view(refusal.text, refusal.bytes) == taker->answer;
}

void write_out(std::string_view text) {
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

void end_work() {
  Refusal refusal;
  if (work_was_ended(refusal)) return;
  write_out(
      "demarc exec: a signal ends this process, and demarc serve could not end its work on the "
      "card: the work of its neighbours may fail\n");
  if (refusal.bytes == 0) return;
  write_out("demarc serve said: ");
  write_out({refusal.text, refusal.bytes});
  write_out("\n");
}

// It comes as soon as this thread does not block it.
void have_by_default(int signal) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(signal, &by_default, nullptr);
  ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
}

// A child that was forked off has nothing on the card.
bool is_child() {
  return ::getpid() != taker->process;
}

// Handlers run with all signals blocked in their thread.
void on_fault(int signal) {
  if (!is_child()) {
    if (ending.exchange(true)) hold();  // another thread ends the process
    end_work();
  }
  have_by_default(signal);
}

// The thread may be inside the driver, which ends nothing for MPS before the thread has left it: it
// goes on, and another one waits. No call here that succeeds changes its errno.
void on_request(int signal) {
  if (is_child()) {
    have_by_default(signal);
  } else if (!ending.exchange(true)) {
    taker->by.store(signal);
    ::sem_post(&taker->asked);
  }
}

void* wait_for_requests(void*) {
  while (::sem_wait(&taker->asked) != 0) {
  }
  end_work();
  const int signal = taker->by.load();
  have_by_default(signal);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  return nullptr;
}

Result<void> start_waiting() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int code = ::pthread_create(&thread, nullptr, &wait_for_requests, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code != 0) return missing_capability("no thread for signals: {}", std::strerror(code));
  ::pthread_detach(thread);
  return {};
}

void take(int signal, void (*handler)(int)) {
  struct sigaction now {};
  // A handler of either kind lies in the same place.
  if (::sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_handler = handler;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigfillset(&ours.sa_mask);
  ::sigaction(signal, &ours, nullptr);
}

}  // namespace

Result<void> take_signals(const std::string& socket) {
  DEMARC_TRY(lease::PacketSocket connection, lease::PacketSocket::connect(socket));
  taker = new Taker{std::move(connection), to_text(lease::Request(lease::EndWorkRequest{})),
                    to_text(lease::Done{}), ::getpid()};
  ::sem_init(&taker->asked, 0, 0);
  DEMARC_CHECK(start_waiting());
  for (const int signal : faults) take(signal, &on_fault);
  for (const int signal : requests) take(signal, &on_request);
  return {};
}

void hold() {
  while (ending.load(std::memory_order_relaxed)) ::pause();
}

}  // namespace demarc::cuda::end_by_signal
