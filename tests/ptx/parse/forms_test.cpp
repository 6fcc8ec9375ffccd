// Tests which forms of an instruction are malformed: types, modifiers, version, target and
// constants.
#include <gtest/gtest.h>

#include "forms_matrix.hpp"
#include "kept.hpp"
#include "text.hpp"

namespace demarc::ptx::test {
namespace {

std::string said_of(const std::string& line, const std::string& preamble_text = preamble) {
  const auto result =
      parse(preamble_text +
                ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>; .reg .b16 %h<9>; "
                ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .v2 .b32 %v; .reg .v4 .b32 %w;\n" +
                line + "\nret;\n}\n",
            "t.ptx");
  return result.diagnostics.ok() ? "" : result.diagnostics.list.front().message;
}

void expect_taken_as_kept(const std::vector<MatrixForm>& forms, const std::string& file,
                          std::string_view target = "sm_90") {
  ParseOptions options;
  options.max_diagnostics = forms.size();
  const auto result = parse(matrix_module(forms, target), "t.ptx", options);
  std::vector<bool> refused(forms.size(), false);
  for (const Diagnostic& diagnostic : result.diagnostics.list) {
    refused.at(diagnostic.line - first_matrix_line) = true;
  }
  demarc::test::expect_kept(file, taken_forms(forms, refused));
}

TEST(Forms, the_matrix_is_taken_as_kept) {
  expect_taken_as_kept(forms_matrix(), "ptx/golden/forms_sm_90.txt");
}

TEST(Operands, the_matrix_is_taken_as_kept) {
  expect_taken_as_kept(operand_matrix(), "ptx/golden/operands_sm_90.txt");
}

TEST(Operands, those_of_sm_100a_are_taken_as_kept) {
  expect_taken_as_kept(operand_matrix_of_sm_100a(), "ptx/golden/operands_sm_100a.txt", "sm_100a");
}

TEST(Forms, modifiers_stand_in_any_order_but_those_that_belong_to_the_name) {
  EXPECT_EQ(said_of("add.f32.sat.rn %r1, %r2, %r3;"), "");
  EXPECT_EQ(said_of("ld.u32.global.volatile %r1, [%rd1];"), "");
  EXPECT_EQ(said_of("mul.s32.lo %r1, %r2, %r3;"),
            "'mul.s32.lo': 'mul' takes no such types and modifiers together (PTX ISA 9.7.1.3)");
  EXPECT_EQ(said_of("cvta.to.global.u64 %rd1, %rd2;"), "");
  EXPECT_EQ(said_of("cvta.global.to.u64 %rd1, %rd2;"),
            "'cvta.global.to.u64': 'cvta' takes no such types and modifiers together (PTX ISA "
            "9.7.9.20)");
  EXPECT_EQ(said_of("ld.v2.u4 {%rd2, %rd3}, [%rd1];"),
            "'ld.v2.u4': 'ld' takes no such types and modifiers together (PTX ISA 9.7.9.8)");
}

TEST(Forms, newer_forms_name_the_version_and_target_that_have_them) {
  const std::string older = ".version 7.8\n.target sm_75\n.address_size 64\n";
  EXPECT_EQ(said_of("add.u16x2 %r1, %r2, %r3;", older),
            "'add.u16x2': this form of 'add' needs PTX 8.0 and sm_90 or later");
  EXPECT_EQ(said_of("add.u16x2 %r1, %r2, %r3;", ".version 8.0\n.target sm_90a\n.address_size 64\n"),
            "");
  EXPECT_EQ(said_of("add.u16x2 %r1, %r2, %r3;", ".version 7.8\n.target sm_90\n.address_size 64\n"),
            "'add.u16x2': this form of 'add' needs PTX 8.0 and sm_90 or later");
  EXPECT_EQ(said_of("shfl.up.b32 %r1, %r2, %r3, %r4;", ".version 6.4\n.target sm_70\n"),
            "'shfl.up.b32': from PTX 6.4 and sm_70 on 'shfl' needs '.sync'");
  EXPECT_EQ(said_of("shfl.up.b32 %r1, %r2, %r3, %r4;", ".version 6.4\n.target sm_60\n"), "");
  EXPECT_EQ(said_of("shfl.up.b32 %r1, %r2, %r3, %r4;", ".version 6.3\n.target sm_70\n"), "");
}

TEST(Forms, constants_are_of_the_operands_type) {
  for (const std::string taken :
       {"add.f32 %r1, %r2, 1.5;", "add.f64 %rd1, %rd2, 0f3F800000;",
        "and.b32 %r1, %r2, 0f3F800000;", "and.b64 %rd1, %rd2, 1.5;", "st.global.b64 [%rd1], 1.5;",
        "atom.global.add.f32 %r1, [%rd1], 1.5;", "setp.lt.and.f32 %p1, %r1, %r2, 1;",
        "selp.f32 %r1, 1.5, %r2, 1;", "cvt.rzi.s32.f32 %r1, 1.5;", "slct.s32.f32 %r1, 1, %r2, 1.5;",
        "mov.pred %p1, 2;"}) {
    EXPECT_EQ(said_of(taken), "") << taken;
  }
  EXPECT_EQ(said_of("add.f32 %r1, %r2, 1;"),
            "'add.f32': operand 3 is a constant that type .f32 does not take");
  for (const std::string refused :
       {"mov.s32 %r1, 1.5;", "mov.b32 %r1, 1.5;", "mov.b64 %rd1, 0f3F800000;",
        "add.f16 %h1, %h2, 1;", "setp.eq.bf16x2 %p1, %r1, 1;", "selp.f32 %r1, 1, %r2, %p1;",
        "set.eq.u32.f32 %r1, %r2, 1;", "slct.f32.s32 %r1, 1, %r2, %r3;", "cvt.rn.f32.s32 %r1, 1.5;",
        "st.global.f32 [%rd1], 1;", "red.global.add.f32 [%rd1], 1;",
        "atom.global.cas.b32 %r1, [%rd1], 1, 1.5;"}) {
    EXPECT_NE(said_of(refused).find("is a constant that type"), std::string::npos) << refused;
  }
}

TEST(Forms, rounding_by_random_bits_asks_for_them) {
  const std::string newer = ".version 9.0\n.target sm_100a\n.address_size 64\n";
  EXPECT_EQ(said_of("cvt.rs.f16x2.f32 %r1, %r2, %r3, %r4;", newer), "");
  EXPECT_EQ(said_of("cvt.rs.satfinite.e4m3x4.f32 %r1, {%r2, %r3, %r4, %r5}, %r6;", newer), "");
  EXPECT_EQ(said_of("cvt.rs.f16x2.f32 %r1, %r2, %r3;", newer),
            "'cvt.rs.f16x2.f32' takes 4 operands with these modifiers, found 3");
}

TEST(Forms, modifiers_and_vectors_ask_for_their_operands) {
  for (const std::string taken :
       {"ld.global.v2.b32 {%r1, %r2}, [%rd1];", "ld.global.v2.b32 %v, [%rd1];",
        "st.global.v4.b32 [%rd1], %w;", "st.global.b32 [%rd1], %v.x;",
        "atom.global.add.L2::cache_hint.u32 %r1, [%rd1], %r2, %rd2;",
        "cvt.rn.f16x2.f32 %r1, %r2, %r3;", "cvt.rn.f16x2.e4m3x2 %r1, %h1;",
        "cvt.pack.sat.u16.s32 %r1, %r2, %r3;", "cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4;"}) {
    EXPECT_EQ(said_of(taken), "") << taken;
  }
  EXPECT_EQ(said_of("ld.global.v2.b32 %r1, [%rd1];"),
            "'ld.global.v2.b32' moves 2 elements, but its operand has 1");
  EXPECT_EQ(said_of("st.global.b32 [%rd1], {%r1, %r2};"),
            "'st.global.b32' moves 1 element, but its operand has 2");
  EXPECT_EQ(said_of("setp.eq.and.u32 %p1, %r1, %r2;"),
            "'setp.eq.and.u32' takes 4 operands with these modifiers, found 3");
  for (const std::string refused :
       {"setp.eq.u32 %p1, %r1, %r2, %p2;", "set.eq.or.u32.u32 %r1, %r1, %r2;",
        "lop3.b32 %r1, %r2, %r3, %r4, 1, %p1;", "atom.global.cas.b32 %r1, [%rd1], %r2;",
        "atom.global.add.u32 %r1, [%rd1], %r2, %r3;", "ld.global.u32 %r1, [%rd1], %rd2;",
        "red.global.add.u32 [%rd1], %r1, %rd2;", "st.global.u32 [%rd1], %r1, %rd2;",
        "min.s32 %r1, %r2, %r3, %r4;", "cvt.u32.u64 %r1, %rd1, %rd2;", "cvt.rn.f16x2.f32 %r1, %r2;",
        "cvt.rn.f16x2.e4m3x2 %r1, %h1, %h2;", "cvt.pack.sat.u16.s32 %r1, %r2, %r3, %r4;",
        "cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3;"}) {
    EXPECT_NE(said_of(refused).find("operands with these modifiers"), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace demarc::ptx::test
