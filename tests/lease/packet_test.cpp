// Packets arrive whole, with their descriptors, or are refused by name.
#include "demarc/lease/packet.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "paths.hpp"

namespace demarc::lease {
namespace {

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

TEST(Packets, arrive_whole_and_in_order_with_their_descriptors) {
  const SocketPair pair;
  const auto path = test::fresh_folder("packets") / "file";
  std::ofstream(path) << "x";
  const OwnedFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::vector<int> files(packet_files, file.get());
  ASSERT_TRUE(*pair.near->send("first", files));
  ASSERT_TRUE(*pair.near->send(std::string(packet_bytes, 's')));
  const auto first = pair.far->receive().value();
  EXPECT_EQ(first.packet->text, "first");
  ASSERT_EQ(first.packet->files.size(), packet_files);
  EXPECT_EQ(identity(first.packet->files.back().get()), identity(file.get()));
  EXPECT_NE(::fcntl(first.packet->files[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(pair.far->receive().value().packet->text, std::string(packet_bytes, 's'));
}

TEST(Packets, that_are_too_large_are_neither_sent_nor_taken) {
  const SocketPair pair;
  EXPECT_THAT(pair.near->send(std::string(packet_bytes + 1, 'x')).error().message,
              HasSubstr("a packet of 65537 bytes with 0 files is not possible: it has 1 to 65536 "
                        "bytes and at most 200 files"));
  EXPECT_FALSE(pair.near->send(""));
  EXPECT_FALSE(pair.near->send("x", std::vector<int>(packet_files + 1, 0)));
  const std::string text(packet_bytes + 1, 'x');
  ASSERT_EQ(::send(pair.near->file(), text.data(), text.size(), 0),
            static_cast<ssize_t>(text.size()));
  EXPECT_THAT(pair.far->receive().error().message, HasSubstr("more than 65536 bytes"));
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
  EXPECT_THAT(pair.far->receive().error().message, HasSubstr("the packet has more than 200"));
  EXPECT_EQ(OwnedFile(::dup(pair.near->file())).get(), next.get() + 1);
}

TEST(Packets, end_when_the_other_end_does) {
  SocketPair pair;
  ASSERT_EQ(set_without_waiting(pair.far->file()), 0);
  EXPECT_FALSE(pair.far->receive()->ended);
  EXPECT_FALSE(pair.far->receive()->packet);
  pair.near.reset();
  EXPECT_TRUE(pair.far->receive()->ended);
  EXPECT_THAT(pair.far->send("x").error().message, HasSubstr("could not be sent: Broken pipe"));
}

TEST(Packets, that_would_have_to_wait_are_not_sent) {
  const SocketPair pair;
  ASSERT_EQ(set_without_waiting(pair.near->file()), 0);
  int sent = 0;
  while (sent < 1000 && *pair.near->send("x")) ++sent;
  EXPECT_LT(sent, 1000);
  for (int i = 0; i < sent; ++i) EXPECT_TRUE(pair.far->receive()->packet);
  EXPECT_TRUE(*pair.near->send("x"));
}

class Listening : public testing::Test {
 protected:
  std::filesystem::path folder = test::fresh_folder("listening");
  std::string path = folder / "socket";
  [[nodiscard]] mode_t mode() const {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return status.st_mode & 0777U;
  }
};

TEST_F(Listening, knows_the_process_at_the_other_end) {
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_FALSE(listener.accept());
  const auto client = PacketSocket::connect(path).value();
  const auto server = listener.accept();
  ASSERT_TRUE(server);
  const auto peer = server->peer().value();
  EXPECT_EQ(peer.process, ::getpid());
  EXPECT_EQ(peer.user, ::geteuid());
  std::vector<gid_t> groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
  ASSERT_EQ(::getgroups(static_cast<int>(groups.size()), groups.data()), groups.size());
  groups.insert(groups.begin(), ::getegid());
  EXPECT_EQ(peer.groups, groups);
  EXPECT_FALSE(server->receive()->packet) << "the server's end waits";
}

TEST_F(Listening, is_for_its_user_alone_or_for_a_group) {
  {
    const auto listener = PacketListener::listen(path, std::nullopt).value();
    EXPECT_EQ(mode(), 0600U);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto listener = PacketListener::listen(path, ::getegid()).value();
  EXPECT_EQ(mode(), 0660U);
}

TEST_F(Listening, belongs_to_one_listener_and_is_taken_over_from_a_dead_one) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto listener = PacketListener::listen(path, std::nullopt);
    ::_exit(listener ? 0 : 1);  // without destructors, as when it is killed
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_THAT(PacketListener::listen(path, std::nullopt).error().message,
              HasSubstr("another demarc serve listens there"));
  EXPECT_TRUE(PacketSocket::connect(path)) << "the refused one has taken the path away";
}

TEST_F(Listening, is_kept_off_by_a_listener_that_has_closed_and_not_gone) {
  auto listener = PacketListener::listen(path, std::nullopt).value();
  EXPECT_EQ(PacketListener::claim(path).error().kind, ErrorKind::invalid_input);
  listener.close();
  EXPECT_FALSE(PacketSocket::connect(path));
  EXPECT_TRUE(std::filesystem::exists(path));
  const auto refused = PacketListener::claim(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("is still ending, or programs of one"));
}

TEST_F(Listening, takes_no_descriptors_where_a_question_has_none) {
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  const auto client = PacketSocket::connect(path).value();
  auto server = listener.accept();
  ASSERT_TRUE(client.send("first").value());
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  ASSERT_TRUE(client.send("second", std::span(&pipe[1], 1)).value());
  ::close(pipe[1]);
  EXPECT_EQ(server->receive_text()->packet->text, "first");
  const auto refused = server->receive_text();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("a question has none"));
  // The descriptor is closed with the connection, by a thread.
  close_apart(*std::move(server));
  char byte = 0;
  while (::read(pipe[0], &byte, 1) < 0) ::usleep(1000);
  EXPECT_TRUE(client.receive()->ended);
  ::close(pipe[0]);
}

TEST_F(Listening, ends_connections_whose_packets_nobody_read) {
  const auto listener = PacketListener::listen(path, std::nullopt).value();
  const auto client = PacketSocket::connect(path).value();
  auto server = listener.accept();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(::send(client.file(), "", 0, 0), 0);
    ASSERT_TRUE(client.send("question").value());
  }
  ASSERT_TRUE(server->send("why").value());
  close_apart(*std::move(server));
  // No reset overtakes what was said.
  char text[4] = {};
  EXPECT_EQ(::recv(client.file(), text, sizeof text, 0), 3);
  EXPECT_EQ(::recv(client.file(), text, sizeof text, 0), 0);
}

TEST_F(Listening, refuses_paths_that_are_no_place_for_a_socket) {
  std::ofstream(path) << "mine";
  EXPECT_THAT(PacketListener::listen(path, std::nullopt).error().message,
              HasSubstr("there is a file of this name that is no socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_THAT(PacketListener::listen(folder / "no" / "socket", std::nullopt).error().message,
              HasSubstr("No such file"));
  const std::string longest(200, 'x');
  EXPECT_THAT(PacketListener::listen(longest, std::nullopt).error().message,
              HasSubstr("its path has 200 characters; give one of 1 to 107"));
  EXPECT_FALSE(PacketSocket::connect(longest));
  EXPECT_FALSE(PacketSocket::connect(""));
}

TEST_F(Listening, where_nobody_does_is_said_with_the_path) {
  const auto refused = PacketSocket::connect(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr(path));
  EXPECT_THAT(refused.error().message, HasSubstr("demarc serve does not run there"));
}

}  // namespace
}  // namespace demarc::lease
