// Drivers and cards that fail while they are opened, and what is told of odd ones, on the stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "demarc/driver/driver_version.hpp"
#include "demarc/driver/gpu.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

template <class Change>
Result<std::shared_ptr<Gpu>> opened_with(Change change,
                                         const fake::FakeConfig& config = fake::small_gpu()) {
  test::configure(config);
  DriverApi api = test::fake_driver()->api();
  change(api);
  DEMARC_TRY(const auto driver, Driver::from_table(api, "planted"));
  return Gpu::open(driver, 0);
}

TEST(Opening, without_a_name_of_the_driver_looks_at_the_usual_places_and_tells_of_the_first) {
  for (const char* nothing : {static_cast<const char*>(nullptr), ""}) {
    nothing == nullptr ? ::unsetenv("DEMARC_LIBCUDA") : ::setenv("DEMARC_LIBCUDA", nothing, 1);
    const auto version = Driver::peek_version();  // a machine may have a driver
    ::unsetenv("DEMARC_LIBCUDA");
    EXPECT_TRUE(version || version.error().message.find(
                               "no NVIDIA driver on this machine: libcuda.so.1: ") == 0);
  }
}

TEST(Opening, a_driver_that_does_not_tell_its_version_is_refused) {
  DriverApi api = test::fake_driver()->api();
  api.cuDriverGetVersion = [](int*) -> CuResult { return 3; };
  const auto driver = Driver::from_table(api, "planted");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, StartsWith("cuDriverGetVersion: "));
}

TEST(Opening, versions_of_cuda_have_two_digits_after_the_thousands) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
  EXPECT_EQ(cuda_version_text(15789), "15.78") << "the last digit counts patches";
}

