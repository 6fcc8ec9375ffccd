// The table of modes against what must hold for every row.
#include "demarc/partition/mode.hpp"

#include <gtest/gtest.h>

#include <set>

namespace demarc::partition {
namespace {

TEST(Modes, names_are_read_back_and_others_refused_with_the_list) {
  for (const Mode mode : all_modes()) EXPECT_EQ(parse_mode(to_string(mode)).value(), mode);
  EXPECT_EQ(parse_mode("masks").error().message,
            "mode 'masks': the modes are none, timeslice, mps, green, mask, affinity, throttle, "
            "preempt, tenant");
  EXPECT_FALSE(parse_mode(""));
}

TEST(Modes, traits_do_not_contradict_each_other) {
  std::set<std::uint32_t> ranks;
  for (const Mode mode : all_modes()) {
    const ModeTraits& traits = traits_of(mode);
    EXPECT_FALSE(traits.help.empty()) << to_string(mode);
    EXPECT_FALSE(traits.confines && traits.shares) << to_string(mode);
    EXPECT_FALSE(traits.across_processes && traits.colors) << to_string(mode);
    EXPECT_FALSE(traits.changes && !traits.confines) << to_string(mode);
    EXPECT_FALSE(traits.exact && !traits.confines) << to_string(mode);
    EXPECT_FALSE(traits.takes_turns && !traits.across_processes) << to_string(mode);
    EXPECT_FALSE(traits.leased && !traits.across_processes) << to_string(mode);
    EXPECT_FALSE(traits.slices && (traits.across_processes || traits.confines)) << to_string(mode);
    EXPECT_FALSE(traits.leased && traits.takes_turns) << to_string(mode);
    EXPECT_EQ(traits.forecast_rank != 0, traits.confines || traits.shares) << to_string(mode);
    if (traits.forecast_rank != 0) {
      EXPECT_TRUE(ranks.insert(traits.forecast_rank).second);
    }
  }
}

// The modes that a partition may be trusted to: a change of this list changes what is promised.
TEST(Modes, those_that_confine_are_named_here) {
  EXPECT_EQ(mode_names([](const ModeTraits& traits) { return traits.confines; }, " "),
            "green mask affinity throttle");
  EXPECT_EQ(mode_names([](const ModeTraits& traits) { return traits.foreign_code; }, " "),
            "mps mask throttle tenant");
  EXPECT_EQ(
      mode_names([](const ModeTraits& traits) { return traits.without_commands.empty(); }, " "),
      "none timeslice mps mask throttle tenant");
  EXPECT_EQ(mode_names([](const ModeTraits& traits) { return traits.leased; }, " "), "tenant");
  EXPECT_EQ(mode_names([](const ModeTraits& traits) { return traits.slices; }, " "), "preempt");
  EXPECT_EQ(mode_names([](const ModeTraits& traits) { return traits.simulated; }, " "),
            "none mps green mask throttle");
}

TEST(Modes, help_has_a_line_each) {
  EXPECT_NE(modes_help().find("\nmps: processes under MPS; each has a share of the threads\n"),
            std::string::npos);
}

}  // namespace
}  // namespace demarc::partition
