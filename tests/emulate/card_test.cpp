// The emulator in the place of a card: kernels in the caller's memory, modules that stay loaded.
#include "demarc/emulate/card.hpp"

#include <gmock/gmock.h>

#include "harness.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using testing::HasSubstr;

LoadedModule load(const std::string& text) {
  return LoadedModule::load(ptx::parse_whole(text, "t.ptx").value(), "t.ptx").value();
}

Card card_with(std::vector<HostRange> memory) {
  Card card;
  card.memory = std::move(memory);
  return card;
}

// One argument: where `memory` lies.
struct OnCard {
  alignas(256) std::uint64_t memory[64] = {};
  Card card = card_with({{address(), sizeof memory}});

  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(memory); }
  Result<Outcome> run(LoadedModule& module, std::uint32_t blocks, std::uint32_t threads) {
    gpu::KernelLaunch kernel;
    kernel.kernel = "k";
    kernel.grid.x = blocks;
    kernel.block.x = threads;
    kernel.arguments.emplace_back(gpu::Scalar{gpu::ScalarType::u64, address()});
    return module.run(kernel, card);
  }
};

TEST(EmulatedCard, a_kernel_writes_the_callers_memory_at_its_own_address_and_not_a_byte_more) {
  OnCard on;
  auto module = load(kernel_of("", "st.global.u64 [%rd2], %rd2;"));
  ASSERT_TRUE(on.run(module, 1, 32)->findings.empty());
  for (std::uint64_t i = 0; i < 32; ++i) EXPECT_EQ(on.memory[i], on.address() + 8 * i);
  EXPECT_EQ(on.memory[32], 0U);
  on.card.memory = {{on.address(), 32 * 8 - 1}};
  const auto outcome = on.run(module, 1, 32).value();
  ASSERT_EQ(outcome.findings.size(), 1U);
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::out_of_bounds);
  EXPECT_EQ(outcome.findings[0].thread[0], 31U);
}

TEST(EmulatedCard, ranges_side_by_side_count_and_overlapping_or_unreachable_ones_are_refused) {
  OnCard on;
  auto module = load(kernel_of("", "st.global.u64 [%rd2], 1;"));
  on.card.memory = {{on.address() + 64, 64}, {on.address(), 64}, {7, 0}};
  EXPECT_TRUE(on.run(module, 1, 16)->findings.empty());
  on.card.memory = {{on.address(), 65}, {on.address() + 64, 64}};
  EXPECT_THAT(on.run(module, 1, 16).error().message, HasSubstr("overlap"));
  for (const std::uint64_t inside : {0x1000'0000'0000U, 0x16ff'ffff'ffffU}) {
    on.card.memory = {{inside, 1}};
    EXPECT_THAT(on.run(module, 1, 16).error().message, HasSubstr("lead to other memory"));
  }
  on.card.memory = {{0x0fff'ffff'ffff, 1}, {0x1700'0000'0000, 1}, {on.address(), 128}};
  EXPECT_TRUE(on.run(module, 1, 16));
  on.card.memory = {{~std::uint64_t{0}, 2}};
  EXPECT_THAT(on.run(module, 1, 16).error().message, HasSubstr("beyond the last address"));
}

