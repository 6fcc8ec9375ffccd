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

TEST(LoadLaunch, a_launch_file_leaves_nothing_to_be_said_beside_it) {
  LaunchRequest request;
  request.launch_file = "bundled:vecadd";
  request.text.ptx = "bundled:vecadd";
  EXPECT_TRUE(load_launch(request).error().message.starts_with(
      "--launch bundled:vecadd says kernel, grid, block and arguments itself"));
}

class LoadByHand : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file(folder / "k.ptx",
                           ".visible .entry one(.param .u64 a, .param .u64 b)\n"
                           "{ ret; }\n.visible .entry two()\n{ ret; }\n"));
    request.text.ptx = (folder / "k.ptx").string();
    request.text.kernel = "one";
    request.text_given = true;
  }
  [[nodiscard]] std::string refusal() const {
    const auto loaded = load_launch(request);
    return loaded ? "" : loaded.error().message;
  }
  std::filesystem::path folder = test::fresh_folder("by_hand");
  LaunchRequest request;
};

TEST_F(LoadByHand, what_belongs_to_launch_files_and_bundled_modules_is_refused) {
  EXPECT_EQ(refusal(), "");
  request.options.scale = "large";
  EXPECT_EQ(refusal(),
            "--scale and --set belong to launch files; " + request.text.ptx + " is a PTX module");
  request.options = {};
  request.options.parameters["n"] = 1;
  EXPECT_NE(refusal(), "");
  request.options = {};
  request.target_given = true;
  EXPECT_EQ(refusal(), "--sm 90 chooses among bundled modules; " + request.text.ptx +
                           " is a PTX file, for its own .target");
}

TEST_F(LoadByHand, a_kernel_has_to_be_named_where_there_are_two_and_there_has_to_be_one) {
  request.text.kernel.clear();
  EXPECT_EQ(refusal(), request.text.ptx + ": --kernel was expected; its entries are: one, two");
  ASSERT_TRUE(write_file(folder / "k.ptx", ".func f()\n{ ret; }\n"));
  EXPECT_EQ(refusal(), request.text.ptx + ": it has no entry, so nothing to run");
}

TEST_F(LoadByHand, a_fat_binary_says_which_command_takes_its_ptx_out) {
  ASSERT_TRUE(write_file(folder / "k.ptx", "\x50\xed\x55\xba .entry one"));
  EXPECT_EQ(refusal(), request.text.ptx + ": this is a fat binary, and no PTX text; 'demarc ptx " +
                           "--extract DIR " + request.text.ptx + "' takes out what it holds");
}

TEST_F(LoadByHand, files_of_contents_are_looked_at_before_anything_is_computed) {
  const auto arguments = [&](const std::string& file) {
    request.text.arguments = "buf:16,buf:4:@" + (folder / file).string();
    return refusal();
  };
  request.text.arguments = "buf:4:@" + (folder / "none").string();
  EXPECT_TRUE(refusal().starts_with("argument 1 (buffer '")) << refusal();
  const std::string named = "argument 2 (buffer '";
  EXPECT_EQ(arguments("none").substr(0, named.size()), named);
  EXPECT_NE(arguments("none").find("none: cannot be read: No such file"), std::string::npos);
  EXPECT_NE(arguments("").find("is a directory, a file was expected"), std::string::npos);
  ASSERT_TRUE(write_file(folder / "data", "1234"));
  EXPECT_EQ(arguments("data"), "");
  ASSERT_TRUE(write_file(folder / "data", "12345"));
  EXPECT_NE(arguments("data").find("data holds 5 bytes, more than the buffer's 4"),
            std::string::npos);
  request.text.arguments = "buf:4:@/dev/zero";
  EXPECT_EQ(refusal(), "") << "a device has no size; it is read when it is needed";
}

TEST(KeepKernel, keeps_its_launches_and_the_check_of_the_whole_alone) {
  gpu::Launch launch;
  launch.check.reference = "whole";
  launch.kernels.resize(3);
  launch.kernels[0].kernel = launch.kernels[2].kernel = "a";
  launch.kernels[1].kernel = "b";
  launch.kernels[2].grid.x = 7;
  gpu::Launch some = launch;
  ASSERT_TRUE(keep_kernel(some, "a"));
  ASSERT_EQ(some.kernels.size(), 2U);
  EXPECT_EQ(some.kernels[1].grid.x, 7U);
  EXPECT_EQ(some.check, gpu::Check{}) << "a part cannot be checked";
  gpu::Launch whole = some;
  whole.check.reference = "whole";
  ASSERT_TRUE(keep_kernel(whole, "a"));
  EXPECT_EQ(whole.check.reference, "whole");
  EXPECT_EQ(keep_kernel(launch, "c").error().message,
            "--kernel c: the launch runs no kernel of that name; its kernels are: a, b");
}

TEST(EntryNames, are_found_in_any_layout_and_not_in_comments) {
  EXPECT_EQ(entry_names(".entry a()"), std::vector<std::string>{"a"});
  EXPECT_EQ(entry_names(".visible .entry\n\t $b_1%(x) .entryc() .entry  9 // .entry d\n.entry e"),
            (std::vector<std::string>{"$b_1%", "9", "e"}));
  EXPECT_TRUE(entry_names("").empty());
  EXPECT_TRUE(entry_names(".entry ").empty());
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
