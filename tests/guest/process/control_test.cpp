// The control block, its token, and masks whose writer dies.
#include "demarc/guest/control.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "paths.hpp"
#include "supervised.hpp"

namespace demarc::cuda {
namespace {

using test::Supervised;
using testing::HasSubstr;

std::string file_of(const Control& control) {
  return control.value().substr(0, control.value().find('#'));
}

std::string refusal(const std::string& value) {
  const auto opened = Control::open(value);
  return opened ? "opened" : opened.error().message;
}

TEST(ControlBlocks, are_shared_with_whoever_knows_their_name) {
  const Control made = Control::create().value();
  const auto opened = Control::open(made.value());
  ASSERT_TRUE(opened) << opened.error().message;
  made.block().counters.graphs = 3;
  EXPECT_EQ(opened->block().counters.graphs, 3U);
  EXPECT_NE(Control::create()->value(), made.value());
  const auto& token = made.block().token;
  EXPECT_EQ(made.value(), fmt::format("{}#{:016x}{:016x}", file_of(made), token[0], token[1]));
  EXPECT_NE(token[0], token[1]);
  const std::uint64_t report = made.block().report_token;
  EXPECT_EQ(opened->block().report_token, report);
  EXPECT_NE(Control::create()->block().report_token, report);
  EXPECT_EQ(made.value().find(fmt::format("{:016x}", report)), std::string::npos);
}

TEST(ControlBlocks, are_refused_with_another_token_magic_or_size) {
  const Control made = Control::create().value();
  const std::string zeros(32, '0');
  EXPECT_THAT(refusal(file_of(made) + "#" + zeros), HasSubstr("not the control block"));
  EXPECT_THAT(refusal(file_of(made) + "#"), HasSubstr("not the control block"));
  EXPECT_THAT(refusal(file_of(made)), HasSubstr("expected /proc/PID/fd/N#TOKEN"));
  EXPECT_THAT(refusal("/proc/self/fd/9999#" + zeros), HasSubstr("cannot be opened"));
  made.block().bytes += 8;
  EXPECT_THAT(refusal(made.value()), HasSubstr("another version"));
  made.block().bytes -= 8;
  made.block().magic += 1;
  EXPECT_THAT(refusal(made.value()), HasSubstr("another version"));
  made.block().magic -= 1;
  EXPECT_EQ(refusal(made.value()), "opened");
}

// As a file whose number the block's had before.
TEST(ControlBlocks, files_that_others_could_shorten_or_that_have_another_size_are_refused) {
  const Control made = Control::create().value();
  const std::string token = made.value().substr(made.value().find('#'));
  for (const bool sealed : {false, true}) {
    const int file = ::memfd_create("planted", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const auto bytes = sizeof(ControlBlock) + (sealed ? 4096 : 0);
    ASSERT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), 0);
    ASSERT_EQ(::pwrite(file, &made.block(), sizeof(ControlBlock), 0),
              static_cast<ssize_t>(sizeof(ControlBlock)));
    if (sealed) ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_THAT(refusal(fmt::format("/proc/self/fd/{}{}", file, token)),
                HasSubstr("not the control block"))
        << sealed;
    ::close(file);
  }
  const int own = ::open(file_of(made).c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_NE(::ftruncate(own, 0), 0) << "the block itself cannot be shortened";
  EXPECT_NE(::ftruncate(own, sizeof(ControlBlock) + 1), 0) << "nor lengthened";
  EXPECT_EQ(::fcntl(own, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(::fcntl(own, F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor closed to others";
  ::close(own);
}

TEST(ControlBlocks, that_cannot_be_made_say_what_is_in_the_way) {
  const auto refused_with = [](int resource, const std::string& why) {
    return Supervised::apart([&] {
      const rlimit none{0, 0};
      ::signal(SIGXFSZ, SIG_IGN);
      ::setrlimit(static_cast<__rlimit_resource>(resource), &none);
      const auto made = Control::create();
      if (made || made.error().kind != ErrorKind::missing_capability) return 1;
      return made.error().message == why ? 0 : 2;
    });
  };
  EXPECT_EQ(refused_with(RLIMIT_NOFILE, "cannot make the control block: Too many open files"), 0);
  EXPECT_EQ(refused_with(RLIMIT_FSIZE,
                         fmt::format("cannot make the control block of {} bytes: File too large: "
                                     "raise the limit (ulimit -f)",
                                     sizeof(ControlBlock))),
            0);
}

// Its number is soon that of another file.
TEST(ControlBlocks, close_their_file_once_and_that_of_another_never) {
  struct stat facts {};
  std::string file;
  {
    Control made = Control::create().value();
    file = file_of(made);
    { const Control opened = Control::open(made.value()).value(); }
    EXPECT_EQ(::stat(file.c_str(), &facts), 0) << "of the one that made it";
    const Control moved = std::move(made);
    EXPECT_TRUE(Control::open(moved.value()));
  }
  EXPECT_NE(::stat(file.c_str(), &facts), 0) << "it stays open";
}

TEST(ControlBlocks, are_no_files_of_programs_that_are_started) {
  const Control made = Control::create().value();
  const std::string file = file_of(made);
  EXPECT_EQ(::fcntl(std::stoi(file.substr(file.rfind('/') + 1)), F_GETFD), FD_CLOEXEC);
}

TEST(ControlBlocks, take_a_mask_whatever_error_an_earlier_call_had) {
  const Control made = Control::create().value();
  HardwareMask mask;
  mask.disabled[1] = 6;
  for (const int earlier : {EINTR, EACCES}) {
    errno = earlier;
    ASSERT_TRUE(made.store_mask(mask, true));
  }
  HardwareMask found;
  ASSERT_TRUE(made.block().mask.load(found));
  EXPECT_EQ(found.disabled[1], 6U);
}

TEST(ControlBlocks, are_gone_with_their_owner_however_it_ends) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(Supervised::apart([&] {
              const Control made = Control::create().value();
              const std::string& value = made.value();
              if (!Control::open(value)) return 1;
              if (::write(ends[1], value.data(), value.size()) < 0) return 1;
              return ::raise(SIGKILL);
            }),
            128 + SIGKILL);
  char value[200] = {};
  ASSERT_GT(::read(ends[0], value, sizeof value - 1), 0);
  EXPECT_THAT(refusal(value), HasSubstr("its demarc exec has ended"));
  ::close(ends[0]);
  ::close(ends[1]);
}

HardwareMask words(std::uint32_t value) {
  return HardwareMask{{value, value, value, value}};
}

TEST(ControlBlocks, writers_of_several_processes_take_turns_and_a_dead_one_loses_its_turn) {
  const Control made = Control::create().value();
  const int file = ::open(file_of(made).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  static int heard[2];
  ASSERT_EQ(::pipe2(heard, O_CLOEXEC), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    struct sigaction interrupts {};
    interrupts.sa_handler = [](int) { static_cast<void>(!::write(heard[1], "x", 1)); };
    ::sigaction(SIGUSR1, &interrupts, nullptr);
    static_cast<void>(!::write(heard[1], "b", 1));
    std::_Exit(made.store_mask(words(7), true, {}, 1'000'000) ? 0 : 1);
  }
  // It begins, a signal interrupts it, and it waits anew.
  char byte = 0;
  ASSERT_EQ(::read(heard[0], &byte, 1), 1);
  ::kill(writer, SIGUSR1);
  ASSERT_EQ(::read(heard[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(::waitpid(writer, nullptr, WNOHANG), 0) << "it did not wait for its turn";
  const auto refused = made.store_mask(words(8), true, {}, 2);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("another process holds the lock of the control"));
  ::close(heard[0]);
  ::close(heard[1]);
  HardwareMask mask;
  EXPECT_FALSE(made.block().mask.load(mask));
  ::flock(file, LOCK_UN);  // the writer has the same open file, which a close would leave open
  ::close(file);
  int status = 1;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(made.block().mask.load(mask));
  EXPECT_EQ(mask, words(7));
  // Ends with the lock held.
  EXPECT_EQ(Supervised::apart([&] {
              ::flock(::open(file_of(made).c_str(), O_RDWR), LOCK_EX);
              return 0;
            }),
            0);
  EXPECT_TRUE(made.store_mask(words(9), true));
}

// The writer is stopped at each of its instructions. What lies in memory then is what it would
// leave behind if it died there.
TEST(SharedMasks,
     a_writer_that_dies_anywhere_leaves_the_old_or_the_new_mask_and_room_for_the_next) {
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) SharedMask;
  shared->store(words(1), true);
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    shared->store(words(2), true);
    ::raise(SIGSTOP);
    std::_Exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFSTOPPED(status));
  int old_masks = 0;
  int new_masks = 0;
  while (true) {
    ASSERT_EQ(::ptrace(PTRACE_SINGLESTEP, writer, nullptr, nullptr), 0);
    ASSERT_EQ(::waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSTOPPED(status));
    if (WSTOPSIG(status) != SIGTRAP) break;
    HardwareMask mask;
    ASSERT_TRUE(shared->load(mask));
    ASSERT_TRUE(mask == words(1) || mask == words(2)) << mask.disabled[0] << mask.disabled[3];
    (mask == words(1) ? old_masks : new_masks) += 1;
    SharedMask left;
    std::memcpy(static_cast<void*>(&left), memory, sizeof left);
    left.store(words(3), true);
    ASSERT_TRUE(left.load(mask));
    ASSERT_EQ(mask, words(3));
    left.store(words(4), false);
    ASSERT_FALSE(left.load(mask));
  }
  EXPECT_GT(old_masks, 10);
  EXPECT_GT(new_masks, 10);
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  ::munmap(memory, 4096);
}

TEST(SharedMasks, readers_see_whole_masks_while_writers_take_turns) {
  SharedMask shared;
  shared.store(words(0), true);
  const auto write = [&shared](std::uint32_t first) {
    for (std::uint32_t i = 0; i < 3000; ++i) shared.store(words(first + i), true);
  };
  std::thread one(write, 1);
  std::thread other(write, 100000);
  for (int i = 0; i < 6000; ++i) {
    HardwareMask mask;
    ASSERT_TRUE(shared.load(mask));
    ASSERT_EQ(mask, words(mask.disabled[0]));
  }
  one.join();
  other.join();
}

// Opening and closing a file may wait for its file system, so none is opened that has a name.
TEST(ControlBlock, is_no_file_with_a_name_and_such_a_file_is_not_opened) {
  const std::string path = test::fresh_folder("control") / "file";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int events = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(::inotify_add_watch(events, path.c_str(), IN_OPEN | IN_CLOSE), 0);
  EXPECT_THAT(refusal(fmt::format("/proc/self/fd/{}#00", file)),
              HasSubstr("this is not a control block: it is a file that has a name"));
  char event[4096];
  EXPECT_EQ(::read(events, event, sizeof event), -1) << "it was opened";
  ::close(events);
  ::close(file);
}

TEST(ControlBlock, is_not_stored_while_another_process_holds_its_lock) {
  const auto control = Control::create().value();
  const int file = ::open(file_of(control).c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  const auto refused = control.store_mask({}, true, {}, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(refused.error().message, HasSubstr("another process holds the lock"));
  HardwareMask mask;
  EXPECT_FALSE(control.block().mask.load(mask));
  ::close(file);
  EXPECT_TRUE(control.store_mask({}, true, {}, 1));
  EXPECT_TRUE(control.block().mask.load(mask));
}

TEST(ControlBlock, gives_one_process_at_a_time_its_turn_to_move_a_program_that_has_tpcs) {
  const auto control = Control::create().value();
  ASSERT_TRUE(control.store_mask({}, false));
  EXPECT_THAT(control.turn_to_move().error().message, HasSubstr("is only observed"));
  ASSERT_TRUE(control.store_mask({}, true));
  const int file = ::open(file_of(control).c_str(), O_RDWR | O_CLOEXEC);
  const auto lock_of_another = [file] {
    struct flock look {};
    look.l_type = F_RDLCK;
    EXPECT_EQ(::fcntl(file, F_OFD_GETLK, &look), 0);
    return look.l_type;
  };
  {
    const auto turn = control.turn_to_move();
    ASSERT_TRUE(turn);
    EXPECT_EQ(lock_of_another(), F_WRLCK);
    const auto refused = control.turn_to_move(2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(refused.error().message, "another process is still moving this program");
  }
  EXPECT_EQ(lock_of_another(), F_UNLCK);
  EXPECT_TRUE(control.turn_to_move(0)) << "it need not wait";
  ::close(file);
}

}  // namespace
}  // namespace demarc::cuda
