// What PTX leaves undefined where lanes wait for each other is a finding that names the threads.
#include "progress_kernels.hpp"

namespace demarc::emulate {
namespace {

using test::in_both_sides;
using test::progress_finding;
using test::shared_area;
using testing::HasSubstr;

TEST(UndefinedLanes, a_thread_that_is_not_in_its_own_member_mask_is_a_finding) {
  EXPECT_THAT(
      progress_finding("", "redux.sync.add.u32 %r9, %r1, 0xffff;"),
      AllOf(HasSubstr("thread (16,0,0)"), HasSubstr("is not in its member mask, 0x0000ffff")));
  EXPECT_THAT(progress_finding("", "bar.warp.sync 0xfffffffe;"), HasSubstr("thread (0,0,0)"));
}

TEST(UndefinedLanes, lanes_that_wait_for_each_other_at_different_collectives_are_a_finding) {
  for (const auto& [even, odd] : std::vector<std::pair<std::string, std::string>>{
           {"redux.sync.add.u32 %r9, %r4, -1;", "redux.sync.max.u32 %r9, %r4, -1;"},
           {"shfl.sync.bfly.b32 %r9, %r4, 1, 31, -1;", "shfl.sync.idx.b32 %r9, %r4, 1, 31, -1;"},
           {"vote.sync.ballot.b32 %r9, %p1, -1;", "bar.warp.sync -1;"},
           {"redux.sync.min.u32 %r9, %r4, -1;", "redux.sync.min.s32 %r9, %r4, -1;"},
           {"bar.warp.sync -1;", "barrier.sync 0;"},
           {"barrier.sync 1, 32;", "barrier.sync 2, 32;"},
           {"bar.sync 0;", "bar.sync 0;"}}) {
    EXPECT_THAT(
        progress_finding("", in_both_sides(even, odd)),
        AllOf(HasSubstr("barrier divergence"), HasSubstr("16 threads of the warp do not arrive"),
              HasSubstr("waits at line")))
        << even << odd;
  }
}

TEST(UndefinedLanes, a_lane_that_never_comes_is_named) {
  EXPECT_THAT(
      progress_finding("",
                       "setp.eq.u32 %p1, %r1, 3;\n@%p1 bra OTHER;\nbar.warp.sync -1;\nOTHER:\n"
                       "@%p1 bar.warp.sync 8;\n@!%p1 bra END;\nbar.warp.sync 9;\nEND:"),
      AllOf(HasSubstr("among them thread (3,0,0)"), HasSubstr("thread (3,0,0) waits at line")));
}

TEST(UndefinedLanes, products_of_matrices_need_the_whole_warp) {
  const std::string load =
      "mov.u32 %r5, area;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r5];";
  EXPECT_THAT(progress_finding(shared_area, in_both_sides(load, load)),
              HasSubstr("16 threads of the warp do not arrive"));
}

TEST(UndefinedLanes, a_function_with_an_instruction_of_the_whole_warp_is_called_from_one_place) {
  const std::string function =
      ".func load()\n{ .reg .b32 %s<3>;\nmov.u32 %s1, area;\n"
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%s2}, [%s1];\nret; }\n";
  EXPECT_THAT(progress_finding(std::string(shared_area) + function,
                               in_both_sides("call load;", "call load;")),
              HasSubstr("the 32 threads of the warp reach the instruction in 2 groups"));
}

}  // namespace
}  // namespace demarc::emulate
