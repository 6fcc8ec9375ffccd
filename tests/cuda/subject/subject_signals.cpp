// Signals that end the program, or that it takes.
#include "subject_signals.hpp"

#include <pthread.h>
#include <sys/socket.h>
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

constexpr unsigned a_while_us = 50'000;

void wait_for_file(const std::string& path) {
  while (::access(path.c_str(), F_OK) != 0) ::usleep(1000);
}

}  // namespace

void wait_no_longer() {
  constexpr unsigned patience_s = 25;
  ::alarm(patience_s);
}

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
    wait_no_longer();
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

void die_beside_calls(int signal, const std::string& socket) {
  static std::atomic<long> calls{0};
  std::thread([] {
    for (std::size_t free = 0, total = 0;; ++calls) call("cuMemGetInfo_v2", &free, &total);
  }).detach();
  while (calls.load() < 100) std::this_thread::yield();
  std::thread([socket] {
    wait_for_file(socket + ".ended");
    ::usleep(a_while_us);
    const long before = calls.load();
    ::usleep(a_while_us);
    // One that began before may return late.
    note(calls.load() <= before + 1 ? "calls stopped" : "calls went on");
    ::unlink((socket + ".hold").c_str());
  }).detach();
  ::raise(signal);
  ::pause();
}

void die_in_a_call(int signal, const std::string& socket) {
  static std::atomic<bool> returned{false};
  const std::string asked = socket + ".ended";
  call("fake_hold_synchronize", asked.c_str());
  std::thread([signal, socket, asked, caller = ::pthread_self()] {
    wait_for_file(asked + ".held");
    ::pthread_kill(caller, signal);
    wait_for_file(asked + ".seen");
    ::usleep(a_while_us);
    note(returned.load() ? "returned" : "held");
    ::unlink((socket + ".hold").c_str());
  }).detach();
  call("cuCtxSynchronize");
  returned.store(true);
  ::pause();
}

void die_twice(int signal, const std::string& socket, int second) {
  std::thread([signal] { ::raise(signal); }).detach();
  wait_for_file(socket + ".ended");
  std::thread([socket] {
    ::usleep(a_while_us);
    ::unlink((socket + ".hold").c_str());
  }).detach();
  ::raise(second);
  ::pause();
}

void take_numbers_of_files() {
  constexpr int most = 64;
  int ends[2] = {-1, -1};
  ::close_range(3, ~0U, 0);
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return;
  while (::dup(ends[1]) < most) {
  }
  if (::fork() != 0) {
    ::close(ends[0]);
    return;
  }
  // The child hears what is sent to any of them, until all have ended.
  ::setsid();
  ::close_range(static_cast<unsigned>(ends[1]), ~0U, 0);
  char byte = 0;
  const bool heard = ::recv(ends[0], &byte, sizeof byte, 0) > 0;
  note(heard ? "others heard something" : "others heard nothing");
  std::_Exit(0);
}

}  // namespace subject
