// What becomes of bytes that were read before they were written: nothing as long as no value
// depends on them, and a finding at the load where one does. Each use stands beside one that leaves
// the unwritten bits alone.
#include "unwritten.hpp"

#include <memory>

#include "groups.hpp"
#include "harness.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;
using test::words_of;

// The low byte at 0 is written, the others of the eight bytes are not; the eight bytes at 8 are.
constexpr const char* half_written =
    ".local .align 16 .b8 mine[32];\nmov.u64 %rd5, mine;\nmov.u16 %h1, 7;\n"
    "st.local.u8 [%rd5], %h1;\nmov.u64 %rd6, 0x1122334455667788;\nst.local.u64 [%rd5+8], %rd6;\n";

struct UnwrittenCase {
  const char* name;
  const char* used;    // the first load in it is the finding
  const char* unused;  // and here nothing is
};

const UnwrittenCase unwritten_cases[] = {
    {"the_other_bytes_of_a_word_by_a_mask",
     "ld.local.u32 %r3, [%rd5];\nand.b32 %r3, %r3, 0x1ff;\nsetp.eq.u32 %p1, %r3, 7;\n@%p1 "
     "st.global.u32 [%rd2], 1;",
     "ld.local.u32 %r3, [%rd5];\nand.b32 %r3, %r3, 0xff;\nsetp.eq.u32 %p1, %r3, 7;\n@%p1 "
     "st.global.u32 [%rd2], 1;"},
    {"a_field_by_bfe",
     "ld.local.u32 %r3, [%rd5];\nbfe.u32 %r3, %r3, 4, 5;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra "
     "OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nbfe.u32 %r3, %r3, 4, 4;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra "
     "OUT;\nOUT:"},
    {"a_field_by_shifts",
     "ld.local.u32 %r3, [%rd5];\nshl.b32 %r3, %r3, 23;\nshr.u32 %r3, %r3, 27;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nshl.b32 %r3, %r3, 24;\nshr.s32 %r3, %r3, 27;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:"},
    {"a_word_that_is_shifted_into_the_register_of_the_distance",
     "ld.local.u32 %r4, [%rd5];\nmov.u32 %r3, 4;\nshl.b32 %r3, %r4, %r3;\nsetp.eq.u32 %p1, %r3, "
     "0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r4, [%rd5+8];\nmov.u32 %r3, 4;\nshl.b32 %r3, %r4, %r3;\nsetp.eq.u32 %p1, %r3, "
     "0;\n@%p1 bra OUT;\nOUT:"},
    {"bytes_that_prmt_takes",
     "ld.local.u32 %r3, [%rd5];\nprmt.b32 %r3, %r3, 0, 0x4441;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra "
     "OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nprmt.b32 %r3, %r3, 0, 0x4440;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra "
     "OUT;\nOUT:"},
    {"half_of_a_wide_word",
     "ld.local.u64 %rd7, [%rd5];\nmov.b64 {%r3, %r4}, %rd7;\nadd.u32 %r4, %r4, 1;\nst.global.u32 "
     "[%rd2], %r4;",
     "ld.local.v2.u64 {%rd7, %rd8}, [%rd5];\nmov.b64 {%r3, %r4}, %rd8;\nadd.u32 %r4, %r4, "
     "1;\nst.global.u32 [%rd2], %r4;"},
    {"an_element_of_a_vector",
     "ld.local.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];\nadd.u32 %r6, %r6, %r4;\nst.global.u32 [%rd2], "
     "%r6;",
     "ld.local.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];\nadd.u32 %r6, %r6, %r5;\nst.global.u32 [%rd2], "
     "%r6;"},
    {"a_bit_field_that_is_put_in_place",
     "ld.local.u32 %r3, [%rd5+4];\nand.b32 %r3, %r3, -8;\nor.b32 %r3, %r3, 5;\nst.local.u32 "
     "[%rd5+4], %r3;\nld.local.u32 %r4, [%rd5+4];\nand.b32 %r4, %r4, 15;\nsetp.eq.u32 %p1, %r4, "
     "5;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5+4];\nand.b32 %r3, %r3, -8;\nor.b32 %r3, %r3, 5;\nst.local.u32 "
     "[%rd5+4], %r3;\nld.local.u32 %r4, [%rd5+4];\nand.b32 %r4, %r4, 7;\nsetp.eq.u32 %p1, %r4, "
     "5;\n@%p1 bra OUT;\nOUT:"},
    {"a_bit_field_by_bfi",
     "ld.local.u32 %r3, [%rd5+4];\nbfi.b32 %r3, %r1, %r3, 8, 8;\nshr.u32 %r3, %r3, 4;\nand.b32 "
     "%r3, %r3, 0xff;\nst.global.u32 [%rd2], %r3;\nsetp.eq.u32 %p1, %r3, 5;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5+4];\nbfi.b32 %r3, %r1, %r3, 8, 8;\nshr.u32 %r3, %r3, 8;\nand.b32 "
     "%r3, %r3, 0xff;\nst.global.u32 [%rd2], %r3;\nsetp.eq.u32 %p1, %r3, 5;\n@%p1 bra OUT;\nOUT:"},
    {"a_sum_of_written_bits",
     "ld.local.u32 %r3, [%rd5];\nadd.u32 %r3, %r3, 256;\nand.b32 %r3, %r3, 256;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nadd.u32 %r3, %r3, 8;\nand.b32 %r3, %r3, 255;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:"},
    {"a_difference_of_written_bits",
     "ld.local.u32 %r3, [%rd5];\nsub.u32 %r3, 8, %r3;\nand.b32 %r3, %r3, 256;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nsub.u32 %r3, 8, %r3;\nand.b32 %r3, %r3, 255;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:"},
    {"a_product_of_written_bits",
     "ld.local.u32 %r3, [%rd5];\nmul.lo.u32 %r3, %r3, 3;\nand.b32 %r3, %r3, 256;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nmul.lo.u32 %r3, %r3, 3;\nand.b32 %r3, %r3, 255;\nsetp.eq.u32 %p1, "
     "%r3, 0;\n@%p1 bra OUT;\nOUT:"},
    {"bits_that_lop3_takes",
     "ld.local.u32 %r3, [%rd5];\nlop3.b32 %r3, %r3, 0x100, 0, 0xc0;\nsetp.eq.u32 %p1, %r3, "
     "0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nlop3.b32 %r3, %r3, 0xff, 0, 0xc0;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 "
     "bra OUT;\nOUT:"},
    {"words_that_differ_where_they_are_written",
     "ld.local.u32 %r3, [%rd5];\nsetp.eq.u32 %p1, %r3, 7;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nsetp.eq.u32 %p1, %r3, 8;\n@%p1 bra OUT;\nOUT:"},
    {"the_one_that_selp_takes",
     "ld.local.u32 %r3, [%rd5];\nsetp.eq.u32 %p1, 1, 1;\nselp.b32 %r3, %r3, %r1, %p1;\nsetp.eq.u32 "
     "%p1, %r3, 7;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nsetp.eq.u32 %p1, 1, 1;\nselp.b32 %r3, %r1, %r3, %p1;\nsetp.eq.u32 "
     "%p1, %r3, 7;\n@%p1 bra OUT;\nOUT:"},
    {"a_sign_that_is_not_written",
     "ld.local.s8 %r3, [%rd5+1];\nshr.u32 %r3, %r3, 31;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra "
     "OUT;\nOUT:",
     "ld.local.u8 %r3, [%rd5+1];\nshr.u32 %r3, %r3, 31;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra "
     "OUT;\nOUT:"},
    {"what_cvt_leaves",
     "ld.local.u32 %r3, [%rd5];\ncvt.u16.u32 %h2, %r3;\ncvt.u32.u16 %r3, %h2;\nshr.u32 %r3, %r3, "
     "8;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\ncvt.u32.u8 %r3, %r3;\nshr.u32 %r3, %r3, 1;\nsetp.eq.u32 %p1, %r3, "
     "0;\n@%p1 bra OUT;\nOUT:"},
    {"another_lanes_word",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.eq.u32 %p1, %r1, 3;\nselp.b32 %r3, %r3, %r1, "
     "%p1;\nshfl.sync.idx.b32 %r4, %r3, 3, 31, -1;\nsetp.eq.u32 %p1, %r4, 3;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.eq.u32 %p1, %r1, 3;\nselp.b32 %r3, %r3, %r1, "
     "%p1;\nshfl.sync.idx.b32 %r4, %r3, 2, 31, -1;\nsetp.eq.u32 %p1, %r4, 3;\n@%p1 bra OUT;\nOUT:"},
    {"the_neighbours_word",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.eq.u32 %p1, %r1, 3;\nselp.b32 %r3, %r3, %r1, "
     "%p1;\nshfl.sync.down.b32 %r4, %r3, 1, 31, -1;\nsetp.eq.u32 %p1, %r4, 3;\nsetp.ne.u32 %p2, "
     "%r1, 3;\n@%p2 st.shared.u32 [area], %r4;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.eq.u32 %p1, %r1, 31;\nselp.b32 %r3, %r3, %r1, "
     "%p1;\nshfl.sync.up.b32 %r4, %r3, 1, 0, -1;\nsetp.eq.u32 %p1, %r4, 3;\n@%p1 bra OUT;\nOUT:"},
    {"a_distance",
     "ld.local.u32 %r3, [%rd5];\nand.b32 %r3, %r3, 0x100;\nshl.b32 %r4, %r1, %r3;\nsetp.eq.u32 "
     "%p1, %r4, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nand.b32 %r3, %r3, 0x7f;\nshl.b32 %r4, %r1, %r3;\nsetp.eq.u32 "
     "%p1, %r4, 0;\n@%p1 bra OUT;\nOUT:"},
    {"a_selector_of_prmt",
     "ld.local.u32 %r3, [%rd5];\nprmt.b32 %r4, %r1, 0, %r3;\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra "
     "OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5];\nand.b32 %r3, %r3, 0xf;\nprmt.b32 %r4, %r1, 0, %r3;\nsetp.eq.u32 "
     "%p1, %r4, 0;\n@%p1 bra OUT;\nOUT:"},
    {"the_predicate_of_selp",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.lt.u32 %p2, %r3, 9;\nselp.b32 %r4, %r1, 5, %p2;\n"
     "setp.eq.u32 %p1, %r4, 5;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5+8];\nsetp.lt.u32 %p2, %r3, 9;\nselp.b32 %r4, %r1, 5, %p2;\n"
     "setp.eq.u32 %p1, %r4, 5;\n@%p1 bra OUT;\nOUT:"},
    {"an_address",
     "ld.local.u32 %r3, [%rd5];\nand.b32 %r3, %r3, 0x100;\nadd.u32 %r3, %r3, 16;\nmov.u32 %r4, "
     "area;\nadd.u32 %r3, %r3, %r4;\nst.shared.u32 [%r3], 1;",
     "ld.local.u32 %r3, [%rd5];\nand.b32 %r3, %r3, 4;\nadd.u32 %r3, %r3, 16;\nmov.u32 %r4, "
     "area;\nadd.u32 %r3, %r3, %r4;\nst.shared.u32 [%r3], 1;"},
    {"what_an_atomic_adds", "ld.local.u32 %r3, [%rd5+4];\nred.global.add.u32 [%rd1], %r3;",
     "ld.local.u32 %r3, [%rd5+4];\nand.b32 %r3, %r3, 0;\nred.global.add.u32 [%rd1], %r3;"},
    {"a_whole_word_for_global_memory", "ld.local.u32 %r3, [%rd5+4];\nst.global.u32 [%rd2], %r3;",
     "ld.local.v2.u32 {%r3, %r4}, [%rd5+8];\nst.global.v2.u32 [%rd2], {%r3, %r4};"},
    {"a_whole_word_behind_a_written_byte",
     "ld.local.u32 %r3, [%rd5+16];\nst.global.u32 [%rd2], %r3;",
     "ld.local.u32 %r3, [%rd5+12];\nst.global.u32 [%rd2], %r3;"},
    {"what_was_computed_from_padding",
     "ld.local.u8 %h2, [%rd5+1];\nmul.lo.u16 %h2, %h2, 3;\nst.global.u8 [%rd2], %h2;",
     "ld.local.u8 %h2, [%rd5+1];\nst.global.u8 [%rd2], %h2;"},
    {"a_structure_that_is_copied",
     "ld.local.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];\nst.shared.v4.u32 [area], {%r3, %r4, %r5, "
     "%r6};\nld.shared.u32 %r3, [area+4];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];\nst.shared.v4.u32 [area], {%r3, %r4, %r5, "
     "%r6};\nld.shared.u32 %r3, [area+8];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:"},
    {"sixteen_bytes_that_are_copied",
     "ld.local.b128 %q1, [%rd5];\nst.shared.b128 [area], %q1;\nld.shared.u32 %r3, "
     "[area+4];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.b128 %q1, [%rd5];\nst.shared.b128 [area], %q1;\nld.shared.u32 %r3, "
     "[area+12];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:"},
    {"the_argument_of_a_call",
     "ld.local.u64 %rd7, [%rd5];\n{ .param .b64 a; .param .b64 r; st.param.b64 [a], %rd7; call "
     "(r), same, (a); ld.param.b64 %rd8, [r]; }\ncvt.u32.u64 %r3, %rd8;\nand.b32 %r3, %r3, "
     "0x100;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u64 %rd7, [%rd5];\n{ .param .b64 a; .param .b64 r; st.param.b64 [a], %rd7; call "
     "(r), same, (a); ld.param.b64 %rd8, [r]; }\ncvt.u32.u64 %r3, %rd8;\nand.b32 %r3, %r3, "
     "255;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:"},
    {"an_argument_and_a_result_in_registers",
     "ld.local.u64 %rd7, [%rd5];\ncall (%rd8), direct, (%rd7);\ncvt.u32.u64 %r3, %rd8;\nand.b32 "
     "%r3, %r3, 0x100;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u64 %rd7, [%rd5];\ncall (%rd8), direct, (%rd7);\ncvt.u32.u64 %r3, %rd8;\nand.b32 "
     "%r3, %r3, 255;\nsetp.ne.u32 %p1, %r3, 7;\n@%p1 st.global.u32 [%rd1+9999], 1;"},
    {"a_predicate",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.lt.s32 %p1, %r3, 0;\nsetp.eq.u32 %p2, 1, 1;\nand.pred %p1, "
     "%p1, %p2;\n@%p1 st.shared.u32 [area], 1;",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.lt.s32 %p1, %r3, 0;\nsetp.eq.u32 %p2, 1, 2;\nand.pred %p1, "
     "%p1, %p2;\n@%p1 st.shared.u32 [area], 1;"},
    {"a_vote",
     "ld.local.u32 %r3, [%rd5+4];\nsetp.lt.s32 %p1, %r3, 0;\nvote.sync.any.pred %p1, %p1, "
     "-1;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r3, [%rd5+8];\nsetp.lt.s32 %p1, %r3, 0;\nvote.sync.any.pred %p1, %p1, "
     "-1;\n@%p1 bra OUT;\nOUT:"},
    {"a_vote_of_what_was_written_beside_what_was_not",
     "ld.local.u32 %r4, [%rd5+4];\nsetp.lt.s32 %p1, %r4, 0;\nvote.sync.any.pred %p1, %p1, "
     "-1;\n@%p1 bra OUT;\nOUT:",
     "ld.local.u32 %r4, [%rd5+4];\nand.b32 %r4, %r4, 0;\nld.local.u32 %r3, [%rd5+8];\nsetp.lt.s32 "
     "%p1, %r3, "
     "0;\nvote.sync.any.pred %p1, %p1, -1;\n@%p1 bra OUT;\nOUT:"},
    {"the_address_of_an_atomic",
     "ld.local.u64 %rd7, [%rd5];\nand.b64 %rd7, %rd7, 0x100;\nadd.u64 %rd7, %rd7, "
     "%rd2;\natom.global.add.u32 %r3, [%rd7], 1;",
     "ld.local.u64 %rd7, [%rd5];\nand.b64 %rd7, %rd7, 0xf0;\nadd.u64 %rd7, %rd7, "
     "%rd2;\natom.global.add.u32 %r3, [%rd7], 1;"},
    {"a_number_of_floating_point",
     "ld.local.f32 %f1, [%rd5+4];\nadd.f32 %f1, %f1, %f1;\nst.global.f32 [%rd2], %f1;",
     "ld.local.f32 %f1, [%rd5+4];\nadd.f32 %f1, %f1, %f1;\nmov.f32 %f1, 0f00000000;\nst.global.f32 "
     "[%rd2], %f1;"},
};

