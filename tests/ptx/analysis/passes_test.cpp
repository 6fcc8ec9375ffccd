// Tests def-use, divergence, address trees and initialisers on small kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/divergence.hpp"
#include "demarc/ptx/address_tree.hpp"
#include "demarc/ptx/initialiser.hpp"
#include "text.hpp"

namespace demarc::ptx {
namespace {

using testing::ElementsAre;

struct Analysed {
  explicit Analysed(const std::string& body)
      : module(test::parsed(test::kernel(body))),
        function(*module.find_function("k")),
        cfg(function.body),
        def_use(function.body, cfg) {}
  std::uint32_t reg(const std::string& name) const {
    for (std::uint32_t i = 0; i < function.body.register_count; ++i) {
      if (function.body.register_name(i) == name) return i;
    }
    throw std::runtime_error("no register " + name);
  }
  Module module;
  const Function& function;
  Cfg cfg;
  DefUse def_use;
};

TEST(DefUse, definitions_and_uses_are_found_through_vectors_addresses_and_guards) {
  const Analysed a("ld.global.v2.u32 {%r1, %r2}, [%rd1]; @%p1 st.global.u32 [%rd1], %r2;");
  EXPECT_THAT(a.def_use.definitions(a.reg("%r2")), ElementsAre(0));
  EXPECT_THAT(a.def_use.uses(a.reg("%r2")), ElementsAre(1));
  EXPECT_THAT(a.def_use.uses(a.reg("%rd1")), ElementsAre(0, 1));
  EXPECT_THAT(a.def_use.uses(a.reg("%p1")), ElementsAre(1));
}

TEST(DefUse, only_definitions_that_can_still_be_seen_reach) {
  const Analysed a(
      "mov.u32 %r1, 1; mov.u32 %r1, 2; @%p1 mov.u32 %r1, 3; @%p2 bra L; mov.u32 %r1, 4; "
      "L: mov.u32 %r2, %r1;");
  const auto reaching = a.def_use.reaching(a.reg("%r1"), 5);
  EXPECT_THAT(reaching.definitions, ElementsAre(1, 2, 4));
  EXPECT_FALSE(reaching.may_be_unwritten);
  EXPECT_TRUE(a.def_use.reaching(a.reg("%r3"), 5).may_be_unwritten);
}

TEST(DefUse, a_definition_reaches_itself_around_a_loop) {
  const Analysed a("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; @%p1 bra L; ret;");
  EXPECT_THAT(a.def_use.reaching(a.reg("%r1"), 1).definitions, ElementsAre(0, 1));
}

TEST(GlobalLoads, without_a_space_count_only_where_asked) {
  const Module module = test::parsed(
      test::kernel("ld.global.u32 %r1, [%rd1]; ld.shared.u32 %r1, [tile]; ld.u32 %r1, [%rd1]; "
                   "st.global.u32 [%rd1], %r1; ldu.global.u32 %r1, [%rd1]; "
                   "ld.param.u32 %r1, [n]; ret;"));
  const Function& function = *module.find_function("k");
  EXPECT_EQ(global_loads(module, function), (std::vector<std::uint32_t>{0, 4}));
  EXPECT_EQ(global_loads(module, function, true), (std::vector<std::uint32_t>{0, 2, 4}));
}

TEST(Divergence, values_are_as_uniform_as_what_they_depend_on) {
  const Analysed a(
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, "
      "%r1; ld.param.u64 %rd1, [p]; ld.global.u32 %r5, [%rd1]; add.u32 %r6, %r2, %r3;");
  const Divergence d = find_divergence(a.module, a.function.body, a.cfg, a.def_use);
  EXPECT_EQ(d.registers[a.reg("%r1")], Uniformity::thread);
  EXPECT_EQ(d.registers[a.reg("%r4")], Uniformity::thread);
  EXPECT_EQ(d.registers[a.reg("%r5")], Uniformity::thread);
  EXPECT_EQ(d.registers[a.reg("%r6")], Uniformity::block);
  EXPECT_EQ(d.registers[a.reg("%r3")], Uniformity::grid);
  EXPECT_EQ(d.registers[a.reg("%rd1")], Uniformity::grid);
}

TEST(Divergence, what_is_merged_behind_a_divergent_branch_diverges) {
  const Analysed a(
      "mov.u32 %r1, %tid.x; mov.u32 %r2, 5; mov.u32 %r3, 6; setp.eq.u32 %p1, %r1, 0; @%p1 bra L; "
      "mov.u32 %r2, 7; L: add.u32 %r4, %r2, 1; setp.eq.u32 %p2, %r3, 1; @%p2 bra M; M: ret;");
  const Divergence d = find_divergence(a.module, a.function.body, a.cfg, a.def_use);
  EXPECT_TRUE(d.divergent_branch[4]);
  EXPECT_FALSE(d.divergent_branch[8]);
  EXPECT_EQ(d.registers[a.reg("%r4")], Uniformity::thread);
  EXPECT_EQ(d.registers[a.reg("%r3")], Uniformity::grid);
}

TEST(AddressTree, names_what_it_does_not_understand) {
  const ParseResult read = parse(
      test::kernel("ld.param.u64 %rd1, [p]; foo.wide.s32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
                   "ld.global.f32 %f1, [%rd3];"),
      "t.ptx");
  const Module& module = read.module;
  const std::string trees = trees_to_json(module, *module.find_function("k"));
  EXPECT_NE(trees.find("\"not_understood\""), std::string::npos) << trees;
  EXPECT_NE(trees.find("foo.wide.s32 %rd2, %r1, 4;"), std::string::npos) << trees;
  EXPECT_NE(trees.find("\"opcode\": \"unknown\""), std::string::npos) << trees;
}

TEST(AddressTree, the_tree_of_a_load_is_that_of_the_paper) {
  const Module module = test::parsed(test::kernel(
      "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; cvta.to.global.u64 %rd3, %rd1; "
      "mul.wide.s32 %rd16, %r1, 4; add.s64 %rd17, %rd3, %rd16;\nld.global.f32 %f11, [%rd17+8];"));
  EXPECT_EQ(trees_to_json(module, *module.find_function("k")), R"({
  "schema": "demarc.ptx.tree/1",
  "kernel": "k",
  "loads": [
    {
      "instruction": "ld.global.f32 %f11, [%rd17+8];",
      "line": 12,
      "offset": 8,
      "truncated": false,
      "tree": [
        {
          "reg": "%rd17",
          "opcode": "add.s64",
          "parent": -1
        },
        {
          "reg": "%rd3",
          "opcode": "cvta.to.global.u64",
          "parent": 0
        },
        {
          "reg": "%rd16",
          "opcode": "mul.wide.s32",
          "parent": 0
        },
        {
          "reg": "%rd1",
          "opcode": "ld.param.u64",
          "parent": 1
        },
        {
          "reg": "%r1",
          "opcode": "mov.u32",
          "parent": 2
        },
        {
          "reg": "4",
          "opcode": "",
          "parent": 2
        },
        {
          "reg": "[p]",
          "opcode": "",
          "parent": 3
        },
        {
          "reg": "%tid.x",
          "opcode": "",
          "parent": 4
        }
      ]
    }
  ]
}
)");
}

TEST(AddressTree, loops_loads_and_calls_are_told_apart) {
  const Analysed a(
      "mov.u64 %rd1, 0; L: ld.global.u64 %rd2, [%rd1+16]; atom.add.u64 %rd3, [%rd2], 1; "
      "add.u64 %rd1, %rd1, 8; add.u64 %rd4, %rd2, %rd3; ld.global.u64 %rd5, [%rd4]; @%p1 bra L; "
      "ret;");
  const AddressTree tree = trace_address(a.function, a.def_use, 5);
  ASSERT_EQ(tree.nodes[0].kind, NodeKind::operation);
  EXPECT_EQ(tree.nodes[1].kind, NodeKind::loaded);
  EXPECT_EQ(tree.nodes[1].value, 16U);
  EXPECT_EQ(tree.nodes[2].kind, NodeKind::unknown);
  EXPECT_EQ(tree.nodes[3].kind, NodeKind::several);
  bool recurs = false;
  for (const TreeNode& node : tree.nodes) recurs = recurs || node.kind == NodeKind::recurrence;
  EXPECT_TRUE(recurs);
}

TEST(AddressTree, a_tree_that_doubles_at_every_step_is_cut_and_says_so) {
  std::string body;
  for (int i = 2; i < 20; ++i) {
    body += "add.u64 %rd" + std::to_string(i) + ", %rd" + std::to_string(i - 1) + ", %rd" +
            std::to_string(i - 1) + ";";
  }
  const Analysed a("mov.u64 %rd1, 1;" + body + "ld.global.u8 %r1, [%rd19];");
  const AddressTree tree = trace_address(a.function, a.def_use, 19, {.max_nodes = 1000});
  EXPECT_TRUE(tree.truncated);
  EXPECT_LT(tree.nodes.size(), 1010U);
}

TEST(Initialiser, values_arrays_and_addresses_become_bytes_and_relocations) {
  const Module module = test::parsed(test::preamble +
                                     ".global .u32 x = 7;\n"
                                     ".global .align 4 .u16 table[2][3] = {{1, 2}, {0x0304}};\n"
                                     ".global .f32 half = 0.5;\n"
                                     ".global .u64 where[2] = {generic(x)+4, 0};\n"
                                     ".global .u8 low[2] = {0xFF(x), 0xFF00(x)};\n"
                                     ".global .v2 .f32 pair = {1.0, 0f40000000};\n");
  const auto image = [&](std::size_t i) { return *initial_image(module, module.variables[i]); };
  EXPECT_THAT(image(0).bytes, ElementsAre(7, 0, 0, 0));
  EXPECT_THAT(image(1).bytes, ElementsAre(1, 0, 2, 0, 0, 0, 4, 3, 0, 0, 0, 0));
  EXPECT_THAT(image(2).bytes, ElementsAre(0, 0, 0, 0x3F));
  ASSERT_EQ(image(3).relocations.size(), 1U);
  EXPECT_TRUE(image(3).relocations[0].is_generic);
  EXPECT_EQ(image(3).relocations[0].addend, 4);
  EXPECT_EQ(image(3).relocations[0].symbol, "x");
  ASSERT_EQ(image(4).relocations.size(), 2U);
  EXPECT_EQ(image(4).relocations[1].shift, 8U);
  EXPECT_EQ(image(4).relocations[1].offset, 1U);
  EXPECT_THAT(image(5).bytes, ElementsAre(0, 0, 0x80, 0x3F, 0, 0, 0, 0x40));
}

TEST(Initialiser, more_values_than_room_are_malformed_at_the_first_that_is_too_many) {
  const auto result = parse(test::preamble + ".global .b8 x[2] = {1, 2, 3};\n", "t.ptx");
  EXPECT_EQ(
      test::all_of(result.diagnostics),
      "t.ptx:4:28: malformed: initialiser of 'x': it has more values than the variable, found "
      "'}'\n  .global .b8 x[2] = {1, 2, 3};\n");
}

}  // namespace
}  // namespace demarc::ptx
