// Tests which launch a user's words name, and what is refused in them.
#include "demarc/workload/load.hpp"

#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/ptx/parser.hpp"
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
      "--launch bundled:vecadd already has kernel, grid, block and arguments"));
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
            "--scale and --param belong to launch files; " + request.text.ptx + " is a PTX module");
  request.options = {};
  request.options.parameters["n"] = 1;
  EXPECT_NE(refusal(), "");
  request.options = {};
  request.target_given = true;
  EXPECT_EQ(refusal(), "--sm 90 chooses among bundled modules, but " + request.text.ptx +
                           " is a PTX file with its own .target");
}

TEST_F(LoadByHand, a_kernel_has_to_be_named_where_there_are_two_and_there_has_to_be_one) {
  request.text.kernel.clear();
  EXPECT_EQ(refusal(), request.text.ptx + ": --kernel was expected; its entries are: one, two");
  ASSERT_TRUE(write_file(folder / "k.ptx", ".func f()\n{ ret; }\n"));
  EXPECT_EQ(refusal(), request.text.ptx + ": it has no entry, so there is nothing to run");
}

TEST_F(LoadByHand, a_fat_binary_says_which_command_takes_its_ptx_out) {
  ASSERT_TRUE(write_file(folder / "k.ptx", "\x50\xed\x55\xba .entry one"));
  EXPECT_EQ(refusal(), request.text.ptx + ": this is a fat binary, not PTX text; 'demarc ptx " +
                           "--extract DIR " + request.text.ptx + "' extracts what it holds");
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
  EXPECT_NE(arguments("").find("this is a directory; a file was expected"), std::string::npos);
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
            "--kernel c: there is no kernel 'c'; its kernels are: a, b");
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

// Kernels and variables with names of C++: scale<float>(float*, int), blur(int), blur(float).
constexpr const char* named_ptx = R"(.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 taps[8];
.const .align 4 .f32 gain;
.const .align 4 .f32 known = 0f3f800000;
.extern .global .align 4 .u32 _ZN5image5countE;
.visible .global .align 4 .u32 _ZN5image5countE;
.shared .align 4 .b8 tile[64];
.visible .entry _Z5scaleIfEvPT_i(.param .u64 a, .param .u32 n) {
.reg .f32 %f<4>;
ld.const.f32 %f1, [taps+4];
ld.const.f32 %f2, [gain];
ld.const.f32 %f3, [known];
ret; }
.visible .entry _Z4bluri(.param .u32 n) { ret; }
.visible .entry _Z4blurf(.param .f32 x) { .reg .f32 %f<2>; ld.const.f32 %f1, [gain]; ret; }
)";

class LoadByName : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file(folder / "named.ptx", named_ptx));
    request.text.ptx = (folder / "named.ptx").string();
    request.text.kernel = "scale";
    request.text.arguments = "buf:64,i32:4";
    request.text_given = true;
  }
  std::string file_of(const std::string& name, const std::string& content) {
    EXPECT_TRUE(write_file(folder / name, content));
    return (folder / name).string();
  }
  [[nodiscard]] std::string refusal() const {
    const auto loaded = load_launch(request);
    if (loaded) return "accepted";
    const std::string& message = loaded.error().message;
    const std::string file = request.text.ptx + ": ";
    return message.starts_with(file) ? message.substr(file.size()) : message;
  }
  std::filesystem::path folder = test::fresh_folder("by_name");
  LaunchRequest request;
};

TEST_F(LoadByName, kernels_have_the_names_that_people_write_and_the_launch_those_of_the_module) {
  for (const char* name : {"scale", "scale<float>", "scale<float>(float*, int)"}) {
    request.text.kernel = name;
    const auto loaded = load_launch(request);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->launch.kernels[0].kernel, "_Z5scaleIfEvPT_i");
    EXPECT_EQ(kernel_of(loaded->launch, name).value(), "_Z5scaleIfEvPT_i");
  }
  request.text.kernel = "blur";
  EXPECT_EQ(refusal(),
            "'blur' matches each of these entries; name one in full: blur(int), blur(float)");
  request.text.kernel = "blurr";
  EXPECT_EQ(refusal(),
            "there is no entry 'blurr'; its entries are: scale<float>(float*, int), blur(int), "
            "blur(float)");
}

