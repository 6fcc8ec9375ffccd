// Kernels rewritten for the memory of a pool of colours, on the stand-in for libcuda, which runs
// them in the emulator: right results, and no byte of another colour written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "demarc/card/code_of_pool.hpp"
#include "demarc/driver/launch.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "pools.hpp"
#include "small_kernels.hpp"

namespace demarc::study {
namespace {

using cuda::ColoredBuffer;
using cuda::ColoredPool;

constexpr std::uint32_t scaled_elements = 5000;
constexpr std::uint64_t two_mebibytes = 2 << 20;

// All of the other colour holds one pattern, before and after; so do the bytes of the colour beside
// the result.
class Beside {
 public:
  Beside(ColoredPool& pool, std::size_t share)
      : buffer_(pool.allocate(share, pool.usage(share).largest_free_bytes).value()),
        pattern_(buffer_.bytes(), 0xa5) {
    EXPECT_TRUE(buffer_.upload(pattern_.data(), pattern_.size()));
  }
  [[nodiscard]] bool untouched() const {
    std::vector<std::uint8_t> now(pattern_.size());
    EXPECT_TRUE(buffer_.download(now.data(), now.size()));
    return now == pattern_;
  }

 private:
  ColoredBuffer buffer_;
  std::vector<std::uint8_t> pattern_;
};

// Runs the kernel, rewritten for the colour, from one buffer of it to another.
void expect_contained(const std::shared_ptr<ColoredPool>& pool, std::uint32_t color) {
  SCOPED_TRACE(color);
  std::vector<std::uint32_t> numbers(scaled_elements);
  std::iota(numbers.begin(), numbers.end(), 1U);
  const auto from = pool->allocate(color, scaled_elements * 4).value();
  const auto to = pool->allocate(color, scaled_elements * 4).value();
  ASSERT_TRUE(from.upload(numbers.data(), scaled_elements * 4));
  const Beside same(*pool, color);
  const Beside other(*pool, 1 - color);
  const auto code = cuda::code_of_pool(*pool, color).value();
  const auto rewritten =
      code.rewrite(ptx::parse_whole(test::small_module(test::scale_entry), "scale").value())
          .value();
  const cuda::GpuPointer gpu = pool->arena().gpu();
  const auto module = cuda::Module::load(gpu, ptx::print(rewritten.module), "coloured").value();
  const auto stream = cuda::Stream::create(gpu).value();
  ASSERT_TRUE(cuda::launch(stream, module.function("scale").value(),
                           cuda::LaunchShape::line((scaled_elements + 255) / 256, 256),
                           code.pointer(from.first()).raw(), code.pointer(to.first()).raw(),
                           scaled_elements));
  const auto done = stream.wait();
  ASSERT_TRUE(done) << done.error().message;
  std::vector<std::uint32_t> results(scaled_elements);
  ASSERT_TRUE(to.download(results.data(), scaled_elements * 4));
  for (std::uint32_t i = 0; i < scaled_elements; ++i) ASSERT_EQ(results[i], 3 * (i + 1) + i) << i;
  EXPECT_TRUE(same.untouched());
  EXPECT_TRUE(other.untouched());
}

TEST(ColouredKernel, of_parities_is_right_and_writes_nothing_but_its_result) {
  const auto pool = test::parity_pool(4 * two_mebibytes).value();
  for (const std::uint32_t color : {0U, 1U}) expect_contained(pool, color);
}

TEST(ColouredKernel, of_remainders_is_right_and_writes_nothing_but_its_result) {
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  const auto card = test::fake_card(config).value();
  const auto scheme = color::color_scheme(gpu::find_device("h200").value(), 2).value();
  constexpr cuda::ShareRequest sides[] = {{{0x1, 2}, 0}, {{0x2, 2}, 0}};
  const auto pool = ColoredPool::create(card, scheme, 4 * two_mebibytes, sides).value();
  for (const std::uint32_t color : {0U, 1U}) expect_contained(pool, color);
  test::configure(fake::small_gpu());
}

}  // namespace
}  // namespace demarc::study
