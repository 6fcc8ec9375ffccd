// What of a result is compared, and how far it may be off.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "demarc/workload/workload.hpp"

namespace demarc::workload {
namespace {

gpu::Memory memory_of(const std::vector<float>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {std::vector<std::byte>(bytes, bytes + values.size() * sizeof(float))};
}

gpu::Launch launch_with(double absolute, double relative, std::size_t elements) {
  gpu::Launch launch;
  launch.name = "l";
  launch.buffers.resize(1);
  launch.buffers[0].name = "out";
  launch.buffers[0].bytes = 4 * elements;
  launch.buffers[0].element = gpu::ScalarType::f32;
  launch.buffers[0].output = true;
  launch.check = {"none", absolute, relative};
  return launch;
}

std::string difference(double absolute, double relative, const std::vector<float>& expected,
                       const std::vector<float>& found) {
  const auto same = compare_outputs(launch_with(absolute, relative, expected.size()),
                                    memory_of(expected), memory_of(found));
  return same ? "" : same.error().message;
}

TEST(CompareOutputs, tolerances_add_up_and_end_where_they_are_said_to) {
  EXPECT_EQ(difference(0, 0, {1, 2}, {1, 2}), "");
  EXPECT_NE(difference(0, 0, {1, 2}, {1, std::nextafter(2.0F, 3.0F)}), "");
  EXPECT_EQ(difference(0.5, 0, {100}, {100.5}), "");
  EXPECT_NE(difference(0.5, 0, {100}, {100.51F}), "");
  EXPECT_EQ(difference(0, 0.125, {-8}, {-9}), "") << "of what is expected";
  EXPECT_NE(difference(0, 0.125, {-8}, {-9.01F}), "");
  EXPECT_EQ(difference(0.5, 0.125, {8}, {9.5}), "");
  EXPECT_NE(difference(0.5, 0.125, {8}, {9.51F}), "");
  EXPECT_NE(difference(0.5, 0.125, {8}, {6.49F}), "");
}

TEST(CompareOutputs, what_is_no_number_agrees_with_its_own_bits_alone) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(difference(1e9, 1e9, {nan}, {nan}), "");
  EXPECT_NE(difference(1e9, 1e9, {nan}, {1}), "");
  EXPECT_NE(difference(1e9, 1e9, {1}, {nan}), "");
}

TEST(CompareOutputs, integers_have_no_tolerance) {
  gpu::Launch launch = launch_with(10, 10, 1);
  launch.buffers[0].element = gpu::ScalarType::u32;
  gpu::Memory expected{{std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}}};
  gpu::Memory found = expected;
  EXPECT_TRUE(compare_outputs(launch, expected, found));
  found[0][3] = std::byte{1};
  EXPECT_FALSE(compare_outputs(launch, expected, found));
}

TEST(CompareOutputs, names_the_first_that_differs_and_how_many_do) {
  EXPECT_EQ(difference(0, 0, {1, 2, 3, 4}, {1, 5, 3, 6}),
            "launch 'l': output 'out' (f32): 2 of 4 elements differ; the first at [1]: expected 2, "
            "found 5");
}

TEST(CompareOutputs, buffers_that_are_no_outputs_may_hold_anything) {
  gpu::Launch launch = launch_with(0, 0, 1);
  launch.buffers[0].output = false;
  EXPECT_TRUE(compare_outputs(launch, memory_of({1}), memory_of({2})));
}

TEST(CompareOutputs, buffers_that_are_missing_or_shorter_are_refused) {
  const gpu::Launch launch = launch_with(0, 0, 2);
  const gpu::Memory two = memory_of({1, 2});
  const gpu::Memory one = memory_of({1});
  EXPECT_EQ(compare_outputs(launch, two, {}).error().message,
            "launch 'l': 0 buffers came back for 1");
  EXPECT_FALSE(compare_outputs(launch, {}, two));
  EXPECT_EQ(compare_outputs(launch, two, one).error().message,
            "launch 'l': output 'out': 4 bytes came back for 8");
  EXPECT_FALSE(compare_outputs(launch, one, two));
}

TEST(Check, is_by_a_reference_that_exists_or_by_none) {
  gpu::Launch launch = launch_with(0, 0, 1);
  const std::vector<std::uint64_t> addresses{0};
  EXPECT_EQ(check(launch, addresses, memory_of({1})).error().message,
            "launch 'l': there is no reference 'none'");
  launch.check.reference.clear();
  EXPECT_TRUE(check(launch, addresses, memory_of({1})));
}

}  // namespace
}  // namespace demarc::workload