TEST(EmulatedCard, blocks_see_the_sm_they_are_given_and_a_clock_that_goes_on_from_the_given_time) {
  OnCard on;
  auto module = load(
      kernel_of("",
                "mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd3, %r2, 32;\nadd.u64 %rd3, %rd3, %rd1;\n"
                "mov.u64 %rd6, %globaltimer;\nmov.u64 %rd7, %globaltimer;\n"
                "mov.u32 %r3, %smid;\nmov.u32 %r4, %nsmid;\nmov.u32 %r5, %globaltimer_hi;\n"
                "mad.lo.u32 %r4, %r5, 100, %r4;\ncvt.u64.u32 %rd4, %r3;\ncvt.u64.u32 %rd5, %r4;\n"
                "st.global.u64 [%rd3], %rd4;\nst.global.u64 [%rd3+8], %rd5;\n"
                "st.global.u64 [%rd3+16], %rd6;\nst.global.u64 [%rd3+24], %rd7;"));
  constexpr std::uint64_t sms[] = {7, 3, 0};
  on.card.sm_of_block = {7, 3};
  on.card.sms = 9;
  on.card.time_ns = std::uint64_t{5} << 32;
  const auto outcome = on.run(module, 3, 64).value();
  for (std::uint64_t block = 0; block < 3; ++block) {
    const std::uint64_t* seen = on.memory + 4 * block;
    EXPECT_EQ(seen[0], sms[block]);
    EXPECT_EQ(seen[1], 509U) << "the upper half of the time, and the SMs";
    EXPECT_GT(seen[2], on.card.time_ns);
    EXPECT_GE(seen[3], seen[2]);
    EXPECT_LE(seen[3], on.card.time_ns + outcome.kernels[0].longest_warp);
  }
  EXPECT_EQ(outcome.kernels[0].longest_warp * 6, outcome.kernels[0].warp_instructions);
}

TEST(EmulatedCard, blocks_that_wait_for_each_other_end_when_all_of_them_are_resident) {
  const std::string meet =
      "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra done;\natom.global.add.u32 %r2, [%rd1], 1;\n"
      "again:\nld.volatile.global.u32 %r3, [%rd1];\nsetp.lt.u32 %p2, %r3, 5;\n@%p2 bra again;\n"
      "red.global.add.u32 [%rd1+4], 1;\ndone:\nbar.sync 0;";
  auto module = load(kernel_of("", meet));
  for (const std::uint32_t resident : {5U, 4U}) {
    OnCard on;
    on.card.resident_blocks = resident;
    gpu::KernelLaunch kernel;
    kernel.kernel = "k";
    kernel.grid.x = 5;
    kernel.block.x = 64;
    kernel.arguments.emplace_back(gpu::Scalar{gpu::ScalarType::u64, on.address()});
    Options options;
    options.instruction_limit = 1 << 18;
    const auto outcome = module.run(kernel, on.card, options).value();
    EXPECT_EQ(outcome.threads, 1U);
    if (resident == 5) {
      EXPECT_TRUE(outcome.findings.empty());
      EXPECT_EQ(on.memory[0], (std::uint64_t{5} << 32) + 5);
    } else {
      ASSERT_FALSE(outcome.findings.empty());
      EXPECT_EQ(outcome.findings[0].kind, FindingKind::hang);
    }
  }
}

TEST(EmulatedCard, blocks_that_reside_side_by_side_take_turns_on_one_thread) {
  auto module = load(kernel_of("", ""));
  OnCard on;
  Options options;
  options.threads = 3;
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.grid.x = 9;
  kernel.arguments.emplace_back(gpu::Scalar{gpu::ScalarType::u64, on.address()});
  for (const std::uint32_t resident : {1U, 2U, 9U}) {
    on.card.resident_blocks = resident;
    const auto outcome = module.run(kernel, on.card, options).value();
    EXPECT_EQ(outcome.threads, resident == 1 ? 3U : 1U) << resident;
  }
}

// What is found first is of the lowest block, whichever block came to it first.
TEST(EmulatedCard, findings_of_blocks_in_turns_come_in_the_order_of_the_blocks) {
  const std::string body =
      "mov.u32 %r2, %ctaid.x;\nsub.u32 %r3, 3, %r2;\nmul.lo.u32 %r3, %r3, 9000;\n"
      "mov.u32 %r4, 0;\nagain:\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p1, %r4, %r3;\n"
      "@%p1 bra again;\nst.global.u32 [%rd1+1024], 1;";
  auto module = load(kernel_of("", body));
  OnCard on;
  on.card.resident_blocks = 4;
  const auto outcome = on.run(module, 4, 1).value();
  ASSERT_EQ(outcome.findings.size(), 1U);
  EXPECT_EQ(outcome.findings[0].block[0], 0U);
  EXPECT_EQ(outcome.findings[0].count, 4U);
}