// What was opened until then is closed again.
TEST(Opening, a_card_that_fails_at_any_of_its_calls_is_refused) {
  const std::int64_t before = test::fake_symbol<std::int64_t()>("fake_live_objects")();
  const auto refused = [&](const char* words, auto change) {
    const auto gpu = opened_with(change);
    ASSERT_FALSE(gpu) << words;
    EXPECT_EQ(gpu.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(gpu.error().message, StartsWith(words));
    EXPECT_EQ(test::fake_symbol<std::int64_t()>("fake_live_objects")(), before) << words;
  };
  refused("cannot count the GPUs",
          [](DriverApi& api) { api.cuDeviceGetCount = [](int*) -> CuResult { return 999; }; });
  refused("cuDeviceGet: ",
          [](DriverApi& api) { api.cuDeviceGet = [](CuDevice*, int) -> CuResult { return 999; }; });
  refused("cannot read the name", [](DriverApi& api) {
    api.cuDeviceGetName = [](char*, int, CuDevice) -> CuResult { return 999; };
  });
  refused("cannot read the UUID", [](DriverApi& api) {
    api.cuDeviceGetUuid = [](CuUuid*, CuDevice) -> CuResult { return 999; };
  });
  refused("cannot read the UUID", [](DriverApi& api) {
    api.cuDeviceGetUuid_v2 = [](CuUuid*, CuDevice) -> CuResult { return 999; };
  });
  refused("cannot read device attribute", [](DriverApi& api) {
    api.cuDeviceGetAttribute = [](int*, int, CuDevice) -> CuResult { return 999; };
  });
  refused("cannot read the memory size", [](DriverApi& api) {
    api.cuDeviceTotalMem_v2 = [](std::size_t*, CuDevice) -> CuResult { return 999; };
  });
  refused("cannot open GPU cuda:0", [](DriverApi& api) {
    api.cuDevicePrimaryCtxRetain = [](CuContext*, CuDevice) -> CuResult { return 999; };
  });
  refused("cannot make the GPU current",
          [](DriverApi& api) { api.cuCtxSetCurrent = [](CuContext) -> CuResult { return 999; }; });
}

TEST(Opening, the_context_is_given_back_unless_the_card_is_stuck) {
  const auto alive = test::fake_symbol<std::int64_t()>("fake_live_objects");
  const std::int64_t before = alive();
  auto gpu = opened_with([](DriverApi&) {}).value();
  gpu.reset();
  EXPECT_EQ(alive(), before);
  gpu = opened_with([](DriverApi&) {}).value();
  gpu->set_stuck();
  gpu.reset();
  EXPECT_EQ(alive(), before + 1) << "a call on it might never return";
}

TEST(Opening, a_card_has_its_whole_name_and_its_index) {
  DriverApi api = test::fake_driver()->api();
  api.cuDeviceGetName = [](char* name, int size, CuDevice) -> CuResult {
    if (size > 256) return 1;  // there is no more room
    std::memset(name, 'n', static_cast<std::size_t>(size - 1));
    return cu_success;
  };
  api.cuDeviceGetCount = [](int* count) {
    *count = 2;
    return cu_success;
  };
  api.cuDeviceGet = [](CuDevice* device, int) {
    *device = 0;
    return cu_success;
  };
  const auto gpu = Gpu::open(Driver::from_table(api, "planted").value(), 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ((*gpu)->name(), std::string(254, 'n'));
  EXPECT_EQ((*gpu)->index(), 1U);
}

TEST(Opening, the_last_tpc_of_a_card_with_an_odd_number_of_sms_has_one) {
  const auto gpu = opened_with([](DriverApi& api) {
    api.cuDeviceGetAttribute = [](int* value, int attribute, CuDevice device) {
      const CuResult code =
          test::fake_driver()->api().cuDeviceGetAttribute(value, attribute, device);
      if (attribute == attribute_sm_count) *value = 23;
      return code;
    };
  });
  const auto topology = describe(**gpu)->topology;
  ASSERT_EQ(topology.tpc_count(), 12U);
  EXPECT_EQ(topology.tpcs[gpu::TpcIndex(10)].sms, test::sm_list({20, 21}));
  EXPECT_EQ(topology.tpcs[gpu::TpcIndex(11)].sms, test::sm_list({22}));
}

TEST(Opening, free_memory_is_not_all_memory) {
  fake::FakeConfig config = fake::small_gpu();
  config.free_bytes = 12345;
  EXPECT_EQ(opened_with([](DriverApi&) {}, config).value()->free_bytes().value(), 12345U);
}

TEST(SyncDomains, of_two_are_two) {
  fake::FakeConfig config = fake::small_gpu();
  config.sync_domains = 2;
  EXPECT_EQ(sync_domain_count(*test::fake_gpu(config)), 2U);
  config.sync_domains = 1;
  EXPECT_EQ(sync_domain_count(*test::fake_gpu(config)), 1U) << "the attribute is not known";
}

// The driver keeps two, for local and for remote traffic.
TEST(SyncDomains, of_which_the_driver_keeps_one_of_two_are_not_believed) {
  static unsigned char domains_kept[2];
  const auto gpu = opened_with([](DriverApi& api) {
    api.cuStreamGetAttribute = [](CuStream, int, CuLaunchAttributeValue* value) {
      std::memcpy(value->domains, domains_kept, 2);
      return cu_success;
    };
  });
  const Stream stream = Stream::create(*gpu).value();
  const auto believed = [&](unsigned char first, unsigned char second) {
    domains_kept[0] = first;
    domains_kept[1] = second;
    return set_sync_domain(**gpu, stream.handle(), 2).has_value();
  };
  EXPECT_TRUE(believed(2, 2));
  EXPECT_FALSE(believed(2, 0));
  EXPECT_FALSE(believed(0, 2));
  EXPECT_THAT(set_sync_domain(**gpu, stream.handle(), 4).error().message,
              HasSubstr("there is no memory synchronisation domain 4; it has 4"));
}

}  // namespace
}  // namespace demarc::cuda
