// One server for a card: beside other servers, programs of their own, and what the last one left.
#include "server_claim.hpp"

#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "demarc/base/files.hpp"
#include "server_fixture.hpp"
#include "staying_process.hpp"

namespace demarc::serve {
namespace {

using lease::CardClaim;
using lease::ClaimedPart;
using lease::ClaimRole;
using lease::PartOwner;
using testing::ElementsAre;
using testing::HasSubstr;

class ServerClaims : public ServerTest {
 protected:
  ServerClaims() {
    EXPECT_TRUE(write_file(plan.files.front(), "a library\n"));
    plan.tell = [this](const std::string& line) { told.push_back(line); };
  }
  [[nodiscard]] std::string refusal() const {
    const auto claim = ServerClaim::take(plan);
    if (claim) return *claim ? "taken" : "given up";
    EXPECT_EQ(claim.error().kind, ErrorKind::missing_capability);
    return claim.error().message;
  }
  // A server that is told to end at its second or third look has said once what it waits for.
  void expect_said_once(const std::string& what) {
    for (const int looks : {2, 3}) {
      told.clear();
      int asked = 0;
      plan.told_to_end = [&] { return ++asked == looks; };
      EXPECT_EQ(refusal(), "given up");
      EXPECT_THAT(told, ElementsAre(HasSubstr(what), "told to end before the card was free"));
    }
  }
  // A program of a server that was killed; it has closed all descriptors.
  [[nodiscard]] pid_t survivor(bool ignores_sigterm = false) const {
    return test::staying_process([&] {
      if (ignores_sigterm) ::signal(SIGTERM, SIG_IGN);
      CardClaim lent = CardClaim::open(plan.files).value();
      EXPECT_TRUE(lent.hold_lent(plan.card));
      std::vector<lease::KeptFile> kept;
      for (const int file : lent.files()) {
        EXPECT_TRUE(kept.emplace_back(OwnedFile(::dup(file)))
                        .keep(claim_address(plan.card, ClaimRole::tenant)));
      }
      ::syscall(SYS_close_range, 100, ~0U, 0);
      static const auto for_ever = std::move(kept);
    });
  }
  [[nodiscard]] static Book book_of(gpu::TpcSet tpcs, std::optional<std::uint32_t> domain) {
    Book book;
    book.tenants["a"].terms = terms_of("a", tpcs, 1, domain);
    return book;
  }
  [[nodiscard]] CardClaim program(PartOwner owner, const ClaimedPart& part) const {
    CardClaim claim = CardClaim::open(plan.files).value();
    EXPECT_TRUE(claim.hold(plan.card, owner, part));
    return claim;
  }

