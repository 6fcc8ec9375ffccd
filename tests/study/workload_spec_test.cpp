// The spec of a workload is one of five kinds, told apart in one place.
#include "workload_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/study/plan.hpp"

namespace demarc::study {
namespace {

using ::testing::HasSubstr;

template <class Kind>
Kind spec_as(std::string_view text) {
  return std::get<Kind>(parse_workload_spec(text).value());
}

TEST(WorkloadSpec, a_prefix_says_which_kind_it_is) {
  EXPECT_EQ(spec_as<StreamSpec>("stream:a/x.txt").path, "a/x.txt");
  EXPECT_EQ(spec_as<CommandSpec>("cmd:make -j2 a@b").line, "make -j2 a@b");
  EXPECT_EQ(spec_as<LaunchSpec>("launch:k.json").path, "k.json");
  EXPECT_EQ(spec_as<LaunchSpec>("launch:k.json").scale, "");
  EXPECT_EQ(spec_as<BundledSpec>("va").name, "vecadd");
}

TEST(WorkloadSpec, a_scale_follows_the_extension_of_a_launch_file) {
  const LaunchSpec large = spec_as<LaunchSpec>("launch:a@b/k.json@large");
  EXPECT_EQ(large.path, "a@b/k.json");
  EXPECT_EQ(large.scale, "large");
  EXPECT_EQ(spec_as<LaunchSpec>("launch:a@b/k").path, "a@b/k");
  EXPECT_THAT(parse_workload_spec("launch:a@b/k.json@").error().message,
              HasSubstr("'launch:a@b/k.json@': name one of its scales after the '@'"));
}

TEST(WorkloadSpec, copies_have_a_direction_and_may_have_a_launch_file) {
  EXPECT_TRUE(spec_as<CopySpec>("copy_in").to_card);
  EXPECT_FALSE(spec_as<CopySpec>("copy_out").to_card);
  EXPECT_EQ(spec_as<CopySpec>("copy_in").launch_file, "");
  EXPECT_EQ(spec_as<CopySpec>("copy_out:k.json").launch_file, "k.json");
  EXPECT_EQ(spec_as<BundledSpec>("copy_into").name, "copy_into");
}

TEST(WorkloadSpec, parameters_of_a_bundled_workload_are_names_with_numbers) {
  const BundledSpec sized = spec_as<BundledSpec>("va@n=4096+m=-1");
  EXPECT_FALSE(sized.scale);
  EXPECT_EQ(sized.parameters, (std::map<std::string, std::int64_t>{{"n", 4096}, {"m", -1}}));
  EXPECT_EQ(spec_as<BundledSpec>("va@large").scale, "large");
  for (const char* wrong : {"va@n=", "va@=1", "va@n=1+", "va@n=1+m"}) {
    EXPECT_THAT(parse_workload_spec(wrong).error().message, HasSubstr("is not PARAMETER=NUMBER"))
        << wrong;
  }
}

TEST(WorkloadSpec, a_list_of_workloads_names_the_option_of_a_spec_that_is_wrong) {
  EXPECT_EQ(parse_workloads("mm,va@", "--victims").error().message,
            "--victims: 'va@': name one of its scales after the '@', or leave the '@' out");
  EXPECT_EQ(command_workload("make all"), (Workload{"make all", "cmd:make all"}));
  EXPECT_TRUE(is_command(command_workload("make all")));
  EXPECT_FALSE(is_command({"cmd", "cmd"}));
}

}  // namespace
}  // namespace demarc::study
