// Packets arrive whole, with their descriptors, or are refused by name.
#include "demarc/lease/packet.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "own_process.hpp"
#include "paths.hpp"
#include "refusal.hpp"

namespace demarc::lease {
namespace {

using test::passes_in_a_process;
using test::why;
using testing::HasSubstr;

struct SocketPair {
  SocketPair() {
    int files[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files), 0);
    near.emplace(OwnedFile(files[0]));
    far.emplace(OwnedFile(files[1]));
  }
  std::optional<PacketSocket> near, far;
};

std::string identity(int file) {
  struct stat status {};
  EXPECT_EQ(::fstat(file, &status), 0);
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

int set_without_waiting(int file) {
  return ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) | O_NONBLOCK);
}

// Signals that interrupt what this thread waits in, until the object goes.
class Interruptions {
 public:
  // `twentieth`: what the handler of that signal does.
  explicit Interruptions(void (*twentieth)()) {
    action = twentieth;
    struct sigaction handler {};
    handler.sa_handler = [](int) {
      if (++count == 20) action();
    };
    EXPECT_EQ(::sigaction(SIGUSR1, &handler, nullptr), 0);
    thread_ = std::thread([this, interrupted = ::pthread_self()] {
      while (!done_) {
        ::pthread_kill(interrupted, SIGUSR1);
        ::usleep(1000);
      }
    });
  }
  ~Interruptions() {
    done_ = true;
    thread_.join();
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  static inline int file = -1;  // for the action

 private:
  static inline std::atomic<int> count{0};
  static inline void (*action)() = nullptr;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

TEST(Packets, arrive_whole_and_in_order_with_their_descriptors) {
  EXPECT_TRUE(passes_in_a_process([] {  // which may close what it was not given
    const SocketPair pair;
    const auto folder = test::fresh_folder("packets");
    std::vector<OwnedFile> opened;
    std::vector<int> files;
    for (std::size_t i = 0; i < packet_files; ++i) {
      const auto path = folder / std::to_string(i);
      opened.emplace_back(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
      files.push_back(opened.back().get());
    }
    ASSERT_TRUE(*pair.near->send("first", files));
    ASSERT_TRUE(*pair.near->send(std::string(packet_bytes, 's')));
    ASSERT_TRUE(*pair.near->send("x"));
    const auto first = pair.far->receive().value();
    EXPECT_EQ(first.packet->text, "first");
    EXPECT_FALSE(first.ended);
    ASSERT_EQ(first.packet->files.size(), packet_files);
    for (std::size_t i = 0; i < packet_files; ++i) {
      const int file = first.packet->files[i].get();
      ASSERT_EQ(identity(file), identity(files[i])) << i;
      ASSERT_NE(::fcntl(file, F_GETFD) & FD_CLOEXEC, 0);
    }
    const auto second = pair.far->receive().value();
    EXPECT_EQ(second.packet->text, std::string(packet_bytes, 's'));
    EXPECT_TRUE(second.packet->files.empty());
    EXPECT_EQ(pair.far->receive().value().packet->text, "x");
  }));
}

TEST(Packets, that_are_too_large_are_neither_sent_nor_taken) {
  const SocketPair pair;
  EXPECT_THAT(why(pair.near->send(std::string(packet_bytes + 1, 'x'))),
              HasSubstr("a packet of 65537 bytes with 0 files is not possible: it has 1 to 65536 "
                        "bytes and at most 200 files"));
  EXPECT_FALSE(pair.near->send(""));
  EXPECT_FALSE(pair.near->send("x", std::vector<int>(packet_files + 1, 0)));
  const std::string text(packet_bytes + 1, 'x');
  ASSERT_EQ(::send(pair.near->file(), text.data(), text.size(), 0),
            static_cast<ssize_t>(text.size()));
  EXPECT_THAT(why(pair.far->receive()), HasSubstr("more than 65536 bytes"));
}

TEST(Packets, with_more_descriptors_than_may_be_are_refused_and_leave_none_open) {
  const SocketPair pair;
  const std::vector<int> files(packet_files + 1, pair.near->file());
  char byte = 'x';
  iovec data{&byte, 1};
  std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(part), files.data(), files.size() * sizeof(int));
  ASSERT_EQ(::sendmsg(pair.near->file(), &message, 0), 1);
  const OwnedFile next(::dup(pair.near->file()));
  EXPECT_THAT(why(pair.far->receive()), HasSubstr("the packet has more than 200"));
  EXPECT_EQ(OwnedFile(::dup(pair.near->file())).get(), next.get() + 1);
}

TEST(Packets, whose_descriptors_this_process_has_no_room_for_are_refused) {
  EXPECT_TRUE(passes_in_a_process([] {
    const SocketPair pair;
    const int file = pair.near->file();
    ASSERT_TRUE(*pair.near->send("x", std::span(&file, 1)));
    test::allow_no_more_files();
    const auto refused = pair.far->receive();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("or too many files are open here (ulimit -n)"));
  }));
}

TEST(Packets, end_when_the_other_end_does) {
  EXPECT_TRUE(passes_in_a_process([] {
    SocketPair pair;
    ASSERT_EQ(set_without_waiting(pair.far->file()), 0);
    const auto nothing = pair.far->receive();
    ASSERT_TRUE(nothing) << why(nothing);
    EXPECT_TRUE(!nothing->ended && !nothing->packet);
    pair.near.reset();
    const auto end = pair.far->receive();
    ASSERT_TRUE(end) << why(end);
    EXPECT_TRUE(end->ended && !end->packet);
    const auto refused = pair.far->send("x");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("could not be sent: Broken pipe"));
  }));
}

