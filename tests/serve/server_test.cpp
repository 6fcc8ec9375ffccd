// A server gives leases, pages and memory to the programs that they belong to alone.
#include "server_fixture.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

namespace demarc::serve {
namespace {

using color::LinearByte;
using testing::ElementsAre;
using testing::HasSubstr;

class Serving : public ServerTest {
 protected:
  void SetUp() override { start(); }
  // Owners and processes of both tenants, which have all bytes and wrote them.
  [[nodiscard]] std::pair<std::vector<lease::PacketSocket>, std::vector<lease::PacketSocket>>
  two_with_all_bytes() {
    std::vector<lease::PacketSocket> owners, users;
    for (const auto& [tenant, colors] : {std::pair("a", 1U), std::pair("b", 2U)}) {
      owners.push_back(connect());
      users.push_back(connect());
      static_cast<void>(attach(users.back(), open(owners.back(), tenant).token));
      EXPECT_EQ(take(users.back(), 8 * step).bytes, 8 * step);
      std::memset(card.memory(colors), 'x', 8 * step);
    }
    return {std::move(owners), std::move(users)};
  }
};

TEST_F(Serving, proves_the_TPCs_of_every_tenant_before_it_listens) {
  EXPECT_THAT(card.proved, ElementsAre("0-1", "2"));
  options.socket += "2";
  card.unproved_tpc = gpu::TpcIndex(2);
  const auto refused =
      Server::start(options, card, {terms_of("a", {0, 1}, 1), terms_of("b", {2}, 2)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "TPC 2 is not kept");
  EXPECT_FALSE(std::filesystem::exists(options.socket));
  EXPECT_FALSE(Server::start(options, card, {terms_of("a", {0}, 1), terms_of("b", {0}, 2)}));
}

TEST_F(Serving, opens_a_lease_in_the_numbers_of_its_tenant) {
  const auto owner = connect();
  const auto opened = open(owner);
  EXPECT_EQ(opened.lease, (lease::Lease{"a",
                                        "GPU-planted",
                                        "0-1",
                                        {{2, 0, 0, 1U << 31}, 4},
                                        1,
                                        PlantedCard::share_bytes,
                                        card.share({1, 8}).value(),
                                        "/run/mps",
                                        3 * step}));
  EXPECT_EQ(opened.token.size(), 32U);
  EXPECT_NE(opened.token.substr(0, 16), opened.token.substr(16));
  const auto second = connect();
  const std::string token = open(second).token;
  EXPECT_NE(token.substr(0, 16), opened.token.substr(0, 16));
  EXPECT_NE(token.substr(16), opened.token.substr(16));
  EXPECT_EQ(status("a").leases, 2U);
  EXPECT_EQ(status("b").leases, 0U);
  EXPECT_EQ(refusal(connect(), lease::OpenRequest{"c", ""}),
            "there is no tenant 'c'; the tenants are: a, b");
}

TEST_F(Serving, lends_the_pages_that_a_process_asks_for) {
  const auto owner = connect();
  const auto process = connect();
  EXPECT_EQ(refusal(process, lease::PagesRequest{{{}, 1}}),
            "attach to a lease before pages are lent");
  const auto attached =
      ask<lease::Attached>(process, lease::AttachRequest{open(owner, "b").token}).value();
  EXPECT_EQ(attached.lease.tenant, "b");
  EXPECT_EQ(attached.lease.share, card.share({2, 8}).value());
  const std::uint64_t pages = card.pages();
  ASSERT_GT(pages, lease::packet_files);
  for (const auto& [first, count] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, lease::packet_files}, {pages - 1, 1}, {3, 2}, {3, 2}}) {
    const auto packet = ask(
        process, to_text(lease::Request(lease::PagesRequest{{color::ArenaPage(first), count}})));
    EXPECT_EQ(lease::parse_answer<lease::PageBatch>(packet.text).value(),
              (lease::PageBatch{{color::ArenaPage(first), count}}));
    ASSERT_EQ(packet.files.size(), count);
    for (std::uint64_t i = 0; i < count; ++i) {
      struct stat facts {};
      ASSERT_EQ(::fstat(packet.files[i].get(), &facts), 0);
      EXPECT_EQ(facts.st_size, static_cast<off_t>(first + i));
    }
  }
  for (const auto& [first, count] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 0}, {0, lease::packet_files + 1}, {pages, 1}, {pages - 1, 2}, {~0ULL >> 1U, 2}}) {
    EXPECT_EQ(refusal(process, lease::PagesRequest{{color::ArenaPage(first), count}}),
              fmt::format("{} pages from {} on: 1 to {} of the arena's {} were expected", count,
                          first, lease::packet_files, pages));
  }
  EXPECT_EQ(take(process, 1).first, LinearByte()) << "the connection answers on";
}

