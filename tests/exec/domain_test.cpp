// The memory synchronisation domains of programs under `demarc exec`: which they get, and who
// claims which.
#include <gmock/gmock.h>

#include <sys/resource.h>

#include <optional>

#include "confine_fixture.hpp"
#include "demarc/guest/program_claim.hpp"

namespace demarc::cuda {
namespace {

class ProgramDomains : public Confine {};

// The domain of a program's launches, by the stand-in, and what the outcome says of it.
struct DomainSeen {
  std::string log;
  std::optional<std::uint32_t> said;
  std::string no_domain_because;
};

DomainSeen run_in_domain(Supervised& program, const DomainChoice& choice, bool observe) {
  ::unlink(program.log_path().c_str());
  auto plan = plan_for(program, {"context", "launch", "domain"});
  plan.sync_domain = choice;
  plan.observe = observe;
  if (observe) plan.choice = {};
  const auto outcome = run_confined(plan);
  if (!outcome) return {outcome.error().message, {}, ""};
  if (!outcome->holds()) return {warnings(*outcome), {}, ""};
  const std::string log = program.log();
  const std::size_t at = log.find("domain ");
  return {at == std::string::npos ? log : log.substr(at), outcome->sync_domain,
          outcome->no_domain_because};
}

TEST_F(ProgramDomains, a_program_has_the_domain_that_is_given_or_a_free_one_or_its_own) {
  for (const bool observe : {false, true}) {
    EXPECT_EQ(Supervised::apart([&] {
                const auto given = run_in_domain(program, {DomainChoice::Kind::given, 3}, observe);
                if (given.log != "domain 3\n") return complain(given.log);
                REQUIRE_IN_CHILD(given.said == 3U && given.no_domain_because.empty());
                const auto free = run_in_domain(program, {}, observe);
                if (free.log != "domain 1\n") return complain(free.log);
                REQUIRE_IN_CHILD(free.said == 1U && free.no_domain_because.empty());
                const auto own = run_in_domain(program, {DomainChoice::Kind::none, 0}, observe);
                if (own.log != "domain 0\n") return complain(own.log);
                REQUIRE_IN_CHILD(!own.said && own.no_domain_because.empty());
                return 0;
              }),
              0);
  }
}

TEST_F(ProgramDomains, a_program_that_is_left_its_own_has_the_one_that_it_chooses) {
  EXPECT_EQ(Supervised::apart([&] {
              auto plan = plan_for(program, {"context", "own-domain=2", "launch", "domain"});
              plan.sync_domain = {DomainChoice::Kind::none, 0};
              REQUIRE_IN_CHILD(run_confined(plan)->holds());
              return program.log().ends_with("launch 0\ndomain 2\n") ? 0 : complain(program.log());
            }),
            0);
}

// Another program's claim of a domain.
std::optional<ProgramClaim> claim_of_a_domain(const std::string& card, std::uint32_t domain) {
  auto claim = ProgramClaim::open(false);
  if (!claim || claim->take_free_domain(card, 4) != domain) return std::nullopt;
  return std::move(*claim);
}

TEST_F(ProgramDomains, domains_that_other_programs_have_are_not_free) {
  EXPECT_EQ(Supervised::apart([&] {
              const std::string card = program.card;
              std::optional<ProgramClaim> first = claim_of_a_domain(card, 1);
              const auto second = claim_of_a_domain(card, 2);
              REQUIRE_IN_CHILD(first && second);
              REQUIRE_IN_CHILD(claim_of_a_domain("GPU-another", 1));
              REQUIRE_IN_CHILD(run_in_domain(program, {}, false).said == 3U);
              const auto third = claim_of_a_domain(card, 3);
              REQUIRE_IN_CHILD(third);
              const auto none = run_in_domain(program, {}, false);
              if (none.log != "domain 0\n") return complain(none.log);
              REQUIRE_IN_CHILD(!none.said);
              if (none.no_domain_because.find("have all domains of the card but the common one") ==
                  std::string::npos) {
                return complain(none.no_domain_because);
              }
              first.reset();
              REQUIRE_IN_CHILD(run_in_domain(program, {}, false).said == 1U);
              return 0;
            }),
            0);
}

TEST_F(ProgramDomains, a_domain_that_is_given_is_claimed_and_shared_only_with_a_word) {
  EXPECT_EQ(Supervised::apart([&] {
              auto plan = plan_for(program, {"context", "launch", "domain"});
              plan.sync_domain = {DomainChoice::Kind::given, 1};
              std::string told;
              plan.tell = [&told](const std::string& line) { told += line; };
              bool second = false;
              plan.started = [&](const std::string&) {
                second = claim_of_a_domain(program.card, 2).has_value();
              };
              REQUIRE_IN_CHILD(run_confined(plan)->holds());
              REQUIRE_IN_CHILD(second && told.empty());
              plan.started = {};
              const auto first = claim_of_a_domain(program.card, 1);
              REQUIRE_IN_CHILD(first);
              REQUIRE_IN_CHILD(run_confined(plan)->sync_domain == 1U);
              REQUIRE_IN_CHILD(told ==
                               "another demarc exec also has the memory synchronisation domain 1");
              told.clear();
              plan.sync_domain = {};
              REQUIRE_IN_CHILD(run_confined(plan)->sync_domain == 2U);
              REQUIRE_IN_CHILD(told.empty());
              plan.sync_domain = {DomainChoice::Kind::given, 0};
              plan.command = program.subject({"context", "own-domain=2", "launch", "domain"});
              REQUIRE_IN_CHILD(run_confined(plan)->sync_domain == 0U);
              REQUIRE_IN_CHILD(program.log().ends_with("launch 0\ndomain 0\n"));
              REQUIRE_IN_CHILD(told.empty());
              return 0;
            }),
            0);
}

TEST_F(ProgramDomains, without_a_file_nothing_is_claimed) {
  EXPECT_EQ(Supervised::apart([&] {
              auto files = Driver::files();
              REQUIRE_IN_CHILD(files && files->front() == test::fake_libcuda());
              const rlimit none{0, 0};
              ::setrlimit(RLIMIT_NOFILE, &none);
              const auto claim = lease::CardClaim::open(*files);
              REQUIRE_IN_CHILD(!claim && claim.error().kind == ErrorKind::missing_capability);
              if (claim.error().message.find("Too many open files: the card cannot be claimed") ==
                  std::string::npos) {
                return complain(claim.error().message);
              }
              return 0;
            }),
            0);
}

TEST_F(ProgramDomains,
       a_domain_that_the_card_lacks_is_refused_by_number_and_done_without_otherwise) {
  EXPECT_EQ(
      Supervised::apart([&] {
        const auto refused = [&](std::uint32_t domain, const char* words) {
          const auto seen = run_in_domain(program, {DomainChoice::Kind::given, domain}, false);
          return seen.log.find(words) != std::string::npos;
        };
        REQUIRE_IN_CHILD(
            refused(4, "there is no memory synchronisation domain 4; the card has 0 to 3"));
        fake::FakeConfig config = fake::small_gpu();
        config.sync_domains = 2;
        test::configure(config);
        REQUIRE_IN_CHILD(run_in_domain(program, {}, false).said == 1U);
        config.sync_domains = 4;
        config.hides_domains = true;
        test::configure(config);
        REQUIRE_IN_CHILD(refused(1, "do not show where a launch has"));
        const auto hidden = run_in_domain(program, {}, false);
        REQUIRE_IN_CHILD(!hidden.said && hidden.log == "domain 0\n");
        REQUIRE_IN_CHILD(hidden.no_domain_because.find("do not show where") != std::string::npos);
        config.sync_domains = 1;
        test::configure(config);
        REQUIRE_IN_CHILD(refused(1, "has one for all"));
        REQUIRE_IN_CHILD(
            run_in_domain(program, {}, true).no_domain_because.find("has one for all") !=
            std::string::npos);
        const auto unwanted = run_in_domain(program, {DomainChoice::Kind::none, 0}, true);
        REQUIRE_IN_CHILD(unwanted.log == "domain 0\n" && unwanted.no_domain_because.empty());
        return 0;
      }),
      0);
}

TEST(DomainChoices, are_free_none_or_a_number) {
  EXPECT_EQ(parse_domain_choice("free")->kind, DomainChoice::Kind::free);
  EXPECT_EQ(parse_domain_choice("none")->kind, DomainChoice::Kind::none);
  const auto two = parse_domain_choice("2");
  EXPECT_TRUE(two && two->kind == DomainChoice::Kind::given && two->domain == 2);
  EXPECT_EQ(parse_domain_choice("2147483647")->domain, 2147483647U);
  for (const char* wrong : {"", "-1", "auto", "1,2", "4294967296", "2147483648"}) {
    EXPECT_FALSE(parse_domain_choice(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace demarc::cuda
