// Traffic that a measurement runs beside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/card/memory_timer.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/card/probe_kernels.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

const std::vector<std::uint32_t> two_chunks{0, 1};
const SmRoles traffic_sms{1, 1};

TEST(Traffic, is_in_the_second_domain_where_the_card_has_several) {
  fake::FakeConfig config = fake::small_gpu();
  for (const std::uint32_t domains : {4U, 2U, 1U}) {
    config.sync_domains = domains;
    const GpuPointer gpu = test::fake_gpu(config);
    const MemoryTimer timer = MemoryTimer::create(gpu).value();
    const PageArena arena = PageArena::create(gpu, 1).value();
    std::uint32_t domain = 99;
    const auto measured =
        timer.beside(arena.address(), {two_chunks, 14, true, false}, traffic_sms, [&] {
          domain = test::fake_symbol<std::uint32_t()>("fake_last_domain")();
          return Result<double>(7.0);
        });
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_EQ(*measured, 7.0);
    EXPECT_EQ(domain, domains > 1 ? 1U : 0U) << domains;
  }
}

// On the stand-in a round is a tenth of a millisecond, and a launch of work takes one.
TEST(Traffic, grows_until_it_outlasts_the_work_and_is_given_up_after_five_times) {
  const GpuPointer gpu = test::fake_gpu();
  const MemoryTimer timer = MemoryTimer::create(gpu).value();
  const PageArena arena = PageArena::create(gpu, 1).value();
  const auto kernels = ProbeKernels::load(gpu).value();
  const Stream stream = Stream::create(gpu).value();
  const TimedStream three_rounds{two_chunks, 28, true, false};
  const auto times_of = [&](int launches) {
    int times = 0;
    const auto measured = timer.beside(arena.address(), three_rounds, traffic_sms, [&] {
      for (int i = 0; i < launches; ++i) {
        EXPECT_TRUE(launch(stream, kernels.idle(), LaunchShape::line(1, 32)));
      }
      EXPECT_TRUE(stream.wait());
      return Result<double>(++times);
    });
    EXPECT_EQ(measured.value_or(times), times) << "the last one's";
    return measured ? times : -times;
  };
  EXPECT_EQ(times_of(0), 1);
  EXPECT_EQ(times_of(1), 2);
  EXPECT_EQ(times_of(5), 3);
  EXPECT_EQ(times_of(350), -5);
  const auto none = [] { return Result<double>(0.0); };
  EXPECT_THAT(
      timer.beside(arena.address(), {{}, 14, true, false}, traffic_sms, none).error().message,
      HasSubstr("is not traffic"));
}

}  // namespace
}  // namespace demarc::cuda
