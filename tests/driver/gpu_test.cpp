// What a card says of itself, and what its errors mean, on the stand-in.
#include "demarc/driver/gpu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/card/colored_copy.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/card/masks.hpp"
#include "demarc/card/memory_timer.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/card/verify.hpp"
#include "demarc/driver/driver_errors.hpp"
#include "demarc/driver/driver_version.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

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

TEST(Uuid, is_the_second_versions_and_the_firsts_only_where_there_is_no_second) {
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

TEST(MigInstance, is_refused_by_name_for_masks_colours_topology_and_proof) {
  const GpuPointer gpu = test::fake_gpu(instance());
  const auto refused = [](const auto& result) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(result.error().message, HasSubstr("MIG-1b1b1b1b"));
    EXPECT_THAT(result.error().message, HasSubstr("name a whole card"));
  };
  refused(Card::open(gpu));
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  VerifyPlan plan;
  plan.choice.tpcs = "0";
  refused(verify(plan));
  ::unsetenv("DEMARC_LIBCUDA");
  EXPECT_TRUE(test::fake_gpu()->check_whole());
}

TEST(Verify, a_mode_that_confines_nothing_is_no_partition_that_could_be_verified) {
  const auto gpu = test::fake_gpu(fake::small_gpu());
  ::setenv("DEMARC_LIBCUDA", test::fake_driver()->origin().c_str(), 1);
  for (const Mode mode : {Mode::none, Mode::timeslice, Mode::mps}) {
    VerifyPlan plan;
    plan.mode = mode;
    plan.choice.tpcs = "0";
    const auto refused = verify(plan);
    ASSERT_FALSE(refused) << partition::to_string(mode);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(refused.error().message,
                HasSubstr(fmt::format("--mode {}: this mode confines nothing that verify could "
                                      "check; green, mask, affinity, throttle do",
                                      partition::to_string(mode))));
  }
  ::unsetenv("DEMARC_LIBCUDA");
}

TEST(MigInstance, is_told_by_its_name_where_one_uuid_is_all) {
  fake::FakeConfig config = fake::small_gpu();
  std::snprintf(config.name, sizeof config.name, "NVIDIA H100 MIG 1g.10gb");
  EXPECT_FALSE(test::fake_gpu(config)->check_whole());
}

TEST(UnderMps, is_what_the_driver_says_and_where_it_cannot_whether_a_daemon_runs) {
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

TEST(DriverError, a_gpu_that_fails_is_no_missing_capability) {
  for (const CuResult fault : {3,   4,   214, 220, 226, 700, 702, 709, 710, 714, 715, 716,
                               717, 718, 719, 721, 805, 806, 807, 808, 809, 810, 909, 999}) {
    EXPECT_EQ(kind_of(fault), ErrorKind::check_failed) << fault;
  }
  for (const CuResult missing : {2,   34,  36,  46,  100, 101, 102, 209, 221, 222, 223, 224,
                                 225, 701, 720, 800, 801, 802, 803, 804, 811, 812, 914, 915}) {
    EXPECT_EQ(kind_of(missing), ErrorKind::missing_capability) << missing;
  }
  for (const CuResult wrong : {1, 200, 218, 500, 912}) {
    EXPECT_EQ(kind_of(wrong), ErrorKind::invalid_input) << wrong;
  }
  EXPECT_EQ(kind_of(4711), ErrorKind::check_failed) << "what is not known is no excuse";
}

TEST(DriverError, is_put_into_words_with_its_kind) {
  const auto driver = test::fake_driver();
  EXPECT_TRUE(driver->check(cu_success, "x"));
  const auto fault = driver->check(700, "work on the GPU failed");
  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(fault.error().message,
            "work on the GPU failed: CUDA_ERROR_ILLEGAL_ADDRESS (as the stand-in says)");
  EXPECT_EQ(driver->check(801, "x").error().kind, ErrorKind::missing_capability);
}

TEST(DriverError, without_a_name_or_text_is_told_by_its_number) {
  const auto silent = driver_with([](DriverApi& api) {
    api.cuGetErrorName = [](CuResult, const char**) { return 1; };
    api.cuGetErrorString = [](CuResult, const char**) { return 1; };
  });
  EXPECT_EQ(silent->check(700, "work").error().message, "work: CUDA error 700 (no description)");
}

TEST(Driver, that_is_not_there_or_too_old_or_fails_is_refused_with_its_place) {
  const auto none = Driver::load("/no/such/libcuda.so");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(none.error().message, HasSubstr("no NVIDIA driver on this machine: "));
  EXPECT_THAT(none.error().message, HasSubstr("/no/such/libcuda.so"));
  const auto old = Driver::load("libm.so.6");  // a library without any of the driver's functions
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().message, "libm.so.6: the driver is too old: it has no cuInit");
  const auto fails = [](CuResult code) {
    DriverApi api = test::fake_driver()->api();
    static CuResult answer = 0;
    answer = code;
    api.cuInit = [](unsigned) { return answer; };
    return Driver::from_table(api, "planted").error().message;
  };
  EXPECT_EQ(fails(100), "planted: the driver finds no usable GPU (cuInit: CUDA_ERROR_FAKE)");
  EXPECT_EQ(fails(214), "planted: the GPU failed (cuInit: CUDA_ERROR_FAKE)");
}

