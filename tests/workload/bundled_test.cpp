// Tests that every bundled launch is complete, and that its check tells right from wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <regex>

#include "demarc/base/hash.hpp"
#include "demarc/base/json.hpp"
#include "demarc/workload/workload.hpp"
#include "kept_outputs.hpp"

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

// Sums over all elements, each with a weight of its own between 1 and 2.
struct Sums {
  double with_sign = 0;
  double without = 0;
};
Sums sums_of(const gpu::Buffer& buffer, const std::vector<std::byte>& bytes) {
  Sums sums;
  const std::size_t size = gpu::size_of(buffer.element);
  for (std::size_t i = 0; i < bytes.size() / size; ++i) {
    gpu::Scalar element{buffer.element, 0};
    std::memcpy(&element.bits, bytes.data() + i * size, size);
    const double weighted =
        gpu::to_double(element) * (1 + static_cast<double>(stirred(i) >> 40U) * 0x1p-24);
    sums.with_sign += weighted;
    sums.without += std::abs(weighted);
  }
  return sums;
}

// What the references made when kernels and references agreed: the bits of integers, and of
// floating numbers all but the last bits, which are the mathematical library's.
void expect_kept(const gpu::Launch& launch, const gpu::Memory& memory) {
  static const Json kept = Json::parse(kept_outputs);
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Buffer& buffer = launch.buffers[i];
    if (!buffer.output) continue;
    ASSERT_TRUE(kept.contains(launch.name) && kept[launch.name].contains(buffer.name))
        << launch.name << ", " << buffer.name;
    const Json& wanted = kept[launch.name][buffer.name];
    if (gpu::is_floating(buffer.element)) {
      const Sums sums = sums_of(buffer, memory[i]);
      const double tolerance = 1e-8 * sums.without;
      EXPECT_NEAR(sums.with_sign, wanted[0].get<double>(), tolerance) << buffer.name;
      EXPECT_NEAR(sums.without, wanted[1].get<double>(), tolerance) << buffer.name;
    } else {
      const std::uint64_t digest = hash_of(std::span<const std::byte>(memory[i]));
      EXPECT_EQ(fmt::format("{:#x}", digest), wanted.get<std::string>()) << buffer.name;
    }
  }
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
  expect_kept(*launch, after);
  const auto wrong = check(*launch, addresses, *before);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::check_failed);
}

INSTANTIATE_TEST_SUITE_P(Workload, Bundled, ::testing::ValuesIn(all_names()),
                         [](const auto& test) { return test.param; });

// After many rounds all chains are at 1, whatever they began with.
TEST(Workloads, the_arithmetic_of_a_stress_kernel_begins_anew_every_1024_threads) {
  const auto launch =
      instance("stress_arithmetic", {.scale = "", .parameters = {{"rounds", 1}, {"blocks", 5}}});
  ASSERT_TRUE(launch) << launch.error().message;
  gpu::Memory memory = gpu::initial_memory(*launch, gpu::default_addresses(*launch)).value();
  ASSERT_TRUE(run_reference(*launch, memory));
  std::vector<float> results(5U * 256);
  std::memcpy(results.data(), memory[0].data(), results.size() * sizeof(float));
  EXPECT_EQ(results[0], 4 * 0.25F + 6 * 0.75F);
  EXPECT_NE(results[1023], results[0]);
  EXPECT_EQ(results[1024], results[0]);
  EXPECT_EQ(results[1279], results[255]);
}

TEST(Workloads, an_unknown_name_is_answered_with_the_near_ones_and_the_list) {
  EXPECT_EQ(
      find("vecad").error().message,
      "there is no bundled workload 'vecad'; did you mean vecadd? demarc list workloads shows "
      "all");
  EXPECT_EQ(find("xyzzyx").error().message,
            "there is no bundled workload 'xyzzyx'; demarc list workloads shows all");
}

TEST(Workloads, a_target_below_the_lowest_is_refused) {
  const auto launch = instance("vecadd");
  ASSERT_TRUE(launch);
  EXPECT_EQ(ptx_text(*launch, 70).error().message,
            "bundled:vecadd: there is no PTX for sm_70 or below; the lowest is sm_75");
}

}  // namespace
}  // namespace demarc::workload
