// Tests which launches count as work during a visit.
#include "work_watch.hpp"

#include <gtest/gtest.h>

namespace demarc::study {
namespace {

using Verdict = WorkWatch::Verdict;

WorkSeen run(std::uint64_t launches, std::uint32_t restarts = 0) {
  return {launches, launches, restarts};
}

WorkWatch visit(const WorkSeen& begin, const WorkSeen& end) {
  WorkWatch watch;
  watch.begin(begin);
  watch.end(end);
  return watch;
}

TEST(WorkWatch, one_launch_between_beginning_and_end_is_work) {
  EXPECT_EQ(visit(run(0), run(1)).verdict(run(1)), Verdict::working);
  EXPECT_EQ(visit(run(7), run(8)).verdict(run(8)), Verdict::working);
}

TEST(WorkWatch, without_a_launch_in_between_it_is_undecided_until_the_next_one) {
  const WorkWatch watch = visit(run(7), run(7));
  EXPECT_EQ(watch.verdict(run(7)), Verdict::waiting);
  EXPECT_EQ(watch.verdict(run(8)), Verdict::working);
}

TEST(WorkWatch, a_first_launch_after_the_end_is_too_late) {
  EXPECT_EQ(visit(run(0), run(0)).verdict(run(0)), Verdict::not_seen);
  EXPECT_EQ(visit(run(0), run(0)).verdict(run(9)), Verdict::not_seen);
  // Launches of an earlier run are none of this one, which has not begun its work.
  EXPECT_EQ(visit({40, 0, 2}, {40, 0, 2}).verdict({41, 1, 2}), Verdict::not_seen);
}

TEST(WorkWatch, a_new_run_says_nothing_about_what_the_old_one_had_queued) {
  EXPECT_EQ(visit(run(7), run(7)).verdict({8, 1, 1}), Verdict::not_seen);
  EXPECT_EQ(visit(run(7), {7, 0, 1}).verdict({8, 1, 1}), Verdict::not_seen);
  EXPECT_EQ(visit(run(7), {8, 1, 1}).verdict({8, 1, 1}), Verdict::working);
}

TEST(WorkWatch, restarts_are_those_of_the_visit) {
  EXPECT_EQ(visit({9, 9, 2}, {20, 3, 7}).restarts(), 5U);
}

}  // namespace
}  // namespace demarc::study