// As while another client of it ends with work on the card.
TEST(Driver, waits_for_the_server_of_mps) {
  constexpr std::chrono::milliseconds pause(100);
  static int calls = 0;
  static int unready = 0;
  DriverApi api = test::fake_driver()->api();
  api.cuInit = [](unsigned) { return ++calls <= unready ? cu_error_mps_server_not_ready : 0; };
  const auto tried = [&](int refusals, std::chrono::milliseconds patience) {
    calls = 0;
    unready = refusals;
    return Driver::from_table(api, "planted", patience);
  };
  EXPECT_TRUE(tried(2, 2 * pause));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(tried(3, 2 * pause).error().message,
            "planted: the GPU failed (cuInit: CUDA_ERROR_FAKE)");
  EXPECT_EQ(calls, 3);
  api.cuInit = [](unsigned) { return ++calls <= unready ? CuResult{805} : 0; };
  EXPECT_FALSE(tried(1, 2 * pause)) << "of other errors none goes away";
  EXPECT_EQ(calls, 1);
}

TEST(Driver, tells_its_version_before_it_is_started) {
  const std::string path = test::fake_driver()->origin();
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 12080;
  test::configure(config);
  ::setenv("DEMARC_LIBCUDA", path.c_str(), 1);
  EXPECT_EQ(Driver::peek_version().value(), 12080);
  EXPECT_EQ(test::fake_driver()->cuda_version(), 12080);
  ::setenv("DEMARC_LIBCUDA", "libm.so.6", 1);
  EXPECT_EQ(Driver::peek_version().error().message,
            "libm.so.6: the driver does not say its version");
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so", 1);
  EXPECT_EQ(Driver::peek_version().error().kind, ErrorKind::missing_capability);
  ::unsetenv("DEMARC_LIBCUDA");
}

TEST(Driver, has_the_version_of_the_kernels_module) {
  const auto version_of = [](const char* text) {
    std::istringstream stream(text);
    return version_in(stream);
  };
  EXPECT_EQ(
      version_of("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release "
                 "Build  (dvs-builder@U22-I3)  Tue Nov 4\nGCC version:  gcc version 12.3.0\n"),
      "580.159.04");
  EXPECT_EQ(version_of("module 64 of 1.x and 580"), "")
      << "a number with a point, and nothing else";
  EXPECT_EQ(version_of(""), "");
}

TEST(Driver, counts_the_cards_that_it_shows) {
  EXPECT_EQ(test::fake_driver()->device_count().value(), 1U);
  const auto three = driver_with([](DriverApi& api) {
    api.cuDeviceGetCount = [](int* count) {
      *count = 3;
      return cu_success;
    };
  });
  EXPECT_EQ(three->device_count().value(), 3U);
  const auto broken = driver_with(
      [](DriverApi& api) { api.cuDeviceGetCount = [](int*) -> CuResult { return 999; }; });
  EXPECT_EQ(broken->device_count().error().kind, ErrorKind::check_failed);
}

