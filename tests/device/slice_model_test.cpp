// Slices, their masks and the constants of pages, from the latencies of a planted hash.
#include "demarc/device/slice_model.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "demarc/base/random.hpp"
#include "latency_split.hpp"
#include "sms.hpp"

namespace demarc::gpu {
namespace {

constexpr std::uint64_t planted_page = 512 * 256;  // 512 chunks of 256 bytes
constexpr std::uint64_t planted_masks[] = {0x1100, 0x2200, 0x4c00};

std::uint32_t planted_slice(std::uint64_t offset, std::uint32_t constant) {
  std::uint32_t slice = constant;
  for (std::uint32_t m = 0; m < 3; ++m)
    slice ^= (static_cast<std::uint32_t>(std::popcount(offset & planted_masks[m])) & 1U) << m;
  return slice;
}

// Eight slices, of which 6 and 7 look alike where `alike`.
class PlantedSlices {
 public:
  explicit PlantedSlices(bool alike) {
    for (std::uint32_t slice = 0; slice < 8; ++slice)
      for (std::uint32_t c = 0; c < 4; ++c)
        centers_.push_back(static_cast<float>(200 + 40 * random_.uniform()));
    for (std::uint32_t c = 0; alike && c < 4; ++c) centers_[7 * 4 + c] = centers_[6 * 4 + c];
  }
  LatencyMatrix at(const std::vector<std::uint64_t>& offsets, std::uint32_t constant) {
    LatencyMatrix matrix;
    matrix.dimensions = 4;
    for (const std::uint64_t offset : offsets)
      for (std::uint32_t c = 0; c < 4; ++c)
        matrix.values.push_back(centers_[planted_slice(offset, constant) * 4 + c] +
                                static_cast<float>(0.2 * random_.normal()));
    return matrix;
  }