TEST_F(LoadByName, variables_are_those_of_constant_and_global_memory) {
  request.variables = {"gain=f32:2", "image::count=u32:7"};
  const auto loaded = load_launch(request);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->launch.variables.size(), 2U);
  EXPECT_EQ(loaded->launch.variables[1].name, "_ZN5image5countE");
  request.variables = {"tile=u32:7"};
  EXPECT_EQ(refusal(),
            "there is no variable 'tile'; its variables are: taps, gain, known, image::count");
  request.variables = {"gain=f32:2", "gain=f32:3"};
  EXPECT_EQ(refusal(), "--variable gain=f32:3: 'gain' is given twice");
  request.variables = {"image::count=u32:7", "_ZN5image5countE=u32:7"};
  EXPECT_EQ(refusal(), "variable '_ZN5image5countE': it is given twice");
  request.variables = {"gain"};
  EXPECT_EQ(refusal(), "--variable gain: NAME=VALUE was expected, as in taps=@taps.npy:f32");
}

TEST_F(LoadByName, files_of_variables_must_be_there_and_fit) {
  request.variables = {"taps=@" + file_of("eight", "abcdefgh")};
  EXPECT_EQ(refusal(), "accepted");
  const std::string nine = file_of("nine", "abcdefghi");
  request.variables = {"taps=@" + nine};
  EXPECT_EQ(refusal(), "variable 'taps': " + nine + " holds 9 bytes, more than the variable's 8");
  request.variables = {"taps=@/nonexistent"};
  EXPECT_EQ(refusal(), "variable 'taps': /nonexistent: cannot be read: No such file or directory");
}

TEST_F(LoadByName, variables_of_the_command_line_replace_those_of_the_launch_file) {
  request = {};
  request.launch_file = file_of("l.json", R"json({"schema": "demarc.launch/1", "ptx": "named.ptx",
    "buffers": [], "variables": [{"name": "gain", "element": "f32", "fill": [1]},
                                 {"name": "taps", "fill": "iota"}],
    "launches": [{"kernel": "blur(int)", "grid": 1, "block": 1, "args": ["i32:1"]}]})json");
  request.variables = {"gain=f32:2"};
  const auto loaded = load_launch(request);
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->launch.variables.size(), 2U);
  EXPECT_EQ(loaded->launch.variables[0].fill.kind, gpu::FillKind::bytes);
  EXPECT_EQ(loaded->launch.variables[1].fill.kind, gpu::FillKind::iota);
}

TEST_F(LoadByName, files_that_outputs_are_compared_with_must_be_there_and_be_as_long) {
  request = {};
  const std::string expected = file_of("out.bin", "abcdefgh");
  const auto with_bytes = [&](const std::string& bytes) {
    request.launch_file = file_of("l.json",
                                  R"json({"schema": "demarc.launch/1", "ptx": "named.ptx",
    "launches": [{"kernel": "blur(int)", "grid": 1, "block": 1, "args": ["i32:1"]}],
    "check": {"file": "out.bin"}, "buffers": [{"name": "out", "output": true, "bytes": )json" +
                                      bytes + "}]}");
    return refusal();
  };
  EXPECT_EQ(with_bytes("8"), "accepted");
  EXPECT_EQ(with_bytes("7"),
            "check of 'out': " + expected + " holds 8 bytes, but the buffer has 7");
  EXPECT_EQ(with_bytes("9"),
            "check of 'out': " + expected + " holds 8 bytes, but the buffer has 9");
  std::filesystem::remove(expected);
  EXPECT_EQ(with_bytes("8"),
            "check of 'out': " + expected + ": cannot be read: No such file or directory");
}

TEST_F(LoadByName, constants_that_nobody_set_are_those_that_neither_module_nor_launch_sets) {
  const auto unset = [&] {
    const auto loaded = load_launch(request).value();
    std::string all;
    for (const UnsetConstant& one :
         unset_constants(ptx::parse(loaded.ptx, "t.ptx").module, loaded.launch))
      all += one.kernel + " " + one.variable + ";";
    return all;
  };
  EXPECT_EQ(unset(), "_Z5scaleIfEvPT_i taps;_Z5scaleIfEvPT_i gain;");
  request.variables = {"gain=f32:2"};
  EXPECT_EQ(unset(), "_Z5scaleIfEvPT_i taps;");
  request.variables = {"gain=f32:2", "taps=iota"};
  EXPECT_EQ(unset(), "");
  request.variables.clear();
  request.text.kernel = "blur(int)";
  request.text.arguments = "i32:1";
  EXPECT_EQ(unset(), "");
}

}  // namespace
}  // namespace demarc::workload
