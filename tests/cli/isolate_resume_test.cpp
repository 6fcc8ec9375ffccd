// demarc isolate: studies that are ended early, gone on with and compared.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/owned_file.hpp"
#include "demarc/base/process.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

using testing::HasSubstr;

class IsolateResume : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> arguments(const std::string& rounds) const {
    return {"isolate", "--device",     "planted:h100", "--modes",  "mask", "--victims",
            "va",      "--aggressors", "mm",           "--rounds", rounds, "--json=" + json};
  }
  std::string json = (fresh_folder("isolate_resume") / "x.json").string();
};

TEST_F(IsolateResume, a_signal_ends_a_study_with_what_it_measured_and_resume_goes_on) {
  std::vector<std::string> argv = arguments("1000");
  argv.insert(argv.begin(), (build_dir() / "demarc").string());
  argv.insert(argv.end(), {"--samples", "2000", "--max-samples", "10000", "--precision", "0"});
  ProcessOptions options;
  options.output = ChildStream::kept;
  options.error = ChildStream::kept;
  options.kept_bytes = 65536;
  auto study = Process::spawn(argv, options);
  ASSERT_TRUE(study);
  while (!std::filesystem::exists(json)) {
    ASSERT_TRUE(study->running()) << study->kept();
    std::this_thread::yield();
  }
  study->signal(SIGINT);
  const auto ended = study->wait(-1);
  EXPECT_EQ(ended->signal, SIGINT);
  const std::string said = study->kept();
  EXPECT_THAT(said,
              HasSubstr("NOT COMPLETE: the study was ended early and measured 0 of 2 cells."));
  EXPECT_THAT(said, HasSubstr("ends after the cell in progress; a second signal ends it at once"));
  EXPECT_THAT(said,
              HasSubstr("demarc isolate: the study was ended early and measured 0 of 2 cells; "
                        "the same command line with `--resume " +
                        json + "` measures the rest"));
  const Json kept = Json::parse(read_file(json).value());
  EXPECT_TRUE(kept.contains("interrupted"));
  EXPECT_GT(kept["cells"][0]["visits"], 0);
}

TEST_F(IsolateResume, a_complete_study_is_written_again_without_measuring) {
  ASSERT_EQ(run_demarc(arguments("1")).exit_code, 0);
  const Json first = Json::parse(read_file(json).value());
  std::vector<std::string> again = arguments("1");
  again.back() = "--resume";
  again.push_back(json);
  const Outcome outcome = run_demarc(again);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json second = Json::parse(read_file(json).value());
  EXPECT_EQ(second["cells"][0]["samples_ns"], first["cells"][0]["samples_ns"]);
  EXPECT_NE(second["context"]["command"], first["context"]["command"]);
}

TEST_F(IsolateResume, a_study_of_a_model_with_figures_that_cannot_be_right_ends_with_3) {
  ASSERT_EQ(run_demarc(arguments("1")).exit_code, 0);
  Json study = Json::parse(read_file(json).value());
  for (Json& cell : study["cells"]) {
    if (cell["aggressor"].is_null()) continue;
    for (Json& sample : cell["samples_ns"]) sample = sample.get<std::uint64_t>() / 2;
  }
  ASSERT_TRUE(write_file(json, study.dump()));
  std::vector<std::string> again = arguments("1");
  again.insert(again.end(), {"--resume", json});
  const Outcome outcome = run_demarc(again);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err,
              HasSubstr("1 of the study's figures cannot be right; the first is: mask: "
                        "next to mm, va takes 0."));
}

TEST_F(IsolateResume, another_plan_and_a_file_that_is_not_there_end_with_1) {
  ASSERT_EQ(run_demarc(arguments("1")).exit_code, 0);
  const std::string before = read_file(json).value();
  std::vector<std::string> again = arguments("2");
  again.insert(again.end(), {"--resume", json});
  const Outcome other = run_demarc(again);
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr(json + ": its cells were measured differently"));
  EXPECT_THAT(other.err, HasSubstr("rounds: 1 and 2"));
  EXPECT_EQ(read_file(json).value(), before);
  again.back() = json + ".none";
  const Outcome none = run_demarc(again);
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr(json + ".none"));
}

// A reader of a pipe would take the first text for the whole.
TEST_F(IsolateResume, a_pipe_gets_the_study_at_its_end_alone) {
  ASSERT_EQ(::mkfifo(json.c_str(), 0600), 0);
  const OwnedFile pipe(::open(json.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  std::vector<std::string> argv = arguments("1000");
  argv.insert(argv.begin(), (build_dir() / "demarc").string());
  argv.insert(argv.end(), {"-q", "--samples", "2000", "--max-samples", "10000"});
  argv.insert(argv.end(), {"--precision", "0"});
  auto study = Process::spawn(argv, {});
  ASSERT_TRUE(study);
  pollfd waiting{pipe.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 600), 0) << "more than between two writes to a file";
  ASSERT_TRUE(study->running());
  study->signal(SIGINT);
  std::string text;
  std::array<char, 4096> piece{};
  while (study->running() || ::poll(&waiting, 1, 0) > 0) {
    if (::poll(&waiting, 1, 10) <= 0) continue;
    const ssize_t bytes = ::read(pipe.get(), piece.data(), piece.size());
    if (bytes > 0) text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
  EXPECT_TRUE(Json::parse(text).contains("interrupted")) << "one text";
}

TEST_F(IsolateResume, a_baseline_is_compared_cell_by_cell_and_must_be_a_study) {
  ASSERT_EQ(run_demarc(arguments("1")).exit_code, 0);
  std::vector<std::string> again = arguments("1");
  again.back() = "--baseline";
  again.push_back(json);
  again.insert(again.end(), {"--seed", "2"});
  const Outcome outcome = run_demarc(again);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Compared with " + json +
                                     ", which was measured differently (there and now): seed: 1 "
                                     "and 2:\n"));
  EXPECT_THAT(outcome.out, HasSubstr("Of 3 cells that both studies measured, "));
  const std::string before = read_file(json).value();
  for (const std::vector<std::string>& output :
       {std::vector<std::string>{"--json=" + json}, {"--resume", json}}) {
    std::vector<std::string> over = again;
    over.insert(over.end(), output.begin(), output.end());
    const Outcome refused = run_demarc(over);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.err,
                HasSubstr("--baseline " + json + ": the results of this run would overwrite it"));
    EXPECT_EQ(read_file(json).value(), before);
  }
  ASSERT_TRUE(write_file(json, "{}"));
  const Outcome wrong = run_demarc(again);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(wrong.out, "");
  EXPECT_THAT(wrong.err, HasSubstr(json));
}

}  // namespace
}  // namespace demarc::test
