// Kernels that the stand-in driver does not know by name: their PTX runs in the emulator, as on a
// small card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "demarc/card/masks.hpp"
#include "demarc/driver/memory.hpp"
#include "fake_card.hpp"
#include "small_kernels.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

constexpr const char* other_entries = R"(
.visible .global .align 4 .u32 runs = 40;

// Block b: out[3b] its SM, out[3b + 1] the number of SMs, out[3b + 2] the time.
.visible .entry where(.param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 24;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r2, %smid;
  mov.u32 %r3, %nsmid;
  cvt.u64.u32 %rd3, %r2;
  cvt.u64.u32 %rd4, %r3;
  mov.u64 %rd5, %globaltimer;
  st.global.u64 [%rd1], %rd3;
  st.global.u64 [%rd1+8], %rd4;
  st.global.u64 [%rd1+16], %rd5;
  ret;
}

// Every block arrives and waits until `blocks` have; then it counts itself as gone.
.visible .entry meet(.param .u64 state, .param .u32 blocks)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [state];
  ld.param.u32 %r1, [blocks];
  atom.global.add.u32 %r2, [%rd1], 1;
again:
  ld.volatile.global.u32 %r3, [%rd1];
  setp.lt.u32 %p1, %r3, %r1;
  @%p1 bra again;
  red.global.add.u32 [%rd1+4], 1;
  ret;
}

.visible .entry count_run(.param .u64 unused)
{
  .reg .b32 %r<3>;
  .local .align 4 .b8 stack[24];
  .shared .align 4 .b8 area[40];
  ld.global.u32 %r1, [runs];
  add.u32 %r1, %r1, 1;
  st.global.u32 [runs], %r1;
  ret;
}
)";

// The context of a test that breaks it is whole again afterwards.
class FakePtx : public testing::Test {
 protected:
  void SetUp() override {
    gpu = test::fake_gpu();
    module.emplace(
        Module::load(gpu, test::small_module(test::scale_entry, other_entries), "kernels").value());
    stream.emplace(Stream::create(gpu).value());
    scale.emplace(function("scale"));
  }
  void TearDown() override { test::configure(fake::small_gpu()); }

  [[nodiscard]] Function function(const char* name) const { return module->function(name).value(); }
  [[nodiscard]] DeviceBuffer words(const std::vector<std::uint32_t>& content) const {
    auto buffer = DeviceBuffer::allocate(gpu, content.size() * 4).value();
    EXPECT_TRUE(buffer.upload(content.data(), content.size() * 4));
    return buffer;
  }
  [[nodiscard]] Result<void> scaled(const DeviceBuffer& a, const DeviceBuffer& c, std::uint32_t n) {
    return launch(*stream, *scale, LaunchShape::line((n + 127) / 128, 128), a.address(),
                  c.address(), n);
  }

  GpuPointer gpu;
  std::optional<Module> module;
  std::optional<Stream> stream;
  std::optional<Function> scale;
};

TEST_F(FakePtx, a_kernel_works_on_allocated_memory_and_nowhere_else) {
  std::vector<std::uint32_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 7U);
  const auto a = words(numbers);
  const auto c = words(std::vector<std::uint32_t>(1000, 5));
  ASSERT_TRUE(scaled(a, c, 990));
  ASSERT_TRUE(stream->wait());
  const auto results = c.read<std::uint32_t>(1000).value();
  for (std::uint32_t i = 0; i < 990; ++i) ASSERT_EQ(results[i], 3 * (i + 7) + i) << i;
  for (std::uint32_t i = 990; i < 1000; ++i) EXPECT_EQ(results[i], 5U);
  EXPECT_EQ(a.read<std::uint32_t>(1000).value(), numbers);
}

TEST_F(FakePtx, an_access_one_byte_behind_a_buffer_breaks_the_context_for_good) {
  const auto a = words(std::vector<std::uint32_t>(10));
  ASSERT_TRUE(scaled(a, a, 10));
  ASSERT_TRUE(stream->wait());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(scaled(a, a, 11)) << "found while it runs, not when it is launched";
  EXPECT_FALSE(scaled(a, a, 10));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("out-of-bounds access: "));
  EXPECT_THAT(stream->wait().error().message, HasSubstr("ILLEGAL_ADDRESS"));
  EXPECT_THAT(a.read<std::uint32_t>(1).error().message, HasSubstr("ILLEGAL_ADDRESS"));
  EXPECT_THAT(DeviceBuffer::allocate(gpu, 8).error().message, HasSubstr("ILLEGAL_ADDRESS"));
  test::configure(fake::small_gpu());
  EXPECT_TRUE(scaled(a, a, 10));
}

TEST_F(FakePtx, freed_and_unmapped_memory_is_out_of_bounds) {
  const auto a = words(std::vector<std::uint32_t>(10));
  DevicePointer freed = 0;
  { freed = words(std::vector<std::uint32_t>(10)).address(); }
  testing::internal::CaptureStderr();
  ASSERT_TRUE(launch(*stream, *scale, LaunchShape::line(1, 32), a.address(), freed, 10U));
  EXPECT_THAT(stream->wait().error().message, HasSubstr("ILLEGAL_ADDRESS"));
  test::configure(fake::small_gpu());
  {
    auto range = AddressRange::reserve(gpu, 4 << 20, 2 << 20).value();
    const auto physical = PhysicalMemory::create(gpu, 2 << 20).value();
    ASSERT_TRUE(range.map(0, physical));
    ASSERT_TRUE(range.allow(0, 2 << 20));
    EXPECT_TRUE(launch(*stream, *scale, LaunchShape::line(1, 32), a.address(),
                       range.address() + (2 << 20) - 40, 10U));
    EXPECT_TRUE(stream->wait());
    EXPECT_TRUE(launch(*stream, *scale, LaunchShape::line(1, 32), a.address(),
                       range.address() + (2 << 20) - 36, 10U));
    EXPECT_THAT(stream->wait().error().message, HasSubstr("ILLEGAL_ADDRESS"));
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("out-of-bounds access: "));
}