// Blocks of very different length, of which only a few are resident.
TEST(EmulatedCard, blocks_in_turns_do_all_that_blocks_one_after_the_other_do) {
  const std::string body =
      "mov.u32 %r2, %ctaid.x;\nmul.lo.u32 %r3, %r2, 977;\nand.b32 %r3, %r3, 8191;\n"
      "mov.u32 %r4, 0;\nagain:\nadd.u32 %r4, %r4, 1;\nsetp.lt.u32 %p1, %r4, %r3;\n"
      "@%p1 bra again;\ncvt.u64.u32 %rd3, %r4;\nmul.wide.u32 %rd4, %r2, 8;\n"
      "add.u64 %rd4, %rd4, %rd1;\nbar.sync 0;\nred.global.add.u64 [%rd4], %rd3;";
  auto module = load(kernel_of("", body));
  OnCard one;
  OnCard turns;
  turns.card.resident_blocks = 3;
  const auto first = one.run(module, 40, 64).value();
  const auto second = turns.run(module, 40, 64).value();
  EXPECT_TRUE(std::equal(std::begin(one.memory), std::end(one.memory), turns.memory));
  EXPECT_NE(one.memory[1], 0U);
  EXPECT_EQ(first.kernels[0].warp_instructions, second.kernels[0].warp_instructions);
  EXPECT_TRUE(second.findings.empty());
}

TEST(EmulatedCard, variables_of_a_module_stay_and_lie_where_the_caller_can_reach_them) {
  auto module = load(kernel_of(
      ".global .align 8 .u64 count = 40;\n.global .u64 place = count;\n.const .u32 other = 1;\n",
      "ld.global.u64 %rd3, [count];\nadd.u64 %rd3, %rd3, 1;\nst.global.u64 [count], %rd3;\n"
      "ld.global.u64 %rd4, [place];\nst.global.u64 [%rd1], %rd4;"));
  LoadedModule moved = std::move(module);
  OnCard on;
  ASSERT_TRUE(on.run(moved, 1, 1));
  ASSERT_TRUE(on.run(moved, 1, 1));
  const auto count = moved.variable("count");
  ASSERT_TRUE(count);
  EXPECT_EQ(count->bytes, 8U);
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(count->address), sizeof value);
  EXPECT_EQ(value, 42U);
  EXPECT_EQ(on.memory[0], count->address);
  EXPECT_FALSE(moved.variable("k"));
}

TEST(EmulatedCard, constants_that_are_written_between_launches_are_read_by_the_next) {
  auto module = load(kernel_of(".const .u32 first = 7;\n.const .align 8 .u64 other = 1;\n",
                               "ld.const.u64 %rd3, [other];\nst.global.u64 [%rd1], %rd3;"));
  OnCard on;
  ASSERT_TRUE(on.run(module, 1, 1));
  EXPECT_EQ(on.memory[0], 1U);
  const auto other = module.variable("other");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->bytes, 8U);
  const std::uint64_t value = 55;
  std::memcpy(reinterpret_cast<void*>(other->address), &value, sizeof value);
  ASSERT_TRUE(on.run(module, 1, 1));
  EXPECT_EQ(on.memory[0], 55U);
}

TEST(EmulatedCard, buffers_of_a_launch_and_kernels_that_do_not_exist_are_refused) {
  auto module = load(kernel_of("", ""));
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  EXPECT_THAT(module.run(kernel, {}).error().message, HasSubstr("buffer 0 of 0"));
  kernel.arguments = {gpu::Scalar{gpu::ScalarType::u64, 0}};
  EXPECT_TRUE(module.run(kernel, {}));
  kernel.kernel = "other";
  EXPECT_THAT(module.run(kernel, {}).error().message, HasSubstr("t.ptx: there is no kernel"));
}

}  // namespace
}  // namespace demarc::emulate
