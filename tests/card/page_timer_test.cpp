// The kernels that time pages, in the stand-in's emulator: where walks go, how many accesses are
// made, what is refused.
#include "demarc/card/page_timer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;

constexpr std::uint64_t timed_page_bytes = 64U << 10U;

struct Timed {
  GpuPointer gpu = test::fake_gpu();
  PageTimer timer = PageTimer::create(gpu).value();
  DeviceBuffer memory = DeviceBuffer::allocate(gpu, 4 * timed_page_bytes).value();
  PageRange range{memory.address(), timed_page_bytes, 4};
};

TEST(PageTimer, a_walk_goes_from_line_to_line_and_round_again) {
  const Timed timed;
  const std::vector<std::uint32_t> lines = {7, 3, 511, 512, 2047, 0};
  const auto times = timed.timer.walk(timed.range, lines, false);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_GT(times->first_cycles, 0);
  EXPECT_GT(times->again_cycles, 0);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::uint64_t next = lines[(i + 1) % lines.size()];
    EXPECT_EQ(timed.memory.read<std::uint64_t>(1, lines[i] * 128).value().front(),
              timed.range.base + next * 128);
  }
}

TEST(PageTimer, a_walk_by_atomics_leaves_the_ring_as_it_was) {
  const Timed timed;
  const std::vector<std::uint32_t> lines = {5, 9};
  const auto times = timed.timer.walk(timed.range, lines, true);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_GT(times->again_cycles, 0);
  EXPECT_EQ(timed.memory.read<std::uint64_t>(1, 5 * 128).value().front(),
            timed.range.base + 9 * 128);
}

TEST(PageTimer, a_walk_of_no_lines_or_beyond_the_pages_is_refused) {
  const Timed timed;
  const auto refused = [&](const PageRange& range, const std::vector<std::uint32_t>& lines) {
    const auto times = timed.timer.walk(range, lines, false);
    EXPECT_FALSE(times);
    EXPECT_EQ(times.error().kind, ErrorKind::invalid_input);
    return times.error().message;
  };
  EXPECT_EQ(refused(timed.range, {}), "a walk over no lines cannot be timed");
  EXPECT_EQ(refused(timed.range, {0, 2048}), "line 2048 of a walk: the pages have 2048");
  EXPECT_THAT(refused({timed.range.base, timed_page_bytes, 0}, {0}), HasSubstr("timing 0 pages"));
  EXPECT_THAT(refused({timed.range.base, 2048, 4}, {0}),
              HasSubstr("a power of two of at least 4096"));
  EXPECT_THAT(refused({timed.range.base, 3 * timed_page_bytes, 1}, {0}),
              HasSubstr("a power of two"));
}

TEST(PageTimer, traffic_between_making_a_ring_and_walking_it_only_reads) {
  const Timed timed;
  const std::vector<std::uint32_t> lines = {5, 9, 1000};
  const auto walked = [&](PageTraffic::Kind kind, std::uint32_t bytes) {
    return timed.timer.walk(
        timed.range, lines, false,
        PageTraffic{.kind = kind, .access_bytes = bytes, .sms = 1, .lasts = microseconds(5)});
  };
  EXPECT_TRUE(walked(PageTraffic::Kind::read, 512));
  EXPECT_TRUE(walked(PageTraffic::Kind::page, 4));
  const auto bad = walked(PageTraffic::Kind::read, 7);
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("accesses of 7 bytes"));
  for (const auto kind :
       {PageTraffic::Kind::write, PageTraffic::Kind::word, PageTraffic::Kind::atomic}) {
    const auto refused = walked(kind, kind == PageTraffic::Kind::write ? 512 : 4);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(refused.error().message, HasSubstr("only reads leave it whole"));
  }
}

// A line that is named twice: the ring is none.
TEST(PageTimer, a_walk_that_ends_elsewhere_is_not_timed) {
  const Timed timed;
  const auto times =
      timed.timer.walk(timed.range, std::vector<std::uint32_t>{1, 2, 3, 4, 3}, false);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(times.error().message, HasSubstr("a walk over 5 lines ended at "));
}

// A mask keeps the walk off the SM.
TEST(PageTimer, a_walk_that_reaches_no_sm_is_not_timed) {
  fake::FakeConfig config = fake::small_gpu();
  config.client = 0b10;  // launches get the second TPC alone
  config.client_hidden = true;
  const GpuPointer gpu = test::fake_gpu(config);
  const PageTimer timer = PageTimer::create(gpu).value();
  const DeviceBuffer memory = DeviceBuffer::allocate(gpu, timed_page_bytes).value();
  const std::uint32_t lines[] = {1, 2};
  const auto times = timer.walk({memory.address(), timed_page_bytes, 1}, lines, false);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(times.error().message, HasSubstr("no block of the walk reached SM 0"));
}

PageTraffic traffic_of(PageTraffic::Kind kind, std::uint32_t bytes, std::uint32_t sms = 1) {
  return {.kind = kind, .access_bytes = bytes, .sms = sms, .lasts = microseconds(20)};
}

