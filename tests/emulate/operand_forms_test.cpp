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

// For the result the parts that there are; of the operands those of both.
TEST(OperandForms, parts_that_a_register_does_not_have_are_not_written) {
  for (const char* right : {"vadd2.s32.s32.s32 %r5.h0, %r1, %r1, %r1;",
                            "vadd2.s32.s32.s32 %r5.h10, %r1.h32, %r1.h01, %r1;",
                            "vadd4.u32.u32.u32 %r5.b3, %r1, %r1, %r1;",
                            "vadd4.u32.u32.u32 %r5.b3210, %r1.b7654, %r1.b3120, %r1;"}) {
    EXPECT_EQ(said_of(right), "accepted") << right;
  }
  for (const char* wrong :
       {"vadd2.s32.s32.s32 %r5.b2, %r1, %r1, %r1;", "vadd2.s32.s32.s32 %r5.b3, %r1, %r1, %r1;",
        "vadd2.s32.s32.s32 %r5.h32, %r1, %r1, %r1;", "vadd4.u32.u32.u32 %r5.b40, %r1, %r1, %r1;",
        "vadd4.u32.u32.u32 %r5.b7654, %r1, %r1, %r1;"}) {
    EXPECT_NE(said_of(wrong), "accepted") << wrong;
  }
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

// A pair of lines each: the first is right.
TEST(OperandForms, a_register_of_another_width_than_the_instruction_names_is_refused) {
  const std::string product = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 ";
  const std::string wide = ".reg .b128 %q;\n";
  const std::string matrix = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], ";
  const std::string c = ", {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};";
  const std::pair<std::string, std::string> lines[] = {
      {"add.u32 %r5, %r1, %r1;", "add.u32 %p1, %r1, %r1;"},
      {"add.u32 %r5, %r1, %r1;", "add.u32 %rd5, %r1, %r1;"},
      {"add.u32 %r5, %r1, %r1;", "add.u32 %r5, %h1, %r1;"},
      {"add.u64 %rd5, %rd1, 5;", "mov.u32 %r6, 5;\nadd.u64 %rd5, %rd1, %r6;"},
      {"mul.wide.u32 %rd5, %r1, %r1;", "mul.wide.u32 %r5, %r1, %r1;"},
      {"mul.wide.u32 %rd5, %r1, %r1;", "mul.wide.u64 %rd5, %rd1, %rd1;"},
      {"mad.wide.u32 %rd5, %r1, %r1, %rd1;", "mad.wide.u32 %rd5, %r1, %r1, %r1;"},
      {"shl.b64 %rd5, %rd1, %r1;", "shl.b64 %rd5, %rd1, %rd1;"},
      {"shf.l.wrap.b32 %r5, %r1, %r1, %r1;", "shf.l.wrap.b32 %r5, %r1, %r1, %rd1;"},
      {"setp.eq.u32 %p1, %r1, %r1;", "setp.eq.u32 %r5, %r1, %r1;"},
      {"selp.b32 %r5, %r1, %r1, %p1;", "selp.b32 %rd5, %r1, %r1, %p1;"},
      {"selp.b32 %r5, %r1, %r1, %p1;", "selp.b32 %r5, %r1, %r1, %r1;"},
      {"selp.b32 %r5, %r1, %r1, %p1;", "mov.u32 %r6, 5;\nselp.b32 %r5, %r1, %r1, %r6;"},
      {"mov.b32 %r5, 5;", "mov.b32 %p1, 5;"},
      {"mov.b64 %rd5, %rd1;", "mov.b32 %rd5, %rd1;"},
      {"mov.u32 %r5, %ctaid.x;", "mov.u64 %rd5, %ctaid.x;"},
      {"bar.sync %r1;", "bar.sync %h1;"},
      {"bar.red.popc.u32 %r5, 0, %p1;", "bar.red.popc.u32 %h1, 0, %p1;"},
      {"bar.red.popc.u32 %r5, 0, %p1;", "bar.red.popc.u32 %r5, 0, %r1;"},
      {"bar.red.and.pred %p2, 0, %p1;", "bar.red.and.pred %r5, 0, %p1;"},
      {"shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;", "shfl.sync.idx.b32 %rd5, %r1, 0, 31, -1;"},
      {"shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;", "shfl.sync.idx.b32 %r5, %rd1, 0, 31, -1;"},
      {"shfl.sync.idx.b32 %r5|%p1, %r1, 0, 31, -1;", "shfl.sync.idx.b32 %r5|%r6, %r1, 0, 31, -1;"},
      {"vote.sync.any.pred %p2, %p1, -1;", "vote.sync.any.pred %r5, %p1, -1;"},
      {"vote.sync.any.pred %p2, %p1, -1;", "vote.sync.any.pred %p2, %r1, -1;"},
      {"vote.sync.ballot.b32 %r5, %p1, -1;", "vote.sync.ballot.b32 %p2, %p1, -1;"},
      {"movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r1;",
       "movmatrix.sync.aligned.m8n8.trans.b16 %rd5, %r1;"},
      {product + "{%f1, %f2, %f3, %f4}" + c, product + "{%h1, %h2, %h3, %h4}" + c},
      {"atom.global.cas.b32 %r5, [%rd1], %r1, %r1;", "atom.global.cas.b32 %r5, [%rd1], %r1, %rd1;"},
      {"ld.global.v2.u32 {%r5, %r6}, [%rd1];", "ld.global.v2.u32 {%r5, %rd5}, [%rd1];"},
      {"popc.b64 %r5, %rd1;", "popc.b64 %rd5, %rd1;"},
      {"popc.b32 %r5, %r1;", "popc.b32 %p1, %r1;"},
      {"bfe.u64 %rd5, %rd1, 3, 4;", "bfe.u64 %r5, %rd1, 3, 4;"},
      {"setp.eq.and.u32 %p1|%p2, %r1, %r1, %p3;", "setp.eq.and.u32 %p1|%r5, %r1, %r1, %p3;"},
      {"set.eq.u32.u64 %r5, %rd1, %rd1;", "set.eq.u32.u64 %rd5, %rd1, %rd1;"},
      {"fma.rn.f32 %f5, %f1, %f1, %f1;", "fma.rn.f32 %rd5, %f1, %f1, %f1;"},
      {"testp.finite.f32 %p1, %f1;", "testp.finite.f32 %r5, %f1;"},
      {"isspacep.global %p1, %rd1;", "isspacep.global %r5, %rd1;"},
      {"cvt.rn.f16x2.f32 %r5, %f1, %f1;", "cvt.rn.f16x2.f32 %h5, %f1, %f1;"},
      {"vadd.u32.u32.u32 %r5, %r1, %r1;", "vadd.u32.u32.u32 %r5, %r1, %rd1;"},
      {"and.pred %p1, %p2, %p3;", "and.pred %p1, %p2, %r1;"},
      {"and.pred %p1, %p2, %p3;", "and.pred %r5, %p2, %p3;"},
      {wide + "mov.b128 %q, {%rd1, 5};", wide + "mov.b128 %q, {%rd1, %r1};"},
      {wide + "mov.b128 %q, {%rd1, 5};", wide + "mov.b128 %rd5, {%rd1, 5};"},
      {wide + "mov.b128 {%rd5, %rd6}, %q;", wide + "mov.b128 {%rd5, %r6}, %q;"},
      {wide + "mov.b128 %q, %q;", wide + "mov.b128 %q, 5;"},
      {wide + "mov.b128 %q, %q;", wide + "mov.b128 %q, %rd1;"},
      {wide + "st.global.b128 [%rd1], %q;", wide + "st.global.b128 [%rd1], _;"},
      {wide + "st.global.b128 [%rd1], %q;", wide + "st.global.b128 [%rd1], 5;"},
      {matrix + "{%r1};", matrix + "{_};"},
  };
  for (const auto& [right, wrong] : lines) {
    EXPECT_EQ(said_of(right), "accepted") << right;
    const std::string said = said_of(wrong);
    EXPECT_TRUE(said.find("a form of this instruction that the emulator does not cover") !=
                    std::string::npos ||
                said.find("malformed: ") != std::string::npos)
        << wrong;
  }
}

}  // namespace
}  // namespace demarc::emulate::test