TEST_F(Serving, hands_out_the_table_in_a_file_that_nobody_can_change) {
  card.has_table = true;
  server.reset();
  start();
  const auto owner = connect();
  const std::string token = open(owner).token;
  const auto process = connect();
  const auto packet = ask(process, to_text(lease::Request(lease::AttachRequest{token})));
  ASSERT_EQ(packet.files.size(), 2U) << "behind that of the lock";
  const std::uint64_t behind = card.pages();
  const auto tables =
      ask(process, to_text(lease::Request(lease::PagesRequest{{color::ArenaPage(behind), 1}})));
  ASSERT_EQ(tables.files.size(), 1U) << "the page with what the share itself has of it";
  struct stat facts {};
  ASSERT_EQ(::fstat(tables.files[0].get(), &facts), 0);
  EXPECT_EQ(facts.st_size, static_cast<off_t>(behind));
  EXPECT_EQ(refusal(process, lease::PagesRequest{{color::ArenaPage(behind + 1), 1}}),
            fmt::format("1 pages from {} on: 1 to {} of the arena's {} were expected", behind + 1,
                        lease::packet_files, behind + 1));
  const int table = packet.files[1].get();
  char bytes[1001];
  EXPECT_EQ(::pread(table, bytes, sizeof bytes, 0), 1000);
  EXPECT_EQ(bytes[999], 7);
  EXPECT_EQ(::pwrite(table, bytes, 1, 0), -1);
  EXPECT_EQ(::pwrite(table, bytes, 1, 1000), -1);
  EXPECT_EQ(::ftruncate(table, 0), -1);
  EXPECT_EQ(::fcntl(table, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1) << "nor what may be done to it";
}

TEST_F(Serving, hands_out_copies_of_all_locks) {
  server.reset();
  const OwnedFile lock(::memfd_create("lock", MFD_CLOEXEC));
  options.locks = [&] { return std::vector<int>{lock.get()}; };
  start();
  const auto number_of = [](int file) {
    struct stat facts {};
    EXPECT_EQ(::fstat(file, &facts), 0);
    return facts.st_ino;
  };
  struct stat path_lock {};
  ASSERT_EQ(::stat((options.socket + ".lock").c_str(), &path_lock), 0);
  const auto owner = connect();
  const auto opened = ask(owner, to_text(lease::Request(lease::OpenRequest{"a", ""})));
  const auto lease = lease::parse_answer<lease::Opened>(opened.text).value();
  const auto process = connect();
  const auto attached = ask(process, to_text(lease::Request(lease::AttachRequest{lease.token})));
  EXPECT_EQ(lease.locks, 2U);
  EXPECT_EQ(lease::parse_answer<lease::Attached>(attached.text).value().locks, 2U);
  for (const lease::Packet* packet : {&opened, &attached}) {
    ASSERT_EQ(packet->files.size(), 2U);
    EXPECT_EQ(number_of(packet->files[0].get()), path_lock.st_ino);
    EXPECT_EQ(number_of(packet->files[1].get()), number_of(lock.get()));
  }
}

TEST_F(Serving, gives_memory_and_takes_it_back) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  EXPECT_EQ(take(process, step + 1), (lease::Extent{{}, 2 * step}));
  EXPECT_EQ(take(process, 1), (lease::Extent{LinearByte(2 * step), step}));
  EXPECT_EQ(status("a").given_bytes, 3 * step);
  EXPECT_EQ(status("a").extents, 2U);
  EXPECT_THAT(status("a").processes, ElementsAre(::getpid()));
  EXPECT_EQ(status("b").given_bytes, 0U);
  EXPECT_EQ(refusal(process, lease::GiveRequest{}), "done");
  EXPECT_EQ(refusal(process, lease::GiveRequest{}), "no bytes of this process begin at 0");
}

