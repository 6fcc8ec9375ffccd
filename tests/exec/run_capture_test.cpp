// What `demarc capture` makes of a program's end and of what was logged in it; the program is a
// shell that writes the log itself.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/base/owned_file.hpp"
#include "demarc/guest/capture.hpp"
#include "demarc/guest/capture_order.hpp"
#include "paths.hpp"

namespace demarc::cuda {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class RunCapture : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv(variable);
    plan.folder = above / "taken";
    plan.library = library();
  }
  void TearDown() override { ::unsetenv(variable); }
  static std::string library() { return (test::build_dir() / "libdemarc_preload.so").string(); }
  Result<LaunchCaptureOutcome> run(const std::string& words) {
    plan.command = {"sh", "-c", words};
    return run_launch_capture(plan);
  }
  // A command that logs this line.
  [[nodiscard]] std::string log(const std::string& line) const {
    return "echo '" + line + "' >> " + (plan.folder / ".demarc-capture").string() + "; ";
  }
  void expect_refused(ErrorKind kind, const std::string& words) {
    plan.command = {"touch", started.string()};
    const auto refused = run_launch_capture(plan);
    ASSERT_FALSE(refused) << words;
    EXPECT_EQ(refused.error().kind, kind) << words;
    EXPECT_THAT(refused.error().message, StartsWith(words));
    EXPECT_FALSE(fs::exists(started)) << words;
  }

  static constexpr const char* variable = "CUDA_INJECTION64_PATH";
  fs::path above = test::fresh_folder("run_launch_capture");
  fs::path started = above / "started";
  LaunchCapturePlan plan;
};

TEST_F(RunCapture, lists_what_was_logged_by_kinds_and_each_kernel_once) {
  const auto outcome = run(log("k first") + log("c one/launch.json") + log("k second") +
                           log("k first") + log("l second: large") + log("c two/launch.json") +
                           log("k second") + log("l third: small") + "exit 7");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->exit_code, 7);
  EXPECT_THAT(outcome->captured, ElementsAre("one/launch.json", "two/launch.json"));
  EXPECT_THAT(outcome->left, ElementsAre("second: large", "third: small"));
  EXPECT_THAT(outcome->launched, ElementsAre("first", "second"));
  EXPECT_TRUE(fs::is_empty(plan.folder)) << "the log is gone";
}

TEST_F(RunCapture, of_a_program_that_launches_nothing_lists_nothing) {
  const auto outcome = run("exit 0");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->exit_code, 0);
  EXPECT_THAT(outcome->captured, IsEmpty());
  EXPECT_THAT(outcome->left, IsEmpty());
  EXPECT_THAT(outcome->launched, IsEmpty());
}

TEST_F(RunCapture, tells_the_program_where_its_library_is_and_what_is_wanted) {
  plan.library = fs::relative(library()).string();
  plan.kernels = {"count"};
  plan.skip = 3;
  plan.launches = 2;
  plan.max_bytes = 77;
  const std::string told = (above / "told").string();
  ASSERT_TRUE(
      run("echo \"$CUDA_INJECTION64_PATH\" > " + told + "; echo \"$DEMARC_CAPTURE\" >> " + told));
  const std::string text = read_file(told).value();
  const std::size_t end = text.find('\n');
  EXPECT_TRUE(fs::equivalent(text.substr(0, end), library()));
  EXPECT_EQ(text[0], '/') << "the program may be in another folder";
  const auto order = read_order(text.substr(end + 1));
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(order->folder, plan.folder);
  EXPECT_EQ(order->kernels, plan.kernels);
  EXPECT_EQ(order->skip, 3U);
  EXPECT_EQ(order->launches, 2U);
  EXPECT_EQ(order->max_bytes, 77U);
}