  ClaimPlan plan{{test::fresh_folder("server_claim") / "libcuda.so.1"}, "GPU-1"};
};

TEST_F(ServerClaims, a_second_server_of_a_card_is_refused_by_the_name_of_the_first) {
  const pid_t first = test::staying_process([&] {
    static auto claim = ServerClaim::take(plan).value().value();
    EXPECT_TRUE(claim.serve());
  });
  EXPECT_THAT(refusal(), HasSubstr(fmt::format("another demarc serve (process {} (", first)));
  EXPECT_THAT(refusal(), HasSubstr("divides GPU-1, whatever its socket and its user"));
  EXPECT_TRUE(told.empty());
  plan.card = "GPU-2";
  EXPECT_EQ(refusal(), "taken");
  plan.card = "GPU-1";
  test::end_process(first);
  EXPECT_EQ(refusal(), "taken");
}

TEST_F(ServerClaims, a_card_is_claimed_before_its_server_serves) {
  auto claim = ServerClaim::take(plan).value().value();
  const auto seen = [&] { return CardClaim::open(plan.files)->others(plan.card).value(); };
  EXPECT_TRUE(seen().server);
  EXPECT_TRUE(seen().lent);
  EXPECT_FALSE(seen().serving);
  ASSERT_TRUE(claim.serve());
  EXPECT_TRUE(seen().serving);
}

TEST_F(ServerClaims, a_server_that_ends_is_waited_for) {
  const pid_t first = test::staying_process([&] {
    static auto claim = ServerClaim::take(plan).value().value();
    EXPECT_TRUE(claim.serve());
    claim.end();
  });
  plan.patience_seconds = 0;
  EXPECT_THAT(refusal(), HasSubstr("another demarc serve (process"));
  plan.patience_seconds = 1000;
  plan.told_to_end = [] { return true; };
  EXPECT_EQ(refusal(), "given up");
  EXPECT_THAT(told, ElementsAre("told to end before the card was free"));
  expect_said_once("starts or ends on GPU-1: waiting for it");
  plan.told_to_end = [] { return false; };
  told.clear();
  plan.tell = [&](const std::string& line) {
    told.push_back(line);
    test::end_process(first);
  };
  EXPECT_EQ(refusal(), "taken");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr("starts or ends on GPU-1: waiting for it"));
}

TEST_F(ServerClaims, programs_that_a_server_left_are_refused_by_name) {
  const pid_t left = survivor();
  EXPECT_THAT(refusal(),
              HasSubstr(fmt::format("still have its parts of GPU-1: process {} (", left)));
  EXPECT_THAT(refusal(), HasSubstr("--survivors wait or --survivors end"));
  test::end_process(left);
  EXPECT_EQ(refusal(), "taken");
}

// The child of a process that attached has nothing of it but what no process closes.
TEST_F(ServerClaims, what_is_left_of_a_tenant_is_ended_and_nothing_of_another) {
  auto claim = ServerClaim::take(plan).value().value();
  const auto user_of = [&](const std::string& of_card, const std::string& tenant) {
    return test::staying_process([&] {
      ::signal(SIGTERM, SIG_IGN);
      static lease::KeptFile kept(OwnedFile(::dup(claim.files().front())));
      EXPECT_TRUE(kept.keep(claim_address(plan.card, ClaimRole::tenant)));
      EXPECT_TRUE(kept.keep(lease::tenant_address(of_card, tenant)));
      ::syscall(SYS_close_range, 100, ~0U, 0);
      if (::fork() == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
      }
    });
  };
  const pid_t process = user_of("GPU-1", "a");
  const pid_t of_other = user_of("GPU-1", "b");
  const pid_t of_other_card = user_of("GPU-2", "a");
  const CardClaim looking = CardClaim::open(plan.files).value();
  EXPECT_EQ(looking.keepers(lease::tenant_address("GPU-1", "a")).size(), 2U) << "with its child";
  EXPECT_TRUE(claim.end_left("a"));
  EXPECT_TRUE(looking.keepers(lease::tenant_address("GPU-1", "a")).empty());
  EXPECT_FALSE(is_alive(process));
  EXPECT_EQ(looking.keepers(lease::tenant_address("GPU-1", "b")).size(), 2U);
  EXPECT_EQ(looking.keepers(lease::tenant_address("GPU-2", "a")).size(), 2U);
  EXPECT_TRUE(claim.end_left("c")) << "there is nothing";
  test::end_process(process);
  for (const pid_t one : {of_other, of_other_card}) {
    EXPECT_TRUE(is_alive(one));
    test::end_process(one);
  }
}

TEST_F(ServerClaims, programs_that_a_server_left_are_found_without_their_locks) {
  const pid_t left = test::staying_process([&] {
    static CardClaim without = CardClaim::open(plan.files).value();
    EXPECT_TRUE(without.keep(plan.card, ClaimRole::tenant));
  });
  EXPECT_THAT(refusal(), HasSubstr(fmt::format("process {} (", left)));
  test::end_process(left);
}

TEST_F(ServerClaims, programs_that_are_not_seen_are_refused_too) {
  CardClaim hidden = CardClaim::open(plan.files).value();
  ASSERT_TRUE(hidden.hold_lent(plan.card));
  for (const auto survivors : {Survivors::refuse, Survivors::end}) {
    plan.survivors = survivors;
    EXPECT_THAT(refusal(), HasSubstr("GPU-1: a process that cannot be seen from here"));
  }
}

TEST_F(ServerClaims, programs_that_a_server_left_are_waited_for_on_demand) {
  const pid_t left = survivor();
  plan.survivors = Survivors::wait;
  plan.told_to_end = [] { return true; };
  EXPECT_EQ(refusal(), "given up");
  EXPECT_THAT(told, ElementsAre("told to end before the card was free"));
  expect_said_once(": waiting for them");
  EXPECT_TRUE(is_alive(left));
  plan.told_to_end = [] { return false; };
  told.clear();
  plan.tell = [&](const std::string& line) {
    told.push_back(line);
    test::end_process(left);
  };
  EXPECT_EQ(refusal(), "taken");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], testing::EndsWith(": waiting for them"));
}

