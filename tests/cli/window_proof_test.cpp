// `demarc lease prove` of a running program, beside a server on the stand-in for libcuda.
#include "served_card.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

class ProvedWindows : public test::ServedCard {
 protected:
  // That has done these steps; further ones wait for files.
  [[nodiscard]] Process running(const std::string& windows,
                                const std::vector<std::string>& steps) const {
    std::vector<std::string> words{(test::build_dir() / "demarc").string(),
                                   "exec",
                                   "--tenant",
                                   "a",
                                   "--windows",
                                   windows,
                                   "--",
                                   (test::build_dir() / "demarc_exec_subject").string(),
                                   test::fake_libcuda().string(),
                                   (folder / "log").string(),
                                   "context"};
    words.insert(words.end(), steps.begin(), steps.end());
    ProcessOptions options;
    options.error = ChildStream::kept;
    auto program = Process::spawn(words, options).value();
    while (program.running() && !std::filesystem::exists(file("begun"))) ::usleep(1000);
    EXPECT_TRUE(program.running()) << program.kept();
    return program;
  }
  [[nodiscard]] std::string file(const std::string& name) const { return folder / name; }
  // A call of the driver between two waits.
  [[nodiscard]] std::vector<std::string> two_turns() const {
    return {"keep", "touch=" + file("begun"),   "wait-for=" + file("go-on"),
            "keep", "touch=" + file("went-on"), "wait-for=" + file("end")};
  }
};

TEST_F(ProvedWindows, are_those_of_a_program_that_calls_the_driver) {
  const auto server = serving(two_tenants());
  auto program = running("always", two_turns());
  const auto silent = run_demarc({"lease", "prove", "a", "--within", "0.2"});
  EXPECT_EQ(silent.exit_code, 3);
  EXPECT_THAT(silent.err, testing::ContainsRegex("demarc lease: tenant 'a': process [0-9]+ has not "
                                                 "answered within 0.2 s"));
  ASSERT_TRUE(write_file(file("go-on"), ""));
  while (program.running() && !std::filesystem::exists(file("went-on"))) ::usleep(1000);
  // The program has answered the first question by now. Each further one begins a new proof.
  const auto again = run_demarc({"lease", "prove", "a", "--within", "0"});
  EXPECT_EQ(again.exit_code, 3) << again.out;
  const auto other = run_demarc({"lease", "prove", "b"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(other.out, "tenant 'b': no process has memory in windows\n");
  ASSERT_TRUE(write_file(file("end"), ""));
  EXPECT_EQ(program.wait(-1)->exit_code, 0) << program.kept();
}

TEST_F(ProvedWindows, are_waited_for) {
  const auto server = serving(two_tenants());
  auto program = running("always", two_turns());
  ProcessOptions options;
  options.output = ChildStream::kept;
  auto asks = Process::spawn({(test::build_dir() / "demarc").string(), "lease", "prove", "a",
                              "--within", "60"},
                             options)
                  .value();
  ::usleep(300'000);
  EXPECT_TRUE(asks.running()) << "it waits: " << asks.kept();
  ASSERT_TRUE(write_file(file("go-on"), ""));
  EXPECT_EQ(asks.wait(-1)->exit_code, 0) << asks.kept();
  EXPECT_THAT(asks.kept(), HasSubstr("bytes in windows of 1 process: each page has the same "
                                     "content both ways"));
  ASSERT_TRUE(write_file(file("end"), ""));
  EXPECT_EQ(program.wait(-1)->exit_code, 0) << program.kept();
}

TEST_F(ProvedWindows, are_not_needed_by_programs_whose_code_is_rewritten) {
  const auto server = serving(two_tenants());
  auto program = running("never", two_turns());
  const auto none = run_demarc({"lease", "prove", "a", "--within", "0"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_EQ(none.out, "tenant 'a': no process has memory in windows\n");
  for (const char* name : {"go-on", "end"}) ASSERT_TRUE(write_file(file(name), ""));
  EXPECT_EQ(program.wait(-1)->exit_code, 0) << program.kept();
}

TEST_F(ProvedWindows, need_a_server_that_has_the_tenant) {
  EXPECT_EQ(run_demarc({"lease", "prove", "a"}).exit_code, 2);
  EXPECT_EQ(run_demarc({"lease", "prove"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"lease", "prove", "a", "--within", "-1"}).exit_code, 1);
  const auto server = serving(two_tenants());
  const auto unknown = run_demarc({"lease", "prove", "c"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("'c'"));
}

}  // namespace
}  // namespace demarc
