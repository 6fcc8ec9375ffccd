#include <gtest/gtest.h>

#include <regex>

#include "demarc/workload/workload.hpp"

namespace demarc::workload {
namespace {

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Workload& workload : all()) names.push_back(workload.name);
  return names;
}

// Parameter declarations of `.entry kernel(…)`; -1 when the module has no such entry.
long entry_parameters(const std::string& ptx, const std::string& kernel) {
  const auto entry = ptx.find(".entry " + kernel + "(");
  if (entry == std::string::npos) return -1;
  const std::string head = ptx.substr(entry, ptx.find(')', entry) - entry);
  const std::regex parameter(R"(\.param )");
  return std::distance(std::sregex_iterator(head.begin(), head.end(), parameter),
                       std::sregex_iterator());
}

class Bundled : public ::testing::TestWithParam<std::string> {};

TEST_P(Bundled, launch_file_is_complete_at_every_scale) {
  const auto workload = find(GetParam());
  ASSERT_TRUE(workload);
  EXPECT_FALSE((*workload)->summary.empty());
  EXPECT_FALSE((*workload)->source.empty());
  EXPECT_FALSE((*workload)->groups.empty());
  std::vector<std::string> scales = (*workload)->scales;
  scales.emplace_back();
  for (const std::string& scale : scales) {
    const auto launch = instance(GetParam(), {.scale = scale, .parameters = {}});
    ASSERT_TRUE(launch) << launch.error().message;
    EXPECT_EQ(launch->name, GetParam());
    EXPECT_FALSE(launch->check.reference.empty());
  }
}

TEST_P(Bundled, every_module_has_the_kernels_with_as_many_parameters_as_the_launch_has_arguments) {
  const auto launch = instance(GetParam());
  ASSERT_TRUE(launch) << launch.error().message;
  const auto targets = targets_of(launch->ptx.substr(launch->ptx.find(':') + 1));
  ASSERT_FALSE(targets.empty()) << launch->ptx;
  for (const std::uint32_t target : targets) {
    const auto ptx = ptx_text(*launch, target);
    ASSERT_TRUE(ptx) << ptx.error().message;
    for (const gpu::KernelLaunch& kernel : launch->kernels) {
      ASSERT_EQ(entry_parameters(*ptx, kernel.kernel), static_cast<long>(kernel.arguments.size()))
          << kernel.kernel << " for sm_" << target;
    }
  }
}

TEST_P(Bundled, reference_changes_an_output_and_the_check_tells_right_from_wrong) {
  const auto launch = instance(GetParam());
  ASSERT_TRUE(launch) << launch.error().message;
  const auto addresses = gpu::default_addresses(*launch);
  const auto before = gpu::initial_memory(*launch, addresses);
  ASSERT_TRUE(before) << before.error().message;
  gpu::Memory after = *before;
  const auto done = run_reference(*launch, after);
  ASSERT_TRUE(done) << done.error().message;
  const auto right = check(*launch, addresses, after);
  EXPECT_TRUE(right) << right.error().message;
  const auto wrong = check(*launch, addresses, *before);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::check_failed);
}

INSTANTIATE_TEST_SUITE_P(Workload, Bundled, ::testing::ValuesIn(all_names()),
                         [](const auto& test) { return test.param; });

TEST(Workloads, an_unknown_name_lists_the_known_ones) {
  EXPECT_TRUE(find("vecad").error().message.starts_with(
      "there is no bundled workload 'vecad'; known are: "));
}

TEST(Workloads, a_target_below_the_lowest_is_refused) {
  const auto launch = instance("vecadd");
  ASSERT_TRUE(launch);
  EXPECT_EQ(ptx_text(*launch, 70).error().message,
            "bundled:vecadd: there is no PTX for sm_70 or below; the lowest is sm_75");
}

}  // namespace
}  // namespace demarc::workload