TEST_F(Serving, fills_what_comes_back_with_zeros_before_it_is_given_again) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  ASSERT_EQ(take(process, 8 * step).first, LinearByte());
  std::memset(card.memory(1), 'x', 8 * step);
  // Both questions lie there before the server looks: the second waits for the zeros.
  ASSERT_TRUE(*process.send(to_text(lease::Request(lease::GiveRequest{}))));
  ASSERT_TRUE(*process.send(to_text(lease::Request(lease::TakeRequest{8 * step}))));
  EXPECT_EQ(lease::parse_answer<lease::Done>(next(process).text), lease::Done{});
  EXPECT_EQ(lease::parse_answer<lease::Extent>(next(process).text).value().bytes, 8 * step);
  EXPECT_EQ(std::count(card.memory(1), card.memory(1) + 8 * step, '\0'), 8 * step);
  EXPECT_EQ(card.scrubs.size(), 2U) << "in pieces of four steps";
  EXPECT_EQ(status("a").refused_takes, 0U);
}

TEST_F(Serving, fills_bytes_of_a_tenant_that_waits_before_those_of_others) {
  const auto [owners, users] = two_with_all_bytes();
  const lease::Request give = lease::GiveRequest{};
  const lease::Request all = lease::TakeRequest{8 * step};
  for (const auto& user : users) ASSERT_TRUE(*user.send(to_text(give)));
  ASSERT_TRUE(*users[1].send(to_text(all)));
  EXPECT_EQ(lease::parse_answer<lease::Done>(next(users[1]).text), lease::Done{});
  EXPECT_EQ(lease::parse_answer<lease::Extent>(next(users[1]).text).value().bytes, 8 * step);
  EXPECT_EQ(card.memory(1)[8 * step - 1], 'x') << "only b waits";
  EXPECT_EQ(std::count(card.memory(2), card.memory(2) + 8 * step, '\0'), 8 * step);
}

TEST_F(Serving, fills_bytes_of_those_who_wait_in_turn) {
  server.reset();
  options.scrub_bytes = step;
  start();
  const auto [owners, users] = two_with_all_bytes();
  const lease::Request give = lease::GiveRequest{};
  const lease::Request all = lease::TakeRequest{8 * step};
  for (const auto& user : users) {
    ASSERT_TRUE(*user.send(to_text(give)));
    ASSERT_TRUE(*user.send(to_text(all)));
  }
  turn_until([&] { return card.scrubs.size() == 9; });
  for (const std::uint64_t colors : {1U, 2U}) {
    int zeros = 0;
    for (std::uint64_t i = 0; i < 8; ++i) zeros += card.memory(colors)[i * step] == 0 ? 1 : 0;
    EXPECT_GE(zeros, 4);
  }
  for (const auto& user : users) {
    static_cast<void>(next(user));
    EXPECT_EQ(lease::parse_answer<lease::Extent>(next(user).text).value().bytes, 8 * step);
  }
}

TEST_F(Serving, looks_at_the_card_at_once_when_zeros_cannot_be_written) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  static_cast<void>(take(process, step));
  ASSERT_TRUE(*process.send(to_text(lease::Request(lease::GiveRequest{}))));
  card.scrub_error = card.dead = "the card is lost";
  for (int i = 0; i < 2000 && told.empty(); ++i) {
    const auto turned = server->turn(10);
    EXPECT_EQ(turned.has_value(), told.empty()) << "not a second later";
  }
  EXPECT_THAT(told, ElementsAre(HasSubstr("could not be filled with zeros")));
}

