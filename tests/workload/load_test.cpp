#include "demarc/workload/load.hpp"

#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "paths.hpp"

namespace demarc::workload {
namespace {

TEST(LoadLaunch, a_bundled_name_alone_brings_its_own_launch) {
  LaunchRequest request;
  request.text.ptx = "bundled:vecadd";
  request.options.parameters["n"] = 1000;
  const auto loaded = load_launch(request);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->launch.kernels.at(0).grid, (gpu::Dim3{4, 1, 1}));
  EXPECT_NE(loaded->ptx.find(".entry vecadd("), std::string::npos);
}

TEST(LoadLaunch, a_kernel_left_out_is_the_only_entry_and_an_unknown_one_lists_the_entries) {
  const auto file = test::fresh_folder("load_launch") / "k.ptx";
  ASSERT_TRUE(write_file(file, "// .entry none\n.visible .entry one()\n{ ret; }\n"));
  LaunchRequest request;
  request.text.ptx = file.string();
  auto loaded = load_launch(request);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->launch.kernels.at(0).kernel, "one");

  request.text.kernel = "two";
  EXPECT_TRUE(load_launch(request).error().message.ends_with(
      "there is no entry 'two'; its entries are: one"));
}

TEST(LoadLaunch, a_launch_file_and_a_launch_by_hand_exclude_each_other) {
  LaunchRequest request;
  request.launch_file = "bundled:vecadd";
  request.text_given = true;
  ASSERT_FALSE(load_launch(request));
  request.text_given = false;
  EXPECT_TRUE(load_launch(request));
  request.launch_file.clear();
  EXPECT_EQ(load_launch(request).error().message,
            "a PTX file, bundled:NAME or --launch FILE.json was expected");
}

TEST(LoadLaunch, the_seed_of_the_command_line_replaces_the_files) {
  LaunchRequest request;
  request.launch_file = "bundled:vecadd";
  request.text.seed = 77;
  EXPECT_EQ(load_launch(request)->launch.seed, 1U);
  request.seed_given = true;
  EXPECT_EQ(load_launch(request)->launch.seed, 77U);
}

}  // namespace
}  // namespace demarc::workload
