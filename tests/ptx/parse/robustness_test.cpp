// Tests that cut, changed and made-up text gives an error or a module and never a crash.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "demarc/base/random.hpp"
#include "demarc/ptx/printer.hpp"
#include "paths.hpp"
#include "text.hpp"

namespace demarc::ptx {
namespace {

std::string corpus_text(const std::string& name) {
  const auto path = demarc::test::source_dir() / "tests" / "ptx" / "corpus" / name;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const std::vector<std::string>& corpus_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all;
    for (const char* name : {"bulk_copies", "control_flow", "debug_sections", "memory", "multicast",
                             "tensor_memory", "textures", "video", "wgmma"}) {
      all.push_back(corpus_text(std::string(name) + ".ptx"));
    }
    return all;
  }();
  return texts;
}

TEST(Robustness, the_corpus_prints_to_a_fixed_point_without_a_diagnostic) {
  for (const std::string& text : corpus_texts()) {
    ASSERT_GT(text.size(), 200U);
    const std::string printed = print(test::parsed(text));
    EXPECT_EQ(print(test::parsed(printed)), printed);
  }
}

TEST(Robustness, every_truncation_gives_an_error_or_a_module_and_never_a_crash) {
  const std::string text = corpus_text("control_flow.ptx");
  for (std::size_t length = 0; length < text.size(); length += 7) {
    const ParseResult result = parse(text.substr(0, length), "cut");
    (void)print(result.module);
  }
  const std::size_t in_a_body = text.find("brx.idx");
  EXPECT_FALSE(parse(text.substr(0, in_a_body), "cut").diagnostics.ok());
}

RC_GTEST_PROP(Robustness, mutated_text_never_crashes_and_what_is_accepted_prints_to_a_fixed_point,
              ()) {
  std::string text = *rc::gen::elementOf(corpus_texts());
  const auto changes = *rc::gen::inRange(1, 30);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
        break;
      case 1:
        text.erase(at, *rc::gen::inRange<std::size_t>(1, 12));
        break;
      case 2:
        text.insert(at, *rc::gen::elementOf(std::vector<std::string>{
                            "{", "}", ";", ",", "[", "(", "\"", "/*", ".reg", "%r1", "<9>", "0x",
                            "::", "@", "=", "\n.entry "}));
        break;
      default:
        text.insert(at, text.substr(at / 2, 20));
        break;
    }
  }
  const ParseResult result = parse(text, "mutant");
  const std::string printed = print(result.module);
  if (!result.diagnostics.ok()) return;
  const ParseResult again = parse(printed, "mutant, printed");
  RC_ASSERT(again.diagnostics.ok());
  RC_ASSERT(print(again.module) == printed);
}

TEST(Robustness, a_hundred_megabytes_of_garbage_are_refused) {
  Random random(7);
  std::string text(100'000'000, ' ');
  for (std::size_t i = 0; i + 8 <= text.size(); i += 8) {
    const std::uint64_t bits = random();
    std::memcpy(text.data() + i, &bits, 8);
  }
  EXPECT_FALSE(parse(std::move(text), "garbage").diagnostics.ok());
}

TEST(Robustness, garbage_made_of_ptx_words_is_refused) {
  Random random(11);
  constexpr std::string_view words[] = {"{",       "}",   ";",  ".reg", ".b32", "%r",     "<5>",
                                        "add.s32", "@",   "L:", "(",    ")",    "[",      "]",
                                        ",",       "bra", "L",  "\n",   "0x1",  ".entry", "k",
                                        ".global", "=",   "\"", ".loc", "1",    ".func"};
  std::string text = test::preamble;
  while (text.size() < 10'000'000) {
    text += words[random.below(std::size(words))];
    text += ' ';
  }
  EXPECT_FALSE(parse(std::move(text), "words").diagnostics.ok());
}

TEST(Robustness, deep_nesting_is_an_error_that_says_so) {
  const int depth = 1'000'000;
  const ParseResult scopes =
      parse(test::kernel(std::string(depth, '{') + std::string(depth, '}')), "");
  EXPECT_NE(test::all_of(scopes.diagnostics).find("more than 1000 nested scopes"),
            std::string::npos);
  const ParseResult parentheses =
      parse(test::kernel("mov.u32 %r1, " + std::string(depth, '(') + ";"), "");
  EXPECT_NE(test::all_of(parentheses.diagnostics).find("nested too deeply"), std::string::npos);
  const ParseResult signs =
      parse(test::kernel("mov.b32 %r1, " + std::string(200'000, '-') + "1;"), "t.ptx");
  EXPECT_NE(test::all_of(signs.diagnostics).find("nested too deeply"), std::string::npos);
  const ParseResult vectors =
      parse(test::kernel("mov.u32 " + std::string(depth, '{') + "%r1;"), "");
  EXPECT_FALSE(vectors.diagnostics.ok());
  const ParseResult braces =
      parse(test::preamble + ".global .b32 x[2] = " + std::string(depth, '{') + "1;\n", "");
  EXPECT_FALSE(braces.diagnostics.ok());
}

TEST(Robustness, absurd_sizes_are_errors_and_take_no_memory) {
  EXPECT_FALSE(parse(test::kernel(".reg .b32 %x<4000000000>;"), "").diagnostics.ok());
  EXPECT_FALSE(parse(test::kernel(".param .b32 x<4000000>;"), "").diagnostics.ok());
  EXPECT_FALSE(
      parse(test::preamble + ".global .b64 x[4611686018427387904][4611686018427387904];\n", "")
          .diagnostics.ok());
  Variable huge;
  huge.type = Type::b64;
  huge.dimensions = {std::uint64_t{1} << 62U, std::uint64_t{1} << 62U};
  EXPECT_EQ(huge.byte_size(), ~std::uint64_t{0});
}

}  // namespace
}  // namespace demarc::ptx