TEST_F(ServerClaims, programs_that_a_server_left_are_ended_on_demand) {
  plan.survivors = Survivors::end;
  for (const bool ignores : {false, true}) {
    plan.end_patience_ms = ignores ? 10 : 100'000;
    const pid_t left = survivor(ignores);
    // Its parent takes its exit code as it ends, as the parent of such a program does.
    std::optional<int> status;
    EXPECT_EQ(refusal(), "taken");
    status = end_of(left);
    EXPECT_EQ(*status, ignores ? SIGKILL : SIGTERM);
    ASSERT_FALSE(told.empty());
    EXPECT_THAT(told.back(), testing::EndsWith(": ending them"));
  }
}

TEST_F(ServerClaims, parts_of_programs_beside_the_server_are_refused_by_name_and_nothing_changes) {
  auto claim = ServerClaim::take(plan).value().value();
  ASSERT_TRUE(claim.divide(book_of({0, 1}, 1)));
  for (const PartOwner owner : {PartOwner::program, PartOwner::sharing}) {
    const auto beside = program(owner, {{0x6, 0}, 0x4});
    EXPECT_EQ(claim.domains_beside().value(), 0x4U);
    EXPECT_THAT(claim.divide(book_of({2, 3}, 1)).error().message,
                HasSubstr("the TPCs 2 of GPU-1 belong to a program under demarc exec"));
    EXPECT_THAT(claim.divide(book_of({3}, 2)).error().message,
                HasSubstr("the memory synchronisation domain 2 of GPU-1 belongs to a program"));
    const auto seen = CardClaim::open(plan.files)->others("GPU-1").value();
    EXPECT_EQ(seen.of(PartOwner::tenants), (ClaimedPart{{0x3, 0}, 0x2}));
  }
  ASSERT_TRUE(claim.divide(book_of({2}, {})));
  const auto seen = CardClaim::open(plan.files)->others("GPU-1").value();
  EXPECT_EQ(seen.of(PartOwner::tenants), (ClaimedPart{{0x4, 0}, 0}));
}

TEST_F(ServerClaims, tpcs_and_domains_of_large_numbers_are_claimed_too) {
  auto claim = ServerClaim::take(plan).value().value();
  for (const PartOwner owner : {PartOwner::program, PartOwner::sharing}) {
    const auto beside = program(owner, {{0x1, 0x40}, std::uint64_t{1} << 63U | 1U});
    EXPECT_THAT(claim.divide(book_of({6, 70}, 1)).error().message,
                HasSubstr("the TPCs 70 of GPU-1"));
    EXPECT_THAT(claim.divide(book_of({1}, 63)).error().message,
                HasSubstr("the memory synchronisation domain 63 of GPU-1"));
    EXPECT_THAT(claim.divide(book_of({1}, 0)).error().message,
                HasSubstr("the memory synchronisation domain 0 of GPU-1"));
  }
  ASSERT_TRUE(claim.divide(book_of({70}, 64))) << "a number that a claim cannot say";
  const auto seen = CardClaim::open(plan.files)->others("GPU-1").value();
  EXPECT_EQ(seen.of(PartOwner::tenants), (ClaimedPart{{0, 0x40}, 0}));
}