TEST(Packets, neither_come_from_nor_go_to_what_is_no_socket) {
  EXPECT_TRUE(passes_in_a_process([] {
    const PacketSocket folder(OwnedFile(::open("/", O_RDONLY | O_CLOEXEC)));
    const auto received = folder.receive();
    ASSERT_FALSE(received);
    EXPECT_EQ(received.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(received.error().message,
                HasSubstr("could not be received: Socket operation on non-socket"));
    EXPECT_THAT(why(folder.receive_text()), HasSubstr("could not be received"));
    EXPECT_THAT(why(folder.send("x")), HasSubstr("could not be sent: Socket operation on"));
    EXPECT_THAT(why(folder.peer()), HasSubstr("does not say who is at its other end: Socket"));
    EXPECT_EQ(folder.peer_process().get(), -1);
  }));
}

TEST(Packets, that_would_have_to_wait_are_not_sent) {
  EXPECT_TRUE(passes_in_a_process([] {
    const SocketPair pair;
    ASSERT_EQ(set_without_waiting(pair.near->file()), 0);
    int sent = 0;
    while (sent < 1000) {
      const auto one = pair.near->send("x");
      ASSERT_TRUE(one) << why(one);
      if (!*one) break;
      ++sent;
    }
    EXPECT_LT(sent, 1000);
    for (int i = 0; i < sent; ++i) EXPECT_TRUE(pair.far->receive()->packet);
    EXPECT_TRUE(*pair.near->send("x"));
  }));
}

// The kernel bounds them by the limit of open files, for all but root.
TEST(Packets, with_descriptors_beyond_those_that_may_be_on_their_way_are_not_sent) {
  EXPECT_TRUE(passes_in_a_process([] {
    const SocketPair pair;
    const std::vector<int> files(20, pair.near->file());
    if (::geteuid() == 0) {
      ASSERT_EQ(::setuid(65534), 0);
    }
    test::allow_no_more_files();
    ASSERT_TRUE(*pair.near->send("x", files));
    const auto second = pair.near->send("x", files);
    ASSERT_TRUE(second) << why(second);
    EXPECT_FALSE(*second);
  }));
}

TEST(Packets, arrive_though_signals_interrupt_who_waits_for_them) {
  EXPECT_TRUE(passes_in_a_process([] {
    const SocketPair pair;
    Interruptions::file = pair.near->file();
    const Interruptions interruptions(
        [] { static_cast<void>(::send(Interruptions::file, "late", 4, 0)); });
    const auto received = pair.far->receive();
    ASSERT_TRUE(received) << why(received);
    ASSERT_TRUE(received->packet);
    EXPECT_EQ(received->packet->text, "late");
  }));
}

TEST(Packets, leave_though_signals_interrupt_who_waits_to_send_them) {
  EXPECT_TRUE(passes_in_a_process([] {
    const SocketPair pair;
    while (::send(pair.near->file(), "x", 1, MSG_DONTWAIT) == 1) continue;
    Interruptions::file = pair.far->file();
    const Interruptions interruptions([] {
      char byte = 0;
      while (::recv(Interruptions::file, &byte, 1, MSG_DONTWAIT) == 1) continue;
    });
    const auto sent = pair.near->send("y");
    ASSERT_TRUE(sent) << why(sent);
    EXPECT_TRUE(*sent);
  }));
}

TEST(Packets, are_waited_for_as_long_as_told_and_no_longer_than_they_need) {
  EXPECT_TRUE(passes_in_a_process([] {
    SocketPair pair;
    EXPECT_FALSE(pair.far->wait(0));
    {
      const Interruptions interruptions([] {});
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_FALSE(pair.far->wait(0.04));
      EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(40));
    }
    ASSERT_TRUE(*pair.near->send("x"));
    EXPECT_TRUE(pair.far->wait(0));
    EXPECT_TRUE(pair.far->wait(1e6));
    EXPECT_TRUE(pair.far->receive()->packet);
    EXPECT_FALSE(pair.far->wait(0));
    pair.near.reset();
    EXPECT_TRUE(pair.far->wait(1e6)) << "the end is something to receive";
  }));
}