class UnwrittenBits : public testing::TestWithParam<UnwrittenCase> {};

std::string unwritten_kernel(const std::string& body) {
  std::string text = kernel_of(
      ".shared .align 16 .b8 area[512];\n.func (.param .b64 r) same(.param .b64 a)\n{\n.reg .b64 "
      "%x<3>;\nld.param.b64 %x1, [a];\nmov.b64 %x2, %x1;\nst.param.b64 [r], %x2;\nret;\n}\n"
      ".func (.reg .b64 r) direct(.reg .b64 a)\n{\nmov.b64 r, a;\nret;\n}\n",
      std::string(".reg .b128 %q<3>;\n") + half_written + body);
  return text;
}

TEST_P(UnwrittenBits, are_a_finding_at_the_load_where_they_are_used) {
  const std::string text = unwritten_kernel(GetParam().used);
  const auto outcome = run_text(text, launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  const Finding& finding = outcome->findings[0];
  EXPECT_EQ(finding.kind, FindingKind::uninitialised_read);
  EXPECT_EQ(finding.instruction.find("ld."), 0U) << describe(finding, "t.ptx");
  EXPECT_NE(finding.detail.find("memory were not written before; line "), std::string::npos)
      << finding.detail;
}

TEST_P(UnwrittenBits, are_none_where_no_value_depends_on_them) {
  const auto outcome = run_text(unwritten_kernel(GetParam().unused), launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
}

INSTANTIATE_TEST_SUITE_P(All, UnwrittenBits, testing::ValuesIn(unwritten_cases),
                         [](const testing::TestParamInfo<UnwrittenCase>& given) {
                           return std::string(given.param.name);
                         });

// As with a structure of a byte and an integer, of which half is written by each of two warps.
TEST(UnwrittenBytes, padding_goes_to_global_memory_and_stays_unwritten_there) {
  const std::string copy =
      "mov.u32 %r3, area;\nst.shared.u8 [%r3], %r1;\nst.shared.u32 [%r3+4], %r1;\n"
      "ld.shared.v4.u8 {%r4, %r5, %r6, %r7}, [%r3];\nst.global.u8 [%rd1], %r4;\n"
      "st.global.u8 [%rd1+1], %r5;\nst.global.u8 [%rd1+2], %r6;\nst.global.u8 [%rd1+3], %r7;\n";
  Options options;
  options.uninitialised_buffers = {0};
  const auto silent = run_text(kernel_of(test::shared_area, copy), launch_of(1, 1, 256), options);
  ASSERT_TRUE(silent) << silent.error().message;
  for (const Finding& finding : silent->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  const auto found = run_text(
      kernel_of(test::shared_area, copy + "ld.global.u8 %r8, [%rd1+1];\nsetp.eq.u32 %p1, %r8, 0;\n"
                                          "@%p1 bra OUT;\nOUT:"),
      launch_of(1, 1, 256), options);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->findings.size(), 1U);
  EXPECT_EQ(found->findings[0].instruction, "ld.global.u8 %r8, [%rd1+1];");
}

// All lanes but one have written their sixteen bytes.
TEST(UnwrittenBytes, sixteen_bytes_are_followed_lane_by_lane) {
  const auto outcome =
      run_text(unwritten_kernel("setp.ne.u32 %p1, %r1, 5;\n@%p1 st.local.u64 [%rd5], %rd6;\n"
                                "mov.u32 %r9, area;\nmad.lo.u32 %r9, %r1, 16, %r9;\n"
                                "ld.local.b128 %q1, [%rd5];\nst.shared.b128 [%r9], %q1;\n"
                                "ld.shared.u32 %r3, [%r9+4];\nadd.u32 %r3, %r3, 1;\n"
                                "st.global.u32 [%rd2], %r3;\n"),
               launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].thread[0], 5U);
  EXPECT_EQ(outcome->findings[0].count, 1U);
}

// Values are the same, whether the warp is followed or not.
TEST(UnwrittenBytes, a_warp_that_is_followed_computes_what_it_would) {
  const std::string body =
      std::string(half_written) +
      "mov.u64 %rd9, 0;\nmov.u32 %r9, 0;\nLOOP:\nld.local.u64 %rd7, [%rd5];\nand.b64 %rd7, %rd7, "
      "255;\nmad.lo.u64 %rd9, %rd9, 31, %rd7;\nxor.b64 %rd9, %rd9, %rd6;\nadd.u32 %r9, %r9, 1;\n"
      "setp.lt.u32 %p1, %r9, 3000;\n@%p1 bra LOOP;\nst.global.u64 [%rd2], %rd9;";
  const auto followed = run_text(kernel_of("", body), launch_of(1, 32, 256));
  ASSERT_TRUE(followed) << followed.error().message;
  EXPECT_TRUE(followed->findings.empty());
  Options options;
  options.check_uninitialised = false;
  const auto plain = run_text(kernel_of("", body), launch_of(1, 32, 256), options);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(words_of(*followed), words_of(*plain));
  EXPECT_EQ(followed->kernels[0].warp_instructions, plain->kernels[0].warp_instructions);
}

// Two warps whose frames have one register of 4 bytes, and a program of 5000 micro-ops that touch
// none. Micro-op 0 is a load that gives the register.
class FollowedWarp : public testing::Test {
 protected:
  FollowedWarp() {
    program.tables = baseline::tables();
    program.block = {64, 1, 1};
    program.functions.resize(1);
    program.functions[0].frame_bytes = sizeof frames[0];
    program.tids.resize(std::size_t{2} * 3 * warp_size);
    program.tracked_operands = {{.slot = 0, .width = 4}};
    program.tracked = {{.rule = TrackRule::access, .written = 1}, {}};
    program.code.resize(5000);
    for (MicroOp& op : program.code) op.run = control::nothing;
    program.code[0].bytes = 4;
    program.code.back().run = [](Warp&, const MicroOp*) -> const MicroOp* { return nullptr; };
    program.code.back().instruction = 1;
    block = std::make_unique<Block>(program, pool);
    block->start(0, false, false);
    for (unsigned i = 0; i < 2; ++i) block->warps[i].frame = frames[i];
  }

  // Lane 3 of a warp loads what was not written.
  void load(Unwritten& unwritten, Warp& warp) const {
    Access access{};
    access.mask = 1U << 3;
    std::uint8_t bytes[4] = {};
    LaneShadows shadows{};
    shadows[3] = bytes;
    unwritten.load(warp, program.code.data(), access, shadows, LaneSpaces{});
  }

  alignas(64) std::byte frames[2][128] = {};
  Program program;
  FramePool pool;
  std::unique_ptr<Block> block;
};

TEST_F(FollowedWarp, is_followed_no_more_once_no_register_of_the_block_has_unwritten_bits) {
  for (const int loads : {-1, 0, 1}) {
    Unwritten unwritten(*block);
    Warp& warp = block->warps[0];
    warp.tracked = true;
    if (loads >= 0) load(unwritten, block->warps[static_cast<std::size_t>(loads)]);
    const MicroOp* const first = program.code.data() + 1;
    EXPECT_EQ(unwritten.run(warp, first), loads >= 0 ? nullptr : first + 2048) << loads;
    EXPECT_EQ(warp.tracked, loads >= 0) << loads;
  }
}

// Eight bytes of the last lane are written, those behind them are not, and another register lies
// behind the last lane's.
TEST_F(FollowedWarp, is_not_followed_for_what_lies_behind_the_bytes_of_a_load) {
  alignas(64) std::byte frame[32 * warp_size] = {};
  program.functions[0].frame_bytes = sizeof frame;
  Warp& warp = block->warps[0];
  warp.frame = frame;
  for (const std::uint8_t width : {std::uint8_t{8}, std::uint8_t{16}}) {
    program.tracked_operands = {{.slot = 0, .width = width}};
    program.code[0].bytes = width;
    program.code[0].width = width;
    for (const unsigned missing : {0U, width - 1U, unsigned{width}}) {
      Unwritten unwritten(*block);
      Access access{};
      access.mask = 1U << 31;
      std::uint8_t bytes[32] = {};
      std::fill_n(bytes, width, wholly_written);
      bytes[missing] = 0;
      LaneShadows shadows{};
      shadows[31] = bytes;
      warp.tracked = false;
      unwritten.load(warp, program.code.data(), access, shadows, LaneSpaces{});
      warp.tracked = true;
      const MicroOp* const next = unwritten.run(warp, program.code.data() + 1);
      EXPECT_EQ(next != nullptr, missing == width) << unsigned{width} << " " << missing;
    }
  }
}

// A value of all lanes has eight bytes, and behind them begins a register with unwritten bits.
TEST_F(FollowedWarp, stores_a_value_of_all_lanes_without_what_lies_behind_it) {
  program.functions[0].frame_bytes = 8 * warp_size;
  program.tracked_operands = {{.slot = 64, .width = 4}};
  program.code[0].d = 64;
  alignas(64) std::byte frame[8 * warp_size] = {};
  Warp& warp = block->warps[0];
  warp.frame = frame;
  Unwritten unwritten(*block);
  load(unwritten, warp);
  MicroOp& store = program.code[1];
  store.b = 56;  // with four bytes a lane, lane 5 has what lane 3 loaded
  store.bytes = 4;
  store.width = 4;
  Access access{};
  access.mask = 1U << 5;
  access.space = MemorySpace::shared;
  for (const std::uint8_t uniform : {uniform_b, std::uint8_t{0}}) {
    store.uniform = uniform;
    std::uint8_t bytes[4] = {0x55, 0x55, 0x55, 0x55};
    LaneShadows shadows{};
    shadows[5] = bytes;
    unwritten.store(warp, &store, access, shadows);
    for (const std::uint8_t byte : bytes) EXPECT_EQ(byte, uniform != 0 ? 0x55 : 0);
  }
}

// Micro-op 1 calls a function at 4000, whose register gets unwritten bits; it returns at 4001.
TEST_F(FollowedWarp, is_followed_for_a_function_s_registers_until_all_lanes_have_left_it) {
  CallDetails details;
  details.function = 1;
  program.functions.resize(2);
  program.functions[1].entry = 4000;
  program.functions[1].frame_bytes = sizeof frames[0];
  program.tracked.push_back({.rule = TrackRule::call});
  program.code[1].run = control::call;
  program.code[1].aux = &details;
  program.code[1].instruction = 2;
  program.code[4000] = program.code.back();
  program.code[4001].run = control::return_lanes;
  program.code[4001].instruction = 1;
  for (const bool all : {true, false}) {
    block->start(0, false, false);
    Warp& warp = block->warps[0];
    warp.frame = frames[0];
    warp.tracked = true;
    Unwritten unwritten(*block);
    ASSERT_EQ(unwritten.run(warp, program.code.data() + 1), nullptr);
    ASSERT_NE(warp.frame, frames[0]);
    load(unwritten, warp);
    if (!all) {
      // Lane 0 waits in the function, and the others go on without it.
      park(warp, 200, 1, Wait::step);
      warp.mask = full_mask - 1;
      warp.meeting->mask = warp.mask;
    }
    const MicroOp* const next = unwritten.run(warp, program.code.data() + 4001);
    ASSERT_EQ(warp.frame, frames[0]);
    EXPECT_EQ(next, all ? program.code.data() + 2 + 2047 : nullptr);
    EXPECT_EQ(warp.tracked, !all);
  }
}

// The frames of a warp that begins to be followed may have been those of others.
TEST_F(FollowedWarp, begins_with_no_unwritten_bits_in_any_of_its_frames) {
  Unwritten unwritten(*block);
  Warp& warp = block->warps[0];
  load(unwritten, warp);
  load(unwritten, block->warps[1]);
  // Now lanes that wait have the frame of the other warp, and the load is of a lane that gets
  // nothing unwritten.
  park(warp, 200, 1, Wait::step).frame = frames[1];
  Access access{};
  unwritten.load(warp, program.code.data(), access, {}, LaneSpaces{});
  warp.tracked = true;
  const MicroOp* const first = program.code.data() + 1;
  EXPECT_EQ(unwritten.run(warp, first), first + 2048);
}

}  // namespace
}  // namespace demarc::emulate
