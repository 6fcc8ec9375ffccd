// Topology, cache, calibration and verification on the stand-in.
#include "demarc/cuda/card.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using test::fake_card;
using testing::HasSubstr;

TEST(Card, TheTopologyOfThePlantedGpuIsFoundByBothWays) {
  const fake::FakeConfig config = fake::small_gpu();
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  const auto& facts = (*card)->facts();
  EXPECT_TRUE(facts.by_descriptor);
  EXPECT_TRUE(facts.by_cluster);
  EXPECT_FALSE((*card)->virtual_sms());
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    const gpu::Tpc& tpc = (*card)->topology().tpcs[t];
    EXPECT_EQ(tpc.gpc, config.gpc[t]) << t;
    EXPECT_EQ(tpc.bit, config.bit[t]) << t;
    EXPECT_EQ(tpc.side, config.side[t] ^ config.side[0]) << t;
    EXPECT_EQ(tpc.sms, (std::vector<std::uint32_t>{2 * t, 2 * t + 1}));
  }
}

TEST(Card, WithoutMasksClustersAloneTellTheGpcs) {
  const auto card = fake_card(fake::small_gpu(), false);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_FALSE((*card)->facts().by_descriptor);
  EXPECT_TRUE((*card)->facts().by_cluster);
  EXPECT_EQ((*card)->topology().gpc_count(), 4U);
  EXPECT_FALSE((*card)->topology().tpcs[0].bit);
}

TEST(Card, DisagreeingWaysAreAnErrorThatNamesTheTpcs) {
  fake::FakeConfig config = fake::small_gpu();
  std::swap(config.bit[0], config.bit[1]);  // descriptors and clusters tell different GPCs
  const auto card = fake_card(config);
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(card.error().message, HasSubstr("disagree: TPCs 0 and"));
}

TEST(Card, RenumberedSmsAreNoticedAndWhatTheyShowIsNotRemembered) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  CardOptions options;
  options.cache_folder = test::fresh_folder("renumbered").string();
  const auto card = Card::open(test::fake_gpu(config), options);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->virtual_sms());
  EXPECT_FALSE(std::filesystem::exists(facts_path(*(*card)->gpu(), options.cache_folder)));
}

TEST(Card, TpcsThatTheDescriptorCannotNameGetNoMask) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("narrow").string();
  fake::FakeConfig config = fake::small_gpu();
  config.capability_major = 8;
  config.descriptor_version = 0x30;  // with a mask of 64 bits
  const GpuPointer gpu = test::fake_gpu(config);
  CardFacts facts = Card::open(gpu, options).value()->facts();
  facts.device.topology.tpcs[5].bit = 64;
  ASSERT_TRUE(write_file(facts_path(*gpu, options.cache_folder), facts_to_json(facts)));
  const auto card = Card::open(gpu, options);
  ASSERT_TRUE(card) << card.error().message;
  const auto mask = (*card)->hardware_mask({1});
  ASSERT_FALSE(mask);
  EXPECT_THAT(mask.error().message, HasSubstr("cannot name all TPCs"));
}

TEST(Card, WhatWasFoundIsRememberedForTheSameCardAndDriver) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("cache").string();
  const GpuPointer gpu = test::fake_gpu();
  const auto first = Card::open(gpu, options);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_FALSE((*first)->facts().from_cache);
  const auto second = Card::open(gpu, options);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE((*second)->facts().from_cache);
  EXPECT_EQ((*second)->device(), (*first)->device());
  options.refresh = true;
  EXPECT_FALSE((*Card::open(gpu, options))->facts().from_cache);
}

TEST(Card, ADamagedFactsFileIsAnErrorThatNamesIt) {
  CardOptions options;
  options.cache_folder = test::fresh_folder("damaged").string();
  const GpuPointer gpu = test::fake_gpu();
  ASSERT_TRUE(write_file(facts_path(*gpu, options.cache_folder), R"({"schema": "demarc.topo/9"})"));
  const auto card = Card::open(gpu, options);
  ASSERT_FALSE(card);
  EXPECT_THAT(card.error().message, HasSubstr("demarc.topo/9"));
  EXPECT_THAT(card.error().message, HasSubstr("GPU-fafafafa"));
}

