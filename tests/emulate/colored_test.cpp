// Coloured kernels on the emulator: global memory, variables of modules, generic addresses.
#include "colored_kernels.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::emulate::colored {
namespace {

TEST(ColoredEmulation, loads_stores_and_atomics_of_global_memory) {
  expect_contained(kernel("", R"(
    st.global.u64 [%rd2], 7;
    ld.global.u32 %r5, [%rd2];
    add.u32 %r5, %r5, %r2;
    st.global.v2.u32 [%rd2], {%r5, %r2};
    atom.global.add.u32 %r6, [%rd2+4], 1000;
    red.global.add.u32 [%rd2], %r6;
    prefetch.global.L2 [%rd2];
  )"));
}

TEST(ColoredEmulation, variables_of_the_module_read_and_written) {
  expect_contained(
      kernel(".global .align 4 .u32 table[6] = {11, 22, 33, 44, 55, 66};\n"
             ".global .align 8 .u64 sums[120];\n.const .u32 fixed = 5;\n",
             R"(
    rem.u32 %r5, %r2, 6;
    mul.wide.u32 %rd3, %r5, 4;
    mov.u64 %rd4, table;
    add.s64 %rd4, %rd4, %rd3;
    ld.global.nc.u32 %r6, [%rd4];
    ld.global.u32 %r7, [table+8];
    mul.wide.u32 %rd5, %r2, 8;
    cvta.global.u64 %rd6, sums;
    add.s64 %rd6, %rd6, %rd5;
    st.u32 [%rd6+4], %r6;
    red.add.u32 [%rd6+4], %r7;
    ld.global.u64 %rd7, [%rd6];
    ld.const.u32 %r8, [fixed];
    cvt.u64.u32 %rd8, %r8;
    add.s64 %rd7, %rd7, %rd8;
    st.global.u64 [%rd2], %rd7;
  )"));
}

TEST(ColoredEmulation, addresses_in_initialisers_lead_to_the_block) {
  expect_contained(
      kernel(".global .align 4 .u32 table[4] = {11, 22, 33, 44};\n"
             ".global .align 8 .u64 second = generic(table)+4;\n"
             ".global .align 8 .u64 chain[2] = {second, table};\n",
             R"(
    ld.global.u64 %rd3, [chain];
    ld.u64 %rd4, [%rd3];
    ld.u32 %r5, [%rd4];
    ld.global.u64 %rd5, [chain+8];
    ld.u32 %r6, [%rd5+12];
    st.global.v2.u32 [%rd2], {%r5, %r6};
  )"));
}

TEST(ColoredEmulation, generic_addresses_of_four_memories_told_apart) {
  expect_contained(
      kernel(".shared .align 4 .u32 tile[64];\n.const .align 4 .u32 fixed[2] = {9, 8};\n"
             ".global .align 4 .u32 table[2] = {70, 80};\n",
             R"(
    .local .align 8 .u64 own;
    mov.u64 %rd3, tile;
    cvta.shared.u64 %rd4, %rd3;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd4, %rd4, %rd5;
    st.u32 [%rd4], %r2;
    mov.u64 %rd6, fixed;
    cvta.const.u64 %rd6, %rd6;
    mov.u64 %rd7, own;
    cvta.local.u64 %rd7, %rd7;
    st.u64 [%rd7], 3;
    mov.u64 %rd8, table;
    and.b32 %r5, %r2, 1;
    setp.ne.u32 %p1, %r5, 0;
    and.b32 %r5, %r2, 2;
    setp.ne.u32 %p2, %r5, 0;
    setp.eq.u32 %p3, %r3, 2;
    selp.b64 %rd9, %rd7, %rd8, %p1;
    selp.b64 %rd9, %rd4, %rd9, %p2;
    selp.b64 %rd9, %rd6, %rd9, %p3;
    ld.u32 %r6, [%rd9];
    st.global.u64 [%rd2], %rd4;
    ld.global.u64 %rd11, [%rd2];
    atom.add.u32 %r7, [%rd11], 6;
    ld.u32 %r8, [%rd11];
    add.u32 %r8, %r8, %r7;
    st.v2.u32 [%rd2], {%r6, %r8};
  )"));
}

TEST(ColoredEmulation, a_module_whose_places_are_not_set_touches_nothing_of_the_arena) {
  const auto findings = [](const std::string& text) {
    const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
    gpu::Launch launch = launch_of({});
    launch.buffers[0].bytes = page;
    const auto made =
        color::rewrite_parities(parsed.module, {{0xc4000}, 1}, {.places = ptx::PlacesAtLoad{}});
    const auto outcome = run_on(made.value().module, launch,
                                {std::vector<std::byte>(page, untouched)}, one_thread());
    const auto& bytes = outcome.value().buffers[0];
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), untouched), std::ssize(bytes));
    return outcome->findings;
  };
  const auto variable = findings(kernel(".global .u32 v;\n", "st.global.u32 [v], 1;"));
  ASSERT_FALSE(variable.empty());
  EXPECT_EQ(variable[0].kind, FindingKind::out_of_bounds);
  const auto local = findings(kernel("", ".local .u32 own;\nst.local.u32 [own], 1;"));
  ASSERT_FALSE(local.empty());
  EXPECT_EQ(local[0].kind, FindingKind::trap);
}

}  // namespace
}  // namespace demarc::emulate::colored
