// A launch on two cards of the stand-in, which run their blocks in the emulator.
#include "demarc/driver/split_launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "demarc/launch/launch.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// Each block leaves its place in the grid, x + 100 y + 10000 z, and the size of the grid.
constexpr const char* places_module = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry places(.param .u64 places_0) {
  .reg .b32 %r<12>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [places_0];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ctaid.y;
  mov.u32 %r2, %ctaid.z;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %nctaid.y;
  mad.lo.u32 %r5, %r2, %r4, %r1;
  mad.lo.u32 %r5, %r5, %r3, %r0;
  mul.wide.u32 %rd1, %r5, 4;
  add.u64 %rd1, %rd0, %rd1;
  mad.lo.u32 %r6, %r1, 100, %r0;
  mad.lo.u32 %r6, %r2, 10000, %r6;
  st.global.u32 [%rd1], %r6;
  ret;
}
)";

class SplitLaunch : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_FAKE_DEVICES", "2", 1);
    test::configure(fake::small_gpu());
    for (const std::uint32_t index : {0U, 1U}) {
      gpus.push_back(Gpu::open(test::fake_driver(), index).value());
    }
    gpu::Buffer out;
    out.name = "out";
    out.bytes = std::uint64_t{4} * 5 * 3 * 2;
    out.output = true;
    launch.buffers = {out};
    gpu::KernelLaunch kernel;
    kernel.kernel = "places";
    kernel.grid = {5, 3, 2};
    kernel.arguments = {gpu::BufferUse{0, 0}};
    launch.kernels = {kernel};
    plan.page_bytes = 2U << 20U;
    plan.owners = {1};
  }
  void TearDown() override { ::unsetenv("DEMARC_FAKE_DEVICES"); }
  [[nodiscard]] Result<SplitRun> run() const {
    return run_split(gpus, launch, places_module, "places.ptx", plan);
  }

  std::vector<GpuPointer> gpus;
  gpu::Launch launch;
  SplitPlan plan;
};

TEST_F(SplitLaunch, blocks_of_all_cards_see_their_place_in_the_whole_grid) {
  plan.runs = 3;
  const auto done = run();
  ASSERT_TRUE(done) << done.error().message;
  std::vector<std::uint32_t> found(5 * 3 * 2);
  std::memcpy(found.data(), done->buffers[0].data(), done->buffers[0].size());
  for (std::uint32_t z = 0; z < 2; ++z) {
    for (std::uint32_t y = 0; y < 3; ++y) {
      for (std::uint32_t x = 0; x < 5; ++x) {
        EXPECT_EQ(found[(z * 3 + y) * 5 + x], x + 100 * y + 10000 * z);
      }
    }
  }
  ASSERT_EQ(done->kernels.size(), 3U);
  ASSERT_EQ(done->kernels[0].size(), 1U);
  EXPECT_EQ(done->kernels[0][0].kernel, "places");
  ASSERT_EQ(done->kernels[0][0].milliseconds.size(), 2U);
  for (const double one : done->kernels[0][0].milliseconds) EXPECT_GT(one, 0);
}

TEST_F(SplitLaunch, a_card_without_blocks_has_no_time) {
  launch.kernels[0].grid = {1, 1, 1};
  const auto done = run();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_GT(done->kernels[0][0].milliseconds[0], 0);
  EXPECT_EQ(done->kernels[0][0].milliseconds[1], 0);
}

TEST_F(SplitLaunch, each_run_begins_with_the_buffers_as_they_were) {
  launch.buffers[0].fill.kind = gpu::FillKind::iota;
  launch.buffers[0].bytes += 4;  // no block writes the last word
  plan.runs = 2;
  const auto done = run();
  ASSERT_TRUE(done) << done.error().message;
  std::uint32_t last = 0;
  std::memcpy(&last, done->buffers[0].data() + 120, 4);
  EXPECT_EQ(last, 30U);
}

TEST_F(SplitLaunch, refuses_what_has_no_place_on_the_cards) {
  const auto refused = [&] {
    const auto done = run();
    return done ? std::string("accepted") : done.error().message;
  };
  launch.buffers[0].bytes = (2U << 20U) + 4;
  EXPECT_EQ(refused(), "the pages end before the end of buffer 'out'");
  launch.buffers[0].bytes = 120;
  launch.buffers[0].host = true;
  EXPECT_THAT(refused(), HasSubstr("buffer 'out' lies in host memory"));
  launch.buffers[0].host = false;
  launch.buffers[0].address = 0x100000;
  EXPECT_NE(refused(), "accepted");
  launch.buffers[0].address = 0;
  launch.kernels[0].cluster = gpu::Dim3{1, 1, 1};
  EXPECT_THAT(refused(), HasSubstr("which parts of a grid on several cards do not support"));
  launch.kernels[0].cluster.reset();
  const gpu::Argument buffer = std::exchange(launch.kernels[0].arguments[0], gpu::ImageUse{0});
  EXPECT_THAT(refused(),
              HasSubstr("a texture or a surface, which parts of a grid on several cards do not"));
  launch.kernels[0].arguments[0] = buffer;
  plan.page_bytes = 65536;
  EXPECT_THAT(refused(), HasSubstr("maps no pieces of 64 KiB"));
  plan.page_bytes = 2U << 20U;
  plan.owners.clear();
  EXPECT_THAT(refused(), HasSubstr("this maps nothing"));
}

TEST_F(SplitLaunch, refuses_cards_that_do_not_reach_each_other) {
  auto apart = fake::small_gpu();
  apart.peer_access = false;
  test::configure(apart);
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(done.error().message, HasSubstr("does not reach the memory of"));
}

}  // namespace
}  // namespace demarc::cuda
