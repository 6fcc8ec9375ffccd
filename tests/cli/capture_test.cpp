// demarc capture, of a program on the stand-in for libcuda; what it takes is run in the emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <variant>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/launch/launch.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc {
namespace {

namespace fs = std::filesystem;
using test::run_demarc;
using testing::HasSubstr;

class Capture : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", test::fresh_folder("capture_cache").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("DEMARC_LIBCUDA");
    ::unsetenv("DEMARC_CACHE");
  }
  // Of tests/cuda/subject/subject.cpp with these steps.
  [[nodiscard]] test::Outcome capture(const std::vector<std::string>& options,
                                      const std::vector<std::string>& steps) const {
    std::vector<std::string> arguments{"capture", "-o", folder.string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", (test::build_dir() / "demarc_exec_subject").string(),
                                       test::fake_libcuda().string(), log.string(), "context"});
    arguments.insert(arguments.end(), steps.begin(), steps.end());
    return run_demarc(arguments);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder / name).string(); }
  [[nodiscard]] std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& one : fs::directory_iterator(folder)) {
      names.push_back(one.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path above = test::fresh_folder("capture");
  fs::path folder = above / "taken";
  fs::path log = above / "log";
};

TEST_F(Capture, takes_a_launch_that_the_emulator_repeats) {
  const auto taken = capture({}, {"count"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_EQ(taken.out, "") << "standard output is the program's";
  EXPECT_EQ(taken.err, "demarc capture: " + file("count-1/launch.json") + "\n");
  EXPECT_EQ(read_file(log).value(), "context 0\ncount right\n");
  const auto launch = gpu::read_launch(file("count-1/launch.json"));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->kernels.at(0).kernel, "count");
  EXPECT_EQ(launch->kernels.at(0).grid, (gpu::Dim3{256, 1, 1}));
  EXPECT_EQ(launch->kernels.at(0).block, (gpu::Dim3{64, 1, 1}));
  ASSERT_EQ(launch->buffers.size(), 1U);
  EXPECT_EQ(launch->buffers[0].bytes, 65536U);
  EXPECT_EQ(launch->buffers[0].address, 0U);
  EXPECT_TRUE(launch->buffers[0].output);
  EXPECT_TRUE(launch->variables.empty()) << "it has what the text gives it";
  const auto emulated = run_demarc({"emulate", "--launch", file("count-1/launch.json")});
  EXPECT_EQ(emulated.exit_code, 0) << emulated.err;
  EXPECT_THAT(emulated.out, HasSubstr("reference"));
  // What the card made of it is what the emulator is held against.
  auto after = read_file(file("count-1/memory0-after.bin")).value();
  after[4] = static_cast<char>(after[4] + 1);
  ASSERT_TRUE(write_file(file("count-1/memory0-after.bin"), after));
  EXPECT_EQ(run_demarc({"emulate", "--launch", file("count-1/launch.json")}).exit_code, 3);
}

TEST_F(Capture, a_variable_that_the_program_has_set_is_taken) {
  const auto taken = capture({}, {"count-by=7"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const auto launch = gpu::read_launch(file("count-1/launch.json"));
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_EQ(launch->variables.size(), 1U);
  EXPECT_EQ(launch->variables[0].name, "added");
  const auto emulated = run_demarc({"emulate", "--launch", file("count-1/launch.json")});
  EXPECT_EQ(emulated.exit_code, 0) << emulated.err;
}

TEST_F(Capture, an_address_in_a_structure_and_in_memory_keeps_its_place) {
  const auto taken = capture({}, {"follow"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const auto launch = gpu::read_launch(file("follow-1/launch.json"));
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_EQ(launch->buffers.size(), 2U);
  EXPECT_NE(launch->buffers[0].address, 0U);
  EXPECT_NE(launch->buffers[1].address, 0U);
  const auto emulated = run_demarc({"emulate", "--launch", file("follow-1/launch.json")});
  EXPECT_EQ(emulated.exit_code, 0) << emulated.err;
  const auto run = run_demarc({"run", "--launch", file("follow-1/launch.json")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("which no GPU can promise"));
}

TEST_F(Capture, kernels_are_chosen_by_name_and_launches_by_number) {
  const auto taken = capture({"--kernel", "count", "--skip", "1", "--launches", "2", "--json"},
                             {"launch", "count", "count", "count", "count"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_EQ(entries(), (std::vector<std::string>{"count-1", "count-2"}));
  const Json said = Json::parse(taken.err);
  EXPECT_EQ(said["schema"], "demarc.capture/1");
  EXPECT_EQ(said["launches"].size(), 2U);
  EXPECT_EQ(said["kernels"], (Json{"demarc_idle", "count"}));
}

TEST_F(Capture, the_exit_code_is_the_programs_own) {
  const auto taken = capture({}, {"count", "exit=5"});
  EXPECT_EQ(taken.exit_code, 5);
  EXPECT_EQ(entries(), std::vector<std::string>{"count-1"});
}

TEST_F(Capture, without_a_launch_it_says_what_was_launched) {
  const auto none = capture({"--kernel", "total"}, {"count"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("it launched: count"));
  EXPECT_TRUE(entries().empty());
  const auto nothing = run_demarc({"capture", "-o", folder.string(), "--", "true"});
  EXPECT_EQ(nothing.exit_code, 3);
  EXPECT_THAT(nothing.err, HasSubstr("the program launched no kernel"));
  const auto late = capture({"--skip", "5"}, {"count"});
  EXPECT_EQ(late.exit_code, 3);
  EXPECT_THAT(late.err, HasSubstr("the program launched none of its kernels 6 times or more; it "
                                  "launched: count"));
}

TEST_F(Capture, what_cannot_be_taken_is_named) {
  const auto node = capture({}, {"replay"});
  EXPECT_EQ(node.exit_code, 3);
  EXPECT_THAT(node.err, HasSubstr("not taken: keep: it becomes a node of a graph"));
  const auto large = capture({"--max-bytes", "1 KiB"}, {"count"});
  EXPECT_EQ(large.exit_code, 3);
  EXPECT_THAT(large.err, HasSubstr("its memory has 65536 bytes or more, but at most 1024"));
  EXPECT_TRUE(entries().empty());
}

TEST_F(Capture, what_cannot_be_taken_is_named_and_the_program_goes_on) {
  const struct {
    std::string step;
    std::string line;     // that says why
    const char* program;  // what the program says of its launch
  } cases[] = {
      {"count-from-buffer=4", "count: its arguments have only 4 bytes, fewer than its parameters\n",
       "count 1\n"},
      {"count-without-arguments", "count: it was given no arguments\n", "count 1\n"},
      {"count-with-shared=1000000", "count: the driver refused the launch\n", "count 1\n"},
      {"count-nowhere", "count: it does not end well: CUDA_ERROR_ILLEGAL_ADDRESS ", "count 0\n"},
      {"count-in-unreadable-memory", "count: its memory cannot be read: ", "count 0\n"},
      {"count-beside-a-capture", "count: the work in front of it does not end: ", "count 0\n"},
      {"launch-what-ptx-lacks", "demarc_self_lines: its PTX has no such kernel\n", "lines 0\n"},
      {"fetch",
       "fetch: its code:12: @%p1 tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%r1}];: a texture "
       "or a surface cannot be taken\n",
       "fetch 0\n"},
  };
  for (const auto& one : cases) {
    fs::remove(log);
    fs::remove_all(folder);
    const auto taken = capture({}, {one.step});
    EXPECT_EQ(taken.exit_code, 3) << one.step;
    EXPECT_THAT(taken.err, HasSubstr("demarc capture: not taken: " + one.line)) << one.step;
    EXPECT_THAT(taken.err, HasSubstr("demarc capture: no launch was taken\n")) << one.step;
    EXPECT_TRUE(entries().empty()) << one.step;
    EXPECT_EQ(read_file(log).value_or(""), "context 0\n" + std::string(one.program)) << one.step;
  }
}

TEST_F(Capture, what_is_not_taken_for_one_reason_is_named_once) {
  const auto taken =
      capture({"--max-bytes", "1 KiB", "--launches", "2", "--json"}, {"count", "count"});
  EXPECT_EQ(taken.exit_code, 3);
  const Json said = Json::parse(taken.err.substr(0, taken.err.rfind('}') + 1));
  EXPECT_EQ(said["left"].size(), 1U) << taken.err;
}

TEST_F(Capture, a_launch_that_the_driver_refuses_is_passed_over_for_the_next_one) {
  const auto taken = capture({}, {"count-with-shared=1000000", "count"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("not taken: count: the driver refused the launch"));
  EXPECT_EQ(entries(), std::vector<std::string>{"count-1"});
}

TEST_F(Capture, a_launch_of_a_librarys_kernel_is_taken_with_what_the_program_has_set) {
  for (const char* step :
       {"count-by-library=7", "count-by-library-function=7", "count-by-library-module=7"}) {
    fs::remove_all(folder);
    const auto taken = capture({}, {step});
    ASSERT_EQ(taken.exit_code, 0) << taken.err;
    const auto launch = gpu::read_launch(file("count-1/launch.json"));
    ASSERT_TRUE(launch) << launch.error().message;
    ASSERT_EQ(launch->variables.size(), 1U) << step;
    EXPECT_EQ(launch->variables[0].name, "added");
    const auto emulated = run_demarc({"emulate", "--launch", file("count-1/launch.json")});
    EXPECT_EQ(emulated.exit_code, 0) << emulated.err;
  }
}

TEST_F(Capture, launches_of_every_way_to_load_a_module_and_cooperative_ones_are_taken) {
  const std::string path = (above / "count.ptx").string();
  for (const std::string& step :
       {std::string("count-after-options"), std::string("count-of-fat-binary"),
        std::string("count-cooperatively"), "count-from-file=" + path,
        "count-from-library-file=" + path}) {
    fs::remove_all(folder);
    const auto taken = capture({}, {step});
    ASSERT_EQ(taken.exit_code, 0) << step << taken.err;
    EXPECT_EQ(entries(), std::vector<std::string>{"count-1"});
    const auto emulated = run_demarc({"emulate", "--launch", file("count-1/launch.json")});
    EXPECT_EQ(emulated.exit_code, 0) << step << emulated.err;
  }
}

TEST_F(Capture, addresses_in_more_than_a_mebibyte_are_not_followed) {
  for (const std::size_t bytes : {std::size_t{1} << 20U, (std::size_t{1} << 20U) + 8}) {
    fs::remove_all(folder);
    const auto taken = capture({}, {"follow=" + std::to_string(bytes)});
    ASSERT_EQ(taken.exit_code, 0) << taken.err;
    const auto launch = gpu::read_launch(file("follow-1/launch.json"));
    ASSERT_TRUE(launch) << launch.error().message;
    EXPECT_EQ(launch->buffers.size(), bytes > 1U << 20U ? 1U : 2U) << bytes;
  }
}

TEST_F(Capture, arguments_in_one_buffer_are_taken) {
  const auto taken = capture({}, {"count-from-buffer=8"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const auto launch = gpu::read_launch(file("count-1/launch.json"));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_TRUE(std::holds_alternative<gpu::BufferUse>(launch->kernels.at(0).arguments.at(0)));
  const auto emulated = run_demarc({"emulate", "--launch", file("count-1/launch.json")});
  EXPECT_EQ(emulated.exit_code, 0) << emulated.err;
}

TEST_F(Capture, the_size_of_clusters_that_a_launch_gives_is_taken) {
  const auto taken = capture({}, {"cluster=2"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const auto launch = gpu::read_launch(file("demarc_idle-1/launch.json"));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->kernels.at(0).cluster, (gpu::Dim3{2, 1, 1}));
  EXPECT_EQ(launch->kernels.at(0).grid, (gpu::Dim3{2, 1, 1}));
  EXPECT_EQ(launch->kernels.at(0).block, (gpu::Dim3{32, 1, 1}));
}

TEST_F(Capture, memory_of_the_host_is_taken_as_such) {
  const auto taken = capture({}, {"count-in-host-memory"});
  ASSERT_EQ(taken.exit_code, 0) << taken.err;
  const auto launch = gpu::read_launch(file("count-1/launch.json"));
  ASSERT_TRUE(launch) << launch.error().message;
  ASSERT_EQ(launch->buffers.size(), 1U);
  EXPECT_TRUE(launch->buffers[0].host);
  EXPECT_TRUE(launch->buffers[0].output);
  const auto emulated = run_demarc({"emulate", "--launch", file("count-1/launch.json")});
  EXPECT_EQ(emulated.exit_code, 0) << emulated.err;
}

TEST_F(Capture, a_graphs_node_is_passed_over_for_the_next_launch) {
  const auto taken = capture({}, {"replay", "keep"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("not taken: keep: it becomes a node of a graph"));
  EXPECT_EQ(entries(), std::vector<std::string>{"keep-1"});
}

TEST_F(Capture, a_kernel_without_ptx_and_one_that_was_not_seen_are_named) {
  const auto newer = capture({}, {"count-for-a-newer-card"});
  EXPECT_EQ(newer.exit_code, 3);
  EXPECT_THAT(newer.err, HasSubstr("not taken: count: its code: "));
  const auto unseen = capture({}, {"count-unseen"});
  EXPECT_EQ(unseen.exit_code, 3);
  EXPECT_THAT(unseen.err, HasSubstr("not taken: count: it comes from code"));
  // Nobody asked for it.
  const auto other = capture({"--kernel", "total"}, {"count-unseen"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, testing::Not(HasSubstr("it comes from code")));
}

TEST_F(Capture, what_a_program_leaves_half_written_is_removed) {
  const auto half = run_demarc(
      {"capture", "-o", folder.string(), "--", "sh", "-c", "mkdir " + file("count-1.part")});
  EXPECT_EQ(half.exit_code, 3);
  EXPECT_THAT(half.err, HasSubstr("not taken: count-1: the program ended while it was taken"));
  EXPECT_TRUE(entries().empty());
}

TEST_F(Capture, a_program_that_cannot_be_started_leaves_nothing) {
  const auto missing = run_demarc({"capture", "-o", folder.string(), "--", "/no/such/program"});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/program"));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Capture, another_tool_of_the_drivers_is_refused) {
  ::setenv("CUDA_INJECTION64_PATH", "/opt/profiler.so", 1);
  const auto refused = capture({}, {"count"});
  ::unsetenv("CUDA_INJECTION64_PATH");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("CUDA_INJECTION64_PATH is set to /opt/profiler.so"));
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(Capture, a_folder_that_has_something_stays_as_it_is) {
  fs::create_directories(folder);
  ASSERT_TRUE(write_file(folder / "mine", "mine"));
  const auto refused = capture({}, {"count"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a new or an empty folder was expected"));
  EXPECT_EQ(entries(), std::vector<std::string>{"mine"});
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(Capture, wrong_options_are_refused_before_the_program_starts) {
  ASSERT_TRUE(write_file(above / "file", ""));
  const struct {
    std::vector<std::string> options;
    const char* message;
  } cases[] = {
      {{"--launches", "0"}, "--launches 0: give at least 1"},
      {{"--max-bytes", "many"}, "--max-bytes"},
      {{"--library", "/no/such.so"}, "/no/such.so: this library does not exist"},
      {{"-o", (above / "file" / "taken").string()}, "file/taken: cannot be made: "},
  };
  for (const auto& one : cases) {
    std::vector<std::string> arguments{"capture"};
    if (one.options[0] != "-o") arguments.insert(arguments.end(), {"-o", folder.string()});
    arguments.insert(arguments.end(), one.options.begin(), one.options.end());
    arguments.insert(arguments.end(), {"--", "touch", (above / "started").string()});
    const auto refused = run_demarc(arguments);
    EXPECT_EQ(refused.exit_code, 1) << one.message;
    EXPECT_THAT(refused.err, HasSubstr(one.message));
  }
  EXPECT_FALSE(fs::exists(above / "started"));
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ(run_demarc({"capture", "-o", folder.string()}).exit_code, 1) << "no command";
}

TEST_F(Capture, without_its_library_it_says_where_it_looked) {
  const fs::path alone = above / "alone" / "demarc";
  fs::create_directories(alone.parent_path());
  fs::copy_file(test::build_dir() / "demarc", alone);
  const auto missing = test::run_program({alone.string(), "capture", "--", "true"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("libdemarc_capture.so was not found beside " +
                                     alone.parent_path().string() +
                                     ", where builds and packages put it; give its path by "
                                     "--library"));
}

TEST_F(Capture, an_order_that_demarc_did_not_give_is_named_and_the_program_goes_on) {
  ::setenv("CUDA_INJECTION64_PATH", (test::build_dir() / "libdemarc_capture.so").c_str(), 1);
  ::setenv("DEMARC_CAPTURE", "{}", 1);
  const auto alone =
      test::run_program({(test::build_dir() / "demarc_exec_subject").string(),
                         test::fake_libcuda().string(), log.string(), "context", "count"});
  ::unsetenv("CUDA_INJECTION64_PATH");
  ::unsetenv("DEMARC_CAPTURE");
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_EQ(alone.err,
            "demarc capture: DEMARC_CAPTURE: this is not the value that demarc capture sets\n");
  EXPECT_EQ(read_file(log).value_or(""), "context 0\ncount right\n");
}

TEST_F(Capture, a_program_that_cannot_be_watched_is_not_taken_for_one_without_kernels) {
  ::setenv("DEMARC_FAKE_WITHOUT_CALLBACK", "1", 1);
  const auto hidden = capture({}, {"count"});
  ::unsetenv("DEMARC_FAKE_WITHOUT_CALLBACK");
  EXPECT_EQ(hidden.exit_code, 2);
  EXPECT_THAT(hidden.err, HasSubstr("the calls of the program cannot be seen"));
  fs::remove_all(folder);
  ::setenv("DEMARC_FAKE_SHORT_CALLBACK", "1", 1);
  const auto changed = capture({}, {"count"});
  ::unsetenv("DEMARC_FAKE_SHORT_CALLBACK");
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err,
              HasSubstr("the calls of the program cannot be seen: a call of the driver "
                        "whose callback has unknown parameters"));
  fs::remove_all(folder);
  ::setenv("DEMARC_LIBCUDA", "/no/such/libcuda.so.1", 1);
  const auto other = capture({}, {"count"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err,
              HasSubstr("the calls of the program cannot be seen: the driver that called "
                        "is not libcuda.so.1"));
  const auto missing =
      run_demarc({"capture", "-o", file("more"), "--library", "/no/such.so", "--", "true"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("this library does not exist"));
}

}  // namespace
}  // namespace demarc
