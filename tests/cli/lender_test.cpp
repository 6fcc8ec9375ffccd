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
  std::string lends_at = (folder / "lender.sock").string();
  std::optional<Process> lender;
};

TEST_F(Lender, lends_to_programs_what_they_reach_by_the_page_table) {
  for (int time = 0; time < 2; ++time) {
    std::filesystem::remove(folder / "log");
    const auto ran =
        run_demarc({"exec", "--socket", lends_at, "--tenant", "a", "--windows", "always",
                    "--report", "--", (test::build_dir() / "demarc_exec_subject").string(),
                    test::fake_libcuda().string(), (folder / "log").string(), "context", "count"});
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_EQ(read_file(folder / "log").value_or(""), "context 0\ncount right\n");
    EXPECT_THAT(ran.err, HasSubstr("by the page table, by launches:\n           1  count\n"));
  }
}

}  // namespace
}  // namespace demarc
