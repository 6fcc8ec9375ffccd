// What a client makes of the answers of a server: those of this file are written by hand.
#include "demarc/lease/client.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "demarc/base/files.hpp"
#include "own_process.hpp"
#include "paths.hpp"
#include "refusal.hpp"

namespace demarc::lease {
namespace {

using color::LinearByte;
using test::why;
using testing::HasSubstr;
using testing::Not;

// A server that has answered before it is asked.
class Client : public testing::Test {
 protected:
  void answer(const std::string& text, const std::vector<int>& files = {}) const {
    ASSERT_TRUE(server->send(text, files).value());
  }
  // Nothing where none came.
  [[nodiscard]] std::string question() const {
    const auto received = server->receive();
    return received && received->packet ? received->packet->text : "";
  }
  [[nodiscard]] Request asked() const {
    const auto request = parse_request(question());
    EXPECT_TRUE(request) << why(request);
    return request.value_or(Request(EndWorkRequest{}));
  }
  [[nodiscard]] static Lease lease(std::uint64_t pages) {
    Lease lease{
        "a", "GPU-1", "0", {}, 1, 8, {4, pages, 8, color::make_law(color::Parities{{3}, 1})}, ""};
    return lease;
  }

  std::string path = test::fresh_folder("client") / "socket";
  PacketListener listener = PacketListener::listen(path, std::nullopt).value();
  LeaseClient client = LeaseClient::connect(path).value();
  std::optional<PacketSocket> server = listener.accept();
};

TEST_F(Client, asks_and_hands_out_what_is_answered) {
  answer(to_text(Opened{lease(2), "00ff", 2}), {listener.lock(), listener.lock()});
  EXPECT_EQ(client.open("a", "#1").value(), (Opened{lease(2), "00ff", 2}));
  EXPECT_EQ(asked(), Request(OpenRequest{"a", "#1"}));
  answer(to_text(Extent{LinearByte(4 << 20), 2 << 20}));
  EXPECT_EQ(client.take(5).value(), (Extent{LinearByte(4 << 20), 2 << 20}));
  EXPECT_EQ(asked(), Request(TakeRequest{5}));
  answer(to_text(Extent{{}, 2 << 20}));
  EXPECT_EQ(client.take(2 << 20).value(), (Extent{{}, 2 << 20})) << "not one byte more";
  EXPECT_EQ(asked(), Request(TakeRequest{2 << 20}));
  answer(to_text(Done{}));
  EXPECT_TRUE(client.give(LinearByte(4 << 20)));
  EXPECT_EQ(asked(), Request(GiveRequest{LinearByte(4 << 20)}));
  answer(to_text(Done{}));
  EXPECT_TRUE(client.show(LinearByte(6 << 20)));
  EXPECT_EQ(asked(), Request(ShowRequest{LinearByte(6 << 20)}));
  answer(to_text(Lent{"0f"}));
  EXPECT_EQ(client.lend(LinearByte(6 << 20), 512).value(), "0f");
  EXPECT_EQ(asked(), Request(LendRequest{LinearByte(6 << 20), 512}));
  answer(to_text(Done{}));
  EXPECT_TRUE(client.withdraw(LinearByte(6 << 20), 512));
  EXPECT_EQ(asked(), Request(WithdrawRequest{LinearByte(6 << 20), 512}));
  answer(to_text(Extent{LinearByte(6 << 20), 2 << 20}));
  EXPECT_EQ(client.borrow("0f").value(), (Extent{LinearByte(6 << 20), 2 << 20}));
  EXPECT_EQ(asked(), Request(BorrowRequest{"0f"}));
  for (int i = 0; i < 3; ++i) answer(to_text(Done{}));
  EXPECT_TRUE(client.grow("a", 9));
  EXPECT_EQ(asked(), Request(GrowRequest{"a", 9}));
  EXPECT_TRUE(client.move("a", "0-3"));
  EXPECT_EQ(asked(), Request(MoveRequest{"a", "0-3"}));
  EXPECT_TRUE(client.revoke("a"));
  EXPECT_EQ(asked(), Request(RevokeRequest{"a"}));
  answer(to_text(Proving{4, {12}, 1, 9, ""}));
  EXPECT_EQ(client.prove("a", 4).value(), (Proving{4, {12}, 1, 9, ""}));
  EXPECT_EQ(asked(), Request(ProveRequest{"a", 4}));
  answer(to_text(Done{}));
  EXPECT_TRUE(client.proved(4, 9, "page 3"));
  EXPECT_EQ(asked(), Request(ProvedRequest{4, 9, "page 3"}));
}

TEST_F(Client, reads_a_list_packet_by_packet) {
  answer(to_text(ListHead{"GPU-1", 100, 2, "on"}));
  answer(to_text(TenantStatus{.name = "a", .tpcs = "0-1"}));
  answer(to_text(TenantStatus{.name = "b", .tpcs = "2"}));
  const auto status = client.list().value();
  EXPECT_EQ(status.card, "GPU-1");
  EXPECT_EQ(status.arena_bytes, 100U);
  EXPECT_EQ(status.mps, "on");
  ASSERT_EQ(status.tenants.size(), 2U);
  EXPECT_EQ(status.tenants[1].name, "b");
  EXPECT_EQ(asked(), Request(ListRequest{}));
}

TEST_F(Client, lists_no_tenants_of_a_server_that_has_none) {
  const auto impatient = LeaseClient::connect(path, 0.01).value();
  const auto other = listener.accept();
  ASSERT_TRUE(other->send(to_text(ListHead{"GPU-1", 100, 0, "off"})).value());
  const auto status = impatient.list();
  ASSERT_TRUE(status) << why(status);
  EXPECT_TRUE(status->tenants.empty());
}

TEST_F(Client, refuses_a_list_that_has_descriptors) {
  answer(to_text(ListHead{"GPU-1", 100, 1}));
  answer(to_text(TenantStatus{.name = "a"}), {listener.file()});
  EXPECT_THAT(why(client.list()), HasSubstr("1 descriptors came, but 0 were expected"));
}

TEST_F(Client, gets_the_errors_of_the_server_as_they_are) {
  const Error error{ErrorKind::check_failed, "no"};
  for (int i = 0; i < 8; ++i) answer(to_text(error));
  EXPECT_EQ(client.open("a", "").error(), error);
  EXPECT_EQ(client.attach("0").error(), error);
  EXPECT_EQ(client.take(1).error(), error);
  EXPECT_EQ(client.give(LinearByte(1)).error(), error);
  EXPECT_EQ(client.list().error(), error);
  EXPECT_EQ(client.grow("a", 1).error(), error);
  EXPECT_EQ(client.move("a", "0").error(), error);
  EXPECT_EQ(client.revoke("a").error(), error);
}

TEST_F(Client, refuses_borrowed_bytes_that_are_not_a_range) {
  constexpr std::uint64_t step = extent_step;
  for (const auto& [first, bytes] :
       {std::pair<std::uint64_t, std::uint64_t>{step, 0}, {step, step + 1}, {step + 1, step}}) {
    answer(to_text(Extent{LinearByte(first), bytes}));
    EXPECT_THAT(why(client.borrow("0f")),
                HasSubstr(fmt::format("{} bytes at {} for borrowed memory", bytes, first)));
    static_cast<void>(question());
  }
}

TEST_F(Client, asks_for_as_many_pages_as_come_at_a_time) {
  const int file = listener.file();
  answer(to_text(PageBatch{{color::ArenaPage(7), 2}}), {file, file});
  EXPECT_EQ(client.pages({color::ArenaPage(7), 2})->size(), 2U);
  EXPECT_EQ(asked(), Request(PagesRequest{{color::ArenaPage(7), 2}}));
  answer(to_text(PageBatch{{{}, packet_files}}), std::vector<int>(packet_files, file));
  EXPECT_EQ(client.pages({{}, packet_files + 5})->size(), packet_files);
  EXPECT_EQ(asked(), Request(PagesRequest{{{}, packet_files}}));
}

TEST_F(Client, refuses_pages_that_it_did_not_ask_for) {
  const int file = listener.file();
  const auto refused = [&](const PageBatch& batch, const std::vector<int>& files) {
    answer(to_text(batch), files);
    const auto pages = client.pages({color::ArenaPage(1), 2});
    static_cast<void>(question());
    return why(pages);
  };
  EXPECT_THAT(refused({{{}, 2}}, {file, file}),
              HasSubstr("an answer has pages from 0 on, 2 of them, with 2 descriptors; 2 from 1 on "
                        "were expected"));
  EXPECT_THAT(refused({{color::ArenaPage(1), 1}}, {file}),
              HasSubstr("1 of them, with 1 descriptors; 2 from 1"));
  EXPECT_THAT(refused({{color::ArenaPage(1), 2}}, {file}),
              HasSubstr("2 of them, with 1 descriptors; 2 from 1"));
  EXPECT_THAT(refused({{color::ArenaPage(1), 2}}, {file, file, file}),
              HasSubstr("with 3 descriptors; 2 from 1"));
}

TEST_F(Client, reads_the_table_of_remainders_from_its_file) {
  Lease remainders = lease(1);
  remainders.share.law = color::make_law(color::RemainderSteps{});
  const OwnedFile table(::memfd_create("colors", MFD_CLOEXEC));
  ASSERT_EQ(::write(table.get(), "abc", 3), 3);
  const int lock = listener.lock();
  answer(to_text(Attached{remainders, 2}), {lock, lock, table.get()});
  const auto attached = client.attach("0");
  ASSERT_TRUE(attached) << why(attached);
  EXPECT_EQ(asked(), Request(AttachRequest{"0"}));
  EXPECT_EQ(attached->lease, remainders);
  EXPECT_EQ(attached->table,
            (std::vector<std::byte>{std::byte{'a'}, std::byte{'b'}, std::byte{'c'}}));
  const std::string kept = read_file("/proc/self/maps").value();
  EXPECT_THAT(kept, HasSubstr(path + ".lock"));
  EXPECT_THAT(kept, Not(HasSubstr("memfd:colors"))) << "it is read, and is no lock";
  answer(to_text(Attached{lease(1)}), {lock});
  const auto plain = client.attach("0");
  ASSERT_TRUE(plain) << why(plain);
  EXPECT_TRUE(plain->table.empty());
}

TEST_F(Client, refuses_tables_that_cannot_be_read) {
  Lease remainders = lease(1);
  remainders.share.law = color::make_law(color::RemainderSteps{});
  const int lock = listener.lock();
  const auto refusal_of = [&](int table) {
    answer(to_text(Attached{remainders}), {lock, table});
    return why(client.attach("0"));
  };
  EXPECT_THAT(refusal_of(listener.file()), HasSubstr("the table of the colours is no file"));
  const OwnedFile path_only(::open(path.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_THAT(refusal_of(path_only.get()), HasSubstr("the table of the colours is no file"));
  const std::string name = path + ".table";
  const OwnedFile closed(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(closed.get(), 4), 0);
  EXPECT_THAT(refusal_of(closed.get()), HasSubstr("the table of the colours cannot be read"));
}

TEST_F(Client, refuses_more_or_fewer_descriptors_than_an_answer_has) {
  Lease remainders = lease(1);
  remainders.share.law = color::make_law(color::RemainderSteps{});
  const int lock = listener.lock();
  const OwnedFile table(::memfd_create("colors", MFD_CLOEXEC));
  const auto refusal_of = [&](const std::string& text, const std::vector<int>& files) {
    answer(text, files);
    return text.find("token") == std::string::npos ? why(client.attach("0"))
                                                   : why(client.open("a", ""));
  };
  const std::string with_table = to_text(Attached{remainders});
  EXPECT_THAT(refusal_of(with_table, {lock}), HasSubstr("1 descriptors came, but 2 were expected"));
  EXPECT_THAT(refusal_of(with_table, {lock, lock, table.get()}),
              HasSubstr("3 descriptors came, but 2 were expected"));
  const std::string plain = to_text(Attached{lease(1)});
  EXPECT_THAT(refusal_of(plain, {}), HasSubstr("0 descriptors came, but 1 were expected"));
  EXPECT_THAT(refusal_of(plain, {lock, table.get()}),
              HasSubstr("2 descriptors came, but 1 were expected"));
  const std::string opened = to_text(Opened{lease(1), "00ff"});
  EXPECT_THAT(refusal_of(opened, {}), HasSubstr("0 descriptors came, but 1 were expected"));
  EXPECT_THAT(refusal_of(opened, {lock, lock}),
              HasSubstr("2 descriptors came, but 1 were expected"));
}

TEST_F(Client, refuses_locks_that_it_cannot_keep) {
  const std::string cannot = "a file cannot be kept open: No such device";
  answer(to_text(Opened{lease(1), "00ff"}), {listener.file()});
  EXPECT_THAT(why(client.open("a", "")), HasSubstr(cannot));
  answer(to_text(Attached{lease(1), 2}), {listener.lock(), listener.file()});
  EXPECT_THAT(why(client.attach("0")), HasSubstr(cannot));
}

// A listener that dies has its lock taken back by the kernel, but for the copies of its clients.
TEST(ClientOfAListenerThatDied, keeps_others_from_listening_there) {
  const std::string path = test::fresh_folder("dead_listener") / "socket";
  for (const bool attaches : {false, true}) {
    std::optional<PacketListener> listener(PacketListener::listen(path, std::nullopt).value());
    std::optional<LeaseClient> client(LeaseClient::connect(path).value());
    const Lease lease{
        "a", "GPU-1", "0", {}, 1, 8, {4, 1, 8, color::make_law(color::Parities{{3}, 1})}, ""};
    const int lock = listener->lock();
    const auto server = listener->accept();
    ASSERT_TRUE(server
                    ->send(attaches ? to_text(Attached{lease}) : to_text(Opened{lease, "0"}),
                           std::span(&lock, 1))
                    .value());
    ASSERT_TRUE(attaches ? client->attach("0").has_value() : client->open("a", "").has_value());
    listener.reset();
    EXPECT_THAT(why(PacketListener::listen(path, std::nullopt)),
                HasSubstr("programs of one that has ended still run"));
    client.reset();
    EXPECT_TRUE(PacketListener::listen(path, std::nullopt));
  }
}

TEST_F(Client, refuses_extents_that_are_not_what_was_asked_for) {
  for (const Extent& wrong :
       {Extent{{}, 2 << 20}, Extent{LinearByte(1), 4 << 20}, Extent{{}, (4 << 20) + 1}}) {
    answer(to_text(wrong));
    const auto extent = client.take((2 << 20) + 1);
    ASSERT_FALSE(extent);
    EXPECT_EQ(extent.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(extent.error().message,
                HasSubstr("the answer of demarc serve cannot be understood"));
  }
  answer(to_text(Done{}), {listener.file()});
  EXPECT_THAT(why(client.give({})), HasSubstr("1 descriptors came, but 0 were expected"));
}

TEST_F(Client, is_told_when_the_server_has_ended) {
  answer(to_text(ListHead{"GPU-1", 100, 1}));
  server.reset();
  EXPECT_FALSE(client.lost());
  EXPECT_FALSE(client.list());
  EXPECT_TRUE(client.lost());
  EXPECT_FALSE(client.pages({{}, 1}));
  const auto refused = client.take(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("demarc serve has ended, or ended this"));
}

TEST_F(Client, gives_up_a_server_that_says_nothing) {
  EXPECT_TRUE(test::passes_in_a_process([&] {
    const auto impatient = LeaseClient::connect(path, 0.01).value();
    const auto silent = listener.accept();
    const auto refused = impatient.take(1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("demarc serve does not answer"));
    EXPECT_TRUE(impatient.lost());
    EXPECT_FALSE(client.lost());
    // What comes late is the answer of no other question, and no other one is asked.
    ASSERT_TRUE(silent->send(to_text(Extent{{}, extent_step})).value());
    EXPECT_THAT(why(impatient.take(1)), HasSubstr("demarc serve does not answer"));
    EXPECT_TRUE(silent->receive()->packet);
    EXPECT_FALSE(silent->receive()->packet);
  }));
}

TEST_F(Client, says_which_questions_no_packet_has_room_for) {
  answer(to_text(Done{}));
  EXPECT_THAT(why(client.revoke(std::string(packet_bytes, 'a'))),
              HasSubstr("bytes with 0 files is not possible: it has 1 to 65536 bytes"));
  EXPECT_FALSE(client.lost());
  EXPECT_TRUE(client.revoke("a"));
}

TEST_F(Client, gives_up_a_server_that_takes_no_question) {
  EXPECT_TRUE(test::passes_in_a_process([&] {
    const auto impatient = LeaseClient::connect(path, 0.01).value();
    const auto standing = listener.accept();
    while (::send(impatient.file(), "x", 1, MSG_DONTWAIT) == 1) continue;
    const timeval soon{0, 1000};  // in the place of the 10 s
    ASSERT_EQ(::setsockopt(impatient.file(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
    ASSERT_TRUE(standing->send(to_text(Done{})).value());
    const auto refused = impatient.give({});
    ASSERT_FALSE(refused) << "that was an answer to another question";
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("demarc serve does not answer"));
    EXPECT_TRUE(impatient.lost());
  }));
}

// What has to fill memory, prove TPCs or end programs first may last six times as long.
TEST_F(Client, waits_longer_for_what_takes_the_server_longer) {
  const auto waited_s = [&](const auto& question_of) {
    const auto impatient = LeaseClient::connect(path, 0.01).value();
    const auto silent = listener.accept();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(question_of(impatient).has_value());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  EXPECT_TRUE(test::passes_in_a_process([&] {
    EXPECT_GE(waited_s([](const LeaseClient& one) { return one.take(1); }), 0.06);
    EXPECT_GE(waited_s([](const LeaseClient& one) { return one.move("a", "0"); }), 0.06);
    EXPECT_GE(waited_s([](const LeaseClient& one) { return one.revoke("a"); }), 0.06);
    EXPECT_GE(waited_s([](const LeaseClient& one) { return one.give({}); }), 0.01);
    EXPECT_GE(waited_s([](const LeaseClient& one) { return one.grow("a", 1); }), 0.01);
    EXPECT_GE(waited_s([](const LeaseClient& one) { return one.list(); }), 0.01);
    EXPECT_GE(waited_s([](const LeaseClient& one) { return one.pages({{}, 1}); }), 0.01);
  }));
}

TEST_F(Client, hears_why_its_connection_was_ended_before_it_asked) {
  answer(to_text(Error{ErrorKind::missing_capability, "there is no place"}));
  server.reset();
  EXPECT_EQ(why(client.list()), "there is no place");
  EXPECT_FALSE(client.lost()) << "the server's own words";
}

TEST_F(Client, hears_why_its_connection_was_ended_with_its_question_unread) {
  const PacketSocket other = PacketSocket::connect(path).value();
  auto refusing = listener.accept();
  ASSERT_TRUE(other.send("question").value());
  ASSERT_TRUE(refusing->send("why").value());
  refusing.reset();
  const auto received = other.receive();
  ASSERT_TRUE(received && received->packet);
  EXPECT_EQ(received->packet->text, "why");
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

}  // namespace
}  // namespace demarc::lease