TEST_F(FakePtx, a_misaligned_access_and_text_that_is_no_ptx_have_errors_of_their_own) {
  const auto a = words(std::vector<std::uint32_t>(10));
  testing::internal::CaptureStderr();
  ASSERT_TRUE(launch(*stream, *scale, LaunchShape::line(1, 32), a.address(), a.address() + 2, 4U));
  EXPECT_THAT(stream->wait().error().message, HasSubstr("MISALIGNED_ADDRESS"));
  test::configure(fake::small_gpu());
  const auto broken =
      Module::load(gpu, ".version 8.0\n.target sm_90\n.entry k() { nonsense", "x").value();
  EXPECT_THAT(broken.function("k").error().message, HasSubstr("INVALID_PTX"));
  testing::internal::GetCapturedStderr();
}

TEST_F(FakePtx, variables_of_a_module_keep_what_kernels_wrote_and_have_an_address) {
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(launch(*stream, function("count_run"), LaunchShape::line(1, 1), std::uint64_t{0}));
  }
  const auto [address, bytes] = module->global("runs").value();
  EXPECT_EQ(bytes, 4U);
  std::uint32_t runs = 0;
  ASSERT_EQ(gpu->api().cuMemcpyDtoH_v2(&runs, address, bytes), cu_success);
  EXPECT_EQ(runs, 42U);
  EXPECT_FALSE(module->global("no_runs"));
  EXPECT_EQ(function("count_run").attribute(function_local_bytes).value(), 24);
  EXPECT_EQ(function("count_run").attribute(function_shared_bytes).value(), 40);
}

TEST_F(FakePtx, blocks_run_on_the_sms_of_their_mask_and_time_passes) {
  const auto card = test::fake_card().value();
  const auto out = words(std::vector<std::uint32_t>(48 * 6));
  const auto of_stream = StreamMask::set(card, stream->handle(), {2, 3});
  ASSERT_TRUE(of_stream) << of_stream.error().message;
  std::uint64_t before = 0;
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(launch(*stream, function("where"), LaunchShape::line(48, 64), out.address()));
    const auto seen = out.read<std::uint64_t>(48 * 3).value();
    for (std::uint64_t block = 0; block < 48; ++block) {
      EXPECT_EQ(seen[3 * block], 4 + block % 4);
      EXPECT_EQ(seen[3 * block + 1], 24U);
      EXPECT_GT(seen[3 * block + 2], before);
    }
    before = seen[2];
  }
}

TEST_F(FakePtx, blocks_that_wait_for_each_other_run_as_many_as_there_are_sms) {
  const auto state = words({0, 0});
  ASSERT_TRUE(launch(*stream, function("meet"), LaunchShape::line(24, 64), state.address(),
                     std::uint32_t{24 * 64}));
  ASSERT_TRUE(stream->wait());
  EXPECT_EQ(state.read<std::uint32_t>(2).value(), (std::vector<std::uint32_t>{1536, 1536}));
}

TEST_F(FakePtx, a_graph_runs_its_kernels_in_order_each_time_and_events_take_their_time) {
  const auto a = words({1, 2, 3});
  const auto begin = Event::create(gpu).value();
  const auto end = Event::create(gpu).value();
  const DriverApi& api = gpu->api();
  ASSERT_EQ(api.cuStreamBeginCapture_v2(stream->handle(), cu_capture_thread_local), cu_success);
  ASSERT_TRUE(scaled(a, a, 3));
  ASSERT_TRUE(scaled(a, a, 2));
  EXPECT_EQ(api.cuMemsetD8Async(a.address(), 0, 4, stream->handle()), cu_error_not_supported);
  CuGraph graph = nullptr;
  CuGraphExec ready = nullptr;
  ASSERT_EQ(api.cuStreamEndCapture(stream->handle(), &graph), cu_success);
  ASSERT_EQ(api.cuGraphInstantiateWithFlags(&ready, graph, 0), cu_success);
  EXPECT_EQ(a.read<std::uint32_t>(3).value(), (std::vector<std::uint32_t>{1, 2, 3}));
  ASSERT_TRUE(begin.record(*stream));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(api.cuGraphLaunch(ready, stream->handle()), cu_success);
  ASSERT_TRUE(end.record(*stream));
  EXPECT_EQ(a.read<std::uint32_t>(3).value(), (std::vector<std::uint32_t>{81, 202, 35}));
  const double milliseconds = end.milliseconds_since(begin).value();
  EXPECT_GT(milliseconds, 4 * 0.001);
  EXPECT_LT(milliseconds, 4 * 0.0012);
  EXPECT_EQ(api.cuGraphExecDestroy(ready), cu_success);
  EXPECT_EQ(api.cuGraphDestroy(graph), cu_success);
}

}  // namespace
}  // namespace demarc::cuda
