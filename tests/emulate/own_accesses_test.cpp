// Races where a warp touches one word of shared memory twice: a plain access and an atomic or
// volatile one of the same warp hide each other from no other warp.
#include <array>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

struct OwnAccess {
  const char* text;
  bool writes;
  bool strong;
};

// %r3: another number in each warp.
constexpr std::array own_accesses{OwnAccess{"ld.shared.u32 %r7, [word];\n", false, false},
                                  OwnAccess{"ld.volatile.shared.u32 %r7, [word];\n", false, true},
                                  OwnAccess{"st.shared.u32 [word], %r3;\n", true, false},
                                  OwnAccess{"st.volatile.shared.u32 [word], %r3;\n", true, true},
                                  OwnAccess{"atom.shared.add.u32 %r7, [word], 8;\n", true, true}};

bool own_race(const OwnAccess& a, const OwnAccess& b) {
  return (a.writes || b.writes) && !(a.strong && b.strong);
}

// Whether the emulator finds a race where warp 0 and warp 1 do these, in either order.
bool finds_a_race(const std::string& first, const std::string& second, const std::string& before) {
  const auto outcome =
      run_text(kernel_of(".shared .align 4 .u32 word;\n",
                         "shr.u32 %r3, %r1, 5;\nadd.u32 %r3, %r3, 1;\nsetp.ge.u32 %p1, %r1, 32;\n"
                         "st.volatile.shared.u32 [word], 0;\n" +
                             before + "bar.sync 0;\n@%p1 bra SECOND;\n" + first +
                             "bra OVER;\nSECOND:\n" + second + "OVER:"),
               launch_of(1, 64, 512));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return false;
  for (const Finding& finding : outcome->findings)
    EXPECT_EQ(finding.kind, FindingKind::shared_race) << describe(finding, "t.ptx");
  return !outcome->findings.empty();
}

// With a fence the emulator keeps clocks, which order nothing here.
class OwnAccesses : public testing::TestWithParam<const char*> {};

TEST_P(OwnAccesses, race_if_one_of_them_would_alone) {
  for (const OwnAccess& a : own_accesses) {
    for (const OwnAccess& b : own_accesses) {
      for (const OwnAccess& c : own_accesses) {
        const bool races = own_race(a, c) || own_race(b, c);
        const std::string both = std::string(a.text) + b.text;
        EXPECT_EQ(finds_a_race(both, c.text, GetParam()), races) << both << "beside " << c.text;
        EXPECT_EQ(finds_a_race(c.text, both, GetParam()), races) << c.text << "beside " << both;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OwnAccesses, testing::Values("", "fence.acq_rel.cta;\n"));

TEST(OwnAccess, of_one_lane_before_the_whole_warp_counts_for_other_warps) {
  EXPECT_TRUE(
      finds_a_race("setp.eq.u32 %p2, %r1, 0;\n@%p2 st.shared.u32 [word], 0;\n"
                   "atom.shared.add.u32 %r7, [word], 1;\n",
                   "atom.shared.add.u32 %r7, [word], 1;\n", ""));
}

// What was read in between by one of the two warps is a race with the other one's atomic.
TEST(OwnAccess, that_is_plain_and_behind_the_atomics_of_two_warps_races) {
  const std::string atomic = "atom.shared.add.u32 %r7, [word], 8;\n";
  const std::string waits =
      "WAIT:\nld.volatile.shared.u32 %r7, [word];\n"
      "setp.lt.u32 %p2, %r7, 512;\n@%p2 bra WAIT;\n";
  EXPECT_FALSE(finds_a_race(atomic + waits, atomic, ""));
  for (const std::string access : {"ld.shared.u32 %r7, [word];\n", "st.shared.u32 [word], %r3;\n"})
    EXPECT_TRUE(finds_a_race(atomic + waits + access, atomic, "")) << access;
}

}  // namespace
}  // namespace demarc::emulate