// So that a terminal's signals reach it, and what it reads and writes is the user's.
TEST_F(RunCapture, the_program_stays_in_the_group_and_has_the_standard_streams) {
  const std::string told = (above / "told").string();
  ASSERT_TRUE(
      run("cut -d' ' -f5 /proc/self/stat > " + told + "; readlink /proc/self/fd/0 >> " + told));
  EXPECT_EQ(read_file(told).value(),
            fmt::format("{}\n{}\n", ::getpgrp(), fs::read_symlink("/proc/self/fd/0").string()));
  const fs::path seen = above / "seen";
  const OwnedFile output(::dup(STDOUT_FILENO));
  const OwnedFile file(::open(seen.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ::dup2(file.get(), STDOUT_FILENO);
  const auto outcome = run("echo words");
  ::dup2(output.get(), STDOUT_FILENO);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(read_file(seen).value(), "words\n");
}

TEST_F(RunCapture, what_a_program_was_writing_as_it_ended_is_removed_and_named) {
  const std::string folder = plan.folder.string();
  const auto outcome = run("mkdir " + folder + "/count-1.part " + folder + "/count-2 && echo x > " +
                           folder + "/count-1.part/text");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_THAT(outcome->left, ElementsAre("count-1: the program ended while it was taken"));
  EXPECT_FALSE(fs::exists(plan.folder / "count-1.part"));
  EXPECT_TRUE(fs::exists(plan.folder / "count-2")) << "which is whole";
}

TEST_F(RunCapture, a_driver_that_does_not_show_its_calls_is_refused_whatever_else_was_logged) {
  const auto outcome = run(log("k first") + log("f the driver refuses callback 18") + "exit 0");
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(outcome.error().message,
            "the calls of the program cannot be seen: the driver refuses callback 18");
}

TEST_F(RunCapture, what_cannot_be_started_as_asked_is_refused_before_anything_runs) {
  LaunchCapturePlan none = plan;
  EXPECT_EQ(run_launch_capture(none).error().message,
            "no command was given: demarc capture ... -- CMD");
  EXPECT_EQ(run_launch_capture(none).error().kind, ErrorKind::invalid_input);
  plan.launches = 0;
  expect_refused(ErrorKind::invalid_input, "--launches 0: give at least 1");
  plan.launches = 1;
  ::setenv(variable, "/opt/tool.so", 1);
  expect_refused(ErrorKind::invalid_input, "CUDA_INJECTION64_PATH is set to /opt/tool.so, but ");
  ::setenv(variable, "", 1);
  EXPECT_TRUE(run("true")) << "which names no tool";
  ::unsetenv(variable);
  plan.library = "/no/such.so";
  expect_refused(ErrorKind::invalid_input, "/no/such.so: this library does not exist");
  plan.library.clear();  // and this test program has none beside it
  expect_refused(ErrorKind::missing_capability, "libdemarc_capture.so was not found beside ");
}

TEST_F(RunCapture, a_folder_that_is_not_empty_or_cannot_be_made_is_refused_as_it_is) {
  fs::create_directories(plan.folder);
  ASSERT_TRUE(write_file(plan.folder / "mine", "mine"));
  expect_refused(ErrorKind::invalid_input,
                 plan.folder.string() + ": a new or an empty folder was expected");
  EXPECT_EQ(read_file(plan.folder / "mine").value(), "mine");
  const fs::path file = plan.folder / "mine";
  plan.folder = file / "below";
  expect_refused(ErrorKind::invalid_input, plan.folder.string() + ": cannot be made: ");
  plan.folder = file;
  expect_refused(ErrorKind::invalid_input, file.string());
  plan.folder = above / "empty";
  fs::create_directories(plan.folder);
  EXPECT_TRUE(run("true"));
}

TEST_F(RunCapture, a_program_that_cannot_be_started_leaves_no_folder) {
  plan.command = {"/no/such/program"};
  const auto missing = run_launch_capture(plan);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/program"));
  EXPECT_FALSE(fs::exists(plan.folder));
}

}  // namespace
}  // namespace demarc::cuda