TEST_F(Serving, gives_nobody_what_could_not_be_filled_with_zeros) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  static_cast<void>(take(process, 6 * step));
  card.scrub_error = "the card is lost";
  ASSERT_EQ(refusal(process, lease::GiveRequest{}), "done");
  turn_until([&] { return !told.empty(); });
  EXPECT_EQ(told[0],
            "tenant 'a': memory at 0 could not be filled with zeros and is not given any more: "
            "the card is lost");
  EXPECT_EQ(take(process, 2 * step).first, LinearByte(6 * step));
  EXPECT_THAT(refusal(process, lease::TakeRequest{1}), HasSubstr("the longest free run"));
  EXPECT_EQ(status("a").unclean_bytes, 0U) << "nothing waits for zeros";
  EXPECT_EQ(status("a").lost_bytes, 6 * step);
  EXPECT_EQ(status("a").refused_takes, 1U);
}

TEST_F(Serving, looks_at_the_card_from_time_to_time_and_not_in_every_turn) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(server->turn(0));
  EXPECT_GE(card.looks, 1);
  EXPECT_LE(card.looks, 50);
}

TEST_F(Serving, ends_when_the_card_was_reset_or_its_context_died) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  card.dead = "cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED";
  std::optional<Error> ended;
  for (int i = 0; i < 2000 && !ended; ++i) {
    if (const auto turned = server->turn(10); !turned) ended = turned.error();
  }
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->kind, ErrorKind::missing_capability);
  EXPECT_EQ(ended->message,
            "GPU-planted: the card was reset, or the server's context on it died "
            "(cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED): the programs of all tenants are ended; "
            "start demarc serve again");
  card.scrubs.clear();
  EXPECT_THAT(refusal(connect(), lease::OpenRequest{"a", ""}), HasSubstr("the card was reset"));
  EXPECT_THAT(refusal(process, lease::TakeRequest{1}), HasSubstr("the card was reset"));
  EXPECT_TRUE(card.scrubs.empty()) << "nothing is asked of the card any more";
  EXPECT_FALSE(server->turn(0).value()) << "nothing is to wake it";
}

TEST_F(Serving, refuses_questions_of_those_who_have_not_asked_for_a_lease) {
  const auto client = connect();
  EXPECT_EQ(refusal(client, lease::TakeRequest{1}), "attach to a lease before memory is taken");
  EXPECT_EQ(refusal(client, lease::GiveRequest{LinearByte(1)}),
            "attach to a lease before memory is given back");
  EXPECT_EQ(refusal(client, lease::ShowRequest{}), "attach to a lease before memory is shown");
  EXPECT_EQ(refusal(client, lease::AttachRequest{""}),
            "no lease has this token: the lease has ended, or never existed");
  const std::string token = open(client).token;
  EXPECT_EQ(refusal(client, lease::OpenRequest{"a", ""}),
            "this connection has a lease already; it can have only one");
  EXPECT_EQ(refusal(client, lease::AttachRequest{token}),
            "this connection has a lease already; it can have only one");
  const auto process = connect();
  static_cast<void>(attach(process, token));
  EXPECT_EQ(refusal(process, lease::OpenRequest{"a", ""}),
            "this connection has a lease already; it can have only one");
  EXPECT_EQ(lease::parse_answer<lease::Done>(ask(client, "nonsense").text).error().kind,
            ErrorKind::invalid_input);
  EXPECT_EQ(status("a").leases, 1U);
}

TEST_F(Serving, says_nothing_of_one_who_has_hung_up) {
  { const auto client = connect(); }
  const auto other = connect();
  EXPECT_EQ(ask<lease::ListHead>(other, lease::ListRequest{})->tenants, 2U);
  EXPECT_EQ(server->connections(), 1U);
  EXPECT_TRUE(told.empty()) << told[0];
}

TEST_F(Serving, takes_no_connection_once_it_is_closed_and_keeps_its_place) {
  const auto owner = connect();
  static_cast<void>(open(owner));
  server->close();
  EXPECT_FALSE(lease::PacketSocket::connect(options.socket));
  EXPECT_FALSE(lease::PacketSocket::connect(tenant_socket(options.socket, "a")));
  ASSERT_TRUE(owner.wait(10));
  EXPECT_TRUE(owner.receive()->ended);
  EXPECT_EQ(server->connections(), 0U);
  EXPECT_TRUE(std::filesystem::exists(options.socket));
  EXPECT_EQ(lease::PacketListener::claim(options.socket).error().kind,
            ErrorKind::missing_capability);
}

