// Coloured kernels on the emulator: local variables, which lie in the colours, too.
#include "colored_kernels.hpp"

namespace demarc::emulate::colored {
namespace {

TEST(ColoredEmulation, local_variables_of_every_thread) {
  expect_contained(kernel("", R"(
    .local .align 16 .b8 depot[40];
    .local .align 4 .u32 more;
    mov.b64 %rd3, depot;
    cvta.local.u64 %rd4, %rd3;
    st.local.u32 [%rd3+4], %r2;
    st.local.u32 [more], 500;
    rem.u32 %r5, %r2, 5;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd6, %rd4, %rd5;
    st.u32 [%rd6+8], %r5;
    cvta.to.local.u64 %rd7, %rd6;
    ld.local.u32 %r6, [%rd7+8];
    ld.u32 %r7, [%rd4+4];
    ld.local.u32 %r8, [more];
    add.u32 %r6, %r6, %r8;
    st.global.v2.u32 [%rd2], {%r6, %r7};
  )"));
}

// As LLVM's compilers write them.
TEST(ColoredEmulation, local_variables_whose_addresses_have_32_bits) {
  expect_contained(kernel("", R"(
    .local .align 16 .b8 other[24];
    .local .align 16 .b8 depot[40];
    mov.b32 %r5, depot+4;
    add.u32 %r6, %r5, 8;
    st.local.u32 [%r6+-12], %r2;
    st.local.u32 [other+4], 500;
    rem.u32 %r7, %r2, 5;
    mad.lo.u32 %r8, %r7, 4, %r5;
    st.local.u32 [%r8+4], %r7;
    cvt.u64.u32 %rd3, %r8;
    ld.local.u32 %r7, [%rd3+4];
    cvta.local.u64 %rd4, %rd3;
    st.u32 [%rd4+8], %r7;
    cvta.to.local.u64 %rd5, %rd4;
    ld.local.u32 %r6, [%rd5+8];
    mov.b64 %rd6, depot;
    ld.local.u32 %r8, [%rd6];
    add.u32 %r7, %r8, %r7;
    mov.b32 %r5, other;
    ld.local.u32 %r8, [%r5+4];
    add.u32 %r6, %r6, %r8;
    st.global.v2.u32 [%rd2], {%r6, %r7};
  )"));
}

TEST(ColoredEmulation, local_variables_whose_addresses_are_cut_to_32_bits) {
  expect_contained(kernel("", R"(
    .local .align 4 .b8 before[8];
    .local .align 4 .b8 depot[28];
    mov.b64 %rd3, depot;
    cvta.local.u64 %rd4, %rd3;
    add.u64 %rd5, %rd4, 4;
    cvta.to.local.u64 %rd6, %rd5;
    cvt.u32.u64 %r5, %rd6;
    st.local.u32 [%r5], %r2;
    rem.u32 %r6, %r2, 5;
    shl.b32 %r7, %r6, 2;
    add.s32 %r8, %r5, %r7;
    st.local.u32 [%r8+4], %r6;
    ld.local.u32 %r6, [%r5];
    ld.local.u32 %r7, [%r8+4];
    st.global.v2.u32 [%rd2], {%r6, %r7};
  )"));
}

const std::string called = R"(
  .func (.param .b32 sum) leaf(.param .b32 x) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    .local .align 4 .b8 own[12];
    mov.b64 %rd1, own;
    ld.param.u32 %r1, [x];
    st.local.u32 [%rd1+8], %r1;
    ld.local.u32 %r2, [%rd1+8];
    mul.lo.u32 %r2, %r2, 3;
    st.param.b32 [sum], %r2;
    ret;
  }
  .func (.param .b32 sum) middle(.param .b32 x) {
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    .local .align 4 .b8 own[8];
    mov.b64 %rd1, own;
    ld.param.u32 %r1, [x];
    st.local.u32 [%rd1], %r1;
    add.u32 %r2, %r1, 1;
    {
      .param .b32 x;
      .param .b32 s;
      st.param.b32 [x], %r2;
      call.uni (s), leaf, (x);
      ld.param.b32 %r3, [s];
    }
    ld.local.u32 %r4, [%rd1];
    add.u32 %r3, %r3, %r4;
    st.param.b32 [sum], %r3;
    ret;
  }
)";

TEST(ColoredEmulation, local_variables_of_functions_that_call_each_other) {
  expect_contained(kernel(called, R"(
    .local .align 4 .u32 kept;
    st.local.u32 [kept], %r2;
    {
      .param .b32 x;
      .param .b32 s;
      st.param.b32 [x], %r2;
      call.uni (s), middle, (x);
      ld.param.b32 %r5, [s];
    }
    {
      .param .b32 x;
      .param .b32 s;
      st.param.b32 [x], %r5;
      call.uni (s), leaf, (x);
      ld.param.b32 %r6, [s];
    }
    ld.local.u32 %r7, [kept];
    add.u32 %r6, %r6, %r7;
    st.global.v2.u32 [%rd2], {%r5, %r6};
  )"));
}

TEST(ColoredEmulation, a_thread_beyond_the_local_memory_stops_its_kernel) {
  const std::string text = kernel("", R"(
    .local .align 4 .u32 own;
    st.local.u32 [own], %r2;
    st.global.u32 [%rd2], 1;
  )");
  const MaskColors known({0xc4000}, 1);
  const MaskColorsAtLoad at_load({0xc4000}, 1);
  for (const Colors* colors :
       {static_cast<const Colors*>(&known), static_cast<const Colors*>(&at_load)}) {
    const auto findings = [&](std::uint64_t threads) {
      return run_colored(*colors, text, {}, threads).value().findings;
    };
    EXPECT_TRUE(findings(120).empty());
    const auto beyond = findings(119);
    ASSERT_EQ(beyond.size(), 1U);
    EXPECT_EQ(beyond[0].kind, FindingKind::trap);
  }
}

// The constant variable was not written: no place is taken for granted.

}  // namespace
}  // namespace demarc::emulate::colored
