// Tests that every launch ends, that its sectors add up, and that stuck ones say why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/sim/memory/synthetic.hpp"
#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

using ::testing::HasSubstr;

// Random launches: every kind of step, addresses that collide in sets, banks and rows.
std::vector<std::vector<std::vector<Step>>> random_steps() {
  const auto blocks = *rc::gen::inRange(1, 7);
  const auto warps = *rc::gen::inRange(1, 5);
  std::vector<std::vector<std::vector<Step>>> steps;
  for (int b = 0; b < blocks; ++b) {
    auto& block = steps.emplace_back();
    for (int w = 0; w < warps; ++w) {
      auto& warp = block.emplace_back();
      const auto count = *rc::gen::inRange(0, 12);
      for (int s = 0; s < count; ++s) {
        Step step;
        step.kind = static_cast<StepKind>(*rc::gen::inRange(0, 4));
        step.wait = *rc::gen::arbitrary<bool>();
        step.instructions = static_cast<std::uint32_t>(*rc::gen::inRange(0, 9));
        step.count = static_cast<std::uint8_t>(*rc::gen::inRange(1, 5));
        for (std::size_t i = 0; i < step.count; ++i) {
          const auto line = static_cast<std::uint64_t>(*rc::gen::inRange(0, 4096));
          step.lines[i] = {Address(line << line_shift),
                           static_cast<std::uint32_t>(*rc::gen::inRange(1, 16))};
        }
        warp.push_back(step);
      }
    }
  }
  return steps;
}

RC_GTEST_PROP(MemorySimulation, every_launch_ends_and_its_sectors_add_up, ()) {
  const auto steps = random_steps();
  Spec spec = small_memory();
  spec.miss_registers = static_cast<std::uint32_t>(*rc::gen::inRange(1, 4));
  spec.l1_miss_registers = static_cast<std::uint32_t>(*rc::gen::inRange(1, 4));
  spec.store_registers = static_cast<std::uint32_t>(*rc::gen::inRange(1, 4));
  spec.gpc_ticks = Ticks(*rc::gen::element(0U, 300U));
  spec.gpc_store_ticks = Ticks(*rc::gen::element(0U, 300U));
  spec.gpc_atomic_ticks = Ticks(*rc::gen::element(0U, 300U));
  std::uint64_t loads = 0;
  std::uint64_t others = 0;
  for (const auto& block : steps) {
    for (const auto& warp : block) {
      for (const Step& step : warp) {
        for (std::size_t i = 0; i < step.count; ++i) {
          const auto sectors = std::popcount(step.lines[i].sectors());
          (step.kind == StepKind::load ? loads : others) += static_cast<std::uint64_t>(sectors);
        }
      }
    }
  }
  std::vector<Cycles> first;
  for (int repeat = 0; repeat < 2; ++repeat) {
    Simulation gpu(spec);
    const auto a = gpu.add_client({"a", sms({0, 1, 2}), launch_of(steps), {}});
    const auto b = gpu.add_client({"b", sms({2, 3}), launch_of(steps), {}});
    const auto ran = gpu.run_launches(a, 2, 1'000'000_cycles);
    RC_ASSERT(ran.has_value());
    RC_ASSERT(gpu.run_launches(b, 1, 1'000'000_cycles).has_value());
    const ClientStatistics& s = gpu.statistics(a);
    RC_ASSERT(s.run_cycles.size() >= 2U);
    if (s.run_cycles.size() == 2) {
      RC_ASSERT(s.load_sectors >= 2 * loads);
      RC_ASSERT(s.store_sectors + s.atomic_sectors >= 2 * others);
    }
    RC_ASSERT(s.l1_hit_sectors <= s.load_sectors);
    if (repeat == 0) {
      first = s.run_cycles;
    } else {
      RC_ASSERT(first == s.run_cycles);  // the same input, the same cycles
    }
  }
}