TEST_F(Serving, ends_the_connection_of_one_who_sends_what_is_no_packet) {
  const auto client = connect();
  const std::string text(lease::packet_bytes + 1, 'x');
  ASSERT_GT(::send(client.file(), text.data(), text.size(), 0), 0);
  EXPECT_THAT(next(client).text, HasSubstr("a packet with more than 65536 bytes came"));
  EXPECT_TRUE(client.receive()->ended);
  EXPECT_EQ(server->connections(), 0U);
  EXPECT_THAT(told, ElementsAre(HasSubstr("a packet with more than 65536 bytes came")));
}

TEST_F(Serving, says_why_pages_cannot_be_lent) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  card.lend_error = "no more files";
  EXPECT_EQ(refusal(process, lease::PagesRequest{{{}, 1}}), "no more files");
  card.lend_error.clear();
  EXPECT_EQ(ask(process, to_text(lease::Request(lease::PagesRequest{{{}, 1}}))).files.size(), 1U);
}

TEST_F(Serving, waits_for_nobody_who_does_not_read) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const auto sleeper = connect();
  static_cast<void>(attach(sleeper, token));
  // More descriptors than may be on their way.
  for (int i = 0; i < 100; ++i) {
    const lease::Request all = lease::PagesRequest{{{}, lease::packet_files}};
    static_cast<void>(sleeper.send(to_text(all)).value());
    static_cast<void>(server->turn(0).value());
  }
  const auto other = connect();
  EXPECT_EQ(open(other).lease.tenant, "a");
  EXPECT_EQ(refusal(other, lease::TakeRequest{1}), "attach to a lease before memory is taken");
}

TEST_F(Serving, lists_tenants_with_what_they_have) {
  const auto owner = connect();
  const auto control = cuda::Control::create().value();
  static_cast<void>(open(owner, "b", control.value()));
  control.block().counters.masked[0] = 5;
  control.block().counters.masked[1] = 6;
  control.block().counters.unmasked[1] = 3;
  control.block().counters.refused[2] = 4;
  control.block().counters.colored.refused = 7;
  control.block().counters.colored.left_out = 8;
  control.block().record.note_refused_bytes(4096);
  const auto client = connect();
  const auto head = ask<lease::ListHead>(client, lease::ListRequest{}).value();
  EXPECT_EQ(head, (lease::ListHead{"GPU-planted", 450 * 4096, 2, "on"}));
  const auto a = lease::parse_answer<lease::TenantStatus>(next(client).text).value();
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.tpcs, "0-1");
  EXPECT_EQ(a.colors, "0");
  EXPECT_EQ(a.sync_domain, 1U);
  EXPECT_EQ(a.bytes, PlantedCard::share_bytes);
  const auto b = lease::parse_answer<lease::TenantStatus>(next(client).text).value();
  EXPECT_EQ(b.colors, "1");
  EXPECT_EQ(b.leases, 1U);
  EXPECT_THAT(b.launches, ElementsAre(5, 6, 0, 0, 0));
  EXPECT_THAT(b.unconfined, ElementsAre(0, 3, 0, 0, 0));
  EXPECT_THAT(b.refused, ElementsAre(0, 0, 4, 0, 0));
  EXPECT_EQ(b.refused_bytes, 4096U);
  EXPECT_EQ(b.refused_calls, 7U);
  EXPECT_EQ(b.refused_kernels, 8U);
  EXPECT_EQ(a.refused_calls, 0U);
  EXPECT_EQ(server->blocks("b").size(), 1U);
  EXPECT_TRUE(server->blocks("a").empty());
}

