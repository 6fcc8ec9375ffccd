// Signals that end the program, or that it takes.
#include "subject_signals.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "subject_card.hpp"

namespace subject {
namespace {

sigset_t passed_on() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT}) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

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

void send_to_parent_and_take(pid_t parent, int signal) {
  block_signals();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    take_signal("grandchild");
    std::_Exit(0);
  }
  ::kill(parent, signal);
  take_signal("program");
  ::waitpid(child, nullptr, 0);
}

void die_in_child(int signal) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(signal);
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  note("child " + std::to_string(WIFSIGNALED(status) ? WTERMSIG(status) : -1));
}

void die_beside_calls(int signal, const std::string& socket, bool long_ones) {
  static std::atomic<long> begun{0};
  static std::atomic<long> returned{0};
  constexpr unsigned a_while_us = 50'000;
  const std::string asked = socket + ".ended";
  if (long_ones) call("fake_hold_synchronize", asked.c_str());
  std::thread([long_ones] {
    for (std::size_t free = 0, total = 0;; ++returned) {
      ++begun;
      long_ones ? call("cuCtxSynchronize") : call("cuMemGetInfo_v2", &free, &total);
    }
  }).detach();
  while (begun.load() < (long_ones ? 1 : 100)) std::this_thread::yield();
  ::usleep(a_while_us);
  std::thread([socket, asked, long_ones] {
    while (::access(asked.c_str(), F_OK) != 0) ::usleep(1000);
    ::usleep(a_while_us);
    const long before = returned.load();
    ::usleep(a_while_us);
    // One short call that began before may return late.
    const long most = long_ones ? 0 : before + 1;
    note(returned.load() <= most ? "calls stopped" : "calls went on");
    ::unlink((socket + ".hold").c_str());
  }).detach();
  ::raise(signal);
}

}  // namespace subject