// The card of the stand-in is remembered, then it is another one under the same UUID.
class Remembered : public testing::Test {
 protected:
  void SetUp() override {
    options.cache_folder = test::fresh_folder("remembered").string();
    const auto first = Card::open(test::fake_gpu(), options);
    ASSERT_TRUE(first) << first.error().message;
  }
  void refused(const fake::FakeConfig& config, const char* words) {
    const GpuPointer gpu = test::fake_gpu(config);
    const auto card = Card::open(gpu, options);
    ASSERT_FALSE(card) << words;
    EXPECT_EQ(card.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(card.error().message, HasSubstr(words));
    EXPECT_THAT(card.error().message, HasSubstr("demarc topo --refresh"));
    options.refresh = true;
    EXPECT_TRUE(Card::open(gpu, options));
    options.refresh = false;
  }
  CardOptions options;
  fake::FakeConfig now = fake::small_gpu();
};

TEST_F(Remembered, FactsOfACardWithAnotherNameAreRefused) {
  std::snprintf(now.name, sizeof now.name, "Other GPU");
  refused(now, "the name is Fake GPU there and Other GPU now");
}

TEST_F(Remembered, FactsOfACardWithAnotherCapabilityAreRefused) {
  now.capability_minor = 1;
  refused(now, "the compute capability is 9.0 there and 9.1 now");
}

TEST_F(Remembered, FactsOfACardWithMoreOrFewerSmsAreRefused) {
  now.tpcs = 11;
  refused(now, "the number of SMs is 24 there and 22 now");
}

TEST_F(Remembered, FactsOfACardWithMoreOrLessMemoryAreRefused) {
  now.memory_bytes *= 2;
  refused(now, "the memory's size is 1073741824 there and 2147483648 now");
}

TEST_F(Remembered, FactsOfACardWithOtherHardwareBitsAreRefused) {
  now.bit[11] = 30;
  refused(now, "remembered are 12 TPCs, 0 and 29");
  now.bit[0] = 5;
  refused(now, "the first has hardware bit 5");
}

TEST_F(Remembered, FactsInTheFileOfAnotherCardAreRefused) {
  now.uuid = 0x77;
  const GpuPointer other = test::fake_gpu(now);
  std::filesystem::copy_file(facts_path(*test::fake_gpu(), options.cache_folder),
                             facts_path(*other, options.cache_folder));
  refused(now, "on GPU-77777777");
}

// It sees a part of the card, and is none of its own.
TEST_F(Remembered, FactsServeAClientOfMpsThatIsShownLess) {
  now.virtual_sms = true;
  now.client = 0xc3;
  now.memory_bytes /= 2;
  const auto card = Card::open(test::fake_gpu(now), options);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->facts().from_cache);
  EXPECT_TRUE((*card)->virtual_sms());
  now.memory_bytes *= 4;
  EXPECT_THAT(Card::open(test::fake_gpu(now), options).error().message,
              HasSubstr("the memory's size"));
}

TEST(Card, AClientOfMpsIsNoticedThoughItsNumbersLookRight) {
  fake::FakeConfig config = fake::small_gpu();
  config.mps_attribute = 1;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->virtual_sms());
}

TEST(Card, NumbersOfALaunchAreNoticedThoughTheDriverTellsOfNoMps) {
  fake::FakeConfig config = fake::small_gpu();
  config.virtual_sms = true;
  config.mps_attribute = 0;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_TRUE((*card)->virtual_sms());
}

TEST(Calibration, FindsTheFieldAnywhereInTheStreamObject) {
  for (const std::uint32_t offset : {0x18U, 0x25cU, 0x6d8U}) {
    fake::FakeConfig config = fake::small_gpu();
    config.cuda_version = 14020;
    config.stream_offset = offset;
    const GpuPointer gpu = test::fake_gpu(config);
    const auto kernels = ProbeKernels::load(gpu).value();
    LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
    const Stream stream = Stream::create(gpu).value();
    hook->begin_probe(gpu->compute_capability());
    ASSERT_TRUE(launch(stream, kernels.idle(), LaunchShape::line(1, 1)));
    ASSERT_TRUE(hook->end_probe());
    std::vector<std::uint32_t> tried;
    const auto field = calibrate(gpu, *hook, kernels.idle(), 0x800, {},
                                 [&tried](std::uint32_t at) { tried.push_back(at); });
    ASSERT_TRUE(field) << field.error().message;
    EXPECT_EQ(field->offset, offset);
    EXPECT_EQ(tried.back(), offset);
    const std::vector<std::uint32_t> skip = {offset};
    EXPECT_FALSE(calibrate(gpu, *hook, kernels.idle(), 0x800, skip, [](std::uint32_t) {}));
    EXPECT_TRUE(StreamMasks::open(gpu, *hook, kernels.idle(), field.value()));
  }
}

TEST(Calibration, RefusesWhenNoPlaceActsAsAMask) {
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 14020;
  config.stream_field_works = false;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  const auto field = calibrate(gpu, *hook, kernels.idle(), 0x800, {}, [](std::uint32_t) {});
  ASSERT_FALSE(field);
  EXPECT_THAT(field.error().message, HasSubstr("masks are refused"));
}

TEST(Watchdog, ALaunchThatNeverStartsIsGivenUpAndTheGpuMarked) {
  const auto card = fake_card();
  ASSERT_TRUE(card) << card.error().message;
  const GpuPointer& gpu = (*card)->gpu();
  const Stream stream = Stream::create(gpu).value();
  ASSERT_TRUE((*(*card)->stream_masks())->set(stream.handle(), {0, 1}));
  LaunchShape shape = LaunchShape::line(64, 32);
  shape.cluster_blocks = 4;  // TPCs 0 and 1 lie in different GPCs
  ASSERT_TRUE(launch(stream, (*card)->kernels().idle(), shape));
  const auto waited = stream.wait(std::chrono::milliseconds(20));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().kind, ErrorKind::check_failed);
  EXPECT_TRUE(gpu->stuck());
  EXPECT_TRUE((*(*card)->stream_masks())->clear(stream.handle()));
}

}  // namespace
}  // namespace demarc::cuda
