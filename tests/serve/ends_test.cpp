// What a server does beside serving: it ends in time, tells its service manager, and keeps a log.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>

#include "demarc/base/files.hpp"
#include "demarc/serve/work_ender.hpp"
#include "fork_at_rest.hpp"
#include "log.hpp"
#include "notify.hpp"
#include "paths.hpp"
#include "signals.hpp"

namespace demarc::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

int exit_code_of(const std::function<void()>& work) {
  const pid_t process = test::fork_at_rest();
  if (process == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(SignalsOfAServer, are_handed_on_one_by_one) {
  EXPECT_EQ(exit_code_of([] {
              const Signals signals(60);
              if (signals.next() != 0) ::_exit(1);
              for (const int signal : {SIGHUP, SIGTERM, SIGINT}) {
                ::kill(::getpid(), signal);
                int next = 0;
                while (next == 0) next = signals.next();
                if (next != signal) ::_exit(2);
              }
            }),
            0);
}

TEST(SignalsOfAServer, end_a_process_that_stands_still) {
  const std::string done = test::fresh_folder("signals") / "done";
  for (const int signal : {SIGTERM, SIGINT}) {
    EXPECT_EQ(exit_code_of([&] {
                const Signals signals(0.01, [&] { static_cast<void>(write_file(done, "forced")); });
                ::kill(::getpid(), signal);
                for (;;) ::pause();
              }),
              3);
    EXPECT_EQ(read_file(done).value(), "forced");
  }
}

// The one who reads what it says may stand still, too.
TEST(SignalsOfAServer, end_a_process_in_words_where_these_can_be_written_at_once) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  const auto ended = [&](bool full) {
    const pid_t process = test::fork_at_rest();
    if (process == 0) {
      ::dup2(pipe[1], STDERR_FILENO);
      ::fcntl(STDERR_FILENO, F_SETFL, full ? O_NONBLOCK : 0);
      while (full && ::write(STDERR_FILENO, "0123456789abcdef", 16) > 0) {
      }
      ::fcntl(STDERR_FILENO, F_SETFL, 0);
      const Signals signals(0.01);
      ::kill(::getpid(), SIGTERM);
      for (;;) ::pause();
    }
    int status = 0;
    for (int looks = 0; ::waitpid(process, &status, WNOHANG) == 0; ++looks) {
      if (looks == 10'000) ::kill(process, SIGKILL);
      ::usleep(1000);
    }
    return status;
  };
  EXPECT_EQ(ended(false), 3 << 8);
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  std::string said(1000, ' ');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(pipe[0], said.data(), 1000), 0)));
  EXPECT_EQ(said,
            "demarc serve: it was told to end, but a call did not return, of the driver or of the "
            "system: it ends by force\n");
  EXPECT_EQ(ended(true), 3 << 8);
  for (const int end : pipe) ::close(end);
}

