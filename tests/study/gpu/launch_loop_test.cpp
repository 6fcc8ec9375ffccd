// The loop of a neighbour, on a driver whose events end when the test says so and a clock that the
// test moves.
#include "gpu/launch_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_card.hpp"

namespace demarc::study {
namespace {

using testing::HasSubstr;

constexpr int every_one = 1'000'000;

// What the driver answers when it is asked whether a run has ended: yes so often, then `later`.
struct Ends {
  std::atomic<int> yes{every_one};
  std::atomic<cuda::CuResult> later{cuda::cu_error_not_ready};
  std::atomic<int> asked{0};
  std::atomic<int> astray{0};          // asked for another event than that of the next run to end
  std::vector<cuda::CuEvent> of_runs;  // by the loop's thread alone
  std::size_t ended = 0;
  decltype(cuda::DriverApi::cuEventRecord) record = nullptr;
};
Ends ends;

class LaunchLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    test::configure(fake::small_gpu());
    ends.yes = every_one;
    ends.later = cuda::cu_error_not_ready;
    ends.asked = ends.astray = 0;
    ends.of_runs.clear();
    ends.ended = 0;
    cuda::DriverApi api = test::fake_driver()->api();
    ends.record = api.cuEventRecord;
    api.cuEventRecord = [](cuda::CuEvent event, cuda::CuStream of) -> cuda::CuResult {
      ends.of_runs.push_back(event);
      return ends.record(event, of);
    };
    api.cuEventQuery = [](cuda::CuEvent event) -> cuda::CuResult {
      if (event != ends.of_runs.at(ends.ended)) ++ends.astray;
      if (++ends.asked > ends.yes) return ends.later;
      ++ends.ended;
      return cuda::cu_success;
    };
    auto driver = cuda::Driver::from_table(api, "events by hand");
    gpu = cuda::Gpu::open(driver.value(), 0).value();
    stream = std::make_unique<cuda::Stream>(cuda::Stream::create(gpu).value());
  }
  [[nodiscard]] std::vector<cuda::Event> marks(int count) const {
    std::vector<cuda::Event> made;
    for (int i = 0; i < count; ++i) made.push_back(cuda::Event::create(gpu).value());
    return made;
  }

  cuda::GpuPointer gpu;
  std::unique_ptr<cuda::Stream> stream;
};

// Counts its runs, and does at one of them what a test wants.
class CountedWork : public LaneWork {
 public:
  explicit CountedWork(std::function<Result<void>(int run)> each) : each_(std::move(each)) {}
  Result<void> enqueue(const cuda::Stream&) const override { return each_(++runs); }
  mutable std::atomic<int> runs{0};

 private:
  std::function<Result<void>(int run)> each_;
};

// Waits for what the loop's thread does, which takes no time to speak of.
template <class Condition>
void until(const Condition& condition) {
  const double begun = steady_seconds();
  while (!condition() && steady_seconds() - begun < 20) std::this_thread::yield();
  EXPECT_TRUE(condition());
}

TEST(RunsAhead, are_two_milliseconds_of_runs_two_at_least_and_as_many_as_may_wait_at_most) {
  EXPECT_EQ(runs_ahead(0.0005, 8), 4U);
  EXPECT_EQ(runs_ahead(0.0004, 8), 5U);
  EXPECT_EQ(runs_ahead(0.0009, 8), 2U);
  EXPECT_EQ(runs_ahead(0.0006, 8), 3U);
  EXPECT_EQ(runs_ahead(1, 8), 2U);
  EXPECT_EQ(runs_ahead(0.0001, 8), 8U);
  EXPECT_EQ(runs_ahead(0.0001, 30), 20U);
  EXPECT_EQ(runs_ahead(0, 8), 8U);
  EXPECT_EQ(runs_ahead(0, 10'000'000), 2'000'000U) << "no division by zero";
}

TEST_F(LaunchLoopTest, begins_with_two_runs_ahead_and_never_calls_a_run_ended_that_is_not) {
  ends.yes = 0;
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop loop(*gpu, *stream, work, marks(8));
  until([] { return ends.asked > 3; });
  EXPECT_EQ(work.runs, 2);
  const auto rate = loop.finish();
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_EQ(*rate, 0) << "no run had ended";
}

// The clock goes on by 0.39 ms with every look: five runs in 2 ms.
TEST_F(LaunchLoopTest, is_ahead_by_as_many_runs_as_its_pace_allows) {
  ends.yes = 6;
  std::atomic<int> looks{0};
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop loop(*gpu, *stream, work, marks(8), {}, [&looks] { return 0.00039 * ++looks; });
  until([] { return ends.asked > 9; });
  EXPECT_EQ(work.runs, 6 + 5);
  EXPECT_TRUE(loop.finish());
}

