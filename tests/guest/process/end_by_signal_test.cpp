// What a process that a signal ends says to demarc serve first, and what it says where that fails.
// The test is the server, and the process a child of it.
#include "process/end_by_signal.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <optional>

#include "demarc/base/files.hpp"
#include "demarc/base/owned_file.hpp"
#include "demarc/lease/messages.hpp"
#include "demarc/lease/packet.hpp"
#include "paths.hpp"

namespace demarc::cuda {
namespace {

using end_by_signal::take_signals;
using testing::HasSubstr;

constexpr double signal_patience_s = 20;
constexpr int out_of_patience = -1;

// Closes both on destruction; a child that does not end by itself is killed.
class EndingProcess {
 public:
  // `work` begins with signals at their default that were taken; it goes on until it is ended.
  explicit EndingProcess(
      const std::function<void()>& work, const std::function<void()>& before = [] {}) {
    process_ = ::fork();
    if (process_ == 0) {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      const OwnedFile errors(::open(errors_.c_str(), O_WRONLY | O_CREAT, 0600));
      ::dup2(errors.get(), STDERR_FILENO);
      for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
      before();
      if (!take_signals(socket_)) ::_exit(100);
      work();
      while (true) ::pause();
    }
    pollfd coming{listener_.file(), POLLIN, 0};
    if (::poll(&coming, 1, static_cast<int>(signal_patience_s) * 1000) == 1)
      server_ = listener_.accept();
  }
  ~EndingProcess() {
    if (process_ > 0) ::kill(process_, SIGKILL);
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }
  EndingProcess(const EndingProcess&) = delete;
  EndingProcess& operator=(const EndingProcess&) = delete;

