// Drivers and cards on the stand-in whose masks are refused, with the reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance.hpp"
#include "demarc/card/masks.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using test::fake_card;
using testing::HasSubstr;

TEST(MaskRefusal, a_driver_without_the_callback_is_refused) {
  fake::FakeConfig config = fake::small_gpu();
  config.descriptors_pass = false;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  const auto mask = ProcessMask::set(*card, {0});
  ASSERT_FALSE(mask);
  EXPECT_EQ(mask.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(mask.error().message, HasSubstr("do not pass the driver's callback"));
}

TEST(MaskRefusal, an_unknown_descriptor_version_is_refused) {
  fake::FakeConfig config = fake::small_gpu();
  config.descriptor_version = 0x4f;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_THAT((*card)->hook().error().message, HasSubstr("0x4f"));
}

TEST(MaskRefusal, an_unknown_driver_is_refused_and_points_to_green_contexts) {
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 14020;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  const auto refused = (*card)->stream_masks();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("CUDA 14.2"));
  EXPECT_THAT(refused.error().message, HasSubstr("--mode green"));
}

TEST(MaskRefusal, a_moved_stream_field_is_found_out_before_it_is_used) {
  fake::FakeConfig config = fake::small_gpu();
  config.stream_offset = 0x53c;  // the table says 0x51c for CUDA 13.0
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_THAT((*card)->stream_masks().error().message,
              HasSubstr("CUDA 13.0: offset 0x51c does not hold a stream's mask"));
  config.cuda_version = 12080;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  const auto refused = StreamMasks::open(gpu, *hook, kernels.idle());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message,
              HasSubstr("CUDA 12.8: offset 0x4fc does not hold a stream's mask"));
}

TEST(MaskRefusal, tpcs_that_share_a_bit_are_found_out) {
  fake::FakeConfig config = fake::small_gpu();
  config.bit[11] = config.bit[0];
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  EXPECT_THAT(StreamMasks::open(gpu, *hook, kernels.idle()).error().message,
              HasSubstr("turned into the same descriptor bit 0"));
}

TEST(MaskRefusal, a_field_that_does_more_or_stays_is_not_a_streams_mask) {
  const auto open = [](const fake::FakeConfig& config) {
    const GpuPointer gpu = test::fake_gpu(config);
    const auto kernels = ProbeKernels::load(gpu).value();
    return StreamMasks::open(gpu, *LaunchHook::install(gpu->driver()).value(), kernels.idle());
  };
  fake::FakeConfig smearing = fake::small_gpu();
  smearing.smeared_bit = 7;
  EXPECT_THAT(open(smearing).error().message, HasSubstr("a descriptor mask of 2 bits"));
  fake::FakeConfig staying = fake::small_gpu();
  staying.stale_mask[0] = 1;
  staying.stale_enabled = true;
  EXPECT_THAT(open(staying).error().message, HasSubstr("a cleared stream mask still disables"));
}

TEST(MaskRefusal, a_card_of_one_tpc_has_nothing_to_divide) {
  fake::FakeConfig config = fake::small_gpu();
  config.tpcs = 1;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  EXPECT_THAT(StreamMasks::open(gpu, *hook, kernels.idle()).error().message,
              HasSubstr("has a single TPC"));
}

TEST(MaskRefusal, stream_masks_of_old_drivers_are_too_narrow_for_large_cards) {
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 11080;
  config.stream_offset = 0x47c;
  config.tpcs = 65;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) config.bit[t] = t;
  const auto open = [&config] {
    const GpuPointer gpu = test::fake_gpu(config);
    const auto kernels = ProbeKernels::load(gpu).value();
    return StreamMasks::open(gpu, *LaunchHook::install(gpu->driver()).value(), kernels.idle());
  };
  EXPECT_THAT(open().error().message,
              HasSubstr("CUDA 11.8: offset 0x47c does not hold a stream's mask on this driver (a "
                        "stream mask without TPC 64 turned into a descriptor mask of 0 bits"));
  config.tpcs = 64;
  const auto fits = open();
  EXPECT_TRUE(fits) << fits.error().message;
}

TEST(MaskRefusal, hardware_that_ignores_masks_is_found_out) {
  fake::FakeConfig config = fake::small_gpu();
  config.obey_masks = false;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  const auto backend = make_backend(*card, Mode::mask);
  ASSERT_TRUE(backend) << backend.error().message;
  const auto stream = (*backend)->open(test::part_of({3}));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(stream.error().message, HasSubstr("does not hold"));
}

}  // namespace
}  // namespace demarc::cuda