TEST(MemorySimulation, a_reader_beside_writers_without_end_gets_its_turns) {
  const Spec spec = small_memory();
  Simulation gpu(spec);
  std::vector<Step> loads;
  for (std::uint64_t i = 0; i < 16; ++i) {
    loads.push_back(access(StepKind::load, {0x400000 + ((i * other_row) | 1)}, true));
  }
  const auto reader = gpu.add_client({"reader", sms({0}), launch_of({{loads}}), {}});
  Walk writes;
  writes.kind = StepKind::store;
  writes.blocks = 6;
  writes.threads = 64;
  writes.rounds = 1000;
  writes.instructions = 0;
  gpu.add_client({"writers", sms({1, 2, 3}), walk_source(writes), {}});
  // A load waits for the turn of the writers in hand and for the requests in front of it in the
  // slice.
  const auto ran = gpu.run_launches(reader, 1, 40'000_cycles);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_GT(gpu.dram().write_sectors, 16U * (spec.write_high - spec.write_low));
}

TEST(MemorySimulation, a_block_that_fits_no_sm_is_said_to_be_stuck_with_what_waits) {
  Spec spec = small_memory();
  Simulation gpu(spec);
  const std::vector<std::vector<Step>> wide(8, {access(StepKind::load, {1})});
  const auto client = gpu.add_client({"victim", sms({0}), launch_of({wide}), {}});
  const auto ran = gpu.run_launches(client, 1);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(ran.error().message, HasSubstr("stuck"));
  EXPECT_THAT(ran.error().message, HasSubstr("client victim: kernel of 1 blocks of 256 threads"));
}

TEST(MemorySimulation, what_takes_too_long_is_shown_with_every_queue) {
  Spec spec = small_memory();
  spec.miss_registers = 1;
  Simulation gpu(spec);
  std::vector<Step> loads;
  for (std::uint64_t i = 0; i < 64; ++i) {
    loads.push_back(access(StepKind::load, {(i * other_row) | 1}));
  }
  const auto client = gpu.add_client({"victim", sms({0}), launch_of({{loads}}), {}});
  const auto ran = gpu.run_launches(client, 1, 100_cycles);
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("SM 0: 1 blocks"));
  EXPECT_THAT(ran.error().message, HasSubstr("8 of 8 miss registers"));
  EXPECT_THAT(ran.error().message, HasSubstr("slice 0: 1 of 1 miss registers, 7 packets wait"));
  EXPECT_THAT(ran.error().message, HasSubstr("on the way to: 1 "));
}

// Two warps of the block wait for their loads and one at the barrier; the other SMs do nothing.
TEST(MemorySimulation, what_waits_is_counted_by_kind) {
  Spec spec = small_memory();
  spec.miss_registers = 2;
  Simulation gpu(spec);
  const auto load = [](std::uint64_t row) {
    return std::vector<Step>{access(StepKind::load, {(row * other_row) | 1}, true),
                             access(StepKind::load, {(row * other_row) | 1}, true)};
  };
  Step barrier;
  barrier.kind = StepKind::barrier;
  gpu.add_client({"reader", sms({0, 1}), launch_of({{load(1), load(2), {barrier}}}), {}});
  ASSERT_TRUE(gpu.run_for(40_cycles));
  EXPECT_EQ(gpu.waiting(),
            "client reader: kernel of 1 blocks of 96 threads, 0 bytes of shared memory: 0 not "
            "placed, 1 running\n"
            "SM 0: 1 blocks; warps: 2 wait for loads, 1 at a barrier, 0 for the load-store unit, 0 "
            "others; 2 of 8 miss registers, 0 of 8 store registers\n"
            "slice 0: 2 of 2 miss registers, 0 packets wait; channel: 1 reads, 0 writes wait, "
            "reading\n"
            "  bank 0: 1 reads, 0 writes, row 0x2\n");
}

TEST(MemorySimulation, an_address_outside_the_clients_memory_is_an_error) {
  Simulation gpu(small_memory());
  const Translation translation{Address(0x1000), 12, {PhysicalAddress(0)}};
  const auto client = gpu.add_client(
      {"victim", sms({0}), launch_of({{{access(StepKind::load, {0x2001})}}}), translation});
  const auto ran = gpu.run_launches(client, 1);
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("victim: address 0x2000 lies outside"));
}

