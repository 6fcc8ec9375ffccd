// What is counted for a tenant beyond the ends of its leases.
#include "demarc/serve/tenant_totals.hpp"

#include "server_fixture.hpp"

namespace demarc::serve {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr LimitTime::Clock::time_point at(int second) {
  return LimitTime::Clock::time_point(seconds(second));
}

TEST(LimitTime, grows_only_while_the_limit_is_reached) {
  LimitTime time;
  EXPECT_EQ(time.total(at(5)), seconds(0));
  time.note(false, at(6));
  EXPECT_EQ(time.total(at(9)), seconds(0));
  time.note(true, at(10));
  EXPECT_EQ(time.total(at(10)), seconds(0));
  EXPECT_EQ(time.total(at(12)), seconds(2));
  time.note(true, at(13));
  EXPECT_EQ(time.total(at(14)), seconds(4)) << "since the first note";
  time.note(false, at(15));
  EXPECT_EQ(time.total(at(30)), seconds(5));
  time.note(true, at(40));
  EXPECT_EQ(time.total(at(41)), seconds(6)) << "both times together";
}

TEST(TenantTotals, add_the_launches_of_programs_without_copies) {
  const auto control = cuda::Control::create().value();
  auto& counters = control.block().counters;
  counters.masked[0] = 20;
  counters.unmasked[1] = 3;
  counters.refused[2] = 4;
  counters.colored.copies = 7;
  control.block().slo_misses = 2;
  TenantTotals totals;
  totals.add_ended(control.block());
  totals.add_ended(control.block());
  EXPECT_EQ(totals.launches, 40U);
  EXPECT_EQ(totals.slo_misses, 4U);
  lease::TenantStatus status{.launches_total = 100, .slo_misses = 10, .launches = {1, 0, 0, 0, 0}};
  status.unconfined.resize(cuda::launch_paths);
  status.refused.resize(cuda::launch_paths);
  add_living(status, control.block());
  EXPECT_EQ(status.launches_total, 120U);
  EXPECT_EQ(status.slo_misses, 12U);
  EXPECT_THAT(status.launches, ElementsAre(21, 0, 0, 0, 0));
}

class Totals : public ServerTest {
 protected:
  void SetUp() override { start(); }
  [[nodiscard]] std::uint64_t limit_ms(const std::string& tenant) const {
    return status(tenant).at_limit_ms;
  }
  // The time at the limit does not stand still, or does.
  [[nodiscard]] bool at_limit(const std::string& tenant) const {
    const auto before = limit_ms(tenant);
    ::usleep(3000);
    return limit_ms(tenant) != before;
  }
};

TEST_F(Totals, keep_the_launches_of_leases_that_have_ended) {
  const auto control = cuda::Control::create().value();
  const auto other = cuda::Control::create().value();
  control.block().counters.masked[1] = 5;
  other.block().counters.masked[1] = 2;
  {
    const auto owner = connect();
    static_cast<void>(open(owner, "b", control.value()));
    EXPECT_EQ(status("b").launches_total, 5U);
    control.block().counters.masked[1] = 9;
  }
  turn_until([&] { return server->ledger().book().leases.empty(); });
  EXPECT_EQ(status("b").launches_total, 9U);
  EXPECT_THAT(status("b").launches, ElementsAre(0, 0, 0, 0, 0)) << "of living leases";
  const auto owner = connect();
  static_cast<void>(open(owner, "b", other.value()));
  EXPECT_EQ(status("b").launches_total, 11U);
  EXPECT_EQ(status("a").launches_total, 0U);
}

TEST_F(Totals, count_misses_of_programs_and_those_that_others_report) {
  const auto control = cuda::Control::create().value();
  const auto other = connect();
  const auto none = "tenant 'b' has no lease, so none of its programs runs that could miss its SLO";
  EXPECT_EQ(refusal(other, lease::SloRequest{"b", 1}), none);
  {
    const auto owner = connect();
    static_cast<void>(open(owner, "b", control.value()));
    control.block().slo_misses = 5;
    EXPECT_EQ(status("b").slo_misses, 5U);
    EXPECT_EQ(refusal(other, lease::SloRequest{"b", 1}), "done");
    EXPECT_EQ(refusal(other, lease::SloRequest{"b", lease::max_slo_misses}), "done");
    EXPECT_EQ(status("b").slo_misses, 1'000'006U);
    EXPECT_EQ(refusal(other, lease::SloRequest{"a", 1}),
              "tenant 'a' has no lease, so none of its programs runs that could miss its SLO");
  }
  turn_until([&] { return server->ledger().book().leases.empty(); });
  EXPECT_EQ(status("b").slo_misses, 1'000'006U) << "they outlast the lease";
  EXPECT_EQ(status("a").slo_misses, 0U);
  EXPECT_EQ(refusal(other, lease::SloRequest{"b", 1}), none);
}

// The memory in which a program counts is the program's to write.
TEST_F(Totals, stay_readable_whatever_a_program_writes_there) {
  const auto control = cuda::Control::create().value();
  auto& counters = control.block().counters;
  {
    const auto owner = connect();
    static_cast<void>(open(owner, "b", control.value()));
    for (auto* count :
         {&counters.masked[0], &counters.unmasked[1], &counters.refused[4],
          &counters.colored.refused, &counters.colored.left_out, &control.block().slo_misses}) {
      *count = UINT64_MAX;
    }
    control.block().record.note_refused_bytes(UINT64_MAX);
    const auto client = connect();
    EXPECT_EQ(refusal(client, lease::SloRequest{"b", 1}), "done");
    EXPECT_EQ(ask<lease::ListHead>(client, lease::ListRequest{})->tenants, 2U);
    static_cast<void>(next(client));
    const auto b = lease::parse_answer<lease::TenantStatus>(next(client).text);
    ASSERT_TRUE(b) << b.error().message;
    EXPECT_EQ(b->launches[0], std::uint64_t{INT64_MAX});
    EXPECT_EQ(b->slo_misses, std::uint64_t{INT64_MAX});
    EXPECT_EQ(b->refused_bytes, std::uint64_t{INT64_MAX});
    counters.masked[0] = INT64_MAX;
    counters.unmasked[1] = counters.refused[4] = 0;
    EXPECT_EQ(status("b").launches_total, std::uint64_t{INT64_MAX}) << "just as much is left";
  }
  turn_until([&] { return server->ledger().book().leases.empty(); });
  EXPECT_EQ(status("b").launches_total, std::uint64_t{INT64_MAX});
  EXPECT_EQ(status("b").slo_misses, std::uint64_t{INT64_MAX});
}

// Its lease is like that of a program, but it is none.
class BesideCanaries : public ServerTest {
 protected:
  void SetUp() override {
    options.is_canary = [this](pid_t process) { return opens_canary && process != 0; };
    options.canary = [](const std::string& tenant) {
      return tenant == "a" ? CanaryReading{1.5, 200.0} : CanaryReading{{}, 300.0};
    };
    start();
  }
  bool opens_canary = true;
};

TEST_F(BesideCanaries, programs_alone_are_counted) {
  const auto control = cuda::Control::create().value();
  control.block().counters.masked[1] = 5;
  EXPECT_TRUE(server->quiet());
  EXPECT_TRUE(server->without_canaries());
  {
    const auto owner = connect();
    static_cast<void>(open(owner, "a", control.value()));
    EXPECT_EQ(status("a").leases, 0U);
    EXPECT_EQ(status("a").launches_total, 0U);
    EXPECT_TRUE(server->quiet());
    EXPECT_FALSE(server->without_canaries());
    EXPECT_THAT(refusal(connect(), lease::SloRequest{"a", 1}), HasSubstr("has no lease"));
    opens_canary = false;
    const auto program = connect();
    static_cast<void>(open(program, "b"));
    EXPECT_FALSE(server->quiet());
    EXPECT_EQ(status("b").leases, 1U);
    const auto lists = connect();
    EXPECT_EQ(ask<lease::ListHead>(lists, lease::ListRequest{})->tenants, 2U);
    const auto a = lease::parse_answer<lease::TenantStatus>(next(lists).text).value();
    EXPECT_EQ(a.canary_slowdown, 1.5);
    EXPECT_EQ(a.canary_baseline_cycles, 200.0);
    const auto b = lease::parse_answer<lease::TenantStatus>(next(lists).text).value();
    EXPECT_EQ(b.canary_slowdown, std::nullopt);
    EXPECT_EQ(b.canary_baseline_cycles, 300.0);
    ASSERT_TRUE(server->turn(0));
  }
  turn_until([&] { return server->ledger().book().leases.empty(); });
  EXPECT_EQ(status("a").launches_total, 0U);
}

TEST_F(BesideCanaries,
       memory_of_canaries_is_given_and_filled_with_zeros_but_their_time_not_counted) {
  const pid_t process = in_process([&] {
    auto owner = lease::LeaseClient::connect(options.socket).value();
    const auto opened = owner.open("a", "").value();
    auto attached = lease::LeaseClient::connect(options.socket).value();
    EXPECT_TRUE(attached.attach(opened.token));
    EXPECT_TRUE(attached.take(8 * step));
    ::pause();
    return 0;
  });
  turn_until([&] { return status("a").given_bytes == 8 * step; });
  ::usleep(2000);
  EXPECT_TRUE(status("a").processes.empty());
  EXPECT_EQ(status("a").attached_ms, 0U);
  EXPECT_TRUE(server->quiet());
  ::kill(process, SIGKILL);
  static_cast<void>(end_of(process));
  turn_until([&] { return server->ledger().book().leases.empty(); });
  EXPECT_NE(status("a").unclean_bytes, 0U);
  EXPECT_FALSE(server->without_canaries());
  turn_until([&] { return server->without_canaries(); });
  EXPECT_EQ(status("a").unclean_bytes, 0U);
  EXPECT_EQ(status("a").attached_ms, 0U);
}

TEST_F(Totals, refuse_misses_of_unknown_tenants_and_impossible_numbers) {
  const auto owner = connect();
  static_cast<void>(open(owner));
  EXPECT_EQ(refusal(owner, lease::SloRequest{"c", 1}),
            "there is no tenant 'c'; the tenants are: a, b");
  for (const std::uint64_t misses : {std::uint64_t{0}, lease::max_slo_misses + 1}) {
    EXPECT_EQ(refusal(owner, lease::SloRequest{"a", misses}),
              fmt::format("{} SLO misses: a number from 1 to 1000000 was expected", misses));
  }
  EXPECT_EQ(status("a").slo_misses, 0U);
  const auto of_b = lease::PacketSocket::connect(tenant_socket(options.socket, "b")).value();
  EXPECT_EQ(refusal(of_b, lease::SloRequest{"a", 1}),
            "this is the socket of tenant 'b', which gives no lease of tenant 'a'");
}

TEST_F(Totals, tell_how_long_nothing_more_could_be_given) {
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  static_cast<void>(take(process, 7 * step));
  EXPECT_FALSE(at_limit("a"));
  EXPECT_EQ(limit_ms("a"), 0U);
  static_cast<void>(take(process, step));
  EXPECT_TRUE(at_limit("a"));
  EXPECT_FALSE(at_limit("b"));
  EXPECT_EQ(refusal(process, lease::GiveRequest{}), "done");
  EXPECT_FALSE(at_limit("a"));
  EXPECT_GE(limit_ms("a"), 3U);
  EXPECT_LT(limit_ms("a"), 60'000U);
}

TEST_F(Totals, end_the_time_at_the_limit_with_the_process_and_when_the_limit_grows) {
  const auto ruler = connect();
  EXPECT_EQ(refusal(ruler, lease::GrowRequest{"a", 2 * step}), "done");
  const auto owner = connect();
  const std::string token = open(owner).token;
  const pid_t process = in_process([&] {
    const auto client = lease::LeaseClient::connect(options.socket).value();
    EXPECT_TRUE(client.take(1).error().message.starts_with("attach"));
    auto attached = lease::LeaseClient::connect(options.socket).value();
    EXPECT_TRUE(attached.attach(token));
    EXPECT_TRUE(attached.take(2 * step));
    ::pause();
    return 0;
  });
  turn_until([&] { return status("a").given_bytes == 2 * step; });
  EXPECT_TRUE(at_limit("a"));
  EXPECT_EQ(refusal(ruler, lease::GrowRequest{"a", 3 * step}), "done");
  EXPECT_FALSE(at_limit("a")) << "it has grown";
  EXPECT_EQ(refusal(ruler, lease::GrowRequest{"a", 2 * step}), "done");
  EXPECT_TRUE(at_limit("a"));
  ::kill(process, SIGKILL);
  static_cast<void>(end_of(process));
  turn_until([&] { return status("a").processes.empty(); });
  EXPECT_FALSE(at_limit("a"));
}

TEST_F(Totals, count_what_is_lost_as_memory_that_cannot_be_given) {
  const auto ruler = connect();
  EXPECT_EQ(refusal(ruler, lease::GrowRequest{"a", step}), "done");
  const auto owner = connect();
  const auto process = connect();
  static_cast<void>(attach(process, open(owner).token));
  static_cast<void>(take(process, step));
  card.scrub_error = "no zeros";
  EXPECT_EQ(refusal(process, lease::GiveRequest{}), "done");
  turn_until([&] { return status("a").lost_bytes != 0; });
  EXPECT_TRUE(at_limit("a"));
}

}  // namespace
}  // namespace demarc::serve