TEST(SignalsOfAServer, that_come_again_put_the_end_off_no_longer) {
  EXPECT_EQ(exit_code_of([] {
              const Signals signals(0.2);
              for (int i = 0; i < 200; ++i) {
                ::kill(::getpid(), SIGTERM);
                ::usleep(50'000);
              }
            }),
            3);
}

TEST(SignalsOfAServer, are_as_they_were_when_it_is_gone) {
  const auto blocked = [](int signal) {
    sigset_t set;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
    return ::sigismember(&set, signal) == 1;
  };
  EXPECT_EQ(exit_code_of([&] {
              {
                const Signals signals(60);
                if (!blocked(SIGTERM) || !blocked(SIGINT) || !blocked(SIGHUP)) ::_exit(1);
              }
              if (blocked(SIGTERM) || blocked(SIGINT) || blocked(SIGHUP)) ::_exit(2);
              ::kill(::getpid(), SIGTERM);
              for (int i = 0; i < 1000; ++i) ::usleep(10'000);
            }),
            128 + SIGTERM);
}

TEST(SignalsOfAServer, leave_no_thread_behind) {
  EXPECT_EQ(exit_code_of([] {
              const auto threads = [] {
                const std::filesystem::directory_iterator all("/proc/self/task");
                return std::distance(begin(all), end(all));
              };
              const auto before = threads();
              {
                const Signals signals(60);
                if (threads() <= before) ::_exit(1);
              }
              for (int i = 0; i < 1000 && threads() > before; ++i) ::usleep(10'000);
              if (threads() > before) ::_exit(2);
            }),
            0);
}

TEST(SignalsOfAServer, end_a_process_where_force_stands_still_too) {
  EXPECT_EQ(exit_code_of([] {
              const Signals signals(0.01, [] {
                for (;;) ::pause();
              });
              ::kill(::getpid(), SIGTERM);
              for (;;) ::pause();
            }),
            3);
}

TEST(SignalsOfAServer, end_a_process_that_stands_still_after_it_has_served) {
  EXPECT_EQ(exit_code_of([] {
              {
                const Signals signals(0.05);
                ::kill(::getpid(), SIGTERM);
                while (signals.next() == 0) ::usleep(1000);
              }
              for (;;) ::pause();
            }),
            3);
}

TEST(SignalsOfAServer, end_nobody_who_was_not_told_to) {
  EXPECT_EQ(exit_code_of([] {
              const Signals signals(0.001);
              ::kill(::getpid(), SIGHUP);
              while (signals.next() == 0) ::usleep(1000);
              ::usleep(20'000);
            }),
            0);
}

TEST(ServiceManager, is_told_at_its_socket) {
  const std::string path = test::fresh_folder("notify") / "socket";
  for (const std::string& name : {path, "@" + path}) {
    const int socket = ::socket(AF_UNIX, SOCK_DGRAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), length), 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    tell_service_manager("READY=1");
    char text[16] = {};
    EXPECT_EQ(::recv(socket, text, sizeof text, MSG_DONTWAIT), 7);
    EXPECT_STREQ(text, "READY=1");
    ::unsetenv("NOTIFY_SOCKET");
    tell_service_manager("READY=1");
    EXPECT_EQ(::recv(socket, text, sizeof text, MSG_DONTWAIT), -1);
    ::close(socket);
  }
}

TEST(LogOfAServer, waits_for_no_reader) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  const std::string much(4096, 'x');
  while (::write(pipe[1], much.data(), much.size()) > 0) {
  }
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); }, pipe[1]);
  log.say("first");
  log.say("second");
  EXPECT_TRUE(lines.empty());
  std::string taken(1 << 20, '\0');
  ASSERT_GT(::read(pipe[0], taken.data(), taken.size()), 0);
  log.say("third");
  EXPECT_THAT(lines, ElementsAre("lines that were left out here: 2", "third"));
  for (const int end : pipe) ::close(end);
}

TEST(LogOfAServer, has_a_limited_number_of_lines) {
  std::size_t lines = 0;
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  Log log([&](const std::string&) { ++lines; }, nothing);
  for (std::size_t i = 0; i < 2 * Log::max_lines; ++i) log.say("again");
  EXPECT_EQ(lines, Log::max_lines);
  const auto later = Log::Clock::now() + std::chrono::seconds(11);
  for (std::size_t i = 0; i < 2 * Log::max_lines; ++i) log.say("again", later);
  EXPECT_EQ(lines, 2 * Log::max_lines + 1) << "with how many were left out";
  ::close(nothing);
}

