// What of a result is compared, and how far it may be off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "demarc/base/files.hpp"
#include "demarc/launch/content_file.hpp"
#include "demarc/workload/workload.hpp"
#include "paths.hpp"

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
            "launch 'l': 0 buffers came back instead of 1");
  EXPECT_FALSE(compare_outputs(launch, {}, two));
  EXPECT_EQ(compare_outputs(launch, two, one).error().message,
            "launch 'l': output 'out': 4 bytes came back instead of 8");
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

class CheckByFile : public testing::Test {
 protected:
  std::string answer(const std::vector<float>& expected, const std::vector<float>& found) {
    const auto bytes = memory_of(expected).front();
    const std::string file = (test::fresh_folder("check_by_file") / "out.npy").string();
    EXPECT_TRUE(write_file(
        file, gpu::content_head(file, gpu::ScalarType::f32, bytes.size()) +
                  std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
    gpu::Launch launch = launch_with(0.5, 0, 2);
    launch.check.reference.clear();
    launch.check.files[0] = file;
    const std::vector<std::uint64_t> addresses{0};
    const auto same = check(launch, addresses, memory_of(found));
    return same ? "" : same.error().message;
  }
};

TEST_F(CheckByFile, compares_the_outputs_with_it_within_the_tolerance) {
  EXPECT_EQ(answer({1, 2}, {1, 2.5F}), "");
  EXPECT_EQ(answer({1, 2}, {1, 2.75F}),
            "launch 'l': output 'out' (f32): 1 of 2 elements differ; the first at [1]: expected 2, "
            "found 2.75");
}

TEST_F(CheckByFile, refuses_one_that_has_not_as_many_elements) {
  EXPECT_THAT(answer({1}, {1, 2}),
              testing::HasSubstr("out.npy holds 4 bytes, but the buffer has 8"));
  EXPECT_THAT(answer({1, 2, 3}, {1, 2}), testing::HasSubstr("out.npy holds 12 bytes, more than"));
}

}  // namespace
}  // namespace demarc::workload
