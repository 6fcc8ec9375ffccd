// Tests that ptxas takes the text of coloured modules.
#include <gtest/gtest.h>

#include <regex>

#include "colored_forms.hpp"
#include "compilers.hpp"
#include "demarc/base/files.hpp"
#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"
#include "paths.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::ptx::test {
namespace {

const std::string every_form = R"(.version 8.3
.target sm_90
.address_size 64
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 message[6] = {104, 101, 108, 108, 111};
.global .align 4 .u32 table[4] = {1, 2, 3, 4};
.global .align 8 .u64 chain = generic(table)+4;
.const .align 4 .u32 fixed[2] = {9, 8};
.shared .align 16 .b8 tile[1024];
.func leaf(.param .b64 a)
{
  .reg .b64 %rd<3>;
  .local .align 8 .b8 own[24];
  mov.b64 %rd1, own;
  ld.param.u64 %rd2, [a];
  st.local.u64 [%rd1+8], %rd2;
  ret;
}
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<9>;
  .local .align 16 .b8 depot[64];
  ld.param.u64 %rd1, [p];
  mov.b64 %rd2, depot;
  cvta.local.u64 %rd3, %rd2;
  setp.ne.u64 %p1, %rd1, 0;
  @%p1 st.local.v4.u32 [%rd2+16], {%r1, %r2, %r3, %r4};
  st.local.u32 [depot+4], 5;
  mov.u64 %rd4, tile;
  cvta.shared.u64 %rd5, %rd4;
  st.u32 [%rd5], 3;
  atom.acq_rel.gpu.add.u32 %r5, [%rd5], 1;
  ld.L1::evict_last.u32 %r6, [%rd5];
  mov.u64 %rd6, fixed;
  cvta.const.u64 %rd7, %rd6;
  mov.b64 %rd8, p;
  cvta.param.u64 %rd9, %rd8;
  mapa.u64 %rd10, %rd5, 1;
  selp.b64 %rd11, %rd3, %rd5, %p1;
  selp.b64 %rd12, %rd7, %rd9, %p1;
  ld.global.u64 %rd13, [%rd1];
  ld.u32 %r7, [%rd11];
  ld.u32 %r8, [%rd12];
  ld.u32 %r9, [%rd13];
  ld.u32 %r10, [%rd10];
  red.add.u32 [%rd13], 1;
  wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r11,%r12,%r13,%r14,%r15,%r16,%r17,%r18}, [%rd5], 16;
  ld.global.nc.u32 %r19, [table+4];
  mov.u64 %rd14, chain;
  ld.global.u64 %rd15, [%rd14];
  @!%p1 st.u32 [%rd15], %r19;
  discard.global.L2 [%rd1], 128;
  applypriority.global.L2::evict_normal [%rd1], 128;
  prefetch.global.L2 [%rd1];
  cp.async.ca.shared.global [%rd4], [%rd1], 16;
  cp.async.wait_all;
  add.u32 %r20, %r5, %r6; add.u32 %r21, %r7, %r8; add.u32 %r22, %r9, %r10; add.u32 %r23, %r11, %r18;
  st.global.v4.u32 [%rd1], {%r20, %r21, %r22, %r23};
  createpolicy.fractional.L2::evict_last.b64 %rd30, 1.0;
  @%p1 ld.global.L1::evict_last.L2::cache_hint.v4.b32 {%r25, %r26, %r27, %r28}, [%rd1], %rd30;
  ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%r29, %r30}, [%rd1+16];
  ld.weak.global.ca.L2::128B.u32 %r31, [%rd1+32];
  ld.relaxed.gpu.global.L1::evict_first.u32 %r32, [%rd1+36];
  ld.volatile.global.u32 %r33, [%rd1+40];
  st.weak.global.wb.u32 [%rd1+44], %r25;
  st.global.L1::evict_unchanged.L2::cache_hint.v2.b32 [%rd1+48], {%r29, %r31}, %rd30;
  st.release.sys.global.u32 [%rd1+56], %r32;
  cp.async.cg.shared.global.L2::cache_hint.L2::128B [%rd4], [%rd1], 16, %rd30;
  {
    .param .b64 x;
    st.param.b64 [x], %rd1;
    call.uni leaf, (x);
  }
  mov.u64 %rd20, message;
  cvta.global.u64 %rd21, %rd20;
  {
    .param .b64 a; .param .b64 b; .param .b32 r;
    st.param.b64 [a], %rd21;
    st.param.b64 [b], 0;
    call.uni (r), vprintf, (a, b);
    ld.param.b32 %r24, [r];
  }
  @%p1 bra $done;
  {
    .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
    st.param.b64 [m], %rd21;
    st.param.b64 [f], %rd21;
    st.param.b32 [l], 7;
    st.param.b64 [n], %rd21;
    st.param.b64 [s], 1;
    call.uni __assertfail, (m, f, l, n, s);
  }
$done:
  ret;
}
)";

TEST(Coloured, every_form_of_access_is_taken) {
  const auto module = parse_whole(every_form, "forms.ptx");
  ASSERT_TRUE(module) << module.error().message;
  for (const auto& made :
       {color::rewrite_parities(*module, {{0x38a000, 0xc4000}, 1}, with_places),
        color::rewrite_remainders(*module, remainders(), with_places),
        color::rewrite_parities(*module, {{0x38a000, 0xc4000}, 1}, at_load),
        color::rewrite_remainders(*module, color::RemainderShape{8, 13, 9}, at_load)}) {
    ASSERT_TRUE(made) << made.error().message;
    std::string said;
    EXPECT_EQ(count_accepted(*made, "forms.ptx", said).accepted, 1U) << said;
    EXPECT_NE(machine_code_digest(*made->module.text, {}), "");
  }
}