TEST(Packets, are_of_the_socket_that_was_put_in_the_place_of_another) {
  SocketPair pair;
  SocketPair other;
  const int file = other.far->file();
  *pair.far = *std::move(other.far);
  other.far.reset();
  ASSERT_EQ(pair.far->file(), file);
  ASSERT_TRUE(pair.far->is_open());
  ASSERT_TRUE(*other.near->send("x"));
  EXPECT_TRUE(pair.far->receive()->packet);
  EXPECT_THAT(why(pair.near->send("x")), HasSubstr("Broken pipe")) << "the other one is closed";
  EXPECT_FALSE(PacketSocket(OwnedFile()).is_open());
  const OwnedFile released = pair.far->release();
  EXPECT_EQ(released.get(), file);
  EXPECT_FALSE(pair.far->is_open());
}

TEST(Packets, come_without_descriptors_where_none_are_taken) {
  const SocketPair pair;
  ASSERT_EQ(set_without_waiting(pair.far->file()), 0);
  EXPECT_FALSE(pair.far->receive_text()->packet);
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  ASSERT_TRUE(*pair.near->send("plain"));
  ASSERT_TRUE(*pair.near->send("with a file", std::span(&pipe[0], 1)));
  const auto plain = pair.far->receive_text();
  ASSERT_TRUE(plain && plain->packet);
  EXPECT_EQ(plain->packet->text, "plain");
  ASSERT_EQ(plain->packet->files.size(), 0U)
      << "who sent it comes with it, and is not a descriptor";
  for (int i = 0; i < 2; ++i) {
    const auto refused = pair.far->receive_text();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(refused.error().message, HasSubstr("a question has none"));
  }
  const auto taken = pair.far->receive();
  ASSERT_TRUE(taken && taken->packet);
  EXPECT_EQ(taken->packet->text, "with a file");
  ASSERT_EQ(taken->packet->files.size(), 1U);
  EXPECT_EQ(identity(taken->packet->files[0].get()), identity(pipe[0]));
  for (const int end : pipe) ::close(end);
}

// Closing a descriptor may last as long as a file system likes: a thread does it, or nothing does.
TEST(Packets, with_descriptors_that_nobody_took_are_not_closed_by_who_ends_the_connection) {
  for (const bool has_files : {false, true}) {
    EXPECT_TRUE(passes_in_a_process([&] {
      SocketPair pair;
      int pipe[2];
      ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
      ASSERT_TRUE(*pair.near->send("text"));
      if (has_files) {
        ASSERT_TRUE(*pair.near->send("file", std::span(&pipe[1], 1)));
      }
      ::close(pipe[1]);
      test::refuse_calls({SYS_clone, SYS_clone3}, EAGAIN);  // as where there is no thread
      const int file = pair.far->file();
      close_apart(*std::move(pair.far));
      EXPECT_EQ(::fcntl(file, F_GETFD) >= 0, has_files);
      char byte = 0;
      EXPECT_EQ(::read(pipe[0], &byte, 1), has_files ? -1 : 0) << "0: the descriptor is closed";
      EXPECT_TRUE(pair.near->receive()->ended);
    })) << has_files;
  }
}

}  // namespace
}  // namespace demarc::lease
