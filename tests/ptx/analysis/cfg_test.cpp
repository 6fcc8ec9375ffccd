// Tests the blocks, edges and loops of control-flow graphs.
#include "demarc/ptx/cfg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text.hpp"

namespace demarc::ptx {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

const std::string nested_loops =
    "mov.u32 %r1, 0;\n"                                       // b0
    "OUTER: mov.u32 %r2, 0;\n"                                // b1
    "INNER: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9;\n"  // b2
    "@%p1 bra INNER;\n"
    "add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 5;\n"  // b3
    "@%p2 bra OUTER;\n"
    "ret;";  // b4, exit b5

TEST(Cfg, blocks_and_edges_follow_labels_branches_and_returns) {
  const Module module = test::parsed(
      test::kernel("@%p1 bra ELSE; mov.u32 %r1, 1; bra END; ELSE: mov.u32 %r1, 2; END: ret;"));
  const Cfg cfg(module.find_function("k")->body);
  ASSERT_EQ(cfg.blocks().size(), 5U);
  EXPECT_THAT(cfg.blocks()[0].successors, ElementsAre(2, 1));
  EXPECT_THAT(cfg.blocks()[1].successors, ElementsAre(3));
  EXPECT_THAT(cfg.blocks()[3].predecessors, UnorderedElementsAre(1, 2));
  EXPECT_THAT(cfg.blocks()[3].successors, ElementsAre(cfg.exit()));
  EXPECT_EQ(cfg.immediate_dominator(3), 0U);
  EXPECT_EQ(cfg.immediate_post_dominator(0), 3U);
  EXPECT_TRUE(cfg.post_dominates(3, 1));
  EXPECT_FALSE(cfg.dominates(1, 3));
}

TEST(Cfg, a_guarded_return_also_falls_through) {
  const Module module = test::parsed(test::kernel("@%p1 ret; mov.u32 %r1, 1; exit;"));
  const Cfg cfg(module.find_function("k")->body);
  EXPECT_THAT(cfg.blocks()[0].successors, UnorderedElementsAre(cfg.exit(), 1));
  EXPECT_EQ(cfg.immediate_post_dominator(0), cfg.exit());
}

TEST(Cfg, an_indexed_branch_goes_to_every_label_of_its_list_and_nowhere_else) {
  const Module module = test::parsed(
      test::kernel("ts: .branchtargets A, B; brx.idx %r1, ts; A: exit; B: exit; C: exit;"));
  const Cfg cfg(module.find_function("k")->body);
  EXPECT_THAT(cfg.blocks()[0].successors, ElementsAre(1, 2));
  EXPECT_FALSE(cfg.reachable(3));
}

TEST(Cfg, loops_nest) {
  const Module module = test::parsed(test::kernel(nested_loops));
  const Cfg cfg(module.find_function("k")->body);
  ASSERT_EQ(cfg.loops().size(), 2U);
  EXPECT_EQ(cfg.loops()[0].header, 1U);
  EXPECT_THAT(cfg.loops()[0].blocks, ElementsAre(1, 2, 3));
  EXPECT_THAT(cfg.loops()[1].blocks, ElementsAre(2));
  EXPECT_EQ(cfg.loops()[1].parent, 0U);
  EXPECT_EQ(cfg.loops()[1].depth, 2U);
  EXPECT_EQ(cfg.loop_of(3), 0U);
  EXPECT_TRUE(cfg.reducible());
}

TEST(Cfg, a_cycle_with_two_entries_is_not_reducible) {
  const Module module = test::parsed(
      test::kernel("@%p1 bra B; A: mov.u32 %r1, 1; B: mov.u32 %r1, 2; @%p2 bra A; ret;"));
  EXPECT_FALSE(Cfg(module.find_function("k")->body).reducible());
}

TEST(Cfg, an_empty_body_goes_straight_to_the_exit) {
  const Module module = test::parsed(test::kernel(""));
  const Cfg cfg(module.find_function("k")->body);
  ASSERT_EQ(cfg.blocks().size(), 2U);
  EXPECT_THAT(cfg.blocks()[0].successors, ElementsAre(cfg.exit()));
}

TEST(Cfg, dot_shows_blocks_and_both_ways_of_a_branch) {
  const Module module =
      test::parsed(test::kernel("@%p1 bra L; exit; L: st.shared.u8 [tile], %r1;"));
  const Function& function = *module.find_function("k");
  EXPECT_EQ(to_dot(module, function, Cfg(function.body)),
            "digraph \"k\" {\n"
            "  node [shape=record, fontname=monospace];\n"
            "  b0 [label=\"{b0|@%p1 bra L;\\l}\"];\n"
            "  b1 [label=\"{b1|exit;\\l}\"];\n"
            "  b2 [label=\"{b2|L:\\lst.shared.u8 [tile], %r1;\\l}\"];\n"
            "  b3 [label=\"{b3|exit\\l}\"];\n"
            "  b0 -> b2 [label=taken];\n"
            "  b0 -> b1 [label=\"not taken\"];\n"
            "  b1 -> b3;\n"
            "  b2 -> b3;\n"
            "}\n");
}

}  // namespace
}  // namespace demarc::ptx