 private:
  Random random_{11};
  std::vector<float> centers_;
};

std::vector<std::uint64_t> all_chunks() {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < planted_page; at += 256) offsets.push_back(at);
  return offsets;
}

// The planted slice of a label: the model's masks are another basis of the same space.
std::uint32_t label_of(const SliceModel& model, std::uint64_t offset) {
  std::uint32_t label = 0;
  for (std::size_t m = 0; m < model.masks.size(); ++m)
    label |= (static_cast<std::uint32_t>(std::popcount(offset & model.masks[m])) & 1U) << m;
  return label;
}

TEST(SliceModel, finds_the_planted_masks_and_the_label_of_every_slice) {
  PlantedSlices card(false);
  const SliceModel model =
      make_slice_model(card.at(all_chunks(), 0), planted_page, test::sm_list({3, 5, 7, 9}));
  EXPECT_EQ(model.sms, test::sm_list({3, 5, 7, 9}));
  EXPECT_EQ(model.page_bytes, planted_page);
  EXPECT_EQ(model.chunk_bytes, 256U);
  EXPECT_EQ(model.clusters.sizes, std::vector<std::uint32_t>(8, 64));
  ASSERT_EQ(model.masks.size(), 3U);
  EXPECT_EQ(model.votes.size(), 7U) << "the sums of three masks";
  for (const MaskVote& vote : model.votes) EXPECT_EQ(vote.share, 1);
  ASSERT_EQ(model.label.size(), 8U);
  EXPECT_EQ(model.known, std::vector<std::uint32_t>(8, 7));
  for (std::uint32_t i = 0; i < 512; ++i)
    EXPECT_EQ(model.label[model.clusters.cluster[i]], label_of(model, i * 256)) << i;
}

// Two slices of 256 chunks each. The first hundred chunks of one lie in the lower half of the page.
TEST(SliceModel, masks_are_constant_on_the_whole_of_a_large_cluster) {
  LatencyMatrix latencies;
  latencies.dimensions = 4;
  Random random(3);
  for (const std::uint64_t offset : all_chunks()) {
    const float center = std::popcount(offset & 0x1100U) % 2 == 0 ? 200 : 240;
    for (int c = 0; c < 4; ++c) {
      latencies.values.push_back(center + static_cast<float>(0.2 * random.normal()));
    }
  }
  const SliceModel model = make_slice_model(latencies, planted_page, {});
  ASSERT_EQ(model.clusters.sizes, std::vector<std::uint32_t>(2, 256));
  EXPECT_EQ(model.masks, std::vector<std::uint64_t>{0x1100});
  EXPECT_EQ(model.votes.size(), 1U) << "nothing is said of bits that are 0 at first";
  EXPECT_EQ(model.known, std::vector<std::uint32_t>(2, 1));
}

TEST(SliceModel, bits_by_which_slices_differ_that_look_alike_are_not_known) {
  PlantedSlices card(true);
  const SliceModel model = make_slice_model(card.at(all_chunks(), 0), planted_page, {});
  ASSERT_EQ(model.clusters.sizes.size(), 7U);
  ASSERT_EQ(model.masks.size(), 3U);
  for (const MaskVote& vote : model.votes) EXPECT_TRUE(vote.share == 1 || vote.share == 0.75);
  for (std::size_t c = 0; c < 7; ++c) {
    const bool both = model.clusters.sizes[c] == 128;
    EXPECT_EQ(std::popcount(model.known[c]), both ? 2 : 3) << c;
  }
}

TEST(SliceModel, a_pages_constant_is_found_from_samples_and_disturbed_ones_are_left_out) {
  PlantedSlices card(false);
  const SliceModel model = make_slice_model(card.at(all_chunks(), 0), planted_page, {});
  const auto offsets = sample_offsets(planted_page, 256, 24);
  for (std::uint32_t planted = 0; planted < 8; ++planted) {
    LatencyMatrix samples = card.at(offsets, 5);  // another page's, in front
    const LatencyMatrix own = card.at(offsets, planted);
    samples.values.insert(samples.values.end(), own.values.begin(), own.values.end());
    PageConstant found = model.page_constant(offsets, samples, offsets.size());
    EXPECT_TRUE(found.certain());
    EXPECT_EQ(found.samples, 24U);
    EXPECT_EQ(found.agreement, 1);
    for (std::uint64_t at = 0; at < planted_page; at += 256) {
      const std::uint64_t same = [&] {
        for (std::uint64_t other = 0;; other += 256)
          if (planted_slice(other, 0) == planted_slice(at, planted)) return other;
      }();
      ASSERT_EQ(label_of(model, at) ^ found.constant, label_of(model, same)) << at;
    }
    for (std::uint32_t c = 0; c < 4; ++c) samples.values[24 * 4 + c] += 100;
    found = model.page_constant(offsets, samples, offsets.size());
    EXPECT_EQ(found.samples, 23U);
    EXPECT_EQ(found.agreement, 1);
  }
}

TEST(SliceModel, samples_that_contradict_each_other_or_are_too_few_are_not_certain) {
  PlantedSlices card(false);
  const SliceModel model = make_slice_model(card.at(all_chunks(), 0), planted_page, {});
  const auto offsets = sample_offsets(planted_page, 256, 24);
  LatencyMatrix samples = card.at(offsets, 0);
  const LatencyMatrix others = card.at(offsets, 7);
  std::copy(others.values.begin(), others.values.begin() + 6 * 4, samples.values.begin());
  const PageConstant mixed = model.page_constant(offsets, samples);
  EXPECT_EQ(mixed.constant, 0U);
  EXPECT_EQ(mixed.agreement, 0.75);
  EXPECT_FALSE(mixed.certain());
  const auto agreement_of = [&](std::size_t count) {
    return model.page_constant(std::span(offsets).first(count), card.at(offsets, 3)).agreement;
  };
  EXPECT_EQ(agreement_of(3), 1);
  EXPECT_EQ(agreement_of(2), 0);
  EXPECT_EQ(agreement_of(0), 0);
}

TEST(SliceModel, constants_of_pages_come_in_their_order_and_an_error_of_the_reader_is_theirs) {
  PlantedSlices card(false);
  const SliceModel model = make_slice_model(card.at(all_chunks(), 0), planted_page, {});
  std::size_t calls = 0;
  const LatencyReader read =
      [&](std::span<const std::uint64_t> addresses) -> Result<LatencyMatrix> {
    ++calls;
    LatencyMatrix all;
    all.dimensions = 4;
    for (const std::uint64_t address : addresses) {
      const auto nth = static_cast<std::uint32_t>(address / planted_page);
      const LatencyMatrix one = card.at({address % planted_page}, nth % 8);
      all.values.insert(all.values.end(), one.values.begin(), one.values.end());
    }
    return all;
  };
  std::vector<double> shares;
  const auto found =
      find_page_constants(model, 2050, 12, read,
                          [&shares](double share, std::string_view) { shares.push_back(share); });
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2050U);
  EXPECT_EQ(calls, 2U);
  EXPECT_EQ(shares, (std::vector<double>{2048.0 / 2050, 1}));
  for (std::size_t one = 0; one < found->size(); ++one)
    ASSERT_EQ((*found)[one].constant, (*found)[one % 8].constant) << one;
  EXPECT_NE((*found)[0].constant, (*found)[1].constant);
  const auto failed = find_page_constants(
      model, 1, 12, [](auto) -> Result<LatencyMatrix> { return check_failed("stuck"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "stuck");
}

TEST(SliceModel, of_nothing_is_empty) {
  const SliceModel model = make_slice_model({}, planted_page, test::sm_list({1}));
  EXPECT_EQ(model.page_bytes, planted_page);
  EXPECT_TRUE(model.masks.empty());
}

TEST(SampleOffsets, are_chunks_of_the_page_that_lie_all_over_it) {
  const auto offsets = sample_offsets(1U << 20U, 4096, 64);
  EXPECT_EQ(offsets.size(), 64U);
  std::vector<std::uint32_t> in_eighth(8);
  for (const std::uint64_t offset : offsets) {
    EXPECT_EQ(offset % 4096, 0U);
    ++in_eighth.at(offset >> 17U);
  }
  for (const std::uint32_t count : in_eighth) EXPECT_NEAR(count, 8, 2);
}

LatencyMatrix one_column(const std::vector<float>& values) {
  return {1, values};
}

TEST(LatencySplit, cuts_where_the_squares_are_least_and_scores_by_the_gap) {
  const Rows rows{0, 1, 2, 3, 4, 5, 6};
  const LatencyMatrix matrix = one_column({1, 21, 2, 22, 3, 20, 99});
  const Split split = best_split(matrix, {0, 1, 2, 3, 4, 5}, 2);
  const bool swapped = split.low.front() % 2 == 1;
  EXPECT_EQ(swapped ? split.high.size() : split.low.size(), 3U);
  for (const auto r : swapped ? split.high : split.low) EXPECT_EQ(r % 2, 0U);
  for (const auto r : swapped ? split.low : split.high) EXPECT_EQ(r % 2, 1U);
  EXPECT_NEAR(split.score, 19 / std::sqrt(2.0 / 3), 1e-6);
  EXPECT_TRUE(best_split(matrix, {0, 1, 2}, 2).low.empty()) << "fewer than two parts need";
  EXPECT_EQ(best_split(matrix, {0, 1, 2, 3}, 2).low.size(), 2U);
  const Split lonely = best_split(one_column({1, 2, 3, 4, 90}), {0, 1, 2, 3, 4}, 2);
  EXPECT_EQ(std::min(lonely.low.size(), lonely.high.size()), 2U) << "no part of one row";
}

TEST(LatencySplit, distances_are_whole_below_their_limit_and_at_least_it_above) {
  const float a[] = {1, 2, 3, 4, 5, 6};
  const float b[] = {2, 4, 6, 8, 10, 12};
  EXPECT_EQ(squared_distance(a, b, 6), 1 + 4 + 9 + 16 + 25 + 36);
  EXPECT_EQ(squared_distance(a, b, 6, 1000), 91);
  EXPECT_GE(squared_distance(a, b, 6, 20), 20);
  EXPECT_EQ(squared_distance(a, b, 0), 0);
  EXPECT_EQ(mean_of({2, {1, 2, 3, 4, 50, 60}}, {0, 1}), (std::vector<float>{2, 3}));
}

}  // namespace
}  // namespace demarc::gpu
