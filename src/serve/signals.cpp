// Takes signals in a thread, hands them on, and ends a process that does not end.
#include "signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "demarc/base/owned_file.hpp"

namespace demarc::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view too_late =
    "demarc serve: it was told to end, but a call did not return, of the driver or of the system: "
    "it "
    "ends by force\n";

constexpr std::chrono::milliseconds force_patience{700};

int milliseconds_until(const std::optional<Clock::time_point>& limit) {
  if (!limit) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*limit - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

}  // namespace

struct Signals::State {
  OwnedFile signals, stop, taken, handed;  // the last two: ends of a pipe
  std::chrono::duration<double> limit;
  std::function<void()> by_force;

  void run() const {
    std::optional<Clock::time_point> ends;
    for (;;) {
      pollfd items[] = {{signals.get(), POLLIN, {}}, {ends ? -1 : stop.get(), POLLIN, {}}};
      const int ready = ::poll(items, 2, milliseconds_until(ends));
      if (ready == 0) return end_by_force();
      if (items[1].revents != 0) return;
      signalfd_siginfo info{};
      if (::read(signals.get(), &info, sizeof info) != sizeof info) continue;
      const auto signal = static_cast<unsigned char>(info.ssi_signo);
      if (signal != SIGHUP && !ends)
        ends = Clock::now() + std::chrono::ceil<Clock::duration>(limit);
      static_cast<void>(!::write(handed.get(), &signal, 1));
    }
  }
  void end_by_force() const {
    // It may stand still, too.
    auto done = std::make_shared<std::promise<void>>();
    const auto ended = done->get_future();
    std::thread([force = by_force, done] {
      force();
      done->set_value();
    }).detach();
    ended.wait_for(force_patience);
    pollfd out{STDERR_FILENO, POLLOUT, {}};
    if (::poll(&out, 1, 0) > 0) {
      static_cast<void>(!::write(STDERR_FILENO, too_late.data(), too_late.size()));
    }
    ::_exit(3);
  }
};

Signals::Signals(double seconds, std::function<void()> by_force)
    : state_(std::make_shared<State>()) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  int ends[2] = {-1, -1};
  static_cast<void>(!::pipe2(ends, O_CLOEXEC | O_NONBLOCK));
  state_->taken = OwnedFile(ends[0]);
  state_->handed = OwnedFile(ends[1]);
  state_->signals = OwnedFile(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  state_->stop = OwnedFile(::eventfd(0, EFD_CLOEXEC));
  state_->limit = std::chrono::duration<double>(seconds);
  state_->by_force = std::move(by_force);
  std::thread([state = state_] { state->run(); }).detach();
}

Signals::~Signals() {
  ::eventfd_write(state_->stop.get(), 1);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::file() const {
  return state_->taken.get();
}

int Signals::next() const {
  unsigned char signal{};
  return ::read(state_->taken.get(), &signal, 1) == 1 ? signal : 0;
}

}  // namespace demarc::serve
