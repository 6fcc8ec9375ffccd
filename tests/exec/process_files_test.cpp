// What is read of other processes, and work in a process of its own.
#include "process_files.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <thread>

#include "demarc/driver/in_child.hpp"
#include "supervised.hpp"

namespace demarc::cuda {
namespace {

using test::Supervised;
using testing::HasSubstr;

// A child that does `work` and then lives until it is told to end.
class Living {
 public:
  explicit Living(const std::function<void()>& work = {}) {
    int down[2];
    int up[2];
    EXPECT_EQ(::pipe2(down, O_CLOEXEC) | ::pipe2(up, O_CLOEXEC), 0);
    process = ::fork();
    if (process == 0) {
      ::close(down[1]);
      if (work) work();
      char byte = 0;
      if (::write(up[1], "x", 1) == 1) static_cast<void>(::read(down[0], &byte, 1));
      std::_Exit(0);
    }
    ::close(down[0]);
    ::close(up[1]);
    end_ = down[1];
    char byte = 0;
    EXPECT_EQ(::read(up[0], &byte, 1), 1);
    ::close(up[0]);
  }
  ~Living() {
    ::close(end_);
    ::waitpid(process, nullptr, 0);
  }
  Living(const Living&) = delete;
  Living& operator=(const Living&) = delete;
  pid_t process = 0;

