// Operands that an instruction cannot have are refused and not read in another way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "harness.hpp"
#include "instructions/instruction_case.hpp"
#include "instructions/instruction_runs.hpp"

namespace demarc::emulate::test {
namespace {

bool in_a_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '%' || c == '.';
}

// The case with operand `letter` of its first instruction written otherwise.
std::string written(const InstructionCase& entry, char letter, const std::string& form) {
  std::string text = entry.text;
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    if (text[at] != letter || in_a_word(text[at - 1]) || in_a_word(text[at + 1])) continue;
    return text.replace(at, 1, form);
  }
  return {};
}

// A case of each opcode and number of operands; of moves, which have vectors, every one.
std::vector<InstructionCase> one_of_each() {
  std::vector<InstructionCase> chosen;
  std::set<std::string> seen;
  for (const InstructionCase& entry : all_cases()) {
    const std::string mnemonic = mnemonic_of(entry);
    std::string kind = mnemonic.substr(0, mnemonic.find('.'));
    if (kind == "mov") kind = mnemonic;
    if (seen.insert(fmt::format("{} {} {}", kind, entry.results.size(), entry.sources.size()))
            .second)
      chosen.push_back(entry);
  }
  return chosen;
}

std::string said_of(const std::string& body) {
  const auto outcome = run_text(kernel_of("", body), launch_of(1, 32, 256));
  return outcome ? "accepted" : outcome.error().message;
}

TEST(OperandForms, a_vector_or_an_address_in_the_place_of_a_register_is_refused) {
  std::size_t tried = 0;
  for (const InstructionCase& entry : one_of_each()) {
    std::string operands = "D";
    for (std::size_t i = 0; i < entry.sources.size(); ++i) operands += "ABCFG"[i];
    for (const char letter : operands) {
      for (const std::string form : {"{@, @}", "{@, @, @}", "[@]"}) {
        std::string operand = form;
        std::replace(operand.begin(), operand.end(), '@', letter);
        InstructionCase other = entry;
        other.text = written(entry, letter, operand);
        if (other.text.empty()) continue;
        const auto run = emulate_case(other, inputs_for(entry, 1, 1), 0, false, {});
        EXPECT_FALSE(run) << other.text;
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 1000U);
}

TEST(OperandForms, results_and_operands_of_another_kind_are_refused) {
  EXPECT_EQ(said_of("vadd.s32.s32.s32 %r5, %r1, %r1;"), "accepted");
  EXPECT_NE(said_of("vadd.s32.s32.s32 %rd5, %r1, %r1;"), "accepted");
  EXPECT_EQ(said_of("movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r1;"), "accepted");
  EXPECT_NE(said_of("mov.u32 %r6, 5;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r5, %r6;"), "accepted")
      << "the same in all lanes";
}

TEST(OperandForms, parts_of_a_move_make_up_its_bits) {
  for (const char* right : {"mov.b32 %r5, {%h1, %h2};", "mov.b64 %rd5, {%r5, %r6};",
                            "mov.b64 {%r5, _}, %rd5;", "mov.b64 %rd5, {%h1, %h2, %h3, 4};",
                            "mov.b64 {%h1, %h2, %h3, %h4}, %rd5;", "mov.b32 %f1, {%h1, 7};"}) {
    EXPECT_EQ(said_of(right), "accepted") << right;
  }
  for (const char* wrong :
       {"mov.b32 %r5, {%r6, %r7};", "mov.b64 %rd5, {%h1, %h2};", "mov.b64 {%r5, %rd6}, %rd5;",
        "mov.b64 %rd5, {%h1, %h2, %h3};", "mov.b64 %rd5, {%h1, %h2, %h3, %h4, %h5};",
        "mov.b64 {%h1, %h2, %h3}, %rd5;", "mov.b64 {%h1, %h2, %h3, %h4, %h5}, %rd5;",
        "mov.u32 %r5, {%h1, %h2};", "mov.f64 {%r5, %r6}, %rd5;", "mov.b64 %r5, {%r6, %r7};",
        "mov.b64 {%r5, %r6}, %r7;", "mov.b64 {%r5, %r6}, [%rd5];", "mov.b64 {}, %rd5;",
        "mov.b64 %rd5, {};"}) {
    EXPECT_NE(said_of(wrong), "accepted") << wrong;
  }
}

}  // namespace
}  // namespace demarc::emulate::test
