// Tests the steps that emulated kernels become, and where their warps wait.
#include <gtest/gtest.h>

#include <sstream>

#include "demarc/ptx/parser.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/memory/emulated.hpp"
#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

// c[i] = a[i] + 1 with the load's register used two instructions later.
constexpr const char* add_one = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 a, .param .u64 c)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [c];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  mov.u32 %r3, 1;
  bar.sync 0;
  add.u32 %r4, %r2, %r3;
  st.global.u32 [%rd5], %r4;
  ret;
}
)";

gpu::Launch add_one_launch() {
  gpu::LaunchText text;
  text.ptx = "add_one.ptx";
  text.kernel = "add_one";
  text.grid = "3";
  text.block = "64";
  text.arguments = "buf:256,buf:256";
  return gpu::parse_launch(text).value();
}

// The loads, a barrier, a wait where the register is first used, the store.
constexpr const char* expected_block = R"(block
warp
load +7 {0:#x}/15
barrier +2
wait store +2 {1:#x}/15
work +1
warp
load +7 {2:#x}/15
barrier +2
wait store +2 {3:#x}/15
work +1
)";

TEST(EmulatedSteps, a_warp_waits_where_a_loaded_register_is_first_used) {
  const auto parsed = ptx::parse(add_one, "add_one.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  const auto recorded = record_launch(parsed.module, add_one_launch(), 1);
  ASSERT_TRUE(recorded) << recorded.error().message;
  const auto addresses = recorded->outcome.addresses;
  std::string expected = "kernel threads=64 shared=0\n";
  for (int block = 0; block < 3; ++block) {
    expected += fmt::format(fmt::runtime(expected_block), addresses[0], addresses[1],
                            addresses[0] + 128, addresses[1] + 128);
  }
  EXPECT_EQ(access_text(*recorded->launch), expected);
}

// A kernel whose body stands between the addresses of three buffers and its end.
std::string steps_of(const std::string& body) {
  const std::string text = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry three(.param .u64 a, .param .u64 b, .param .u64 c)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
)" + body + "  ret;\n}\n";
  const auto parsed = ptx::parse(text, "three.ptx");
  EXPECT_TRUE(parsed.diagnostics.ok());
  gpu::LaunchText launch;
  launch.ptx = "three.ptx";
  launch.kernel = "three";
  launch.grid = "1";
  launch.block = "32";
  launch.arguments = "buf:256,buf:256,buf:256";
  const auto recorded = record_launch(parsed.module, gpu::parse_launch(launch).value(), 1);
  EXPECT_TRUE(recorded) << recorded.error().message;
  // Without addresses: "load +4", "wait store.part +2".
  std::string steps;
  std::istringstream lines(access_text(*recorded->launch));
  for (std::string line; std::getline(lines, line);)
    steps += line.substr(0, line.find(" 0x")) + "\n";
  return steps.substr(steps.find("warp\n"));
}

TEST(MovedLoads, what_a_block_loads_is_asked_for_before_its_first_use) {
  EXPECT_EQ(steps_of(R"(
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  ld.global.u32 %r3, [%rd2];
  add.u32 %r4, %r3, %r2;
  st.global.u32 [%rd3], %r4;
)"),
            "warp\nload +4\nload +2\nwait store.part +2\nwork +1\n");
}

TEST(MovedLoads, a_load_stays_behind_what_its_address_comes_from) {
  EXPECT_EQ(steps_of(R"(
  ld.global.u32 %r1, [%rd1];
  and.b32 %r2, %r1, 0;
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd2, %rd2, %rd4;
  ld.global.u32 %r3, [%rd2];
  add.u32 %r4, %r3, %r2;
  st.global.u32 [%rd3], %r4;
)"),
            "warp\nload +4\nwait load +4\nwait store.part +2\nwork +1\n");
}

TEST(MovedLoads, a_load_stays_behind_a_store_and_a_barrier) {
  for (const char* between : {"st.global.u32 [%rd3], %r2;", "bar.sync 0;", "membar.gl;"}) {
    const std::string steps = steps_of(std::string(R"(
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  )") + between + R"(
  ld.global.u32 %r3, [%rd2];
  add.u32 %r4, %r3, %r2;
  st.global.u32 [%rd3], %r4;
)");
    EXPECT_EQ(steps.find("load +4\nload"), std::string::npos) << steps;
  }
}

TEST(MovedLoads, a_load_of_another_basic_block_stays_there) {
  EXPECT_EQ(steps_of(R"(
  ld.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 7;
  @%p1 bra $else;
  ld.global.u32 %r3, [%rd2];
$else:
  add.u32 %r4, %r3, %r1;
  st.global.u32 [%rd3], %r4;
)"),
            "warp\nload +4\nwait load +3\nwait store.part +2\nwork +1\n");
}

// Past the L1, streamed, and shared memory: 32 words of one row, then 32 of one bank.
constexpr const char* operators = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry operators(.param .u64 a)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 rows[4096];
  ld.param.u64 %rd1, [a];
  ld.global.cg.u32 %r1, [%rd1];
  ld.volatile.global.u32 %r1, [%rd1];
  ld.global.cs.u32 %r1, [%rd1];
  st.global.cs.u32 [%rd1], %r1;
  ld.global.L1::no_allocate.u32 %r1, [%rd1];
  ld.global.L1::evict_first.u32 %r1, [%rd1];
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r2, 2;
  shl.b32 %r4, %r2, 7;
  mov.u32 %r5, rows;
  add.s32 %r3, %r5, %r3;
  add.s32 %r4, %r5, %r4;
  st.shared.u32 [%r3], %r2;
  st.shared.u32 [%r4], %r2;
  ret;
}
)";

TEST(EmulatedSteps, cache_operators_and_rows_of_shared_memory_are_kept) {
  const auto parsed = ptx::parse(operators, "operators.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  gpu::LaunchText text;
  text.ptx = "operators.ptx";
  text.kernel = "operators";
  text.grid = "1";
  text.block = "32";
  text.arguments = "buf:256";
  const auto recorded = record_launch(parsed.module, gpu::parse_launch(text).value(), 1);
  ASSERT_TRUE(recorded) << recorded.error().message;
  const std::string steps = access_text(*recorded->launch);
  for (const char* step :
       {"load.cg +2 ", "load.cs +1 ", "store.cs.part +1 ", "work +9 shared=33\n"}) {
    EXPECT_NE(steps.find(step), std::string::npos) << step << " of\n" << steps;
  }
  EXPECT_EQ(access_text(*parse_access_text(steps, "x.txt").value()), steps);
}

// Guards and modifiers do not matter; 64-bit numbers, integers and conversions are not counted.
TEST(EmulatedSteps, additions_and_products_of_32_bit_floating_point_numbers_are_counted) {
  EXPECT_EQ(steps_of(R"(
  .reg .f32 %f<3>;
  .reg .f64 %fd<2>;
  .reg .f16 %h<2>;
  mov.f32 %f1, 0f3f800000;
  add.f32 %f1, %f1, %f1;
  sub.ftz.f32 %f1, %f1, %f1;
  mul.rn.f32 %f1, %f1, %f1;
  setp.eq.f32 %p1, %f1, %f1;
  @%p1 fma.rn.f32 %f2, %f1, %f1, %f1;
  mad.rn.f32 %f2, %f1, %f1, %f1;
  mov.f64 %fd1, 0d3ff0000000000000;
  add.f64 %fd1, %fd1, %fd1;
  mul.lo.u32 %r1, %r1, %r1;
  cvt.rn.f32.u32 %f1, %r1;
  max.f32 %f1, %f1, %f2;
  st.global.f32 [%rd3], %f1;
  add.f32 %f1, %f1, %f1;
)"),
            "warp\nstore.part +16 float=5\nwork +2 float=1\n");
}

TEST(EmulatedSteps, a_window_keeps_its_kernels_with_their_registers_and_emulates_none_behind_it) {
  const auto parsed = ptx::parse(add_one, "add_one.ptx");
  gpu::Launch launch = add_one_launch();
  launch.kernels.resize(4, launch.kernels[0]);
  for (std::uint32_t i = 0; i < 4; ++i) {
    launch.kernels[i].registers = 20 + i;
    launch.kernels[i].grid = {1 + i, 1, 1};
  }
  const auto recorded = record_launch(parsed.module, launch, 1, {1, 2});
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_EQ(recorded->launch->kernels.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(recorded->launch->kernels[i].shape.registers, 21 + i);
    EXPECT_EQ(recorded->launch->kernels[i].blocks.size(), 2 + i);
  }
  const auto none = record_launch(parsed.module, launch, 1, {4, 2});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("it has 4 kernels, so there is none with number 4"),
            std::string::npos);
}

TEST(EmulatedSteps, emulated_on_the_fly_takes_as_long_as_recorded) {
  const auto parsed = ptx::parse(add_one, "add_one.ptx");
  const auto module = std::make_shared<const ptx::Module>(parsed.module);
  const auto recorded = record_launch(*module, add_one_launch(), 2);
  ASSERT_TRUE(recorded);
  std::vector<Cycles> times[2];
  for (const bool fly : {false, true}) {
    Simulation gpu(small_memory());
    std::shared_ptr<Source> source =
        fly ? emulate_on_the_fly(module, add_one_launch(), 1) : replay_launch(recorded->launch);
    const auto client =
        gpu.add_client({"add", sms({0, 1, 2}), source,
                        Translation{Address(gpu::default_base_address),
                                    12,
                                    {PhysicalAddress(0x3000), PhysicalAddress(0x1000)}}});
    const auto ran = gpu.run_launches(client, 3);
    ASSERT_TRUE(ran) << ran.error().message;
    times[fly ? 1 : 0] = gpu.statistics(client).run_cycles;
  }
  EXPECT_EQ(times[0], times[1]);
}

}  // namespace
}  // namespace demarc::sim::memory::test