 private:
  int end_ = -1;
};

TEST(ProcessFiles, tell_the_process_of_a_thread_its_name_and_its_mark) {
  EXPECT_EQ(process_of(::getpid()), ::getpid());
  pid_t thread = 0;
  std::optional<pid_t> process;
  std::thread([&] {
    thread = ::gettid();
    process = process_of(thread);
  }).join();
  EXPECT_NE(thread, ::getpid());
  EXPECT_EQ(process, ::getpid());
  const Living named([] { ::prctl(PR_SET_NAME, "a) 7 (b"); });
  EXPECT_EQ(name_of(named.process), "a) 7 (b");
  EXPECT_TRUE(start_time_of(named.process)) << "brackets in a name confuse nobody";
  EXPECT_EQ(image_mark(named.process), image_mark(::getpid())) << "of a fork, the same program";
  EXPECT_TRUE(image_mark(named.process));
}

TEST(ProcessFiles, of_a_process_that_is_not_there_tell_nothing) {
  const pid_t gone = ::fork();
  if (gone == 0) std::_Exit(0);
  ::waitpid(gone, nullptr, 0);
  EXPECT_FALSE(process_of(gone));
  EXPECT_FALSE(image_mark(gone));
  EXPECT_FALSE(start_time_of(gone));
  EXPECT_EQ(name_of(gone), "of unknown name");
}

TEST(ProcessFiles, tell_a_variable_of_a_process_by_its_whole_name) {
  const pid_t child = ::fork();
  if (child == 0) {
    const char* const environment[] = {"OTHER_NAME=1", "NAMES=2", "NAME=three=3", "NAME=4",
                                       nullptr};
    ::execle("/bin/sleep", "sleep", "60", nullptr, environment);
    ::_exit(1);
  }
  // The name of the new program is there before its variables are.
  for (int i = 0; i < 10'000 && variable_of(child, "OTHER_NAME") != "1"; ++i) ::usleep(1000);
  EXPECT_EQ(variable_of(child, "NAME"), "three=3");
  EXPECT_EQ(variable_of(child, "NAM"), "");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(variable_of(child, "NAME"), "");
}

TEST(ProcessFiles, memory_is_read_whole_or_not_at_all) {
  const std::uint64_t here = 0x1234567890abcdef;
  std::uint64_t copy = 0;
  EXPECT_TRUE(read_memory(::getpid(), reinterpret_cast<std::uint64_t>(&here), &copy, sizeof copy));
  EXPECT_EQ(copy, here);
  EXPECT_FALSE(read_memory(::getpid(), 8, &copy, sizeof copy));
}

TEST(ProcessFiles, a_file_may_be_the_device_by_its_name_or_its_kind_or_where_it_cannot_be_seen) {
  const auto folder = test::fresh_folder("device");
  const auto opened = [&](const char* name) {
    return ::open((folder / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  };
  const int ordinary = opened("notes");
  const int named = opened("nvidia-uvm");
  const int device = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_FALSE(may_be_device(::getpid(), ordinary, "nvidia-uvm"));
  EXPECT_TRUE(may_be_device(::getpid(), named, "nvidia-uvm"));
  EXPECT_TRUE(may_be_device(::getpid(), device, "nvidia-uvm")) << "another node of it";
  ::close(ordinary);
  EXPECT_TRUE(may_be_device(::getpid(), ordinary, "nvidia-uvm")) << "who knows";
  ::close(named);
  ::close(device);
}

TEST(ProcessFiles, a_family_is_the_children_since_then_and_all_below_them) {
  const Living child([] {
    // A grandchild that ends with its parent.
    if (::fork() == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) ::pause();
    }
  });
  const auto since = start_time_of(child.process).value();
  const auto family = family_since(since);
  EXPECT_EQ(std::count(family.begin(), family.end(), child.process), 1);
  EXPECT_EQ(std::count(family.begin(), family.end(), ::getpid()), 0);
  EXPECT_GE(family.size(), 2U);
  bool grandchild = false;
  for (const pid_t process : family) grandchild |= process != child.process;
  EXPECT_TRUE(grandchild);
  const auto later = family_since(since + 1);
  EXPECT_EQ(std::count(later.begin(), later.end(), child.process), 0) << "it was there before";
}

TEST(ProcessFiles, a_process_has_begun_when_it_was_started) {
  const auto ticks = [] {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const auto of_a_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    return static_cast<std::uint64_t>(now.tv_sec) * of_a_second +
           static_cast<std::uint64_t>(now.tv_nsec) * of_a_second / 1'000'000'000;
  };
  const std::uint64_t before = ticks();
  const Living child;
  const std::uint64_t begun = start_time_of(child.process).value();
  EXPECT_GE(begun, before);
  EXPECT_LE(begun, ticks());
}

ChildAnswer good(std::string bytes) {
  return {true, 0, std::move(bytes)};
}

TEST(WorkInAChild, answers_whole_however_long) {
  EXPECT_EQ(answer_of_child([] { return good("short"); }, child_limit).value(), "short");
  EXPECT_EQ(answer_of_child([] { return good(""); }, child_limit).value(), "");
  std::string longer(300000, 'a');  // more than a pipe holds
  for (std::size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<char>('a' + i % 23);
  EXPECT_EQ(answer_of_child([&] { return good(longer); }, child_limit).value(), longer);
}

TEST(WorkInAChild, brings_an_error_back_as_it_was) {
  for (const ErrorKind kind :
       {ErrorKind::invalid_input, ErrorKind::missing_capability, ErrorKind::check_failed}) {
    const auto failed = in_child<int>([kind]() -> Result<int> {
      return tl::unexpected(Error{kind, "no such card"});
    });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().kind, kind);
    EXPECT_EQ(failed.error().message, "no such card");
  }
  EXPECT_EQ(in_child<int>([]() -> Result<int> { return 4711; }).value(), 4711);
}

TEST(WorkInAChild, that_ends_without_an_answer_failed) {
  const auto ended = answer_of_child([]() -> ChildAnswer { std::_Exit(5); }, child_limit);
  EXPECT_EQ(ended.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(ended.error().message, HasSubstr("ended without an answer (exit code 5)"));
  const auto killed = answer_of_child(
      []() -> ChildAnswer {
        ::raise(SIGKILL);
        return {};
      },
      child_limit);
  EXPECT_THAT(killed.error().message, HasSubstr("ended without an answer (signal 9)"));
}

TEST(WorkInAChild, that_hangs_is_ended_and_failed) {
  const auto hung = answer_of_child(
      []() -> ChildAnswer {
        while (true) ::pause();
      },
      std::chrono::milliseconds(20));
  EXPECT_EQ(hung.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(hung.error().message, HasSubstr("did not answer within 20 ms"));
}

TEST(WorkInAChild, leaves_no_open_file_behind) {
  const int next = ::dup(0);
  ::close(next);
  static_cast<void>(answer_of_child([] { return good("x"); }, child_limit));
  const int later = ::dup(0);
  ::close(later);
  EXPECT_EQ(later, next);
}

// Where the kernel gives no more files, or none of the size that is needed.
TEST(WithoutFiles, nothing_is_started_and_the_reason_is_said) {
  EXPECT_EQ(
      Supervised::apart([] {
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_NOFILE, &none);
        const auto says = [](const auto& result, const char* words) {
          return !result && result.error().kind == ErrorKind::missing_capability &&
                 result.error().message.find(words) == 0;
        };
        if (!says(Control::create(), "cannot make the control block: Too many open files"))
          return 1;
        if (!says(SignalFile::open(), "cannot take signals from a file: ")) return 2;
        if (!says(answer_of_child([] { return good(""); }, child_limit), "cannot make a pipe: "))
          return 3;
        sigset_t signals;
        ::sigemptyset(&signals);
        return says(start_program({{"true"}, {}}, signals), "cannot make a socket: ") ? 0 : 4;
      }),
      0);
}

std::size_t open_files() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.path().empty() ? 0U : 1U;
  }
  return count;
}

TEST(Supervision, leaves_no_open_file_behind) {
  const std::size_t before = open_files();
  {
    Supervised program("files");
    EXPECT_EQ(program.run_command({"true"}), 0);
    EXPECT_EQ(program.run_command({"/no/such/program"}), -1);
    EXPECT_TRUE(Control::open(program.control.value()));
    EXPECT_TRUE(program.control.store_mask({}, false));
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace demarc::cuda