TEST(WorkOfProcesses, that_wait_is_ended_together_and_answered_apart) {
  std::vector<std::size_t> calls;
  std::atomic<bool> holds{true};
  WorkEnder ender([&](const std::vector<WorkTarget>& targets) {
    while (holds) ::usleep(1000);
    calls.push_back(targets.size());
    std::vector<Result<void>> results(targets.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].process == 3) results[i] = check_failed("not three");
      if (targets[i].process == 5) results[i] = check_failed("not five");
    }
    return results;
  });
  const auto targets = [](const std::vector<pid_t>& processes) {
    std::vector<WorkTarget> all;
    for (const pid_t process : processes) all.push_back({process, OwnedFile()});
    return all;
  };
  const auto first = ender.begin(targets({1}));
  ::usleep(10'000);  // the first call has begun, as a rule
  const auto second = ender.begin(targets({2, 3, 5}));
  const auto third = ender.begin(targets({4}));
  holds = false;
  std::map<WorkEnder::Job, std::string> words;
  for (int looks = 0; words.size() < 3; ++looks) {
    ASSERT_LT(looks, 20'000) << "a job is not done";
    ::usleep(1000);
    for (const auto& done : ender.take_done()) {
      words[done.job] = done.result ? "ended" : done.result.error().message;
      EXPECT_EQ(done.targets.size(), done.job == second ? 3U : 1U) << "they are kept, each once";
    }
  }
  EXPECT_EQ(words[first], "ended");
  EXPECT_EQ(words[second], "not three") << "the first of them that does not end";
  EXPECT_EQ(words[third], "ended");
  EXPECT_LE(calls.size(), 2U) << "one question each";
}

TEST(WorkOfProcesses, is_over_for_one_job_while_what_is_left_of_another_is_looked_for) {
  std::atomic<bool> looks{true}, holds{true}, held{false};
  WorkEnder ender([&](const std::vector<WorkTarget>& targets) {
    for (held = true; holds;) ::usleep(1000);
    return std::vector<Result<void>>(targets.size());
  });
  std::vector<WorkTarget> ended;
  ended.push_back({1, OwnedFile()});
  const auto before = ender.begin(std::move(ended));
  while (!held) ::usleep(100);
  const auto first = ender.begin({}, [&]() -> Result<void> {
    while (looks) ::usleep(1000);
    return check_failed("a child is left");
  });
  const auto second = ender.begin({});
  holds = false;
  std::vector<WorkEnder::Job> order;
  std::string words;
  for (int tries = 0; order.size() < 3 && tries < 20'000; ++tries) {
    ::usleep(1000);
    for (const auto& done : ender.take_done()) {
      order.push_back(done.job);
      if (done.job == second) looks = false;
      if (!done.after) words = done.after.error().message;
    }
  }
  looks = false;
  EXPECT_THAT(order, ElementsAre(before, second, first));
  EXPECT_EQ(words, "a child is left");
}

TEST(WorkOfProcesses, of_all_gathered_jobs_is_killed_before_what_is_left_of_one_is_looked_for) {
  WorkEnder ender([&](const std::vector<WorkTarget>& targets) {
    return std::vector<Result<void>>(targets.size());
  });
  const auto staying = [] {
    const pid_t process = test::fork_at_rest();
    if (process == 0) {
      for (;;) ::pause();
    }
    return process;
  };
  const auto target = [](pid_t process) {
    return WorkTarget{process, OwnedFile(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)))};
  };
  const pid_t processes[] = {staying(), staying()};
  const WorkTarget seen[] = {target(processes[0]), target(processes[1])};
  std::atomic<int> alive{0};
  ender.gather(true);
  for (const pid_t process : processes) {
    std::vector<WorkTarget> one;
    one.push_back(target(process));
    ender.begin(std::move(one), [&]() -> Result<void> {
      for (const WorkTarget& other : seen) alive += other.lives() ? 1 : 0;
      return {};
    });
    ::usleep(20'000);
    EXPECT_TRUE(ender.take_done().empty()) << "it waits for the others";
  }
  ender.gather(false);
  std::size_t found = 0;
  for (int looks = 0; found < 2 && looks < 20'000; ++looks) {
    ::usleep(1000);
    found += ender.take_done().size();
  }
  EXPECT_EQ(found, 2U);
  EXPECT_EQ(alive, 0);
  for (const pid_t process : processes) ::waitpid(process, nullptr, 0);
}

}  // namespace
}  // namespace demarc::serve
