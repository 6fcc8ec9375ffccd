// A kernel made SM-affine, on the stand-in for libcuda, which runs it in the emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"
#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "fake_card.hpp"

namespace demarc::study {
namespace {

// Block b adds 1000 + its SM to out[b].
constexpr const char* note_sm_ptx = R"(.version 8.0
.target sm_90
.address_size 64

.visible .entry note_sm(.param .u64 out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r4, %smid;
  add.u32 %r4, %r4, 1000;
  red.global.add.u32 [%rd3], %r4;
  ret;
}
)";

TEST(AffineKernel, runs_every_block_once_and_on_its_sms_alone) {
  const auto gpu = test::fake_gpu();
  const auto affine = ptx::rewrite_affine(ptx::parse_whole(note_sm_ptx, "note").value()).value();
  const auto module = cuda::Module::load(gpu, ptx::print(affine), "note").value();
  const auto stream = cuda::Stream::create(gpu).value();
  ptx::AffineQueue queue;
  queue.sms[0] = 0x3c0;  // 6 to 9
  const auto placed = cuda::DeviceBuffer::allocate(gpu, sizeof queue).value();
  ASSERT_TRUE(placed.upload(&queue, sizeof queue));
  const auto out = cuda::DeviceBuffer::allocate(gpu, 4 * 50).value();
  for (int run = 0; run < 2; ++run) {  // the last block to leave resets the queue
    ASSERT_TRUE(out.fill(0));
    ASSERT_TRUE(cuda::launch(stream, module.function("note_sm").value(),
                             cuda::LaunchShape::line(24, 1), out.address(), placed.address(), 10U,
                             5U, 1U));
    const auto done = stream.wait();
    ASSERT_TRUE(done) << done.error().message;
    const auto seen = out.read<std::uint32_t>(50).value();
    EXPECT_THAT(seen, testing::Each(testing::AllOf(testing::Ge(1006U), testing::Le(1009U))));
  }
}

}  // namespace
}  // namespace demarc::study
