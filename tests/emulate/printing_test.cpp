// printf of kernels: what it prints for every conversion, what it returns, and what it may read.
#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

struct PrintedArgument {
  std::uint32_t bytes = 4;
  std::string value;  // as PTX has it
};

PrintedArgument word(const std::string& value) {
  return {4, value};
}
PrintedArgument wide(const std::string& value) {
  return {8, value};
}
PrintedArgument real(double value) {
  return {8, fmt::format("0d{:016X}", std::bit_cast<std::uint64_t>(value))};
}

std::string bytes_of(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += fmt::format("{},", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return out + "0";
}

// One thread prints `format` with these arguments, of which `unwritten` is left out.
Result<Outcome> print_one(const std::string& format, const std::vector<PrintedArgument>& arguments,
                          std::size_t unwritten = ~std::size_t{0},
                          const std::string& address = "text") {
  std::string body = ".local .align 8 .b8 pack[512];\nmov.u64 %rd5, pack;\n";
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& [bytes, value] = arguments[i];
    at = (at + bytes - 1) / bytes * bytes;
    if (i != unwritten)
      body += fmt::format("mov.b{0} {1}, {2};\nst.local.b{0} [%rd5+{3}], {1};\n", 8 * bytes,
                          bytes == 4 ? "%r3" : "%rd6", value, at);
    at += bytes;
  }
  body += fmt::format(
      "cvta.local.u64 %rd5, %rd5;\nmov.u64 %rd7, {};\n"
      "{{ .param .b64 f; .param .b64 a; .param .b32 r;\nst.param.b64 [f], %rd7; st.param.b64 [a], "
      "%rd5;\ncall (r), vprintf, (f, a); ld.param.b32 %r4, [r]; }}\ncvt.s64.s32 %rd8, %r4;\n"
      "st.global.u64 [%rd2], %rd8;",
      address);
  return run_text(
      kernel_of(".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global "
                ".align 1 .b8 text[" +
                    std::to_string(format.size() + 1) + "] = {" + bytes_of(format) +
                    "};\n.global .align 1 .b8 hi[3] = {104, 105, 0};\n",
                body),
      launch_of(1, 1, 256));
}

struct PrintedCase {
  const char* format;
  std::vector<PrintedArgument> arguments;
  const char* printed;
  std::int64_t result;
};

std::vector<PrintedCase> printed_cases() {
  std::vector<PrintedArgument> many;
  std::string format;
  std::string printed;
  for (int i = 0; i < 33; ++i) {
    many.push_back(word(std::to_string(i)));
    format += "%d ";
    printed += i < 32 ? std::to_string(i) + " " : "%d ";
  }
  static const std::string many_format = format;
  static const std::string many_printed = printed;
  return {
      {"no arguments", {}, "no arguments", 0},
      {"", {}, "", 0},
      {"100%%", {}, "100%", 0},
      {"%d %i %u", {word("-7"), word("8"), word("4294967295")}, "-7 8 4294967295", 3},
      {"%d %.1f %d", {word("1"), real(1.5), word("2")}, "1 1.5 2", 3},
      {"%hd %hhd %hu %hhu",
       {word("70000"), word("300"), word("-1"), word("-1")},
       "4464 44 65535 255",
       4},
      {"%ld %lld %zu %jd",
       {wide("-5"), wide("1099511627776"), wide("6"), wide("7")},
       "-5 1099511627776 6 7",
       4},
      {"%x %X %o %#x %#o %llx",
       {word("250"), word("250"), word("250"), word("250"), word("250"),
        wide("0xabcdef0123456789")},
       "fa FA 372 0xfa 0372 abcdef0123456789",
       6},
      {"[%5d] [%-5d] [%05d] [%+d] [% d] [%.4d]",
       {word("42"), word("42"), word("42"), word("42"), word("42"), word("42")},
       "[   42] [42   ] [00042] [+42] [ 42] [0042]",
       6},
      {"[%*d] [%-*d] [%.*f]",
       {word("5"), word("42"), word("5"), word("42"), word("2"), real(3.14159)},
       "[   42] [42   ] [3.14]",
       6},
      {"[%*d] [%.*f]", {word("-5"), word("42"), word("-1"), real(0.5)}, "[42   ] [0.500000]", 4},
      {"%f %e %g %a %F %E %G",
       {real(1.5), real(2.5), real(1e-7), real(1.0), real(1.5), real(2.5), real(1e-7)},
       "1.500000 2.500000e+00 1e-07 0x1p+0 1.500000 2.500000E+00 1E-07",
       7},
      {"[%s] [%5s] [%.1s]", {wide("hi"), wide("hi"), wide("hi")}, "[hi] [   hi] [h]", 3},
      {"%c%c", {word("65"), word("66")}, "AB", 2},
      {"%s", {wide("0")}, "(null)", 1},
      {"%p", {wide("16")}, "0x10", 1},
      {"%d %q %d", {word("1"), word("2")}, "1 %q 2", 2},
      {"%d %", {word("1")}, "1 %", 1},
      {many_format.c_str(), many, many_printed.c_str(), 32},
  };
}

TEST(Printf, prints_as_the_host_does_and_returns_the_number_of_its_arguments) {
  for (const PrintedCase& one : printed_cases()) {
    const auto outcome = print_one(one.format, one.arguments);
    ASSERT_TRUE(outcome) << outcome.error().message;
    for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
    EXPECT_EQ(outcome->printed, one.printed) << one.format;
    EXPECT_EQ(static_cast<std::int64_t>(words_of(*outcome)[0]), one.result) << one.format;
  }
}

TEST(Printf, prints_wide_fields_whole) {
  const auto outcome = print_one("%1000d", {word("7")});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->printed, std::string(999, ' ') + "7");
}

TEST(Printf, returns_minus_one_without_a_format) {
  const auto outcome = print_one("x", {}, ~std::size_t{0}, "0");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->findings.empty());
  EXPECT_EQ(outcome->printed, "");
  EXPECT_EQ(static_cast<std::int64_t>(words_of(*outcome)[0]), -1);
}

TEST(Printf, an_argument_that_was_not_written_is_found_and_padding_between_arguments_is_not) {
  const std::vector<PrintedArgument> arguments{word("1"), real(2.5), word("3")};
  const auto right = print_one("%d %f %d", arguments);
  ASSERT_TRUE(right) << right.error().message;
  for (const Finding& finding : right->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  for (const std::size_t missing : {0U, 1U, 2U}) {
    const auto wrong = print_one("%d %f %d", arguments, missing);
    ASSERT_TRUE(wrong) << wrong.error().message;
    ASSERT_EQ(wrong->findings.size(), 1U);
    EXPECT_EQ(wrong->findings[0].kind, FindingKind::uninitialised_read);
    EXPECT_NE(wrong->findings[0].detail.find("an argument of printf"), std::string::npos);
  }
}

TEST(Printf, a_format_or_a_string_outside_of_every_buffer_is_found) {
  const auto format = print_one("x", {}, ~std::size_t{0}, "0x123456");
  ASSERT_TRUE(format) << format.error().message;
  ASSERT_EQ(format->findings.size(), 1U);
  EXPECT_EQ(format->findings[0].kind, FindingKind::out_of_bounds);
  EXPECT_NE(format->findings[0].detail.find("the format of printf"), std::string::npos);
  const auto text = print_one("%s", {wide("0x123456")});
  ASSERT_TRUE(text) << text.error().message;
  ASSERT_EQ(text->findings.size(), 1U);
  EXPECT_NE(text->findings[0].detail.find("a string that printf prints"), std::string::npos);
}

}  // namespace
}  // namespace demarc::emulate