TEST(PageTimer, an_access_of_many_bytes_is_that_of_many_threads) {
  const Timed timed;
  const auto rate = [&](std::uint32_t bytes) {
    const auto found =
        timed.timer.accesses_per_second(timed.range, traffic_of(PageTraffic::Kind::read, bytes));
    EXPECT_TRUE(found) << found.error().message;
    return found.value();
  };
  const double narrow = rate(16);
  EXPECT_GT(narrow, 0);
  EXPECT_NEAR(rate(512) * 32, narrow, 0.3 * narrow);
}

TEST(PageTimer, writes_go_to_the_pages_and_nowhere_else) {
  const GpuPointer gpu = test::fake_gpu();
  const PageTimer timer = PageTimer::create(gpu).value();
  const DeviceBuffer memory = DeviceBuffer::allocate(gpu, 4 * timed_page_bytes).value();
  ASSERT_TRUE(memory.fill(0));
  const PageRange middle{memory.address() + timed_page_bytes, timed_page_bytes, 2};
  ASSERT_TRUE(timer.accesses_per_second(middle, traffic_of(PageTraffic::Kind::write, 4096)));
  const auto words = memory.read<std::uint32_t>(timed_page_bytes).value();
  std::size_t written = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == 0) continue;
    ++written;
    EXPECT_GE(i * 4, timed_page_bytes);
    EXPECT_LT(i * 4, 3 * timed_page_bytes);
  }
  EXPECT_EQ(written % 4, 0U) << "16 bytes at a time";
  EXPECT_GE(written, timed_page_bytes / 8) << "at random places of all of it";
}

TEST(PageTimer, atomics_add_to_one_word_or_to_many) {
  for (const auto kind : {PageTraffic::Kind::word, PageTraffic::Kind::atomic}) {
    const Timed timed;
    ASSERT_TRUE(timed.memory.fill(0));
    ASSERT_TRUE(timed.timer.accesses_per_second(timed.range, traffic_of(kind, 4)));
    const auto words = timed.memory.read<std::uint32_t>(timed_page_bytes).value();
    const auto changed = static_cast<std::size_t>(
        std::count_if(words.begin(), words.end(), [](std::uint32_t word) { return word != 0; }));
    if (kind == PageTraffic::Kind::word) {
      EXPECT_EQ(changed, 1U);
      EXPECT_EQ(words[0] % 4096, 0U) << "batches of four of 1024 threads";
    } else {
      EXPECT_GT(changed, 1000U);
    }
  }
}

TEST(PageTimer, reads_of_a_page_are_counted_one_a_thread) {
  const Timed timed;
  const auto rate =
      timed.timer.accesses_per_second(timed.range, traffic_of(PageTraffic::Kind::page, 4, 2));
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_GT(*rate, 0);
}

TEST(PageTimer, traffic_that_there_cannot_be_is_refused) {
  const Timed timed;
  const auto refused = [&](PageRange range, const PageTraffic& traffic) {
    const auto rate = timed.timer.accesses_per_second(range, traffic);
    EXPECT_FALSE(rate);
    EXPECT_EQ(rate.error().kind, ErrorKind::invalid_input);
    return rate.error().message;
  };
  for (const std::uint32_t bytes : {0U, 8U, 48U, 8192U}) {
    EXPECT_THAT(refused(timed.range, traffic_of(PageTraffic::Kind::read, bytes)),
                HasSubstr(fmt::format("accesses of {} bytes", bytes)));
  }
  EXPECT_THAT(refused(timed.range, traffic_of(PageTraffic::Kind::atomic, 16)),
              HasSubstr("others have 4"));
  EXPECT_EQ(refused(timed.range, traffic_of(PageTraffic::Kind::read, 16, 0)),
            "accesses from 0 SMs: Fake GPU has 24");
  EXPECT_EQ(refused(timed.range, traffic_of(PageTraffic::Kind::read, 16, 25)),
            "accesses from 25 SMs: Fake GPU has 24");
  const PageRange large{timed.range.base, 2U << 20U, 1U << 15U};
  EXPECT_THAT(refused(large, traffic_of(PageTraffic::Kind::read, 16)),
              HasSubstr("in 64 GiB: at most 4294967296"));
  EXPECT_THAT(
      refused({timed.range.base, timed_page_bytes, 0}, traffic_of(PageTraffic::Kind::read, 16)),
      HasSubstr("timing 0 pages"));
}

TEST(PageTimer, traffic_that_made_no_access_has_no_rate) {
  const Timed timed;
  PageTraffic none = traffic_of(PageTraffic::Kind::read, 16);
  none.lasts = microseconds(0);
  const auto rate = timed.timer.accesses_per_second(timed.range, none);
  ASSERT_FALSE(rate);
  EXPECT_EQ(rate.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(rate.error().message, HasSubstr("1 blocks made 0 batches of accesses"));
}

TEST(PageTimer, a_card_of_before_the_kernels_is_refused) {
  fake::FakeConfig config = fake::small_gpu();
  config.capability_major = 6;
  const auto timer = PageTimer::create(test::fake_gpu(config));
  ASSERT_FALSE(timer);
  EXPECT_EQ(timer.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(timer.error().message, HasSubstr("no kernels that time pages"));
}

}  // namespace
}  // namespace demarc::cuda
