// How launches of a coloured program are made where they may overlap.
#include "program_on_share.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A launch that Demarc made, and what was asked of it.
struct Made {
  std::vector<int> attributes;
  bool early = false;  // before the one in front of it has ended
};

class CallLaunches : public test::ProgramCalls<test::ColorKind::remainders> {
 protected:
  explicit CallLaunches(bool overlap = true) : ProgramCalls(0, overlap) {
    made.clear();
    real = own;
    own.cuLaunchKernelEx = [](const CuLaunchConfig* config, CuFunction function, void** arguments,
                              void** extra) {
      Made one;
      for (unsigned i = 0; i < config->attribute_count; ++i) {
        const CuLaunchAttribute& given = config->attributes[i];
        one.attributes.push_back(given.id);
        one.early = one.early || (given.id == CuLaunchAttribute::programmatic_serialization &&
                                  given.value.flag == 1);
      }
      made.push_back(one);
      return real.cuLaunchKernelEx(config, function, arguments, extra);
    };
  }
  void expect_one_early(const std::vector<int>& attributes) {
    ASSERT_EQ(made.size(), 1U);
    EXPECT_TRUE(made[0].early);
    EXPECT_EQ(made[0].attributes, attributes);
    made.clear();
  }
  CuFunction writes_seven() {
    return function_of(
        loaded(test::module_head +
               test::kernel_of("seven", "ld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;")),
        "seven");
  }
  // With these attributes of the program's own, each with a first word of 1.
  CuResult launch_with(CuFunction function, const std::vector<int>& ids, DevicePointer p) {
    std::vector<CuLaunchAttribute> attributes(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      attributes[i].id = ids[i];
      for (auto& one : attributes[i].value.cluster) one = 1;
    }
    const CuLaunchConfig config{{1, 1, 1}, {1, 1, 1},         0,
                                nullptr,   attributes.data(), unsigned(ids.size())};
    void* arguments[] = {&p};
    return api.cuLaunchKernelEx(&config, function, arguments, nullptr);
  }
  static constexpr int cluster = CuLaunchAttribute::cluster_dimension;
  static constexpr int early = CuLaunchAttribute::programmatic_serialization;
  static inline std::vector<Made> made;
  static inline DriverApi real;
};

TEST_F(CallLaunches, overlap_and_compute_the_same) {
  const CuFunction seven = writes_seven();
  const DevicePointer a = allocated(64);
  ASSERT_EQ(launch_line(seven, 1, 1, a), cu_success);
  expect_one_early({early});
  EXPECT_EQ(read<std::uint32_t>(a, 1)[0], 7U);
  ASSERT_EQ(launch_with(seven, {cluster}, a + 4), cu_success);
  expect_one_early({cluster, early});
  EXPECT_EQ(read<std::uint32_t>(a + 4, 1)[0], 7U);
  ASSERT_EQ(launch_with(seven, {early, cluster}, a + 8), cu_success);
  expect_one_early({cluster, early});
  EXPECT_THAT(told, IsEmpty());
}

TEST_F(CallLaunches, those_that_need_all_blocks_at_once_or_share_local_variables_do_not) {
  const DevicePointer a = allocated(64);
  const CuFunction seven = writes_seven();
  ASSERT_EQ(launch_with(seven, {CuLaunchAttribute::cooperative}, a), cu_success);
  EXPECT_THAT(made, IsEmpty()) << "the driver makes it, as the program asked";
  const CuFunction locals = function_of(
      loaded(test::module_head + test::kernel_of("locals", test::with_locals)), "locals");
  ASSERT_EQ(launch_line(locals, 1, 4, a), cu_success);
  ASSERT_EQ(launch_with(locals, {early}, a), cu_success);
  for (const Made& one : made) EXPECT_FALSE(one.early);
  EXPECT_THAT(read<std::uint32_t>(a, 4), ElementsAre(0, 1, 2, 3));
}

TEST_F(CallLaunches, without_the_function_the_driver_makes_them) {
  const CuFunction seven = writes_seven();
  const DevicePointer a = allocated(64);
  own.cuLaunchKernelEx = nullptr;
  ASSERT_EQ(launch_line(seven, 1, 1, a), cu_success);
  EXPECT_EQ(read<std::uint32_t>(a, 1)[0], 7U);
}

class CallLaunchesApart : public CallLaunches {
 protected:
  CallLaunchesApart() : CallLaunches(false) {}
};

TEST_F(CallLaunchesApart, are_the_drivers_own) {
  const CuFunction seven = writes_seven();
  const DevicePointer a = allocated(64);
  ASSERT_EQ(launch_line(seven, 1, 1, a), cu_success);
  ASSERT_EQ(launch_with(seven, {cluster}, a), cu_success);
  EXPECT_THAT(made, IsEmpty());
  EXPECT_EQ(read<std::uint32_t>(a, 1)[0], 7U);
}

}  // namespace
}  // namespace demarc::cuda
