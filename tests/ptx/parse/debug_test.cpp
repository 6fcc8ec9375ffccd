// Tests which debug data, source files and lines are malformed.
#include <gtest/gtest.h>

#include "debug_cases.hpp"
#include "text.hpp"

namespace demarc::ptx::test {
namespace {

std::string said_of_debug(const std::string& text) {
  const auto result = parse(preamble + text, "t.ptx");
  return result.diagnostics.ok() ? "" : result.diagnostics.list.front().message;
}

TEST(Debug, data_files_and_lines_are_taken_and_refused_as_ptxas_does) {
  const auto cases = debug_cases();
  ASSERT_GE(cases.size(), 400U);
  for (const DebugCase& one : cases) {
    const auto result = parse(one.module, "t.ptx");
    EXPECT_EQ(result.diagnostics.ok(), one.taken) << one.what << "\n" << all_of(result.diagnostics);
    EXPECT_EQ(result.diagnostics.unsupported, 0U) << one.what;
  }
}

TEST(Debug, what_is_wrong_with_debug_data_is_named) {
  const auto said = [](const std::string& data) {
    return said_of_debug(".section .debug_info {\n" + data + "\n}\n");
  };
  EXPECT_EQ(said(".b64 __func__.k"),
            "'.k' is not a type of debug data, which are .b8, .b16, .b32 "
            "and .b64");
  EXPECT_EQ(said(".b8 256"), "a number does not fit into .b8");
  EXPECT_EQ(said(".b8 a"), "an address does not fit into .b8");
  EXPECT_EQ(said("a: a:"), "label 'a' stands twice in sections");
  EXPECT_EQ(said(".b8 -1U"), "debug data are integers, and those below 0 have no suffix U");
  EXPECT_EQ(said(".b8 -0"), "-0 does not stand alone in debug data");
  EXPECT_EQ(said_of_debug(".section .reg { }"), "a section has a name as '.debug_info', found '.'");
}

TEST(Debug, what_is_wrong_with_files_and_lines_is_named) {
  EXPECT_EQ(said_of_debug(".file 1 \"a\"\n.file 1 \"b\"\n"), "'.file' 1 stands twice");
  EXPECT_EQ(said_of_debug("// \xC3\xA9\n"),
            "PTX is ASCII text, also in comments, but this character is not");
  EXPECT_EQ(said_of_debug("@@DWARF .byte 1\n"),
            "'@@DWARF' is not part of PTX since version 2.0: debug data stand in '.section'");
  const std::string end = " ret; }\n.section .debug_str { s: .b8 0 }\n";
  EXPECT_EQ(said_of_debug(".entry k() { .loc 1 2 3, function_name s, inlined_at 1 2 3" + end),
            "'inlined_at 1 2 3' needs a '.loc' of that place before it");
  EXPECT_EQ(
      said_of_debug(".entry k() { .loc 1 2 3 .loc 1 2 4, function_name t, inlined_at 1 2 3" + end),
      "'t' is not a label of a section");
}

TEST(Debug, a_broken_section_does_not_hide_what_follows_it) {
  const auto result = parse(preamble +
                                ".section .a {\n.b8 x\n.b8 1\n}\n.entry k() { ret; }\n"
                                ".section .b {\n.b8 x\n}\n",
                            "t.ptx");
  EXPECT_EQ(result.diagnostics.malformed, 2U);
  EXPECT_NE(result.module.find_function("k"), nullptr);
}

}  // namespace
}  // namespace demarc::ptx::test
