// Tests what the parser makes of instructions, operands, scopes and labels.
#include "demarc/ptx/parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/ptx/printer.hpp"
#include "text.hpp"

namespace demarc::ptx {
namespace {

using test::kernel;
using test::parsed;

// The instruction `line` of the kernel, printed from the IR.
std::string reprinted(const std::string& line) {
  const Module module = parsed(kernel(line));
  const Function* function = module.find_function("k");
  if (function == nullptr || function->body.instructions.empty()) return "";
  return print(module, *function, function->body.instructions.back());
}

TEST(Parser, an_instruction_becomes_opcode_modifiers_guard_and_operands) {
  const Module module = parsed(kernel("@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd4+-16];"));
  const Body& body = module.find_function("k")->body;
  ASSERT_EQ(body.instructions.size(), 1U);
  const Instruction& load = body.instructions[0];
  const Mnemonic& mnemonic = module.mnemonic(load);
  EXPECT_EQ(load.opcode, Opcode::ld);
  EXPECT_TRUE(load.predicate_negated);
  EXPECT_EQ(body.register_name(load.predicate), "%p1");
  EXPECT_EQ(load.line, 11U);
  EXPECT_EQ(mnemonic.space, StateSpace::global);
  EXPECT_EQ(mnemonic.vector_width, 2);
  EXPECT_EQ(mnemonic.type(), Type::f32);
  EXPECT_TRUE(mnemonic.has(Modifier::nc));
  const auto operands = body.operands_of(load);
  ASSERT_EQ(operands.size(), 2U);
  EXPECT_EQ(operands[0].kind, OperandKind::vector);
  EXPECT_EQ(body.register_name(body.children(operands[0])[1].index), "%f2");
  EXPECT_EQ(operands[1].base, Base::reg);
  EXPECT_EQ(operands[1].offset(), -16);
}

TEST(Parser, immediates_keep_their_exact_value_and_type) {
  const Module module =
      parsed(kernel("mov.b64 %rd1, -1; mov.b64 %rd1, 0xffffffffffffffff; mov.f32 %f1, 0f3F800000;\n"
                    "mov.f32 %f1, 1.5; mov.b32 %r1, (1<<4)|017; mov.b32 %r1, 7U;"));
  const Body& body = module.find_function("k")->body;
  const auto value = [&](std::size_t i) { return body.operands_of(body.instructions[i])[1]; };
  EXPECT_EQ(value(0).offset(), -1);
  EXPECT_EQ(value(0).immediate, ImmediateKind::s64);
  EXPECT_EQ(value(1).immediate, ImmediateKind::u64);
  EXPECT_EQ(value(2).value, 0x3F800000U);
  EXPECT_EQ(value(3).value, 0x3FF8000000000000U);
  EXPECT_EQ(value(4).value, 31U);
  EXPECT_EQ(value(5).immediate, ImmediateKind::u64);
}

TEST(Parser, an_element_prints_as_it_was_read_and_is_made_of_name_and_index) {
  const std::string line = "mov.u32 %r1, tile[%r2];";
  const Module module = parsed(kernel(line));
  const Function& function = *module.find_function("k");
  EXPECT_EQ(print(module, function, function.body.instructions.back()), line);
  const Operand element = function.body.operands_of(function.body.instructions[0])[1];
  ASSERT_EQ(element.kind, OperandKind::element);
  EXPECT_EQ(function.body.children(element)[1].kind, OperandKind::reg);
}

TEST(Parser, a_range_of_variables_is_each_of_them_from_0_on) {
  const Module module = parsed(kernel(".shared .b32 s<3>;"));
  std::string names;
  for (const Variable& variable : module.find_function("k")->body.variables)
    names += std::string(variable.name) + " ";
  EXPECT_EQ(names, "tile s0 s1 s2 ");
}

TEST(Parser, source_files_are_printed_where_they_stood) {
  const std::string text = test::preamble + ".file 1 \"a.cu\"\n.file 2 \"b.cu\", 7, 9\n";
  const std::string out = print(parsed(text));
  EXPECT_NE(out.find("a.cu"), std::string::npos) << out;
  EXPECT_LT(out.find("a.cu"), out.find("b.cu"));
}

TEST(Parser, every_form_of_operand_prints_as_it_was_read) {
  for (const std::string line :
       {"add.s32 %r1, %r2, -7;", "mov.u32 %r1, %tid.x;", "mov.b64 {%r1, %r2}, %rd1;",
        "setp.lt.u32 %p1|%p2, %r1, 5;", "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;",
        "@%p1 bra.uni HERE; HERE: ret;", "vadd.s32.u32.s32 %r1, %r2.b0, %r3.h1;",
        "tex.2d.v4.f32.f32 {%f1, _, %f2, _}, [%rd1, {%f3, %f4}];", "st.shared.u8 [tile+4], %r1;",
        "ld.param.u64 %rd1, [p];", "ld.local.u32 %r1, [4096];", "and.pred %p1, %p2, !%p3;",
        "mov.u64 %rd1, tile+8;", "ld.global.u32 %r1, [%rd1].unified;", "exit;"}) {
    const Module module = parsed(kernel(line));
    const Function* function = module.find_function("k");
    const std::string printed = print(module, *function, function->body.instructions.front());
    EXPECT_EQ(line.substr(0, printed.size()), printed);
  }
}

TEST(Parser, white_space_and_comments_may_stand_anywhere_between_tokens) {
  EXPECT_EQ(reprinted("add /* a\nb */ .s32 %r1 , // c\n %r2,%r3 ;"), "add.s32 %r1, %r2, %r3;");
}

TEST(Parser, a_register_of_an_inner_scope_hides_the_outer_one_of_that_name) {
  const Module module = parsed(kernel(
      "mov.u32 %r1, 1; { .reg .b32 %r1; mov.u32 %r1, 2; { .reg .b32 %r<2>; mov.u32 %r1, 3; } "
      "mov.u32 %r1, 4; } mov.u32 %r1, 5;"));
  const Body& body = module.find_function("k")->body;
  const auto written = [&](std::size_t i) {
    return body.operands_of(body.instructions[i])[0].index;
  };
  EXPECT_EQ(written(0), written(4));
  EXPECT_EQ(written(1), written(3));
  EXPECT_NE(written(0), written(1));
  EXPECT_NE(written(2), written(1));
  EXPECT_NE(written(2), written(0));
}

TEST(Parser, a_branch_means_the_label_of_its_own_scope_before_or_behind_it) {
  const Module module = parsed(kernel("{ bra L; L: exit; } { L: bra L; } bra L; L: ret;"));
  const Body& body = module.find_function("k")->body;
  const auto target = [&](std::size_t i) {
    const Operand operand = body.operands_of(body.instructions[i])[0];
    EXPECT_EQ(operand.base, Base::label);
    return body.labels[operand.index].instruction;
  };
  EXPECT_EQ(target(0), 1U);
  EXPECT_EQ(target(2), 2U);
  EXPECT_EQ(target(3), 4U);
}

TEST(Parser, instructions_remember_the_source_line_that_stands_before_them) {
  const Module module = parsed(kernel("exit;\n.loc 1 7 3\nexit;\nexit;"));
  const Body& body = module.find_function("k")->body;
  EXPECT_EQ(body.instructions[0].location, no_index);
  EXPECT_EQ(body.locations[body.instructions[2].location].line, 7U);
  EXPECT_EQ(body.instructions[2].line, 14U);
}

TEST(Parser, an_unknown_instruction_is_unsupported_and_kept_as_it_was) {
  const std::string line = "frobnicate.v3  {%q1 , foo}, [ bar ; ";
  const ParseResult result = parse(kernel("frobnicate.v3  {%q1 , foo},  [bar] ;"), "t.ptx");
  EXPECT_EQ(result.diagnostics.malformed, 0U);
  ASSERT_EQ(result.diagnostics.unsupported, 1U);
  EXPECT_EQ(result.diagnostics.list[0].line, 11U);
  const Function* function = result.module.find_function("k");
  EXPECT_EQ(print(result.module, *function, function->body.instructions[0]),
            "frobnicate.v3 {%q1 , foo},  [bar] ;");
}

TEST(Parser, an_unknown_modifier_is_unsupported_but_its_operands_are_read_where_they_can_be) {
  const ParseResult result =
      parse(kernel("add.odd.s32 %r1, %r2, %r3; add.odd.s32 %r1 ? what;"), "t.ptx");
  EXPECT_EQ(result.diagnostics.malformed, 0U);
  EXPECT_EQ(result.diagnostics.unsupported, 2U);
  const Function* function = result.module.find_function("k");
  ASSERT_EQ(function->body.instructions.size(), 2U);
  EXPECT_EQ(function->body.operands_of(function->body.instructions[0])[0].kind, OperandKind::reg);
  EXPECT_EQ(print(result.module, *function, function->body.instructions[1]),
            "add.odd.s32 %r1 ? what;");
}

TEST(Parser, a_declaration_knows_its_definition_further_down) {
  const Module module =
      parsed(test::preamble + ".func f(.param .b32 x);\n.func f(.param .b32 x) { ret; }\n");
  EXPECT_EQ(module.functions[0].definition, 1U);
  EXPECT_EQ(module.find_function("f"), &module.functions[1]);
}

TEST(Parser, a_prototype_of_a_function_ends_at_the_next_directive_of_the_module_too) {
  for (const char* next :
       {".extern .func g(.param .b64 y);\n", ".global .b32 v;\n", ".const .b32 v;\n",
        ".weak .func g()\n{ ret; }\n", ".section .debug_x { .b8 1 }\n", ".file 1 \"a.cu\"\n",
        ".local_maxnreg 32\n.visible .entry k() { ret; }\n", ""}) {
    const Module module =
        parsed(test::preamble + ".extern .func (.param .b32 r) f(.param .b64 x)\n" + next);
    ASSERT_FALSE(module.functions.empty());
    EXPECT_EQ(module.functions[0].name, "f");
    EXPECT_EQ(module.functions[0].parameters.size(), 1U);
    EXPECT_EQ(parsed(print(module)).functions.size(), module.functions.size()) << next;
  }
}

TEST(Parser, a_kernel_without_a_body_and_an_unknown_word_behind_a_prototype_are_malformed) {
  for (const char* text : {".visible .entry k()\n.visible .entry l() { ret; }\n",
                           ".extern .func f()\n.maxntids 3\n", ".extern .func f() x;\n"}) {
    EXPECT_FALSE(parse(test::preamble + text, "t.ptx").diagnostics.ok()) << text;
  }
}

TEST(Parser, a_copy_of_a_module_outlives_the_original) {
  Module copy;
  {
    const Module module = parsed(kernel("add.s32 %r1, %r2, %r3;"));
    copy = module;
  }
  EXPECT_NE(print(copy).find("add.s32 %r1, %r2, %r3;"), std::string::npos);
}

TEST(TextOf, a_semicolon_in_a_comment_ends_no_instruction) {
  const Module module = test::parsed(
      test::kernel("mov.u32 /* ; */ %r1, // ;\n %r2;\nadd.u32 %r1, %r1, 6 / 2;\nret;"));
  const auto& instructions = module.kernels()[0]->body.instructions;
  EXPECT_EQ(module.text_of(instructions[0]), "mov.u32 /* ; */ %r1, // ;\n %r2;");
  EXPECT_EQ(module.text_of(instructions[1]), "add.u32 %r1, %r1, 6 / 2;");
  EXPECT_EQ(module.text_of(instructions[2]), "ret;");
}

}  // namespace
}  // namespace demarc::ptx
