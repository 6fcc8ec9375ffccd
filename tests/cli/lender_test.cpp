// What lends a card's pages for trials of windows, on the stand-in for libcuda.
#include "served_card.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

class Lender : public test::ServedCard {
 protected:
  void SetUp() override {
    ServedCard::SetUp();
    ProcessOptions options;
    options.error = ChildStream::kept;
    lender =
        Process::spawn({(test::build_dir() / "demarc_lender").string(), lends_at, "8", "0xc4000"},
                       options)
            .value();
    for (int i = 0; i < 6000 && !std::filesystem::exists(lends_at); ++i) ::usleep(10000);
  }
  void TearDown() override {
    ::kill(lender->pid(), SIGKILL);
    static_cast<void>(lender->wait(-1));
    ServedCard::TearDown();
  }
  // A program of the tenant, of these steps.
  test::Outcome run(const std::vector<std::string>& steps) const {
    std::filesystem::remove(folder / "log");
    std::vector<std::string> words{"exec",      "--socket", lends_at,   "--tenant", "a",
                                   "--windows", "always",   "--report", "--"};
    words.push_back((test::build_dir() / "demarc_exec_subject").string());
    words.push_back(test::fake_libcuda().string());
    words.push_back((folder / "log").string());
    words.insert(words.end(), steps.begin(), steps.end());
    return run_demarc(words);
  }
  [[nodiscard]] std::string log() const { return read_file(folder / "log").value_or(""); }
  std::string lends_at = (folder / "lender.sock").string();
  std::optional<Process> lender;
};

TEST_F(Lender, lends_to_programs_what_they_reach_by_the_page_table) {
  for (int time = 0; time < 2; ++time) {
    const auto ran = run({"context", "count"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(log(), "context 0\ncount right\n");
    EXPECT_THAT(ran.err, HasSubstr("by the page table, by launches:\n           1  count\n"));
  }
}

// Descriptors of an Ampere do not tell of kernels that launch kernels, so what would run as it is
// is looked at.
class LenderOfAnAmpere : public Lender {
 protected:
  void SetUp() override {
    ::setenv("DEMARC_FAKE_AMPERE", "1", 1);
    Lender::SetUp();
  }
  void TearDown() override {
    Lender::TearDown();
    ::unsetenv("DEMARC_FAKE_AMPERE");
  }
};

TEST_F(LenderOfAnAmpere, lends_nothing_to_kernels_that_launch_kernels) {
  const auto ran = run({"context", "load-launching"});
  EXPECT_EQ(log(), "context 0\nlaunching 801\n") << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("its kernels may launch kernels"));
}

}  // namespace
}  // namespace demarc