TEST_F(Serving, opens_no_file_but_a_control_block_of_the_one_who_asks) {
  const auto client = connect();
  const std::string self = fmt::format("/proc/{}/fd/", ::getpid());
  for (const std::string& wrong :
       {std::string("/etc/passwd#0"), std::string("/proc/self/fd/0#0"),
        std::string("/proc//fd/0#0"), std::string("/proc/1/fdinfo/0#0"), self + "0", self + "#0",
        self + ".." + "/../1/fd/0#0", self + "0/#0"}) {
    EXPECT_THAT(refusal(client, lease::OpenRequest{"a", wrong}),
                HasSubstr("N#TOKEN was expected, a file of the process that asks"))
        << wrong;
  }
  EXPECT_THAT(refusal(client, lease::OpenRequest{"a", self + "0#00"}), HasSubstr("control block"));
  // A file of another process is not looked at: it is that of the one who asks.
  EXPECT_THAT(refusal(client, lease::OpenRequest{"a", "/proc/1/fd/0#00"}),
              HasSubstr(self + "0#00: "));
  EXPECT_EQ(status("a").leases, 0U);
}

// A server whose proof fails once it is not sound.
class Proving : public Serving {
 protected:
  void SetUp() override {
    options.proof = [this](const Book&) -> Result<void> {
      if (sound) return {};
      return check_failed("two have one byte");
    };
    Serving::SetUp();
  }
  bool sound = true;
};

TEST_F(Proving, grants_nothing_that_the_proof_refuses) {
  const auto owner = connect();
  const std::string token = open(owner).token;
  const auto process = connect();
  static_cast<void>(attach(process, token));
  sound = false;
  EXPECT_EQ(refusal(process, lease::TakeRequest{1}), "two have one byte");
  EXPECT_EQ(refusal(connect(), lease::OpenRequest{"a", ""}), "two have one byte");
  EXPECT_EQ(refusal(connect(), lease::AttachRequest{token}), "two have one byte");
  EXPECT_EQ(status("a").leases, 1U);
  EXPECT_EQ(status("a").processes.size(), 1U);
}

TEST_F(Proving, counts_no_process_that_the_proof_refuses) {
  {
    const auto owner = connect();
    const std::string token = open(owner).token;
    sound = false;
    EXPECT_EQ(refusal(connect(), lease::AttachRequest{token}), "two have one byte");
  }
  turn_until([&] { return server->connections() == 0; });
  EXPECT_EQ(status("a").leases, 0U);
}

// Who may ask is told by the kernel.
class Peers : public ServerTest {};

TEST_F(Peers, of_another_user_get_nothing) {
  options.user = ::geteuid() + 1;
  start();
  const auto client = connect();
  EXPECT_THAT(next(client).text,
              HasSubstr(fmt::format("user {} may not have leases of this server", ::geteuid())));
  turn_until([&] { return readable(client.file()); });
  EXPECT_TRUE(client.receive()->ended);
  EXPECT_EQ(server->connections(), 0U);
  EXPECT_EQ(told.size(), 1U);
}

TEST_F(Peers, of_neither_the_user_nor_the_group_get_nothing) {
  options.user = ::geteuid() + 1;
  gid_t groups[256];
  const int count = ::getgroups(256, groups);
  ASSERT_GE(count, 0);
  options.group = 50'000;
  while (std::count(groups, groups + count, *options.group) != 0 || *options.group == ::getegid()) {
    ++*options.group;
  }
  start();
  EXPECT_THAT(refusal(connect(), lease::ListRequest{}),
              HasSubstr("may not have leases of this server"));
}

TEST_F(Peers, of_the_group_have_leases_and_change_no_tenant) {
  options.user = ::geteuid() + 1;
  options.group = ::getegid();
  start();
  const auto client = connect();
  EXPECT_EQ(open(client).lease.tenant, "a");
  const std::string rule = fmt::format("user {} may have leases; only user {} may change tenants",
                                       ::geteuid(), options.user);
  EXPECT_EQ(refusal(client, lease::GrowRequest{"a", step}), rule);
  EXPECT_EQ(refusal(client, lease::MoveRequest{"a", "5"}), rule);
  EXPECT_EQ(refusal(client, lease::RevokeRequest{"a"}), rule);
  EXPECT_EQ(refusal(client, lease::ProveRequest{"a", 0}), rule);
}

}  // namespace
}  // namespace demarc::serve