TEST(Gpu, gets_the_kernels_of_its_capability_from_the_first_that_has_them) {
  const auto loads = [](int major, int minor) {
    fake::FakeConfig config = fake::small_gpu();
    config.capability_major = major;
    config.capability_minor = minor;
    const GpuPointer gpu = test::fake_gpu(config);
    const std::string missing = fmt::format(" for compute capability {}.{}", major, minor);
    const auto probes = ProbeKernels::load(gpu);
    const auto timer = MemoryTimer::create(gpu);
    const auto copier = ColoredCopier::create(gpu);
    EXPECT_TRUE(probes ||
                probes.error().message.find("no probe kernels" + missing) != std::string::npos);
    EXPECT_TRUE(timer || timer.error().message.find(missing) != std::string::npos);
    EXPECT_TRUE(copier ||
                copier.error().message.find("no copy kernel" + missing) != std::string::npos);
    return (probes ? 1 : 0) + (timer ? 1 : 0) + (copier ? 1 : 0);
  };
  EXPECT_EQ(loads(7, 0), 0);
  EXPECT_EQ(loads(7, 5), 3);
  EXPECT_EQ(loads(8, 6), 3);
  EXPECT_EQ(loads(9, 0), 3);
}

TEST(Gpu, is_described_by_what_the_driver_tells) {
  const GpuPointer gpu = test::fake_gpu();
  EXPECT_THAT(gpu->driver().driver_version(),
              testing::AnyOf("cuda-13.0", testing::MatchesRegex("[0-9]+[.][0-9.]+")));
  EXPECT_EQ(gpu->name(), "Fake GPU");
  EXPECT_EQ(gpu->compute_capability(), (gpu::ComputeCapability{9, 0}));
  EXPECT_EQ(gpu->sm_count(), 24U);
  EXPECT_EQ(gpu->total_bytes(), 1U << 30U);
  EXPECT_EQ(gpu->free_bytes().value(), 1U << 30U);
  const gpu::Device device = describe(*gpu).value();
  EXPECT_EQ(device.name, "Fake GPU");
  EXPECT_THAT(device.source, HasSubstr(" on GPU-fafafafa-"));
  EXPECT_EQ(device.sm_clock_hz, 1e6);  // what the stand-in does not know is 1000
  EXPECT_EQ(device.memory_clock_hz, 1e6);
  EXPECT_EQ(device.dram.bandwidth_bytes_per_s, 2.5e8) << "two transfers a clock, 125 bytes each";
  EXPECT_EQ(device.sm.threads, 2048U);
  EXPECT_EQ(device.sm.threads_per_block, 1024U);
  EXPECT_EQ(device.sm.blocks, 32U);
  EXPECT_EQ(device.sm.registers, 65536U);
  EXPECT_EQ(device.sm.shared_bytes, 233472U);
  EXPECT_EQ(device.sm.shared_block_bytes, 232448U);
  EXPECT_EQ(device.sm.shared_reserved_bytes, 1000U);
  EXPECT_EQ(device.l2.size_bytes, 50U << 20U);
  EXPECT_EQ(device.dram.size_bytes, 1U << 30U);
  ASSERT_EQ(device.topology.tpc_count(), 12U);
  EXPECT_EQ(device.topology.tpcs.back().sms, test::sm_list({22, 23}));
}

