// Which launch a workload's name stands for on a card.
#include "gpu/workload_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/workload/workload.hpp"
#include "paths.hpp"
#include "small_kernels.hpp"

namespace demarc::study {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t reader_target = 90;

std::string launch_file(const std::filesystem::path& folder, const std::string& fill) {
  EXPECT_TRUE(write_file((folder / "fold.ptx").string(), test::small_module(test::fold_entry)));
  const std::string file = (folder / "fold.json").string();
  EXPECT_TRUE(write_file(file, fmt::format(R"({{"schema": "demarc.launch/1", "name": "fold",
    "ptx": "fold.ptx", "buffers": [
      {{"name": "b", "bytes": 64, "element": "u64", "fill": {}}},
      {{"name": "c", "bytes": 64, "element": "u32"}}],
    "launches": [{{"kernel": "fold", "grid": 1, "block": 32,
                   "args": ["buf:b", "buf:c", "u32:16"]}}]}})",
                                           fill)));
  return file;
}

TEST(WorkloadReader, bundled_workloads_have_the_size_of_a_card_unless_the_name_says_another) {
  const auto bytes = [](const std::string& spec) {
    const auto code = gpu_workload_code(spec, reader_target);
    EXPECT_TRUE(code) << code.error().message;
    return code->launch.buffers.front().bytes;
  };
  const auto bundled = [](const std::string& name, const std::string& scale) {
    gpu::LaunchFileOptions options;
    options.scale = scale;
    return workload::instance(name, options)->buffers.front().bytes;
  };
  EXPECT_EQ(bytes("aes"), bundled("aes", "large"));
  EXPECT_EQ(bytes("aes@64mb"), bundled("aes", "64mb"));
  EXPECT_EQ(bytes("va"), bundled("vecadd", "large"));
  EXPECT_EQ(bytes("va@n=1000"), 4000U);
  EXPECT_NE(bundled("vecadd", "large"), bundled("vecadd", ""));
  EXPECT_THAT(gpu_workload_code("aes@tiny", reader_target).error().message, HasSubstr("tiny"));
  EXPECT_THAT(gpu_workload_code("quicksort", reader_target).error().message,
              HasSubstr("there is no bundled workload 'quicksort'"));
  EXPECT_THAT(gpu_workload_code("va", reader_target)->ptx, HasSubstr(".entry"));
}

TEST(WorkloadReader, a_launch_file_has_the_scale_behind_its_extension) {
  const auto folder = test::fresh_folder("reader@home.json");
  ASSERT_TRUE(write_file((folder / "fold.ptx").string(), test::small_module(test::fold_entry)));
  const std::string file = (folder / "fold.json").string();
  ASSERT_TRUE(write_file(file, R"({"schema": "demarc.launch/1", "name": "fold", "ptx": "fold.ptx",
    "parameters": {"words": 16}, "scales": {"large": {"words": 64}},
    "buffers": [{"name": "b", "bytes": "8*words", "element": "u64"},
                {"name": "c", "bytes": "4*words", "element": "u32"}],
    "launches": [{"kernel": "fold", "grid": 1, "block": 32,
                  "args": ["buf:b", "buf:c", "u32:words"]}]})"));
  const auto bytes = [](const std::string& spec) {
    const auto code = gpu_workload_code(spec, reader_target);
    EXPECT_TRUE(code) << code.error().message;
    return code ? code->launch.buffers.front().bytes : 0;
  };
  EXPECT_EQ(bytes("launch:" + file), 128U);
  EXPECT_EQ(bytes("launch:" + file + "@large"), 512U);
  EXPECT_THAT(gpu_workload_code("launch:" + file + "@huge", reader_target).error().message,
              HasSubstr("there is no scale 'huge'"));
  EXPECT_THAT(gpu_workload_code("launch:" + file + "@", reader_target).error().message,
              HasSubstr("name one of its scales"));
}

TEST(WorkloadReader, what_has_no_ptx_says_why) {
  const auto why = [](const std::string& spec) {
    const auto code = gpu_workload_code(spec, reader_target);
    EXPECT_EQ(code.error().kind, ErrorKind::missing_capability);
    return code.error().message;
  };
  EXPECT_EQ(why("cmd:make"), "a command brings compiled code, no PTX");
  EXPECT_EQ(why("stream:read"), "an access stream has no PTX");
  EXPECT_EQ(why("copy_out"), "copies by the copy engines have no PTX");
}

TEST(WorkloadReader, copies_are_256_mi_b_or_the_first_buffer_of_a_file) {
  const WorkloadReader reader = make_workload_reader(reader_target);
  for (const bool in : {true, false}) {
    const std::string name = in ? "copy_in" : "copy_out";
    const auto direction = in ? CopyDirection::to_card : CopyDirection::to_host;
    const auto plain = reader({"x", name}).value();
    EXPECT_EQ(plain.copies, direction);
    EXPECT_EQ(plain.launch.name, name);
    ASSERT_EQ(plain.launch.buffers.size(), 1U);
    EXPECT_EQ(plain.launch.buffers[0].name, "data");
    EXPECT_EQ(plain.launch.buffers[0].bytes, 268435456U);
    EXPECT_EQ(plain.launch.kernels.size(), 1U);
    const auto folder = test::fresh_folder("workload_reader_" + name);
    const auto of_file = reader({"x", name + ":" + launch_file(folder, "\"iota\"")}).value();
    EXPECT_EQ(of_file.copies, direction);
    EXPECT_EQ(of_file.launch.name, "fold");
    EXPECT_EQ(of_file.launch.buffers.size(), 2U);
    EXPECT_FALSE(reader({"x", name + ":/no/such/file.json"}));
    EXPECT_THAT(reader({"x", name + "s"}).error().message,
                HasSubstr("there is no bundled workload"));
  }
}

TEST(WorkloadReader, a_command_is_no_victim_and_a_launch_file_is_read_once) {
  const WorkloadReader reader = make_workload_reader(reader_target);
  EXPECT_EQ(reader({"x", "cmd:make all"}).error().message,
            "'make all' is a command, and this lane runs kernels alone");
  const auto folder = test::fresh_folder("workload_reader_once");
  const std::string file = launch_file(folder, "\"iota\"");
  const auto first = reader({"x", "launch:" + file}).value();
  EXPECT_EQ(first.copies, CopyDirection::none);
  EXPECT_THAT(first.ptx, HasSubstr(".entry fold"));
  std::filesystem::remove(file);
  const auto again = reader({"y", "launch:" + file});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->contents, first.contents);
  EXPECT_FALSE(make_workload_reader(reader_target)({"x", "launch:" + file}));
}

TEST(WorkloadReader, contents_are_made_once_unless_they_depend_on_addresses) {
  const auto folder = test::fresh_folder("workload_reader_contents");
  const auto read = [&](const std::string& fill) {
    return make_workload_reader(reader_target)({"x", "launch:" + launch_file(folder, fill)})
        .value();
  };
  const auto iota = read("\"iota\"");
  ASSERT_NE(iota.contents, nullptr);
  EXPECT_EQ(iota.contents->at(0).size(), 64U);
  EXPECT_EQ(iota.contents->at(0)[8], std::byte{1});
  EXPECT_TRUE(iota.contents->at(1).empty()) << "zeros are made where they lie";
  EXPECT_EQ(read(R"({"pointers": "c", "stride": 4})").contents, nullptr);
}

}  // namespace
}  // namespace demarc::study
