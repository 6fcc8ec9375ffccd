// What measurements say of a card of which others have parts.
#include "demarc/exec/beside_others.hpp"

#include <gmock/gmock.h>

#include "confine_fixture.hpp"
#include "demarc/lease/card_claim.hpp"
#include "staying_process.hpp"

namespace demarc::cuda {
namespace {

using lease::CardClaim;
using lease::ClaimRole;
using lease::PartOwner;
using testing::HasSubstr;

class BesideOthers : public Confine {
 protected:
  void SetUp() override {
    Confine::SetUp();
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::unsetenv(control_variable);
  }
  // What is said beside a process with these claims, whose number is N in it.
  std::string said_beside(const std::function<void(CardClaim& claim)>& claims, ClaimRole role) {
    const pid_t other = test::staying_process([&] {
      static auto claim = CardClaim::open(Driver::files().value()).value();
      claims(claim);
      EXPECT_TRUE(claim.keep(program.card, role));
    });
    std::string said;
    const int code = Supervised::apart([&] {
      test::configure(fake::small_gpu());
      const auto words = what_others_have(0);
      std::string text = words ? *words : words.error().message;
      const std::string number = fmt::format("process {} (", other);
      if (const auto at = text.find(number); at != std::string::npos) {
        text.replace(at, text.find("))", at) + 2 - at, "N)");
      }
      return write_file(folder_ / "said", text) ? 0 : 1;
    });
    EXPECT_EQ(code, 0);
    test::end_process(other);
    return read_file(folder_ / "said").value_or("nothing");
  }
  std::filesystem::path folder_ = test::fresh_folder("beside_others");
};

TEST_F(BesideOthers, servers_and_programs_that_they_left_are_named) {
  const std::string served = fmt::format(
      "{} is shared: demarc serve (N) divides it; this measurement uses all of it, so both disturb "
      "each other",
      program.card);
  const auto serves = [&](CardClaim& claim) { EXPECT_TRUE(claim.hold_server(program.card, true)); };
  const auto has_a_lease = [&](CardClaim& claim) { EXPECT_TRUE(claim.hold_lent(program.card)); };
  EXPECT_EQ(said_beside(serves, ClaimRole::server), served);
  EXPECT_EQ(said_beside(has_a_lease, ClaimRole::tenant), served);
}

TEST_F(BesideOthers, programs_with_tpcs_of_their_own_are_named_with_them) {
  for (const PartOwner owner : {PartOwner::program, PartOwner::sharing}) {
    const auto has_tpcs = [&](CardClaim& claim) {
      EXPECT_TRUE(claim.hold(program.card, owner, {gpu::TpcSet{1, 70}.words(), 0}));
    };
    EXPECT_THAT(said_beside(has_tpcs, ClaimRole::program),
                HasSubstr("is shared: demarc exec (N) has its TPCs 1,70; this measurement"));
  }
}

TEST_F(BesideOthers, nothing_is_said_of_a_card_that_nobody_divides) {
  EXPECT_EQ(said_beside([](CardClaim&) {}, ClaimRole::program), "");
}

TEST_F(BesideOthers, nothing_is_said_within_a_program_that_has_its_own_part) {
  ::setenv(control_variable, "/proc/1/fd/3#00", 1);
  const auto serves = [&](CardClaim& claim) { EXPECT_TRUE(claim.hold_server(program.card, true)); };
  EXPECT_EQ(said_beside(serves, ClaimRole::server), "");
  ::unsetenv(control_variable);
}

}  // namespace
}  // namespace demarc::cuda