// Each attribute has a number of its own, none of them usual.
TEST(Gpu, is_described_by_unusual_numbers_too) {
  const auto driver = driver_with([](DriverApi& api) {
    api.cuDeviceGetAttribute = [](int* value, int attribute, CuDevice device) {
      const CuResult code =
          test::fake_driver()->api().cuDeviceGetAttribute(value, attribute, device);
      const bool kept = attribute == attribute_capability_major ||
                        attribute == attribute_capability_minor || attribute == attribute_sm_count;
      if (!kept) *value = 8000 + attribute;
      return code;
    };
  });
  const gpu::Device device = describe(*Gpu::open(driver, 0).value()).value();
  const auto of = [](CuDeviceAttribute attribute) {
    return 8000U + static_cast<unsigned>(attribute);
  };
  EXPECT_EQ(device.sm_clock_hz, 1e3 * of(attribute_clock_khz));
  EXPECT_EQ(device.memory_clock_hz, 1e3 * of(attribute_memory_clock_khz));
  EXPECT_EQ(device.dram.bandwidth_bytes_per_s,
            2e3 * of(attribute_memory_clock_khz) * of(attribute_memory_bus_bits) / 8);
  EXPECT_EQ(device.l2.size_bytes, of(attribute_l2_bytes));
  EXPECT_EQ(device.sm.threads, of(attribute_max_threads_per_sm));
  EXPECT_EQ(device.sm.threads_per_block, of(attribute_max_threads_per_block));
  EXPECT_EQ(device.sm.blocks, of(attribute_max_blocks_per_sm));
  EXPECT_EQ(device.sm.registers, of(attribute_registers_per_sm));
  EXPECT_EQ(device.sm.shared_bytes, of(attribute_shared_bytes_per_sm));
  EXPECT_EQ(device.sm.shared_block_bytes, of(attribute_shared_bytes_per_block_optin));
  EXPECT_EQ(device.sm.shared_reserved_bytes, of(attribute_reserved_shared_bytes));
}

TEST(DriverError, while_starting_tells_a_failed_gpu_from_none) {
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

// As cuda.h describes them: "the process must be terminated and relaunched", and those of MPS.
TEST(DriverError, ends_a_context_or_only_the_call) {
  std::vector<CuResult> ends;
  for (CuResult code = 0; code < 1000; ++code) {
    if (end_of_context(code) != nullptr) ends.push_back(code);
  }
  EXPECT_THAT(ends, testing::ElementsAre(214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719,
                                         721, 806, 810, 911));
  EXPECT_STREQ(end_of_context(716), "a kernel's access to a misaligned address");
}

TEST(DriverError, of_a_probe_is_not_taken_for_a_missing_mask) {
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

TEST(DriverError, of_a_cluster_probe_is_skipped_only_where_the_card_lacks_the_size) {
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

TEST(GpuIndex, beyond_the_last_card_is_refused) {
  const auto refused = Gpu::open(test::fake_driver(), 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("there is no GPU cuda:1; this machine has 1"));
}

// As on a card that another program divides.
TEST(MemoryTimers, say_which_sm_no_block_reached) {
  const auto card = test::fake_card().value();
  const GpuPointer& gpu = card->gpu();
  const MemoryTimer timer = MemoryTimer::create(gpu).value();
  const PageArena arena = PageArena::create(gpu, 1).value();
  const std::vector<std::uint64_t> offsets{0, 4096};
  const auto sms = test::sm_list({1, 2, 5});
  const SmRoles roles{1, 1, 1, 1, 2, 2};
  const std::vector<std::uint32_t> chunks{0, 1, 2};
  const TimedStream victim{chunks, 14, false, false};
  const auto latencies = [&] { return timer.hit_latencies(arena.address(), offsets, sms, 2, 3); };
  const auto seconds = [&] { return timer.stream_seconds(arena.address(), victim, {}, roles); };
  const auto whole = latencies();
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->count(), 2U);
  EXPECT_EQ(whole->dimensions, 3U);
  for (const float cycles : whole->values) EXPECT_NEAR(cycles, 282, 33);
  EXPECT_NEAR(seconds().value(), 300e-9, 1e-9) << "100 ns a chunk";
  const auto mask = ProcessMask::set(card, {0, 2});
  EXPECT_THAT(latencies().error().message,
              HasSubstr("no block of the latency kernel reached SM 2: is the card shared"));
  EXPECT_THAT(seconds().error().message, HasSubstr("the stream kernel did not run on SM 2"));
  EXPECT_THAT(
      timer.stream_seconds(arena.address(), {{}, 14, false, false}, {}, roles).error().message,
      HasSubstr("a stream without chunks"));
  const SmRoles nobody{0, 2};
  EXPECT_THAT(timer.stream_seconds(arena.address(), victim, {}, nobody).error().message,
              HasSubstr("no SM has the role of the victim"));
}

}  // namespace
}  // namespace demarc::cuda
