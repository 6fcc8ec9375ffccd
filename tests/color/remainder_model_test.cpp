// Tests that latencies tell what a planted page adds to its remainders.
#include "demarc/color/remainder_model.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "demarc/base/random.hpp"
#include "demarc/device/slice_model.hpp"

namespace demarc::color {
namespace {

constexpr std::uint32_t columns = 8;

// A card with the hash of an H200 whose slices have latencies of their own, with some jitter.
class PlantedCard {
 public:
  explicit PlantedCard(std::uint64_t seed) : random_(seed) {
    for (std::uint32_t slice = 0; slice < 94; ++slice) {
      const bool side = slice % 47 < 20;
      for (std::uint32_t c = 0; c < columns; ++c) {
        const double distance = (c % 2 == 1) == side ? 200 : 240;
        centers_.push_back(static_cast<float>(distance + 30 * random_.uniform()));
      }
    }
  }
  std::uint32_t slice(std::uint64_t offset, std::uint32_t constant, std::uint32_t remainder) const {
    return parity_of_half(offset) * 47 + (hash_.number(offset, constant) + remainder) % 47;
  }
  gpu::LatencyMatrix latencies(const std::vector<std::uint64_t>& offsets, std::uint32_t constant,
                               std::uint32_t remainder) {
    gpu::LatencyMatrix matrix;
    matrix.dimensions = columns;
    for (const std::uint64_t offset : offsets) {
      for (std::uint32_t c = 0; c < columns; ++c) {
        matrix.values.push_back(centers_[slice(offset, constant, remainder) * columns + c] +
                                static_cast<float>(0.3 * random_.uniform()));
      }
    }
    return matrix;
  }

 private:
  std::uint32_t parity_of_half(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(std::popcount(offset & hash_.half)) & 1U;
  }
  RemainderHash hash_ = h200_remainders();
  Random random_;
  std::vector<float> centers_;
};

std::vector<std::uint64_t> every_chunk() {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < 2U << 20U; at += 256) offsets.push_back(at);
  return offsets;
}

TEST(PageRemainders, what_a_page_adds_to_its_numbers_is_found_by_latency) {
  PlantedCard card(3);
  const auto model =
      make_remainder_model(h200_remainders(), card.latencies(every_chunk(), 0x2b, 0));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->constant, 0x2bU);
  EXPECT_GT(model->agreement, 0.99);
  const auto samples = gpu::sample_offsets(2U << 20U, 256, 32);
  for (const auto& [constant, remainder] : {std::pair{0x16U, 37U}, std::pair{0x3fU, 0U}}) {
    const auto found =
        find_page_remainder(*model, samples, card.latencies(samples, constant, remainder), 0);
    EXPECT_EQ(found.constant, constant);
    EXPECT_EQ(found.remainder, remainder);
    EXPECT_GT(found.agreement, 0.9);
  }
}

// Samples of the chunks of one number, as they are looked for where a page's digits are known.
TEST(PageRemainders, what_one_number_says_of_its_page_is_found_whatever_the_half) {
  PlantedCard card(3);
  const auto model = make_remainder_model(h200_remainders(), card.latencies(every_chunk(), 0, 0));
  ASSERT_TRUE(model) << model.error().message;
  const RemainderHash hash = h200_remainders();
  std::vector<std::uint64_t> offsets;
  for (const std::uint64_t offset : every_chunk())
    if (hash.number(offset, 0) == 0) offsets.push_back(offset);
  ASSERT_EQ(offsets.size(), 8U);
  for (const std::uint32_t remainder : {0U, 1U, 23U, 46U}) {
    const gpu::LatencyMatrix front = card.latencies({0, 256}, 0, 11);
    gpu::LatencyMatrix samples = card.latencies(offsets, 0, remainder);
    samples.values.insert(samples.values.begin(), front.values.begin(), front.values.end());
    const auto found = find_number_remainders(*model, offsets, samples, 2);
    EXPECT_EQ(found.remainders, std::vector<std::uint32_t>{remainder});
    EXPECT_EQ(found.agreement, 1);
    // The same page with its halves exchanged.
    std::vector<std::uint64_t> exchanged(offsets);
    for (std::uint64_t& offset : exchanged) {
      for (const std::uint64_t other : offsets) {
        if (std::popcount((offset ^ other) & hash.half) % 2 == 1) {
          offset = other;
          break;
        }
      }
    }
    const auto turned =
        find_number_remainders(*model, offsets, card.latencies(exchanged, 0, remainder), 0);
    EXPECT_EQ(turned.remainders, std::vector<std::uint32_t>{remainder});
    EXPECT_EQ(turned.agreement, 1);
  }
}

TEST(PageRemainders, a_card_with_another_hash_is_refused) {
  Random random(5);
  gpu::LatencyMatrix matrix;
  matrix.dimensions = columns;
  for (std::uint64_t at = 0; at < 8192; ++at) {
    for (std::uint32_t c = 0; c < columns; ++c) {
      const auto cycles = static_cast<double>(200 + 10 * ((at >> 3U) % 7) + c);
      matrix.values.push_back(static_cast<float>(cycles + 0.3 * random.uniform()));
    }
  }
  const auto model = make_remainder_model(h200_remainders(), matrix);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("this card chooses its slices in another way"),
            std::string::npos);
}

}  // namespace
}  // namespace demarc::color
