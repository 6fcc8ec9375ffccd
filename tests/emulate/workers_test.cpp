// Blocks on several threads: how many a thread takes at once, and that what they leave is collected
// in their order, while no thread waits for that at every block.
#include <algorithm>
#include <thread>

#include "block_loops.hpp"
#include "collector.hpp"
#include "harness.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {
namespace {

using test::kernel_of;
using test::launch_of;
using test::run_text;

class Collected : public testing::Test {
 protected:
  Collected() { outcome.kernels.emplace_back(); }

  // A block that printed its number and executed ten instructions.
  void end(std::uint32_t number, Leavings& before) {
    block.findings.clear();
    if (number == hangs) {
      PendingFinding found;
      found.finding.kind = FindingKind::hang;
      block.findings.push_back(found);
    }
    block.printed = fmt::format("{} ", number);
    block.warps[0].warp_instructions = 10;
    block.trace.assign(1, number);
    block.trace_used = 1;
    collector.finish(block, number, before);
  }
  [[nodiscard]] std::uint64_t instructions() const { return outcome.kernels[0].warp_instructions; }
  [[nodiscard]] std::vector<std::uint32_t> traced() const {
    std::vector<std::uint32_t> blocks;
    for (const TraceRecorder::Block& one : recorder.kernels()[0].blocks) {
      EXPECT_EQ(one.words, std::vector<std::uint64_t>{one.block});
      blocks.push_back(one.block);
    }
    return blocks;
  }

