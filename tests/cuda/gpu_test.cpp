// What a card says of itself, and what its errors mean, on the stand-in.
#include "demarc/cuda/gpu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/cuda/colored_memory.hpp"
#include "demarc/cuda/driver_errors.hpp"
#include "demarc/cuda/verify.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Driver> driver_with(const std::function<void(DriverApi&)>& how) {
  DriverApi api = test::fake_driver()->api();
  how(api);
  return Driver::from_table(api, "planted").value();
}

fake::FakeConfig instance() {
  fake::FakeConfig config = fake::small_gpu();
  config.instance_uuid = 0x1b;
  return config;
}

TEST(Uuid, IsTheSecondVersionsAndTheFirstsOnlyWhereThereIsNoSecond) {
  EXPECT_EQ(test::fake_gpu()->uuid(), "GPU-fafafafa-fafa-fafa-fafa-fafafafafafa");
  EXPECT_EQ(test::fake_gpu(instance())->uuid(), "MIG-1b1b1b1b-1b1b-1b1b-1b1b-1b1b1b1b1b1b");
  const auto old = driver_with([](DriverApi& api) { api.cuDeviceGetUuid_v2 = nullptr; });
  EXPECT_EQ(Gpu::open(old, 0).value()->uuid(), "GPU-fafafafa-fafa-fafa-fafa-fafafafafafa");
  const auto later = driver_with([](DriverApi& api) { api.cuDeviceGetUuid = nullptr; });
  EXPECT_EQ(Gpu::open(later, 0).value()->uuid(), "GPU-1b1b1b1b-1b1b-1b1b-1b1b-1b1b1b1b1b1b");
  const auto none = driver_with([](DriverApi& api) {
    api.cuDeviceGetUuid = nullptr;
    api.cuDeviceGetUuid_v2 = nullptr;
  });
  EXPECT_EQ(Gpu::open(none, 0).error().kind, ErrorKind::missing_capability);
}

TEST(MigInstance, IsRefusedByNameForMasksColoursTopologyAndProof) {
  const GpuPointer gpu = test::fake_gpu(instance());
  const auto refused = [](const auto& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(result.error().message, HasSubstr("MIG-1b1b1b1b"));
    EXPECT_THAT(result.error().message, HasSubstr("name a whole card"));
  };
  refused(Card::open(gpu));
  constexpr std::uint64_t masks[] = {0xc4000};
  constexpr ShareRequest shares[] = {{0x1, 0}};
  refused(ColoredPool::create(gpu, masks, 8 << 20, shares));
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  VerifyPlan plan;
  plan.choice.tpcs = "0";
  refused(verify(plan));
  ::unsetenv("DEMARC_LIBCUDA");
  EXPECT_TRUE(test::fake_gpu()->check_whole());
}

TEST(MigInstance, IsToldByItsNameWhereOneUuidIsAll) {
  fake::FakeConfig config = fake::small_gpu();
  std::snprintf(config.name, sizeof config.name, "NVIDIA H100 MIG 1g.10gb");
  EXPECT_FALSE(test::fake_gpu(config)->check_whole());
}

TEST(UnderMps, IsWhatTheDriverSaysAndWhereItCannotWhetherADaemonRuns) {
  fake::FakeConfig config = fake::small_gpu();
  const auto says = [&config](std::int32_t attribute) {
    config.mps_attribute = attribute;
    return test::fake_gpu(config)->under_mps();
  };
  const auto folder = test::fresh_folder("mps");
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", folder.c_str(), 1);
  EXPECT_TRUE(says(1));
  EXPECT_FALSE(says(0));
  EXPECT_FALSE(says(2));
  ASSERT_TRUE(write_file(folder / "control", ""));
  EXPECT_TRUE(says(2));
  EXPECT_FALSE(says(0));
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

TEST(DriverError, AGpuThatFailsIsNoMissingCapability) {
  for (const CuResult fault : {214, 700, 702, 710, 714, 715, 716, 717, 718, 719, 805, 806, 807, 808,
                               809, 810, 709, 220, 999}) {
    EXPECT_EQ(kind_of(fault), ErrorKind::check_failed) << fault;
  }
  for (const CuResult missing : {2, 34, 36, 46, 100, 101, 209, 222, 701, 800, 801, 803, 804}) {
    EXPECT_EQ(kind_of(missing), ErrorKind::missing_capability) << missing;
  }
  for (const CuResult wrong : {1, 200, 218, 500, 912}) {
    EXPECT_EQ(kind_of(wrong), ErrorKind::invalid_input) << wrong;
  }
  EXPECT_EQ(kind_of(4711), ErrorKind::check_failed) << "what is not known is no excuse";
}

TEST(DriverError, IsPutIntoWordsWithItsKind) {
  const auto driver = test::fake_driver();
  EXPECT_TRUE(driver->check(cu_success, "x"));
  const auto fault = driver->check(700, "work on the GPU failed");
  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(fault.error().message,
            "work on the GPU failed: CUDA_ERROR_ILLEGAL_ADDRESS (as the stand-in says)");
  EXPECT_EQ(driver->check(801, "x").error().kind, ErrorKind::missing_capability);
}

TEST(DriverError, WhileStartingTellsAFailedGpuFromNone) {
  static CuResult answer = 0;
  DriverApi api = test::fake_driver()->api();
  api.cuInit = [](unsigned) { return answer; };
  const auto kind_at_start = [&api](CuResult code) {
    answer = code;
    return Driver::from_table(api, "planted").error().kind;
  };
  EXPECT_EQ(kind_at_start(100), ErrorKind::missing_capability);
  EXPECT_EQ(kind_at_start(999), ErrorKind::missing_capability) << "no device file says so too";
  EXPECT_EQ(kind_at_start(1), ErrorKind::missing_capability);
  EXPECT_EQ(kind_at_start(805), ErrorKind::check_failed);
  EXPECT_EQ(kind_at_start(214), ErrorKind::check_failed);
}

TEST(DriverError, OfAProbeIsNotTakenForAMissingMask) {
  const GpuPointer gpu = test::fake_gpu();
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  const auto fail_next = test::fake_symbol<void(int)>("fake_fail_next_launch");
  fail_next(719);
  const auto failed = StreamMasks::open(gpu, *hook, kernels.idle());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::check_failed);
  fail_next(801);
  const auto lacks = StreamMasks::open(gpu, *hook, kernels.idle());
  ASSERT_FALSE(lacks);
  EXPECT_EQ(lacks.error().kind, ErrorKind::missing_capability);
}

TEST(DriverError, OfAClusterProbeIsSkippedOnlyWhereTheCardLacksTheSize) {
  const GpuPointer gpu = test::fake_gpu();
  const auto kernels = ProbeKernels::load(gpu).value();
  const Stream stream = Stream::create(gpu).value();
  const auto fail_next = test::fake_symbol<void(int)>("fake_fail_next_launch");
  fail_next(912);
  EXPECT_TRUE(probe_clusters(stream, kernels));
  fail_next(719);
  const auto failed = probe_clusters(stream, kernels);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::check_failed);
}

TEST(GpuIndex, BeyondTheLastCardIsRefused) {
  const auto refused = Gpu::open(test::fake_driver(), 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("there is no GPU cuda:1; this machine has 1"));
}

}  // namespace
}  // namespace demarc::cuda