  // The next question, "the end" where the process has ended the connection.
  std::string question() const {
    if (!server_ || !server_->wait(signal_patience_s)) return "nothing came";
    const auto received = server_->receive();
    if (!received) return received.error().message;
    return received->packet ? received->packet->text : received->ended ? "the end" : "nothing";
  }
  void answer(const std::string& text) const { EXPECT_TRUE(server_->send(text).value()); }
  void hang_up() { server_.reset(); }
  // Until its first thread waits, or is gone.
  [[nodiscard]] bool waits() const {
    while (true) {
      const std::string stat = read_file(fmt::format("/proc/{}/stat", process_)).value_or("");
      const std::size_t bracket = stat.rfind(") ");
      const char state = bracket == std::string::npos ? 'X' : stat[bracket + 2];
      if (state == 'S') return true;
      if (state == 'Z' || state == 'X') return false;
    }
  }
  // The signal that ended it; 100 and more: its exit code, and 100.
  int end() {
    const OwnedFile watched(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
    pollfd ended{watched.get(), POLLIN, 0};
    if (::poll(&ended, 1, static_cast<int>(signal_patience_s) * 1000) != 1) return out_of_patience;
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 100 + WEXITSTATUS(status);
  }
  [[nodiscard]] std::string said() const { return read_file(errors_).value_or(""); }

 private:
  std::string folder_ = test::fresh_folder("end_by_signal").string();
  std::string socket_ = folder_ + "/socket";
  std::string errors_ = folder_ + "/errors";
  lease::PacketListener listener_ = lease::PacketListener::listen(socket_, std::nullopt).value();
  std::optional<lease::PacketSocket> server_;
  pid_t process_ = -1;
};

std::string end_work_question() {
  return to_text(lease::Request(lease::EndWorkRequest{}));
}
std::string work_is_ended() {
  return to_text(lease::Done{});
}

constexpr int ending_signals[] = {1,  2,  3,  4,  5,  6,  7,  8,  10, 11, 12,
                                  13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31};

TEST(SignalsThatEndAProcess, let_it_live_until_its_work_is_ended_and_then_end_it) {
  for (const int signal : ending_signals) {
    EndingProcess process([signal] { ::raise(signal); });
    ASSERT_EQ(process.question(), end_work_question()) << signal;
    ASSERT_TRUE(process.waits()) << signal;
    process.answer(work_is_ended());
    ASSERT_EQ(process.end(), signal);
    EXPECT_EQ(process.question(), "the end") << signal;
    EXPECT_EQ(process.said(), "") << signal;
  }
}

TEST(SignalsThatEndAProcess, are_said_where_the_server_ends_nothing) {
  const std::string warning =
      "demarc exec: a signal ends this process, and demarc serve could not end its work on the "
      "card: the work of its neighbours may fail\n";
  for (const int signal : {SIGTERM, SIGSEGV}) {
    EndingProcess refused([signal] { ::raise(signal); });
    ASSERT_EQ(refused.question(), end_work_question());
    refused.answer("it could not");
    ASSERT_EQ(refused.end(), signal);
    EXPECT_EQ(refused.said(), warning + "demarc serve said: it could not\n");
    EndingProcess unheard([signal] { ::raise(signal); });
    ASSERT_EQ(unheard.question(), end_work_question());
    unheard.hang_up();
    ASSERT_EQ(unheard.end(), signal);
    EXPECT_EQ(unheard.said(), warning);
    // Its descriptors are closed, and other files have their numbers.
    EndingProcess closed([signal] {
      ::close_range(3, ~0U, 0);
      while (::dup(STDOUT_FILENO) < 64) {
      }
      ::raise(signal);
    });
    ASSERT_EQ(closed.end(), signal);
    EXPECT_EQ(closed.said(), warning);
    EXPECT_EQ(closed.question(), "the end");
  }
}

TEST(SignalsThatEndAProcess, ask_nothing_at_a_number_that_is_another_sockets_now) {
  for (const int signal : {SIGTERM, SIGSEGV}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    EndingProcess process([signal, &ends] {
      ::dup2(ends[1], STDIN_FILENO);
      ::close_range(3, ~0U, 0);
      while (::dup(STDIN_FILENO) < 64) {
      }
      ::raise(signal);
    });
    ::close(ends[1]);
    EXPECT_EQ(process.end(), signal);
    char byte = 0;
    EXPECT_EQ(::recv(ends[0], &byte, 1, 0), 0) << "the end of the last one, and nothing before";
    ::close(ends[0]);
    EXPECT_THAT(process.said(), HasSubstr("could not end its work"));
  }
}

// A server that is gone when the signal comes.
TEST(SignalsThatEndAProcess, are_said_where_there_is_no_server_any_more) {
  int gone[2];
  ASSERT_EQ(::pipe(gone), 0);
  EndingProcess process([&gone] {
    ::close(gone[1]);
    char byte = 0;
    static_cast<void>(!::read(gone[0], &byte, 1));
    ::raise(SIGTERM);
  });
  process.hang_up();
  ::close(gone[0]);
  ::close(gone[1]);
  ASSERT_EQ(process.end(), SIGTERM) << "and not SIGPIPE";
  EXPECT_THAT(process.said(), HasSubstr("could not end its work"));
}

TEST(SignalsThatEndAProcess, ask_once_and_the_first_one_ends_it) {
  for (const auto& [first, second] :
       {std::pair{SIGTERM, SIGINT}, std::pair{SIGTERM, SIGABRT}, std::pair{SIGHUP, SIGTERM}}) {
    EndingProcess process([first = first, second = second] {
      ::raise(first);
      ::raise(second);
    });
    ASSERT_EQ(process.question(), end_work_question());
    ASSERT_TRUE(process.waits());
    process.answer(work_is_ended());
    ASSERT_EQ(process.end(), first) << second;
    EXPECT_EQ(process.question(), "the end") << second;
  }
}

TEST(SignalsThatEndAProcess, let_no_call_return_any_more) {
  EndingProcess process([] {
    end_by_signal::hold();  // before one has come it returns
    ::raise(SIGTERM);
    end_by_signal::hold();
    ::_exit(7);
  });
  ASSERT_EQ(process.question(), end_work_question());
  EXPECT_TRUE(process.waits()) << "it went on";
  process.answer(work_is_ended());
  EXPECT_EQ(process.end(), SIGTERM);
}

TEST(SignalsThatEndAProcess, ask_nothing_in_a_child_that_was_forked_off) {
  for (const int signal : {SIGTERM, SIGABRT}) {
    EndingProcess process([signal] {
      const pid_t child = ::fork();
      if (child == 0) {
        ::alarm(static_cast<unsigned>(signal_patience_s));
        ::raise(signal);
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      ::_exit(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    });
    ASSERT_EQ(process.end(), 100 + signal);
    EXPECT_EQ(process.question(), "the end");
    EXPECT_EQ(process.said(), "");
  }
}

TEST(SignalsThatEndAProcess, are_taken_where_they_are_at_their_default_alone) {
  static const auto own = [](int) {};
  static const auto own_with_more = [](int, siginfo_t*, void*) {};
  const auto handler_of = [](int signal) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    return now;
  };
  EndingProcess process(
      [&handler_of] {
        if (handler_of(SIGHUP).sa_handler != SIG_IGN) ::_exit(1);
        if (handler_of(SIGINT).sa_handler != own) ::_exit(2);
        if (handler_of(SIGUSR1).sa_sigaction != own_with_more) ::_exit(3);
        for (const int left : {SIGCHLD, SIGCONT, SIGTSTP, SIGWINCH, SIGURG}) {
          if (handler_of(left).sa_handler != SIG_DFL) ::_exit(4);  // they end nothing
        }
        for (const int taken : {SIGTERM, SIGSEGV}) {
          const auto now = handler_of(taken);
          // A stack that has overflowed is left, a call that waits goes on, nothing comes between.
          if ((now.sa_flags & SA_ONSTACK) == 0 || (now.sa_flags & SA_RESTART) == 0) ::_exit(5);
          if (::sigismember(&now.sa_mask, SIGUSR2) != 1) ::_exit(6);
        }
        ::_exit(0);
      },
      [] {
        ::signal(SIGHUP, SIG_IGN);
        ::signal(SIGINT, own);
        struct sigaction more {};
        more.sa_sigaction = own_with_more;
        more.sa_flags = SA_SIGINFO;
        ::sigaction(SIGUSR1, &more, nullptr);
      });
  EXPECT_EQ(process.end(), 100);
}

// No thread of Demarc's takes a signal that the program's own have blocked.
TEST(SignalsThatEndAProcess, come_to_the_threads_of_the_program) {
  EndingProcess process(
      [] {
        sigset_t now;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
        if (::sigismember(&now, SIGTERM) != 1 || ::sigismember(&now, SIGINT) != 0) ::_exit(1);
        ::kill(::getpid(), SIGTERM);
        sigset_t pending;
        ::sigpending(&pending);
        if (::sigismember(&pending, SIGTERM) != 1) ::_exit(2);
        ::pthread_sigmask(SIG_UNBLOCK, &now, nullptr);
      },
      [] {
        sigset_t blocked;
        ::sigemptyset(&blocked);
        ::sigaddset(&blocked, SIGTERM);
        ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
      });
  ASSERT_EQ(process.question(), end_work_question());
  process.answer(work_is_ended());
  EXPECT_EQ(process.end(), SIGTERM);
}

TEST(SignalsThatEndAProcess, are_not_taken_without_a_server) {
  const std::string nowhere = (test::fresh_folder("nowhere") / "socket").string();
  EXPECT_THAT(take_signals(nowhere).error().message, HasSubstr("demarc serve does not run there"));
}

TEST(SignalsThatEndAProcess, are_not_taken_without_room_for_a_thread) {
  const std::string path = (test::fresh_folder("threadless") / "socket").string();
  const auto listener = lease::PacketListener::listen(path, std::nullopt).value();
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    if (::chmod(path.c_str(), 0666) != 0 || ::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(1);
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);  // root may have any number
    const auto taken = take_signals(path);
    if (taken) ::_exit(3);
    ::_exit(taken.error().message == "no thread for signals: Resource temporarily unavailable" ? 0
                                                                                               : 4);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

}  // namespace
}  // namespace demarc::cuda