  std::uint32_t hangs = ~0U;
  static Program one_warp() {
    Program program;
    program.tids.resize(std::size_t{3} * warp_size);
    return program;
  }
  Program program = one_warp();
  FramePool pool;
  Block block{program, pool};
  Outcome outcome;
  TraceRecorder recorder;
  Collector collector{&recorder, outcome, 10, 2};
};

TEST_F(Collected, blocks_that_end_before_the_ones_ahead_of_them_do_not_wait_and_come_in_order) {
  ASSERT_TRUE(recorder.begin_kernel({}));
  Leavings first;
  Leavings second;
  end(2, second);
  end(3, second);
  collector.hand_over(second);
  end(4, second);
  EXPECT_EQ(outcome.printed, "");
  end(0, first);
  EXPECT_EQ(outcome.printed, "0 ");
  end(1, first);
  EXPECT_EQ(outcome.printed, "0 1 2 3 ");
  collector.hand_over(first);
  collector.hand_over(second);
  EXPECT_EQ(outcome.printed, "0 1 2 3 4 ");
  EXPECT_EQ(traced(), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(instructions(), 50U);
  EXPECT_FALSE(collector.over());
}

// A block that does not end would fill all memory before its turn comes.
TEST_F(Collected, a_worker_with_many_words_of_a_block_waits_for_its_turn) {
  constexpr std::size_t many = (std::size_t{1} << 22U) + 1;
  ASSERT_TRUE(recorder.begin_kernel({}));
  Leavings first;
  Leavings second;
  Block other{program, pool};
  other.trace.assign(many, 1);
  other.trace_used = many - 1;
  collector.flush_or_wait(other, 1, second);
  EXPECT_EQ(other.trace_used, many - 1) << "few enough to go on";
  other.trace_used = many;
  std::thread worker([&] { collector.flush_or_wait(other, 1, second); });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  end(0, first);
  worker.join();
  EXPECT_EQ(other.trace_used, 0U);
  ASSERT_EQ(recorder.kernels()[0].blocks.size(), 2U);
  EXPECT_EQ(recorder.kernels()[0].blocks[1].words.size(), many);
}

TEST_F(Collected, a_worker_that_waits_goes_on_once_the_sink_refuses_words) {
  struct Full : TraceSink {
    Result<void> consume(const TraceChunk&) override { return missing_capability("full"); }
  };
  constexpr std::size_t many = (std::size_t{1} << 22U) + 1;
  Full sink;
  Collector stopped{&sink, outcome, 10, 2};
  Leavings first;
  Leavings second;
  Block other{program, pool};
  other.trace.assign(many, 1);
  other.trace_used = many;
  std::thread worker([&] { stopped.flush_or_wait(other, 1, second); });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  block.trace.assign(5, 1);
  block.trace_used = 5;
  stopped.flush(block, 0, first);
  worker.join();
  EXPECT_TRUE(stopped.over());
  EXPECT_EQ(other.trace_used, 0U);
}

TEST_F(Collected, words_of_blocks_behind_one_that_hangs_are_dropped) {
  ASSERT_TRUE(recorder.begin_kernel({}));
  Leavings first;
  Leavings second;
  hangs = 0;
  end(0, first);
  block.trace.assign(5, 1);
  block.trace_used = 5;
  collector.flush_or_wait(block, 2, second);
  EXPECT_EQ(block.trace_used, 0U);
  EXPECT_EQ(recorder.kernels()[0].blocks.size(), 1U);
}

TEST_F(Collected, words_of_a_block_that_runs_go_on_once_the_blocks_before_it_have_ended) {
  ASSERT_TRUE(recorder.begin_kernel({}));
  Leavings first;
  Leavings second;
  end(1, second);
  block.trace.assign(1, 2);
  block.trace_used = 1;
  collector.flush(block, 2, second);
  EXPECT_EQ(block.trace_used, 1U);
  end(0, first);
  block.trace.assign(1, 2);
  block.trace_used = 1;
  collector.flush(block, 2, second);
  EXPECT_EQ(block.trace_used, 0U);
  EXPECT_EQ(outcome.printed, "0 1 ");
}

TEST_F(Collected, blocks_behind_one_that_hangs_give_nothing) {
  ASSERT_TRUE(recorder.begin_kernel({}));
  hangs = 1;
  Leavings first;
  Leavings second;
  end(2, second);
  collector.hand_over(second);
  end(0, first);
  EXPECT_FALSE(collector.over());
  end(1, first);
  EXPECT_TRUE(collector.ended());
  EXPECT_EQ(outcome.printed, "0 1 ");
  EXPECT_EQ(traced(), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(instructions(), 20U);
}

// Long enough for all threads to take part.
Result<Outcome> run_blocks_of(const std::string& body, unsigned threads, TraceRecorder& trace) {
  Options options;
  options.threads = threads;
  options.instruction_limit = 1 << 12;
  return run_text(kernel_of("",
                            "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, 0;\nLOOP:\nadd.u32 %r3, %r3, "
                            "1;\nsetp.lt.u32 %p1, %r3, 300;\n@%p1 bra LOOP;\n" +
                                body),
                  launch_of(1000, 64, 8000), options, &trace);
}

TEST(Workers, take_so_many_blocks_at_once_that_each_comes_32_times_and_at_most_64) {
  EXPECT_EQ(blocks_at_once(1, 1), 1U);
  EXPECT_EQ(blocks_at_once(63, 1), 1U);
  EXPECT_EQ(blocks_at_once(64, 1), 2U);
  EXPECT_EQ(blocks_at_once(64, 2), 1U);
  EXPECT_EQ(blocks_at_once(3 * 32 * 7, 3), 7U);
  EXPECT_EQ(blocks_at_once(63 * 32, 1), 63U);
  EXPECT_EQ(blocks_at_once(65 * 32, 1), 64U);
  EXPECT_EQ(blocks_at_once(4'000'000'000, 2), 64U);
}

// Blocks whose warps end at once.
TEST(Workers, of_a_kernel_that_runs_on_are_called_once_and_told_of_its_progress_by_the_first) {
  Program program;
  program.tids.resize(std::size_t{3} * warp_size);
  program.functions.resize(1);
  program.functions[0].frame_bytes = 64;
  program.code.resize(1);
  program.code[0].run = control::exit_lanes;
  program.instruction_limit = 100;
  for (const bool reports : {false, true}) {
    Outcome outcome;
    outcome.kernels.emplace_back();
    Collector collector(nullptr, outcome, 10, 2);
    std::vector<double> shares;
    const Progress progress = [&](double share, std::string_view) { shares.push_back(share); };
    constexpr std::uint32_t blocks = 20'000;
    BlockWork work{.program = program,
                   .collector = collector,
                   .blocks = blocks,
                   .at_once = 7,
                   .progress = progress};
    unsigned called = 0;
    run_blocks(
        work, [&] { ++called; }, reports);
    EXPECT_EQ(called, 1U);
    EXPECT_FALSE(collector.over());
    if (!reports) {
      EXPECT_TRUE(shares.empty());
      continue;
    }
    ASSERT_FALSE(shares.empty());
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_EQ(shares.back(), 1.0);
  }
}

TEST(Workers, findings_traces_and_statistics_do_not_depend_on_their_number) {
  const std::string body =
      "setp.ge.u32 %p2, %r2, 137;\n@%p2 st.global.u64 [%rd2+8000], %rd1;\n"
      "mad.wide.u32 %rd4, %r2, 8, %rd1;\nst.global.u64 [%rd4], %rd1;";
  TraceRecorder one;
  const auto alone = run_blocks_of(body, 1, one);
  ASSERT_TRUE(alone) << alone.error().message;
  TraceRecorder many;
  const auto outcome = run_blocks_of(body, 3, many);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].block[0], 137U);
  EXPECT_EQ(outcome->findings[0].count, 863U * 64U);
  EXPECT_EQ(outcome->kernels[0].warp_instructions, alone->kernels[0].warp_instructions);
  EXPECT_EQ(outcome->kernels[0].thread_instructions, alone->kernels[0].thread_instructions);
  EXPECT_EQ(outcome->kernels[0].memory_accesses, alone->kernels[0].memory_accesses);
  ASSERT_EQ(many.kernels()[0].blocks.size(), 1000U);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(many.kernels()[0].blocks[i].block, i);
    EXPECT_EQ(many.kernels()[0].blocks[i].words, one.kernels()[0].blocks[i].words);
  }
}

TEST(Workers, a_block_that_hangs_ends_the_run_at_the_same_place_for_any_number_of_them) {
  const std::string body =
      "setp.ne.u32 %p2, %r2, 137;\n@%p2 bra END;\nENDLESS:\nbra ENDLESS;\nEND:";
  TraceRecorder one;
  const auto alone = run_blocks_of(body, 1, one);
  ASSERT_TRUE(alone) << alone.error().message;
  TraceRecorder many;
  const auto outcome = run_blocks_of(body, 3, many);
  ASSERT_TRUE(outcome) << outcome.error().message;
  ASSERT_EQ(outcome->findings.size(), 1U);
  EXPECT_EQ(outcome->findings[0].block[0], 137U);
  EXPECT_EQ(many.kernels()[0].blocks.size(), 138U);
  EXPECT_EQ(one.kernels()[0].blocks.size(), 138U);
  EXPECT_EQ(outcome->kernels[0].warp_instructions, alone->kernels[0].warp_instructions);
}

}  // namespace
}  // namespace demarc::emulate
