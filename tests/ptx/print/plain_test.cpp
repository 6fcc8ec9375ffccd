// The parser reads the most frequent operands by a way of its own. A comment between the tokens
// keeps it off that way: both must give the same.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/ptx/printer.hpp"
#include "text.hpp"

namespace demarc::ptx {
namespace {

const std::vector<std::string>& plain_and_odd_operands() {
  static const std::vector<std::string> operands = {"%r1",
                                                    "%r0",
                                                    "%r19",
                                                    "%r20",
                                                    "%r01",
                                                    "%r00",
                                                    "%rd7",
                                                    "%f19",
                                                    "%p3",
                                                    "!%p3",
                                                    "%r1234567",
                                                    "%r123456789",
                                                    "%r",
                                                    "%rr1",
                                                    "%r1_2",
                                                    "%r1a",
                                                    "%r1.x",
                                                    "%p1|%p2",
                                                    "%tid.x",
                                                    "%laneid",
                                                    "n",
                                                    "tile",
                                                    "tile+4",
                                                    "nothing",
                                                    "_",
                                                    "5",
                                                    "0",
                                                    "007",
                                                    "0x1F",
                                                    "0b101",
                                                    "5U",
                                                    "-5",
                                                    "-0",
                                                    "- 5",
                                                    "-5U",
                                                    "1.5",
                                                    "-1.5",
                                                    "0f3F800000",
                                                    "-0f3F800000",
                                                    "0f3F80000",
                                                    "1e3",
                                                    "12abc",
                                                    "9223372036854775808",
                                                    "18446744073709551615",
                                                    "18446744073709551616",
                                                    "-9223372036854775808",
                                                    "1+2",
                                                    "(1+2)*3",
                                                    "[%rd1]",
                                                    "[%rd1+8]",
                                                    "[%rd1+-8]",
                                                    "[%rd1-8]",
                                                    "[%rd1+0]",
                                                    "[%rd1+8+8]",
                                                    "[%rd1+1.5]",
                                                    "[%rd1+8U]",
                                                    "[%rd1 + 8]",
                                                    "[ %rd1 ]",
                                                    "[%rd20]",
                                                    "[16]",
                                                    "[tile+4]",
                                                    "[p]",
                                                    "[%rd1].unified",
                                                    "[%rd1",
                                                    "{%r1, %r2}",
                                                    "{%r1,%r2,%r3,%r4}",
                                                    "",
                                                    "%r1 ",
                                                    "%r1\t",
                                                    "%r1\n",
                                                    "%",
                                                    "%%r1",
                                                    "[%rd1+0x10]"};
  return operands;
}

struct Reading {
  std::string printed;
  std::vector<std::string> messages;
};

// What is kept as it was written keeps its comments.
std::string without_comments(std::string text) {
  for (std::size_t at = 0; (at = text.find("/**/")) != std::string::npos;) text.erase(at, 4);
  return text;
}

Reading read(const std::string& statements, const std::string& behind) {
  const ParseResult result = parse(test::kernel(statements) + behind, "t.ptx");
  Reading reading{without_comments(print(result.module)), {}};
  for (const Diagnostic& diagnostic : result.diagnostics.list) {
    reading.messages.push_back(diagnostic.message);
  }
  return reading;
}

RC_GTEST_PROP(Plain, frequent_operands_mean_what_the_general_reader_makes_of_them, ()) {
  const auto mnemonics = std::vector<std::string>{
      "add.s32", "mov.u32",  "ld.global.f32", "st.shared.u32", "mad.lo.s32", "bar.sync",
      "add.zz",  "frob.s32", "fma.rn.f32",    "and.pred",      "bra"};
  const auto guards = std::vector<std::string>{"", "", "@%p1 ", "@!%p8 ", "@%p9 ", "@%r1 ", "@n "};
  std::string plainly;
  std::string generally;
  const auto lines = *rc::gen::inRange(1, 8);
  for (int i = 0; i < lines; ++i) {
    const std::string guard = *rc::gen::elementOf(guards);
    const std::string mnemonic = *rc::gen::elementOf(mnemonics);
    plainly += guard + mnemonic + " ";
    generally += guard + "/**/" + mnemonic + " ";
    const auto count = *rc::gen::inRange(0, 5);
    for (int j = 0; j < count; ++j) {
      const std::string operand = *rc::gen::elementOf(plain_and_odd_operands());
      plainly += (j > 0 ? ", " : "") + operand;
      generally += (j > 0 ? "/**/, /**/" : "/**/") + operand;
    }
    plainly += ";\n";
    generally += "/**/;\n";
  }
  // Near the end of the text nothing is read in large pieces.
  const std::string behind(*rc::gen::elementOf(std::vector<std::size_t>{0, 5, 17, 100}), '\n');
  const Reading a = read(plainly, behind);
  const Reading b = read(generally, behind);
  RC_ASSERT(a.printed == b.printed);
  RC_ASSERT(a.messages == b.messages);
}

// A mnemonic is known from its second use on.
TEST(Plain, every_such_operand_by_itself_means_what_the_general_reader_makes_of_it) {
  const std::string known = "mov.b32 %r2, %r3;\nst.global.b32 [%rd2], %r2;\n";
  const std::string behind(100, '\n');
  for (const std::string& operand : plain_and_odd_operands()) {
    for (const std::string mnemonic : {"mov.b32 %r1, ", "st.global.b32 [%rd1], "}) {
      const Reading a = read(known + mnemonic + operand + ";", behind);
      const Reading b = read(known + "/**/" + mnemonic + "/**/" + operand + "/**/;", behind);
      EXPECT_EQ(a.printed, b.printed) << mnemonic << operand;
      EXPECT_EQ(a.messages, b.messages) << mnemonic << operand;
    }
  }
}

std::uint32_t first_register(const Body& body, std::size_t instruction) {
  return body.operands_of(body.instructions[instruction])[0].index;
}

TEST(Plain, a_register_is_that_of_the_innermost_scope_and_the_outer_one_again_behind_it) {
  const Module module =
      test::parsed(test::kernel("mov.u32 %r1, 7;\n"
                                "{\n.reg .b32 %r<3>;\nmov.u32 %r1, 7;\n}\n"
                                "mov.u32 %r1, 7;\n"
                                "{\n.reg .b32 %r1;\nmov.u32 %r1, 7;\n}\n"
                                "mov.u32 %r1, 7;\n"));
  const Body& body = module.functions[0].body;
  EXPECT_NE(first_register(body, 0), first_register(body, 1));
  EXPECT_EQ(first_register(body, 0), first_register(body, 2));
  EXPECT_NE(first_register(body, 0), first_register(body, 3));
  EXPECT_NE(first_register(body, 1), first_register(body, 3));
  EXPECT_EQ(first_register(body, 0), first_register(body, 4));
}

TEST(Plain, a_register_of_one_function_is_not_known_in_the_next) {
  const ParseResult result = parse(
      test::kernel("mov.u32 %r1, 7;\n") + ".visible .entry l()\n{\nmov.u32 %r1, 7;\nret;\n}\n",
      "t.ptx");
  EXPECT_EQ(test::all_of(result.diagnostics).find("t.ptx:16:9: malformed: '%r1' is not declared"),
            0U)
      << test::all_of(result.diagnostics);
}

TEST(Plain, a_guard_must_be_a_predicate_whichever_way_it_is_read) {
  const ParseResult result = parse(test::kernel("@%r1 mov.u32 %r1, 7;\n"), "t.ptx");
  EXPECT_NE(test::all_of(result.diagnostics).find("not a .pred register"), std::string::npos);
}

TEST(Plain, a_control_character_is_no_instruction) {
  EXPECT_FALSE(parse(test::kernel("\x01 mov.u32 %r1, 7;\n"), "t.ptx").diagnostics.ok());
}

}  // namespace
}  // namespace demarc::ptx