// Six runs of 0.39 ms, then runs of a second: those that wait already end, and no more come.
TEST_F(LaunchLoopTest, is_ahead_by_fewer_runs_when_they_take_longer) {
  ends.yes = 20;
  std::atomic<int> looks{0};
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop loop(*gpu, *stream, work, marks(8), {}, [&looks] {
    const int look = ++looks;
    return look < 8 ? 0.00039 * look : 1.0 * look;
  });
  until([] { return ends.asked > 23; });
  EXPECT_EQ(work.runs, 20 + 2);
  EXPECT_TRUE(loop.finish());
}

// A look at the clock is a second: one when the loop begins, one for each run that ends, and one at
// the end.
TEST_F(LaunchLoopTest, tells_how_many_runs_ended_in_a_second) {
  ends.yes = 10;
  std::atomic<int> looks{0};
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop loop(*gpu, *stream, work, marks(8), {}, [&looks] { return 1.0 * ++looks; });
  until([] { return ends.asked > 12; });
  EXPECT_EQ(work.runs, 10 + 2);
  const auto rate = loop.finish();
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_DOUBLE_EQ(*rate, 10.0 / 11);
}

TEST_F(LaunchLoopTest, asks_for_the_event_of_the_run_that_ends_next) {
  ends.yes = 20;
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop loop(*gpu, *stream, work, marks(3));
  until([] { return ends.asked > 25; });
  EXPECT_TRUE(loop.finish());
  EXPECT_EQ(ends.astray, 0);
}

TEST_F(LaunchLoopTest, has_begun_once_its_first_run_has_ended) {
  ends.yes = 0;
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop loop(*gpu, *stream, work, marks(8));
  std::atomic<bool> begun{false};
  std::thread waits([&] {
    EXPECT_TRUE(loop.wait_for_first());
    begun = true;
  });
  until([] { return ends.asked > 5; });
  EXPECT_FALSE(begun);
  ends.yes = every_one;
  waits.join();
  EXPECT_TRUE(loop.finish());
}

// A second for each look at the clock.
TEST_F(LaunchLoopTest, whose_first_run_does_not_end_is_not_waited_for_longer_than_a_minute) {
  ends.yes = 0;
  std::atomic<int> looks{0};
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop loop(*gpu, *stream, work, marks(8), {}, [&looks] { return 1.0 * ++looks; });
  until([] { return ends.asked > 0; });
  const int before = looks;
  const auto begun = loop.wait_for_first();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(begun.error().message, "an aggressor's first run did not end within 60 s");
  EXPECT_EQ(looks - before, 62) << "61 s are more than 60";
  EXPECT_TRUE(loop.finish()) << "and is ended all the same";
}

// A launch that no TPC may run: its stream never comes to its end.
TEST_F(LaunchLoopTest, whose_runs_never_end_is_an_error_when_it_is_stopped_and_keeps_nobody) {
  const auto module = cuda::Module::load(gpu,
                                         ".version 8.0\n.target sm_90\n.address_size 64\n"
                                         ".visible .entry idle() { ret; }\n",
                                         "idle")
                          .value();
  const auto idle = module.function("idle").value();
  fake::FakeConfig nowhere = fake::small_gpu();
  nowhere.client = 1ULL << 40U;
  test::configure(nowhere);
  const CountedWork work(
      [&](int) { return cuda::launch(*stream, idle, cuda::LaunchShape::line(1, 32)); });
  LoopLimits limits;
  limits.end = std::chrono::milliseconds(20);
  LaunchLoop loop(*gpu, *stream, work, marks(8), limits);
  until([&] { return work.runs > 2; });
  const auto rate = loop.finish();
  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(rate.error().message, HasSubstr("work did not finish within 20 ms"));
  EXPECT_TRUE(gpu->stuck());
}

TEST_F(LaunchLoopTest, ends_with_the_error_of_its_work_or_of_its_events) {
  const CountedWork broken([](int run) -> Result<void> {
    if (run == 5) return invalid_input("run 5");
    return {};
  });
  LaunchLoop loop(*gpu, *stream, broken, marks(8));
  until([&] { return broken.runs == 5; });
  const auto rate = loop.finish();
  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().message, "run 5");
  EXPECT_EQ(loop.finish().error().message, "run 5") << "to be told again";

  ends.yes = 0;
  ends.later = 719;
  const CountedWork work([](int) { return Result<void>{}; });
  LaunchLoop other(*gpu, *stream, work, marks(8));
  const auto begun = other.wait_for_first();
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message, HasSubstr("an aggressor's run"));
  EXPECT_FALSE(other.finish());
}

}  // namespace
}  // namespace demarc::study
