// Tests the words that tell how far work has come.
#include "demarc/base/progress.hpp"

#include <gtest/gtest.h>

namespace demarc {
namespace {

TEST(Progress, durations_have_the_unit_that_suits_them) {
  EXPECT_EQ(duration_text(7), "7.0 s");
  EXPECT_EQ(duration_text(99.9), "99.9 s");
  EXPECT_EQ(duration_text(100), "1.7 min");
  EXPECT_EQ(duration_text(5999), "100.0 min");
  EXPECT_EQ(duration_text(6000), "1.7 h");
}

TEST(Progress, a_line_comes_every_ten_seconds_with_the_time_left) {
  ProgressWords words;
  EXPECT_EQ(words.line(0, 0, "a"), std::nullopt);
  EXPECT_EQ(words.line(9.9, 0.3, "a"), std::nullopt);
  EXPECT_EQ(words.line(10, 0.4, "b"), "40 %, 15.0 s left: b");
  EXPECT_EQ(words.line(19.9, 0.5, "b"), std::nullopt);
  EXPECT_EQ(words.line(20, 0.5, "c"), "50 %, 20.0 s left: c");
  EXPECT_EQ(words.line(40, 1, "d"), "100 %, d");
}

TEST(Progress, nothing_that_was_shown_is_taken_back) {
  ProgressWords words;
  EXPECT_EQ(words.line(10, 0.5, "a"), "50 %, 10.0 s left: a");
  EXPECT_EQ(words.line(20, 0.2, "a"), "50 %, 20.0 s left: a");
  EXPECT_EQ(words.bar(30, 0.4, "a"), "[###############               ]  50% 30.0 s left: a");
  EXPECT_EQ(words.bar(30, 7, "a"), "[##############################] 100% a");
}

TEST(Progress, there_is_no_time_left_before_there_is_something_to_judge_by) {
  ProgressWords words;
  EXPECT_EQ(words.bar(1.9, 0.5, "a"), "[###############               ]  50% a");
  ProgressWords slow;
  EXPECT_EQ(slow.line(10, 0.009, "a"), "1 %, a");
}

}  // namespace
}  // namespace demarc