TEST_F(ServerClaims, its_parts_stay_with_whoever_has_its_files) {
  std::optional<ServerClaim> claim = ServerClaim::take(plan).value().value();
  ASSERT_TRUE(claim->divide(book_of({0}, 1)));
  std::vector<OwnedFile> copies;
  for (const int file : claim->files()) copies.emplace_back(::dup(file));
  claim.reset();
  EXPECT_THAT(refusal(), HasSubstr("still have its parts"));
  copies.clear();
  EXPECT_EQ(refusal(), "taken");
}

// A server that ends others is told to end while these do not.
TEST_F(ServerClaims, what_is_left_is_not_said_to_have_ended_where_it_cannot_be_looked_for) {
  const ServerClaim claim = ServerClaim::take(plan).value().value();
  EXPECT_TRUE(claim.end_left("a"));
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlimit none{0, files.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const auto looked = claim.end_left("a");
  ::setrlimit(RLIMIT_NOFILE, &files);
  ASSERT_FALSE(looked);
  EXPECT_THAT(looked.error().message, HasSubstr("cannot be looked for: "));
}

TEST_F(ServerClaims, a_server_that_is_told_to_end_waits_no_longer_for_the_end_of_programs) {
  const pid_t left = survivor(true);
  plan.survivors = Survivors::end;
  plan.end_patience_ms = 1'000'000;
  int asked = 0;
  plan.told_to_end = [&] { return ++asked == 3; };
  EXPECT_EQ(refusal(), "given up");
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(told.back(), "told to end before the card was free");
  EXPECT_TRUE(is_alive(left)) << "it was not killed";
  test::end_process(left);
}

TEST_F(ServerClaims, a_server_that_is_told_to_end_waits_no_longer_for_its_turn) {
  const CardClaim other = CardClaim::open(plan.files).value();
  const auto turn = other.turn();
  plan.turn_patience_ms = 0;
  plan.told_to_end = [] { return true; };
  ASSERT_EQ(refusal(), "given up");
  plan.turn_patience_ms = 1'000'000;
  int asked = 0;
  plan.told_to_end = [&] { return ++asked == 2; };
  EXPECT_EQ(refusal(), "given up");
  plan.turn_patience_ms = 0;
  plan.told_to_end = [&] { return ++asked == 20; };
  EXPECT_THAT(refusal(), HasSubstr("has locked this file (flock)"));
}

// The library is installed anew while the server runs.
class InstalledAnew : public ServerClaims {
 protected:
  void install() const {
    const std::string next = plan.files.front() + ".new";
    ASSERT_TRUE(write_file(next, "a library\n"));
    std::filesystem::rename(next, plan.files.front());
  }
  // On the new file alone, as another user sees it, who finds no process of this one.
  [[nodiscard]] lease::ClaimedCard seen() const {
    return CardClaim::open(plan.files)->others(plan.card).value();
  }
};

TEST_F(InstalledAnew, its_claims_are_on_the_new_file_too_once_it_has_looked) {
  ServerClaim claim = ServerClaim::take(plan).value().value();
  ASSERT_TRUE(claim.divide(book_of({1, 2}, 1)));
  ASSERT_TRUE(claim.serve());
  ASSERT_TRUE(claim.follow(plan.tell));
  EXPECT_TRUE(told.empty()) << "nothing has changed";
  EXPECT_EQ(claim.files().size(), 1U);
  install();
  EXPECT_FALSE(seen().server);
  ASSERT_TRUE(claim.follow(plan.tell));
  EXPECT_EQ(told.size(), 1U);
  EXPECT_THAT(told.at(0), HasSubstr("were installed anew"));
  EXPECT_EQ(claim.files().size(), 2U) << "what programs get";
  EXPECT_TRUE(seen().server);
  EXPECT_TRUE(seen().serving);
  EXPECT_TRUE(seen().lent);
  EXPECT_EQ(seen().of(PartOwner::tenants), (ClaimedPart{{0x6, 0}, 0x2}));
  ASSERT_TRUE(claim.divide(book_of({3}, {})));
  EXPECT_EQ(seen().of(PartOwner::tenants), (ClaimedPart{{0x8, 0}, 0}));
  claim.end();
  EXPECT_FALSE(seen().serving);
  install();
  ASSERT_TRUE(claim.follow(plan.tell));
  EXPECT_TRUE(seen().server);
  EXPECT_FALSE(seen().serving) << "it has ended to serve";
}

TEST_F(InstalledAnew, its_process_is_found_by_the_new_file_alone) {
  const pid_t first = test::staying_process([&] {
    static auto claim = ServerClaim::take(plan).value().value();
    install();
    EXPECT_TRUE(claim.follow([](const std::string&) {}));
  });
  const auto found = CardClaim::open(plan.files)->claimers(plan.card, ClaimRole::server);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].process, first);
  test::end_process(first);
}

