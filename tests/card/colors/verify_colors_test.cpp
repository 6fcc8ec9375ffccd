// Tests that colours are proved on the stand-in, and not where a neighbour is felt.
#include "demarc/card/verify_colors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "pools.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

class VerifyColors : public testing::Test {
 protected:
  void SetUp() override {
    test::configure(fake::small_gpu());
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    plan.masks = {0xc4000};
    plan.pool_bytes = 16 << 20;
  }
  void TearDown() override { ::unsetenv("DEMARC_LIBCUDA"); }
  VerifyColorsPlan plan;
};

TEST_F(VerifyColors, a_half_is_proved_by_its_chunks_and_by_neighbours_that_are_not_felt) {
  const auto report = verify_colors(plan);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->holds);
  EXPECT_TRUE(report->felt);
  EXPECT_EQ(report->audit.chunks_of_color[1], 0U);
  ASSERT_EQ(report->effects.size(), 4U);
  EXPECT_NEAR(report->effects[0].slowdown, 1.0, 0.01);
  EXPECT_NEAR(report->effects[1].slowdown, 1.0, 0.01);
  EXPECT_NEAR(report->effects[2].slowdown, 1.8, 0.05) << "reads in the same colours are felt";
  EXPECT_NEAR(report->effects[3].slowdown, 3.4, 0.1) << "writes in the same colours more";
  EXPECT_EQ(report->expected, color::ColorSet(0x1, 2));
  EXPECT_EQ(report->audit.outside + report->audit.unclear, 0U);
  const std::uint64_t chunks = report->audit.chunks_of_color[0];
  EXPECT_EQ(chunks, report->audit.chunks());
  const std::string text = report_to_text(*report);
  EXPECT_THAT(text, HasSubstr("Fake GPU: chunks of 16384 bytes, by timing\n"));
  EXPECT_THAT(text, HasSubstr(fmt::format("colour 0  {:>10} chunks, expected here\n", chunks)));
  EXPECT_THAT(text, HasSubstr("colour 1           0 chunks\n"));
  EXPECT_THAT(text, HasSubstr("0 outside, 0 unclear\n"));
  EXPECT_THAT(text, HasSubstr("neighbour reads, other colours         1.000x the time alone\n"));
  EXPECT_THAT(text, HasSubstr("3.400x the time alone, for comparison\n"));
  EXPECT_THAT(text, HasSubstr("the colours HOLD"));
  const Json json = Json::parse(report_to_json(*report));
  EXPECT_EQ(json["card"], "Fake GPU");
  EXPECT_EQ(json["chunk_bytes"], 16384);
  EXPECT_EQ(json["expected_colors"], 1);
  EXPECT_EQ(json["chunks_of_color"], Json::array({chunks, 0}));
  EXPECT_EQ(json["outside"], 0);
  EXPECT_EQ(json["unclear"], 0);
  EXPECT_EQ(json["holds"], true);
  EXPECT_EQ(json["neighbours"].size(), 4U);
  EXPECT_EQ(json["neighbours"][1]["counts"], true);
  EXPECT_EQ(json["neighbours"][2]["neighbour"], "reads, the same colours");
  EXPECT_EQ(json["neighbours"][2]["counts"], false);
}

TEST_F(VerifyColors, a_quarter_is_compared_with_another_quarter) {
  plan.masks = {0x18a000, 0xc4000};
  plan.colors = {2};
  const auto report = verify_colors(plan);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->holds);
  EXPECT_GT(report->audit.chunks_of_color[2], 0U);
  EXPECT_THAT(report_to_json(*report), HasSubstr("demarc.verify.colors/2"));
}

// Launches that making the pool takes; what comes after them is the proof.
std::uint64_t launches_of_pool(std::uint64_t bytes) {
  const GpuPointer gpu = test::fake_gpu();
  CardOptions options;
  options.use_masks = false;
  const CardPointer card = Card::open(gpu, options).value();
  const auto scheme = color::scheme_of_masks(test::half_mask).value();
  const std::uint64_t taken = bytes * scheme.pages_per_kept_page();
  EXPECT_TRUE(ColoredPool::create(card, scheme, taken, test::both_halves));
  return test::fake_symbol<std::uint64_t()>("fake_launch_count")();
}

TEST_F(VerifyColors, chunks_in_doubt_break_the_proof) {
  fake::FakeConfig busy = fake::small_gpu();
  busy.upset_from = launches_of_pool(plan.pool_bytes) + 1;
  busy.upset_until = 1000000;
  busy.upset_noise = 60;
  test::configure(busy);
  const auto report = verify_colors(plan);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->audit.unclear, 0U);
  EXPECT_NEAR(report->effects[1].slowdown, 1.0, 0.01) << "no neighbour is felt";
  EXPECT_FALSE(report->holds);
  EXPECT_THAT(report_to_text(*report), HasSubstr("DO NOT HOLD"));
}

TEST_F(VerifyColors, all_colours_or_none_are_refused) {
  plan.colors = {0, 1};
  EXPECT_EQ(verify_colors(plan).error().kind, ErrorKind::invalid_input);
  plan.colors = {};
  EXPECT_FALSE(verify_colors(plan));
  plan.colors = {4};
  EXPECT_FALSE(verify_colors(plan));
}

TEST_F(VerifyColors, a_neighbour_that_is_felt_breaks_the_proof) {
  plan.max_slowdown = 0.5;  // less than the victim alone
  const auto report = verify_colors(plan);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->holds);
  EXPECT_THAT(report_to_text(*report), HasSubstr("DO NOT HOLD"));
}

TEST_F(VerifyColors, nothing_is_proved_where_no_neighbour_is_felt) {
  plan.max_slowdown = 5;  // above what the neighbours in the same colours cost
  const auto report = verify_colors(plan);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->felt);
  EXPECT_FALSE(report->holds);
  EXPECT_THAT(report_to_text(*report), HasSubstr("neighbours in the same colours slow it"));
}

}  // namespace
}  // namespace demarc::cuda
