// Kernels made SM-affine leave the bytes of the original, whatever threads return before barriers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "demarc/ptx/affine.hpp"
#include "harness.hpp"

namespace demarc::emulate::test {
namespace {

// 4 blocks of 128 threads of which the last ones return at once, or each at its own step of a loop.
std::string kernel_with(const std::string& returns) {
  return kernel_of(".shared .align 16 .b8 area[1024];\n", R"(
mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 128, %r1;
mul.wide.u32 %rd3, %r3, 8; add.s64 %rd3, %rd1, %rd3;
cvt.u64.u32 %rd5, %r3;
mul.lo.u32 %r5, %r1, 8; xor.b32 %r7, %r5, 8; mov.u32 %r6, area; add.u32 %r7, %r7, %r6;
add.u32 %r6, %r6, %r5;
st.shared.u64 [%r6], %rd5;
mov.u32 %r4, 0;
$again:
)" + returns + R"(
bar.sync 0;
ld.shared.u64 %rd6, [%r7];
bar.sync 1;
add.u64 %rd5, %rd5, %rd6;
st.shared.u64 [%r6], %rd5;
st.global.u64 [%rd3], %rd5;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 5;
@%p2 bra $again;
$gone:)");
}

std::string affine_text(const std::string& text) {
  return *ptx::rewrite_affine(ptx::parse_whole(text, "t.ptx").value()).value().text;
}

void expect_same_words(const std::string& returns) {
  const std::string text = kernel_with(returns);
  const gpu::Launch plain = launch_of(4, 128, std::uint64_t{8} * 4 * 128);
  const auto original = run_text(text, plain);
  ASSERT_TRUE(original) << original.error().message;
  gpu::Launch launch = plain;
  gpu::Buffer queue;
  queue.bytes = sizeof(ptx::AffineQueue);
  queue.fill.kind = gpu::FillKind::bytes;
  queue.fill.bytes.assign(sizeof(ptx::AffineQueue), std::byte{0xFF});
  std::fill_n(queue.fill.bytes.begin(), 8, std::byte{0});
  launch.buffers.push_back(queue);
  launch.kernels[0].grid.x = 2;
  launch.kernels[0].arguments.emplace_back(gpu::BufferUse{1, 0});
  for (const std::uint64_t axis : {4U, 1U, 1U}) {
    launch.kernels[0].arguments.emplace_back(gpu::Scalar{gpu::ScalarType::u32, axis});
  }
  const auto affine = run_text(affine_text(text), launch);
  ASSERT_TRUE(affine) << affine.error().message;
  EXPECT_EQ(words_of(*affine), words_of(*original)) << returns;
  EXPECT_EQ(affine->findings.size(), original->findings.size());
}

TEST(Affine,
     threads_that_return_before_the_barriers_of_the_others_leave_the_bytes_of_the_original) {
  expect_same_words("setp.ge.u32 %p1, %r3, 480; @%p1 ret;");
  expect_same_words("setp.ge.u32 %p1, %r3, 490; @%p1 bra $gone;");
  expect_same_words("and.b32 %r8, %r1, 3; setp.gt.u32 %p1, %r4, %r8; @%p1 exit;");
  expect_same_words("shr.u32 %r8, %r1, 5; setp.gt.u32 %p1, %r4, %r8; @%p1 bra $gone;");
}

TEST(Affine, threads_wait_after_their_return_only_where_others_may_have_a_barrier) {
  const auto waits = [](const std::string& returns) {
    return affine_text(kernel_with(returns)).find("demarc_returned") != std::string::npos;
  };
  EXPECT_TRUE(waits("setp.ge.u32 %p1, %r3, 480; @%p1 ret;"));
  EXPECT_FALSE(waits("setp.ge.u32 %p1, %r2, 3; @%p1 ret;"));
  EXPECT_FALSE(waits("setp.ge.u32 %p1, %r1, 3; @%p1 mov.u32 %r9, 1;"));
}

}  // namespace
}  // namespace demarc::emulate::test
