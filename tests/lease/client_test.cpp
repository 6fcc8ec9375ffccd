// What a client makes of the answers of a server: those of this file are written by hand.
#include "demarc/lease/client.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "paths.hpp"

namespace demarc::lease {
namespace {

using testing::HasSubstr;

// A server that has answered before it is asked.
class Client : public testing::Test {
 protected:
  void answer(const std::string& text, const std::vector<int>& files = {}) const {
    ASSERT_TRUE(server->send(text, files).value());
  }
  [[nodiscard]] std::string question() const { return server->receive()->packet->text; }
  [[nodiscard]] static Lease lease(std::uint64_t pages) {
    Lease lease{"a", "GPU-1", "0", {}, 1, 8, {4, pages, 8, Parities{{3}, 1}}, ""};
    return lease;
  }

  std::string path = test::fresh_folder("client") / "socket";
  PacketListener listener = PacketListener::listen(path, std::nullopt).value();
  LeaseClient client = LeaseClient::connect(path).value();
  std::optional<PacketSocket> server = listener.accept();
};

TEST_F(Client, asks_and_hands_out_what_is_answered) {
  answer(to_text(Opened{lease(2), "00ff"}), {listener.lock()});
  EXPECT_EQ(client.open("a", "#1").value(), (Opened{lease(2), "00ff"}));
  EXPECT_EQ(parse_request(question()).value(), Request(OpenRequest{"a", "#1"}));
  answer(to_text(Extent{4 << 20, 2 << 20}));
  EXPECT_EQ(client.take(5).value(), (Extent{4 << 20, 2 << 20}));
  EXPECT_EQ(parse_request(question()).value(), Request(TakeRequest{5}));
  answer(to_text(Done{}));
  EXPECT_TRUE(client.give(4 << 20));
  EXPECT_EQ(parse_request(question()).value(), Request(GiveRequest{4 << 20}));
  for (int i = 0; i < 3; ++i) answer(to_text(Done{}));
  EXPECT_TRUE(client.grow("a", 9));
  EXPECT_EQ(parse_request(question()).value(), Request(GrowRequest{"a", 9}));
  EXPECT_TRUE(client.move("a", "0-3"));
  EXPECT_EQ(parse_request(question()).value(), Request(MoveRequest{"a", "0-3"}));
  EXPECT_TRUE(client.revoke("a"));
  EXPECT_EQ(parse_request(question()).value(), Request(RevokeRequest{"a"}));
}

TEST_F(Client, reads_a_list_packet_by_packet) {
  answer(to_text(ListHead{"GPU-1", 100, 2}));
  answer(to_text(TenantStatus{.name = "a", .tpcs = "0-1"}));
  answer(to_text(TenantStatus{.name = "b", .tpcs = "2"}));
  const auto status = client.list().value();
  EXPECT_EQ(status.card, "GPU-1");
  EXPECT_EQ(status.arena_bytes, 100U);
  ASSERT_EQ(status.tenants.size(), 2U);
  EXPECT_EQ(status.tenants[1].name, "b");
}

TEST_F(Client, gets_the_errors_of_the_server_as_they_are) {
  const Error error{ErrorKind::check_failed, "no"};
  for (int i = 0; i < 8; ++i) answer(to_text(error));
  EXPECT_EQ(client.open("a", "").error(), error);
  EXPECT_EQ(client.attach("0").error(), error);
  EXPECT_EQ(client.take(1).error(), error);
  EXPECT_EQ(client.give(1).error(), error);
  EXPECT_EQ(client.list().error(), error);
  EXPECT_EQ(client.grow("a", 1).error(), error);
  EXPECT_EQ(client.move("a", "0").error(), error);
  EXPECT_EQ(client.revoke("a").error(), error);
}

TEST_F(Client, asks_for_as_many_pages_as_come_at_a_time) {
  const int file = listener.file();
  answer(to_text(PageBatch{7, 2}), {file, file});
  EXPECT_EQ(client.pages(7, 2)->size(), 2U);
  EXPECT_EQ(parse_request(question()).value(), Request(PagesRequest{7, 2}));
  answer(to_text(PageBatch{0, packet_files}), std::vector<int>(packet_files, file));
  EXPECT_EQ(client.pages(0, packet_files + 5)->size(), packet_files);
  EXPECT_EQ(parse_request(question()).value(), Request(PagesRequest{0, packet_files}));
}

TEST_F(Client, refuses_pages_that_it_did_not_ask_for) {
  const int file = listener.file();
  const auto refused = [&](const PageBatch& batch, const std::vector<int>& files) {
    answer(to_text(batch), files);
    const auto pages = client.pages(1, 2);
    static_cast<void>(question());
    return pages ? "taken" : pages.error().message;
  };
  EXPECT_THAT(refused({0, 2}, {file, file}),
              HasSubstr("an answer has pages from 0 on, 2 of them, with 2 descriptors; 2 from 1 on "
                        "were expected"));
  EXPECT_THAT(refused({1, 1}, {file}), HasSubstr("1 of them, with 1 descriptors; 2 from 1"));
  EXPECT_THAT(refused({1, 2}, {file}), HasSubstr("2 of them, with 1 descriptors; 2 from 1"));
  EXPECT_THAT(refused({1, 2}, {file, file, file}), HasSubstr("with 3 descriptors; 2 from 1"));
}

TEST_F(Client, reads_the_table_of_remainders_from_its_file) {
  Lease remainders = lease(1);
  remainders.share.colors = Remainders{};
  const OwnedFile table(::memfd_create("table", MFD_CLOEXEC));
  ASSERT_EQ(::write(table.get(), "abc", 3), 3);
  const int lock = listener.lock();
  answer(to_text(Attached{remainders}), {lock, table.get()});
  const auto attached = client.attach("0").value();
  EXPECT_EQ(attached.table,
            (std::vector<std::byte>{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}));
  answer(to_text(Attached{remainders}), {lock});
  EXPECT_THAT(client.attach("0").error().message,
              HasSubstr("1 descriptors came, but 2 were expected"));
  answer(to_text(Attached{lease(1)}), {lock, table.get()});
  EXPECT_THAT(client.attach("0").error().message,
              HasSubstr("2 descriptors came, but 1 were expected"));
  answer(to_text(Opened{lease(1), "00ff"}));
  EXPECT_THAT(client.open("a", "").error().message,
              HasSubstr("0 descriptors came, but 1 were expected"));
  answer(to_text(Attached{remainders}), {lock, listener.file()});
  EXPECT_THAT(client.attach("0").error().message, HasSubstr("is no file"));
  const OwnedFile closed(::open(path.append(".lock").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::ftruncate(closed.get(), 4), 0);
  answer(to_text(Attached{remainders}), {lock, closed.get()});
  EXPECT_THAT(client.attach("0").error().message, HasSubstr("cannot be read"));
}

// A listener that dies has its lock taken back by the kernel, but for the copies of its clients.
TEST(ClientOfAListenerThatDied, KeepsOthersFromListeningThere) {
  const std::string path = test::fresh_folder("dead_listener") / "socket";
  for (const bool attaches : {false, true}) {
    std::optional<PacketListener> listener(PacketListener::listen(path, std::nullopt).value());
    std::optional<LeaseClient> client(LeaseClient::connect(path).value());
    const Lease lease{"a", "GPU-1", "0", {}, 1, 8, {4, 1, 8, Parities{{3}, 1}}, ""};
    const int lock = listener->lock();
    const auto server = listener->accept();
    ASSERT_TRUE(server
                    ->send(attaches ? to_text(Attached{lease}) : to_text(Opened{lease, "0"}),
                           std::span(&lock, 1))
                    .value());
    ASSERT_TRUE(attaches ? client->attach("0").has_value() : client->open("a", "").has_value());
    listener.reset();
    EXPECT_THAT(PacketListener::listen(path, std::nullopt).error().message,
                HasSubstr("programs of one that has ended still run"));
    client.reset();
    EXPECT_TRUE(PacketListener::listen(path, std::nullopt));
  }
}

TEST_F(Client, refuses_extents_that_are_not_what_was_asked_for) {
  for (const Extent& wrong : {Extent{0, 2 << 20}, Extent{1, 4 << 20}, Extent{0, (4 << 20) + 1}}) {
    answer(to_text(wrong));
    const auto extent = client.take((2 << 20) + 1);
    ASSERT_FALSE(extent);
    EXPECT_EQ(extent.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(extent.error().message,
                HasSubstr("the answer of demarc serve cannot be understood"));
  }
  answer(to_text(Done{}), {listener.file()});
  EXPECT_THAT(client.give(0).error().message, HasSubstr("1 descriptors came, but 0 were expected"));
}

TEST_F(Client, is_told_when_the_server_has_ended) {
  answer(to_text(ListHead{"GPU-1", 100, 1}));
  server.reset();
  EXPECT_FALSE(client.list());
  EXPECT_FALSE(client.pages(0, 1));
  const auto refused = client.take(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
}

TEST_F(Client, gives_up_a_server_that_says_nothing) {
  const auto impatient = LeaseClient::connect(path, 0.01).value();
  const auto silent = listener.accept();
  const auto refused = impatient.take(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("demarc serve does not answer"));
  EXPECT_TRUE(impatient.lost());
  EXPECT_FALSE(client.lost());
  // What comes late is the answer of no other question.
  ASSERT_TRUE(silent->send(to_text(Extent{0, extent_step})).value());
  EXPECT_THAT(impatient.take(1).error().message, HasSubstr("demarc serve does not answer"));
}

TEST_F(Client, hears_why_its_connection_was_ended_before_it_asked) {
  answer(to_text(Error{ErrorKind::missing_capability, "there is no place"}));
  server.reset();
  EXPECT_EQ(client.list().error().message, "there is no place");
}

TEST_F(Client, hears_why_its_connection_was_ended_with_its_question_unread) {
  const PacketSocket other = PacketSocket::connect(path).value();
  auto refusing = listener.accept();
  ASSERT_TRUE(other.send("question").value());
  ASSERT_TRUE(refusing->send("why").value());
  refusing.reset();
  EXPECT_EQ(other.receive()->packet->text, "why");
  EXPECT_TRUE(other.receive()->ended);
}

TEST_F(Client, neither_writes_nor_closes_a_file_that_took_the_number_of_its_connection) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  {
    const auto closed = LeaseClient::connect(path).value();
    ASSERT_EQ(::dup2(ends[0], closed.file()), closed.file());
    ::close(ends[0]);
    ends[0] = closed.file();
    const auto refused = closed.list();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("was closed by this program"));
    EXPECT_TRUE(closed.lost());
    char byte = 0;
    EXPECT_EQ(::recv(ends[1], &byte, 1, MSG_DONTWAIT), -1) << "the program's peer heard something";
  }
  EXPECT_EQ(::send(ends[1], "x", 1, MSG_NOSIGNAL), 1) << "the program's file was closed";
  for (const int end : ends) ::close(end);
}

TEST(DefaultSocket, is_what_the_environment_says_then_the_users_then_the_machines) {
  ::setenv(socket_variable, "/a/b", 1);
  EXPECT_EQ(default_socket(), "/a/b");
  ::unsetenv(socket_variable);
  ::setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  EXPECT_EQ(default_socket(), "/run/user/7/demarc.sock");
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(default_socket(), "/run/demarc.sock");
}

}  // namespace
}  // namespace demarc::lease
