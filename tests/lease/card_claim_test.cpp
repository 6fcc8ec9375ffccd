// Claims of a card: who sees them, and until when they are held.
#include "demarc/lease/card_claim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "demarc/base/files.hpp"
#include "paths.hpp"
#include "staying_process.hpp"

namespace demarc::lease {
namespace {

using test::end_process;
using test::staying_process;
using testing::HasSubstr;

class CardClaims : public testing::Test {
 protected:
  [[nodiscard]] CardClaim claim() const { return CardClaim::open({file, other_file}).value(); }
  [[nodiscard]] ClaimedCard seen(const std::string& of = "GPU-1") const {
    return claim().others(of).value();
  }
  std::string made(const std::string& name) const {
    const std::string path = folder / name;
    EXPECT_TRUE(write_file(path, "a library\n"));
    return path;
  }
  std::filesystem::path folder = test::fresh_folder("claims");
  std::string file = made("libcuda.so.1");
  std::string other_file = made("libnvidia-ml.so.1");
};

TEST_F(CardClaims, AreSeenByOthersOfThatCardAndNotByTheirOwner) {
  const CardClaim own = claim();
  const ClaimedPart part{{0x5, 0x8000000000000000}, 0x8000000000000002};
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::sharing, part));
  EXPECT_EQ(seen().of(PartOwner::sharing), part);
  EXPECT_EQ(seen().of(PartOwner::tenants), ClaimedPart{});
  EXPECT_EQ(seen().of(PartOwner::program), ClaimedPart{});
  EXPECT_EQ(seen("GPU-2").of(PartOwner::sharing), ClaimedPart{});
  EXPECT_EQ(own.others("GPU-1").value().of(PartOwner::sharing), ClaimedPart{});
  const ClaimedPart less{{0x4, 0}, 0};
  ASSERT_TRUE(own.hold("GPU-1", PartOwner::sharing, less));
  EXPECT_EQ(seen().of(PartOwner::sharing), less) << "in the place of what was held";
  EXPECT_FALSE(seen().server);
  ASSERT_TRUE(own.hold_server("GPU-1", true));
  EXPECT_TRUE(seen().server && seen().serving && !seen().lent);
  ASSERT_TRUE(own.hold_server("GPU-1", false));
  EXPECT_TRUE(seen().server && !seen().serving);
  ASSERT_TRUE(own.hold_lent("GPU-1"));
  EXPECT_TRUE(seen().lent && !seen("GPU-2").lent && !seen("GPU-2").server);
}

TEST_F(CardClaims, AreSeenByAnyFileOfTheirs) {
  const CardClaim own = claim();
  ASSERT_TRUE(own.hold_lent("GPU-1"));
  for (const std::string& one : {file, other_file}) {
    EXPECT_TRUE(CardClaim::open({one})->others("GPU-1")->lent) << one;
  }
  for (const std::string& one : {file, other_file}) {
    const CardClaim of_one = CardClaim::open({one}).value();
    ASSERT_TRUE(of_one.hold_server("GPU-1", false));
    EXPECT_TRUE(seen().server) << one;
  }
}

TEST_F(CardClaims, StayWithAProcessThatClosesAllDescriptorsAndGoWithIt) {
  for (const bool keeps : {true, false}) {
    const pid_t process = staying_process([&] {
      static CardClaim own = claim();
      EXPECT_TRUE(own.hold_lent("GPU-1"));
      EXPECT_TRUE(!keeps || own.keep("GPU-1", ClaimRole::tenant));
      for (const int one : own.files()) ::close(one);
    });
    EXPECT_EQ(seen().lent, keeps);
    end_process(process);
    EXPECT_FALSE(seen().lent);
  }
}

TEST_F(CardClaims, StayWithAnyProcessThatHasTheirFiles) {
  auto own = std::make_unique<CardClaim>(claim());
  ASSERT_TRUE(own->hold_lent("GPU-1"));
  const pid_t process = staying_process([] {});
  own.reset();
  EXPECT_TRUE(seen().lent);
  end_process(process);
  EXPECT_FALSE(seen().lent);
}

TEST_F(CardClaims, AreKeptByProcessesThatAreFoundByTheirRole) {
  const pid_t process = staying_process([&] {
    static CardClaim own = claim();
    EXPECT_TRUE(own.keep("GPU-1", ClaimRole::program));
  });
  CardClaim own = claim();
  ASSERT_TRUE(own.keep("GPU-1", ClaimRole::program));
  const auto found = own.claimers("GPU-1", ClaimRole::program);
  ASSERT_EQ(found.size(), 1U) << "this process is not among them";
  EXPECT_EQ(found[0].process, process);
  EXPECT_THAT(found[0].name, HasSubstr(fmt::format("{} (demarc_lease_tests", process)));
  EXPECT_EQ(names_of(found), "process " + found[0].name);
  EXPECT_TRUE(own.claimers("GPU-1", ClaimRole::tenant).empty());
  EXPECT_TRUE(own.claimers("GPU-2", ClaimRole::program).empty());
  const auto elsewhere = CardClaim::open({made("another")}).value();
  EXPECT_TRUE(elsewhere.claimers("GPU-1", ClaimRole::program).empty()) << "by other files";
  end_process(process);
  EXPECT_TRUE(own.claimers("GPU-1", ClaimRole::program).empty());
  EXPECT_EQ(names_of({}), "a process that cannot be seen from here");
  EXPECT_EQ(names_of({{1, "1 (a)"}, {2, "2 (b)"}}), "processes 1 (a), 2 (b)");
}

TEST_F(CardClaims, ChangeInTurn) {
  const CardClaim first = claim();
  const CardClaim second = claim();
  {
    const auto turn = first.turn();
    ASSERT_TRUE(turn);
    const auto refused = second.turn(20);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr("libcuda.so.1': another program has this file"));
  }
  ASSERT_TRUE(second.turn(0));
  EXPECT_TRUE(first.turn(0)) << "a turn ends";
  const pid_t process = staying_process([&] {
    static CardClaim own = claim();
    static auto turn = own.turn();
  });
  EXPECT_FALSE(first.turn(0));
  end_process(process);
  EXPECT_TRUE(first.turn(0)) << "with the process, too";
}

TEST_F(CardClaims, WhoGetsNoTurnHasNoHalfOfIt) {
  const CardClaim all = claim();
  const CardClaim half = CardClaim::open({other_file}).value();
  const auto turn = half.turn(0);
  ASSERT_TRUE(turn);
  EXPECT_FALSE(all.turn(0));
  EXPECT_TRUE(CardClaim::open({file})->turn(0));
}

TEST_F(CardClaims, NeedTheirFiles) {
  const auto none = CardClaim::open({file, folder / "none"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(none.error().message, HasSubstr("none': No such file or directory: the card cannot"));
}

}  // namespace
}  // namespace demarc::lease