TEST(MemorySimulation, an_address_beyond_the_last_line_of_a_card_is_an_error) {
  const auto message = [](std::uint64_t word, const Translation& translation) {
    Simulation gpu(small_memory());
    const auto client = gpu.add_client(
        {"victim", sms({0}), launch_of({{{access(StepKind::load, {word})}}}), translation});
    const auto ran = gpu.run_launches(client, 1);
    return ran ? std::string("ran") : ran.error().message;
  };
  EXPECT_EQ(message(max_bytes - line_bytes + 1, {}), "ran");
  EXPECT_THAT(message(max_bytes + 1, {}), HasSubstr("victim: address 0x8000000000 lies outside"));
  const Translation high{Address(0), 12, {PhysicalAddress(max_bytes)}};
  EXPECT_THAT(message(1, high), HasSubstr("victim: address 0x0 lies outside"));
  Simulation gpu(small_memory());
  const std::array<Request, 1> beyond{Request{.address = PhysicalAddress(max_bytes)}};
  const auto timed = gpu.timed(beyond);
  ASSERT_FALSE(timed);
  EXPECT_THAT(timed.error().message, HasSubstr("an access to 0x8000000000"));
}

// A source that gives up when it is asked for the second time; `what`: for what.
class GivesUp final : public Source {
 public:
  enum class What { restart, kernel, block };
  explicit GivesUp(What what) : what_(what) {}
  Result<void> restart() override {
    given_ = 0;
    return again(What::restart);
  }
  Result<bool> next_kernel(KernelShape& shape) override {
    shape = {2, 32, 0};
    if (auto given = again(What::kernel); !given) return tl::unexpected(given.error());
    return given_++ < 3;
  }
  Result<std::unique_ptr<BlockWork>> next_block() override {
    if (auto given = again(What::block); !given) return tl::unexpected(given.error());
    return replay_block(block_);
  }

 private:
  Result<void> again(What what) {
    if (what != what_ || ++asked_ < 2) return {};
    return missing_capability("gave up");
  }
  What what_;
  int asked_ = 0;
  int given_ = 0;
  std::shared_ptr<PackedBlock> block_ = [] {
    auto block = std::make_shared<PackedBlock>();
    block->warps.resize(1);
    return block;
  }();
};

TEST(MemorySimulation, a_sources_error_is_the_runs) {
  for (const auto what : {GivesUp::What::restart, GivesUp::What::kernel, GivesUp::What::block}) {
    Simulation gpu(small_memory());
    const auto client = gpu.add_client({"victim", sms({0}), std::make_unique<GivesUp>(what), {}});
    const auto ran = gpu.run_launches(client, 2);
    ASSERT_FALSE(ran) << static_cast<int>(what);
    EXPECT_EQ(ran.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(ran.error().message, HasSubstr("gave up"));
  }
}

TEST(MemorySimulation, clients_stay_on_their_sms) {
  Simulation gpu(small_memory());
  Step work;
  work.kind = StepKind::work;
  work.instructions = 100;
  const std::vector<std::vector<std::vector<Step>>> blocks(8, {{work}, {work}, {work}, {work}});
  const auto alone = gpu.add_client({"a", sms({0, 1}), launch_of(blocks), {}});
  ASSERT_TRUE(gpu.run_launches(alone, 1));
  const auto other = gpu.add_client({"b", sms({2, 3}), launch_of(blocks), {}});
  ASSERT_TRUE(gpu.run_launches(other, 2));
  ASSERT_TRUE(gpu.run_launches(alone, 3));
  // Arithmetic on SMs of one's own is not disturbed at all.
  for (const Cycles cycles : gpu.statistics(alone).run_cycles) EXPECT_EQ(cycles, 1600_cycles);
  EXPECT_EQ(gpu.statistics(other).run_cycles[0], 1600_cycles);
}

TEST(MemorySimulation, two_clients_on_one_sm_share_it) {
  Simulation gpu(small_memory());
  Step work;
  work.kind = StepKind::work;
  work.instructions = 100;
  const std::vector<std::vector<std::vector<Step>>> blocks(8, {{work}, {work}, {work}, {work}});
  const auto a = gpu.add_client({"a", sms({0}), launch_of(blocks), {}});
  const auto b = gpu.add_client({"b", sms({0}), launch_of(blocks), {}});
  ASSERT_TRUE(gpu.run_launches(b, 1));
  EXPECT_EQ(gpu.statistics(a).run_cycles[0], 3200_cycles);  // its kernel came first
  EXPECT_EQ(gpu.statistics(b).run_cycles[0], 6400_cycles);
}

TEST(MemorySimulation, coalescing_gives_each_line_once) {
  std::array<std::uint64_t, 32> addresses{};
  std::array<LineEntry, 32> lines{};
  for (std::uint64_t lane = 0; lane < 32; ++lane) addresses[lane] = 0x1040 + 4 * lane;
  ASSERT_EQ(coalesce(addresses, ~0U, 4, lines), 2);
  EXPECT_EQ(lines[0].word(), 0x1000U | 0xcU);
  EXPECT_EQ(lines[1].word(), 0x1080U | 0x3U);
  EXPECT_EQ(coalesce(addresses, 1, 16, lines), 1);
  EXPECT_EQ(lines[0].word(), 0x1000U | 0x4U);
}

TEST(MemorySimulation, a_spec_whose_hashes_do_not_fit_its_sizes_is_refused) {
  Spec spec = small_memory();
  spec.banks = 4;
  const auto checked = check_spec(spec);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("banks"));
}