TEST(Coloured, triton_s_modules_are_taken_whatever_is_known_when_they_are_loaded) {
  const auto triton = demarc::test::source_dir() / "tests" / "ptx" / "corpus" / "triton";
  std::size_t modules = 0;
  for (const auto& entry : std::filesystem::directory_iterator(triton)) {
    if (entry.path().extension() != ".ptx") continue;
    const std::string name = entry.path().filename();
    const auto module = parse_whole(read_file(entry.path()).value(), name);
    ASSERT_TRUE(module) << module.error().message;
    for (const auto& made :
         {color::rewrite_parities(*module, {{0x38a000, 0xc4000}, 1}, at_load),
          color::rewrite_remainders(*module, color::RemainderShape{8, 13, 9}, at_load)}) {
      ASSERT_TRUE(made) << made.error().message;
      const auto accepted = check_accepted(made->kernels, name);
      EXPECT_TRUE(accepted) << accepted.error().message;
      EXPECT_NE(machine_code_digest(*made->module.text, {}), "") << name;
    }
    ++modules;
  }
  EXPECT_GE(modules, 8U);
}

// Copies into a tile at a uniform address, as Triton's products have them.
TEST(Coloured, copies_that_stream_are_instructions_that_the_card_has) {
  const std::string copies = R"(.version 8.3
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 tiles[];
.visible .entry k(.param .u64 p, .param .u32 trips)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [trips];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 16;
  add.s64 %rd3, %rd1, %rd2;
  shl.b32 %r3, %r2, 4;
  shl.b32 %r4, %r2, 3;
  and.b32 %r4, %r4, 112;
  xor.b32 %r3, %r3, %r4;
  mov.u32 %r5, tiles;
  add.s32 %r6, %r5, %r3;
  mov.u32 %r7, 0;
again:
  cp.async.cg.shared.global [%r6], [%rd3], 16POLICY;
  cp.async.cg.shared.global [%r6+2048], [%rd3+2048], 16POLICY;
  cp.async.wait_all;
  bar.sync 0;
  ld.shared.u32 %r8, [%r6];
  st.global.u32 [%rd3], %r8;
  add.s32 %r7, %r7, 1;
  setp.lt.s32 %p1, %r7, %r1;
  @%p1 bra again;
  ret;
}
)";
  const auto with = [&](std::string_view policy, std::string_view hint) {
    std::string text = std::regex_replace(copies, std::regex("POLICY"), std::string(policy));
    return std::regex_replace(text, std::regex("global \\["), "global" + std::string(hint) + " [");
  };
  // Written as it stands it is the instruction that there is not, or this test sees nothing.
  std::string hinted = with(", %rd4", ".L2::cache_hint");
  hinted.insert(hinted.find("again:"),
                "  createpolicy.fractional.L2::evict_first.b64 %rd4, 1.0;\n");
  EXPECT_GE(machine_code_figures(hinted).uniform_copies, 2U);
  const auto module = parse_whole(with("", ""), "copies.ptx");
  ASSERT_TRUE(module) << module.error().message;
  for (const auto& made :
       {color::rewrite_parities(*module, {{0xc4000}, 1}, at_load),
        color::rewrite_remainders(*module, color::RemainderShape{8, 13, 9}, at_load)}) {
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_NE(made->module.text->find("cache_hint"), std::string::npos);
    EXPECT_EQ(machine_code_figures(*made->module.text).uniform_copies, 0U);
  }
}

// A function reads them where it begins: its accesses are the same, but for those of variables,
// which ptxas translates itself where it knows their places.
TEST(Coloured, places_that_are_set_at_load_cost_a_few_instructions_per_function) {
  const auto module = parse_whole(every_form, "forms.ptx");
  ASSERT_TRUE(module) << module.error().message;
  const color::Parities parities{{0x38a000, 0xc4000}, 1};
  const auto known = color::rewrite_parities(*module, parities, with_places);
  const auto later = color::rewrite_parities(*module, parities, at_load);
  ASSERT_TRUE(known) << known.error().message;
  ASSERT_TRUE(later) << later.error().message;
  const MachineCodeFigures before = machine_code_figures(*known->module.text);
  const MachineCodeFigures after = machine_code_figures(*later->module.text);
  constexpr std::uint64_t functions = 2;
  constexpr std::uint64_t variables = 3;
  EXPECT_LE(after.instructions, before.instructions + 8 * functions + 8 * variables);
  EXPECT_LE(after.registers, before.registers + 2);
}

TEST(Coloured, affine_kernels_of_old_modules_are_taken) {
  const auto module = parse_whole(
      ".version 5.0\n.target sm_60\n.address_size 64\n.visible .entry k\n{\n\tret;\n}\n",
      "old.ptx");
  ASSERT_TRUE(module);
  const auto affine = rewrite_affine(*module);
  ASSERT_TRUE(affine);
  EXPECT_NE(machine_code_digest(*affine->text, {}), "");
}

}  // namespace
}  // namespace demarc::ptx::test