TEST_F(InstalledAnew, parts_that_a_program_took_meanwhile_are_told) {
  ServerClaim claim = ServerClaim::take(plan).value().value();
  ASSERT_TRUE(claim.divide(book_of({1, 2}, 1)));
  install();
  const CardClaim taken = program(PartOwner::program, {{0x4, 0}, 0});
  ASSERT_TRUE(claim.follow(plan.tell));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told[1], testing::StartsWith("before that claim, and so beside the tenants: the TPCs "
                                           "2 of GPU-1 belong to a program under demarc exec"));
  EXPECT_THAT(claim.divide(book_of({2}, {})).error().message, HasSubstr("the TPCs 2 of GPU-1"));
}

TEST_F(InstalledAnew, its_claims_are_on_every_file_however_often_that_happens) {
  ServerClaim claim = ServerClaim::take(plan).value().value();
  ASSERT_TRUE(claim.divide(book_of({1}, 1)));
  for (std::size_t files = 2; files < 5; ++files) {
    install();
    ASSERT_TRUE(claim.follow(plan.tell));
    EXPECT_EQ(claim.files().size(), files);
    ASSERT_TRUE(claim.divide(book_of({gpu::TpcIndex(files)}, {})));
    EXPECT_EQ(seen().of(PartOwner::tenants).tpcs[0], std::uint64_t{1} << files);
  }
}

TEST_F(InstalledAnew, the_new_file_is_claimed_when_its_turn_has_come) {
  ServerClaim claim = ServerClaim::take(plan).value().value();
  ASSERT_TRUE(claim.divide(book_of({1}, 1)));
  install();
  {
    const CardClaim other = CardClaim::open(plan.files).value();
    const auto turn = other.turn();
    EXPECT_THAT(claim.follow(plan.tell).error().message, HasSubstr("has locked this file"));
    EXPECT_EQ(claim.files().size(), 1U);
    EXPECT_FALSE(seen().server);
  }
  ASSERT_TRUE(claim.follow(plan.tell));
  EXPECT_TRUE(seen().server);
  EXPECT_TRUE(CardClaim::open(plan.files)->turn(0)) << "its own turn is over";
}

// The thread that ends work looks at processes while the one that serves follows.
TEST_F(InstalledAnew, what_is_left_of_a_tenant_is_looked_for_meanwhile) {
  ServerClaim claim = ServerClaim::take(plan).value().value();
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) EXPECT_TRUE(claim.end_left("a"));
  });
  for (int i = 0; i < 40; ++i) {
    install();
    EXPECT_TRUE(claim.follow(plan.tell));
  }
  ends = true;
  other.join();
  EXPECT_EQ(claim.files().size(), 41U);
}

TEST_F(InstalledAnew, a_second_server_finds_the_first_by_the_file_before) {
  const pid_t first = test::staying_process([&] {
    static auto claim = ServerClaim::take(plan).value();
    EXPECT_TRUE(claim->serve());
  });
  install();
  EXPECT_THAT(refusal(), HasSubstr(fmt::format("another demarc serve (process {} (", first)));
  test::end_process(first);
  EXPECT_EQ(refusal(), "taken");
}

TEST(SurvivorChoices, are_three) {
  EXPECT_EQ(parse_survivors("refuse"), Survivors::refuse);
  EXPECT_EQ(parse_survivors("wait"), Survivors::wait);
  EXPECT_EQ(parse_survivors("end"), Survivors::end);
  EXPECT_EQ(parse_survivors("kill").error().message, "'kill': refuse, wait or end was expected");
}

}  // namespace
}  // namespace demarc::serve