// A count that is right, and each rule broken by one.
TEST(Counts, that_cannot_be_are_named) {
  const Spec spec = small_memory();  // a burst takes two cycles; banks and column: 27 cycles ahead
  ClientStatistics client;
  client.load_sectors = 10;
  client.atomic_sectors = 2;
  client.l1_hit_sectors = 5;
  client.l2_hit_sectors = 4;
  client.l2_miss_sectors = 3;
  DramStatistics dram;
  dram.read_sectors = 50;
  dram.write_sectors = 13;
  const auto checked = [&] { return check_counts(spec, 100_cycles, {&client, 1}, dram); };
  EXPECT_TRUE(checked());
  ++dram.write_sectors;
  ASSERT_FALSE(checked());
  EXPECT_EQ(checked().error().kind, ErrorKind::check_failed);
  EXPECT_THAT(checked().error().message,
              HasSubstr("small: the simulation is wrong: DRAM moved 64 sectors in 100 cycles"));
  --dram.write_sectors;
  for (std::uint64_t* const count :
       {&client.l1_hit_sectors, &client.l2_hit_sectors, &client.l2_miss_sectors}) {
    ++*count;
    ASSERT_FALSE(checked());
    EXPECT_THAT(checked().error().message,
                HasSubstr("counted 13 sectors that hit or missed, and 12 that were asked for"));
    --*count;
  }
  client.store_sectors = 100;
  EXPECT_TRUE(checked());
}

TEST(Counts, that_cannot_be_end_the_run) {
  Simulation gpu(small_memory());
  const auto client = gpu.add_client(
      {"reader", sms({0, 1}), launch_of({{{access(StepKind::load, {0x80 | 15U}, true)}}}), {}});
  ASSERT_TRUE(gpu.run_launches(client, 1));
  const_cast<ClientStatistics&>(gpu.statistics(client)).l1_hit_sectors += 1000;
  const auto run = gpu.run_launches(client, 2);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(run.error().message, HasSubstr("small: the simulation is wrong: it counted"));
}

TEST(Counts, of_a_run_are_right) {
  Simulation gpu(small_memory());
  const auto client = gpu.add_client(
      {"reader", sms({0, 1}), launch_of({{{access(StepKind::load, {0x80 | 15U}, true)}}}), {}});
  ASSERT_TRUE(gpu.run_launches(client, 3));
  const auto checked = gpu.check_counts();
  EXPECT_TRUE(checked) << checked.error().message;
}

}  // namespace
}  // namespace demarc::sim::memory::test
