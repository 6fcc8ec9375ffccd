// Tests by ptxas that constant expressions have the values that it gives them, and that it refuses
// what the parser refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compilers.hpp"
#include "demarc/ptx/initialiser.hpp"
#include "demarc/ptx/parser.hpp"
#include "random_constants.hpp"
#include "round_trip.hpp"

namespace demarc::ptx::test {
namespace {

constexpr std::size_t lines_per_module = 400;

bool is_taken(const std::string& module) {
  return parse(module, "t.ptx").diagnostics.list.empty();
}

// Modules of statements that the parser takes: what it gives as a number must be the number of
// ptxas.
std::string failures_of_statements(std::uint64_t seed, std::size_t count) {
  RandomConstants random(seed);
  std::vector<RoundTrip> trips;
  for (std::size_t done = 0; done < count; done += lines_per_module) {
    std::string statements;
    for (std::size_t i = 0; i < lines_per_module; ++i) {
      const std::string statement = random.statement() + "\n";
      if (is_taken(constants_module("", statement))) statements += statement;
    }
    trips.push_back({fmt::format("seed {}, statements from {}", seed, done),
                     [text = constants_module("", statements)] { return text; },
                     {}});
  }
  return failures_of(trips);
}

// The variable with its initial bytes as one literal.
std::string with_literal(const std::string& declaration, const std::string& type,
                         const InitialImage& image) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < image.bytes.size(); ++i) {
    bits |= std::uint64_t{static_cast<unsigned char>(image.bytes[i])} << (8 * i);
  }
  if (type == "f32") return fmt::format("{}0f{:08X};\n", declaration, bits);
  if (type == "f64") return fmt::format("{}0d{:016X};\n", declaration, bits);
  return fmt::format("{}0x{:X};\n", declaration, bits);
}

std::string failure_of_initialisers(std::uint64_t seed) {
  RandomConstants random(seed);
  std::string written;
  std::string evaluated;
  for (std::size_t i = 0; i < lines_per_module; ++i) {
    const std::string types[] = {"u8",  "s8",  "b8",  "u16", "b16", "u32", "s32",
                                 "b32", "u64", "s64", "b64", "f32", "f64"};
    const std::string type = types[random.below(std::size(types))];
    const std::string declaration = fmt::format(
        ".visible .{} .align 8 .{} v{} = ", random.below(2) == 0 ? "const" : "global", type, i);
    const std::string text = declaration + random.initialiser(type) + ";\n";
    const ParseResult read = parse(constants_module(text, ""), "t.ptx");
    if (!read.diagnostics.list.empty()) continue;
    const auto image = initial_image(read.module, read.module.variables.back());
    if (!image) return image.error().message;
    written += text;
    evaluated += with_literal(declaration, type, *image);
  }
  const std::string wanted = machine_code_digest(constants_module(written, ""), {});
  return wanted == machine_code_digest(constants_module(evaluated, ""), {})
             ? ""
             : fmt::format("initialisers of seed {} have other bytes", seed);
}

TEST(Constants, expressions_in_operands_have_the_values_that_ptxas_gives_them) {
  EXPECT_EQ(failures_of_statements(1, 2000), "");
}

TEST(Constants, expressions_in_initialisers_have_the_bytes_that_ptxas_gives_them) {
  for (const std::uint64_t seed : {2U, 3U}) EXPECT_EQ(failure_of_initialisers(seed), "");
}

TEST(Constants, ptxas_refuses_the_expressions_that_the_parser_refuses) {
  RandomConstants random(4);
  for (int i = 0; i < 60; ++i) {
    const std::string mistake = random.mistake();
    const std::string module =
        constants_module("", "mov.b64 %rd2, " + mistake + "; st.global.b64 [%rd1], %rd2;\n");
    EXPECT_EQ(is_taken(module), verdict_of_ptxas(module) == Verdict::taken) << mistake;
  }
}

TEST(WholeConstants, twenty_thousand_expressions_have_the_values_that_ptxas_gives_them) {
  for (std::uint64_t seed = 5; seed < 9; ++seed) {
    EXPECT_EQ(failures_of_statements(seed, 5000), "");
    EXPECT_EQ(failure_of_initialisers(seed), "");
  }
}

}  // namespace
}  // namespace demarc::ptx::test
