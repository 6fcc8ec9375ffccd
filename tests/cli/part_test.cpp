// `demarc exec --part K/N` on the stand-in for libcuda: no server runs yet.
#include "demarc/lease/packet.hpp"
#include "served_card.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

class PartOfACard : public test::ServedCard {
 protected:
  void SetUp() override {
    ServedCard::SetUp();
    ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    if (const auto there = lease::PacketSocket::connect(server)) {
      ::kill(there->peer()->process, SIGTERM);
    }
    ServedCard::TearDown();
  }
  [[nodiscard]] std::vector<std::string> command(const std::string& part,
                                                 const std::vector<std::string>& steps,
                                                 std::vector<std::string> options = {}) const {
    std::vector<std::string> words{"exec", "--part", part};
    if (options.empty()) options = {"--memory", "64 MiB", "--description", "h100-sxm"};
    words.insert(words.end(), options.begin(), options.end());
    const auto build = test::build_dir();
    for (const std::string& word : {std::string("--"), (build / "demarc_exec_subject").string(),
                                    test::fake_libcuda().string(), (folder / "log").string()}) {
      words.push_back(word);
    }
    words.insert(words.end(), steps.begin(), steps.end());
    return words;
  }
  [[nodiscard]] std::string log() const { return read_file(folder / "log").value_or(""); }

  [[nodiscard]] std::vector<std::string> files_of_servers() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      const std::string name = file.path().filename();
      if (name.starts_with("demarc-cuda")) names.push_back(name);
    }
    return names;
  }

  std::string server = (folder / "demarc-cuda0-2.sock").string();
};

TEST_F(PartOfACard, is_served_to_programs_that_know_nothing_of_each_other) {
  const auto first = run_demarc(command("1/2", {"context", "count", "exit=7"}));
  EXPECT_EQ(first.exit_code, 7) << first.err;
  EXPECT_THAT(first.err,
              testing::AllOf(
                  HasSubstr("cuda:0 is not divided into 2 parts yet, so a server is started"),
                  HasSubstr("of the card's memory, whose colours it measures in about 0.35 s per "
                            "GiB, and ends 5 s after the last program\n")));
  EXPECT_THAT(log(), HasSubstr("context 0\ncount right\n"));
  const auto list = run_demarc({"lease", "list", "--socket", server});
  EXPECT_THAT(list.out, HasSubstr("part-1-of-2  0,2-3,5-6,8-9"));
  EXPECT_THAT(list.out, HasSubstr("part-2-of-2  1,4,7,10-11"));
  auto options = test::run_demarc(command("2/2", {"context", "count"}, {"--report"}));
  EXPECT_EQ(options.exit_code, 0) << options.err;
  EXPECT_THAT(options.err, testing::Not(HasSubstr("a server is started")));
  EXPECT_THAT(options.err, HasSubstr("tenant 'part-2-of-2'"));
  EXPECT_EQ(run_demarc(command("1/3", {"context"})).exit_code, 1);
}

// The kernel is launched as it is; what it writes is what the program reads.
TEST_F(PartOfACard, is_reached_by_the_page_table_where_this_is_asked_for) {
  const auto always = run_demarc(command(
      "1/2", {"context", "count"},
      {"--memory", "64 MiB", "--description", "h100-sxm", "--windows", "always", "--report"}));
  EXPECT_EQ(always.exit_code, 0) << always.err;
  EXPECT_THAT(log(), HasSubstr("context 0\ncount right\n"));
  EXPECT_THAT(always.err, HasSubstr("kernels in the tenant's colours by the page table"));
  EXPECT_THAT(always.err, HasSubstr("no kernel was launched\n"));
  const auto list = run_demarc({"lease", "list", "--socket", server});
  EXPECT_THAT(list.out, HasSubstr("0 MiB of 28 MiB")) << "the program has ended";
  const auto by_arithmetic = run_demarc(command("1/2", {"context", "count"}, {"--report"}));
  EXPECT_THAT(by_arithmetic.err, HasSubstr("no kernel reached memory by the page table"));
  const auto wrong = run_demarc(command("1/2", {"context"}, {"--windows", "often"}));
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("--windows often: auto, never or always was expected"));
}

TEST_F(PartOfACard, is_served_by_one_server_to_those_who_come_at_once) {
  std::vector<Process> running;
  for (const char* part : {"1/2", "2/2", "1/2"}) {
    auto words = command(part, {"context", "count"});
    words.insert(words.begin(), (test::build_dir() / "demarc").string());
    ProcessOptions options;
    options.error = ChildStream::kept;
    running.push_back(Process::spawn(words, options).value());
  }
  int told = 0;
  for (Process& one : running) {
    EXPECT_EQ(one.wait(-1)->exit_code, 0) << one.kept();
    told += one.kept().find("a server is started") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
}

TEST_F(PartOfACard, is_divided_in_one_way_by_those_who_come_at_once) {
  std::vector<Process> running;
  for (const char* part : {"1/2", "1/3"}) {
    auto words = command(part, {"context", "count"});
    words.insert(words.begin(), (test::build_dir() / "demarc").string());
    ProcessOptions options;
    options.error = ChildStream::kept;
    running.push_back(Process::spawn(words, options).value());
  }
  // A third is refused whichever comes first: the card has no colours for three.
  int served = 0;
  std::string said;
  for (Process& one : running) {
    const int code = one.wait(-1)->exit_code;
    const char* why =
        code == 1 ? "cuda:0 is divided into" : "the server that divides the card has ended";
    if (code != 0) {
      EXPECT_THAT(one.kept(), HasSubstr(why)) << code;
    }
    served += code == 0 ? 1 : 0;
    said += fmt::format("exit code {}: {}\n", code, one.kept());
  }
  EXPECT_EQ(served, 1) << said;
  const auto thirds = lease::PacketSocket::connect((folder / "demarc-cuda0-3.sock").string());
  if (thirds) ::kill(thirds->peer()->process, SIGTERM);
}

TEST_F(PartOfACard, lets_kernels_spill_a_little_unless_this_is_not_wanted) {
  std::vector<std::string> options{"--memory", "64 MiB",    "--description", "h100-sxm",
                                   "--report", "--windows", "never"};
  const auto usual = run_demarc(command("1/2", {"context", "count-spilling"}, options));
  EXPECT_THAT(log(), testing::EndsWith("count 0\n")) << usual.err;
  EXPECT_THAT(usual.err, HasSubstr("count: 8 bytes per thread"));
  options.insert(options.end(), {"--allow-spills", "0"});
  const auto strict = run_demarc(command("1/2", {"context", "count-spilling"}, options));
  EXPECT_THAT(log(), testing::Not(testing::EndsWith("count 0\n"))) << strict.err;
  EXPECT_THAT(strict.err, HasSubstr("keeps 8 bytes per thread in local memory"));
  EXPECT_THAT(run_demarc({"exec", "--help"}).out, HasSubstr("(default: 256 with --part, else 0)"));
}

// The card has four colours, so one of them stays unused.
TEST_F(PartOfACard, may_be_a_third) {
  const auto third = run_demarc(command("3/3", {"context", "count"}));
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_THAT(log(), HasSubstr("count right\n"));
}

// The card has three domains for tenants.
TEST_F(PartOfACard, leaves_nothing_behind_where_its_server_does_not_start) {
  const auto failed = run_demarc(command("1/4", {"context"}));
  EXPECT_EQ(failed.exit_code, 2) << failed.err;
  EXPECT_THAT(failed.err, HasSubstr("the server that divides the card has ended: "));
  EXPECT_THAT(files_of_servers(), testing::IsEmpty());
  EXPECT_EQ(run_demarc(command("1/2", {"context"})).exit_code, 0) << "nothing is in the way";
  EXPECT_THAT(files_of_servers(), testing::Not(testing::Contains("demarc-cuda0.start")));
}

TEST_F(PartOfACard, ends_its_server_when_nobody_uses_it_any_more) {
  EXPECT_EQ(run_demarc(command("1/2", {"context", "count"})).exit_code, 0);
  for (int i = 0; i < 6000 && std::filesystem::exists(server); ++i) ::usleep(10000);
  EXPECT_EQ(run_demarc({"lease", "list", "--socket", server}).exit_code, 2);
}

TEST_F(PartOfACard, is_refused_where_it_cannot_be) {
  const auto refused = [&](const std::vector<std::string>& words, const std::string& said) {
    const auto outcome = run_demarc(words);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(said));
  };
  refused(command("0/2", {"context"}), "--part: '0/2': parts are counted from 1 on");
  refused(command("3/2", {"context"}), "--part: '3/2': K/N was expected, the K-th of N");
  refused(command("50", {"context"}), "--part: '50': K/N was expected, the K-th of N");
  for (const std::string option : {"--memory", "--description"}) {
    refused({"exec", "--sms", "50%", option, "x", "--", "true"},
            "--memory and --description belong to --part K/N: give it too");
  }
  const std::string alone = "gives the program a part of the TPCs, colours and domains: leave out";
  for (const auto& options : std::vector<std::vector<std::string>>{{"--tenant", "a"},
                                                                   {"--observe"},
                                                                   {"--tpcs", "0"},
                                                                   {"--gpcs", "0"},
                                                                   {"--sms", "2"},
                                                                   {"--sms", "50%"},
                                                                   {"--sync-domain", "none"}}) {
    refused(command("1/2", {"context"}, options), alone);
  }
  refused({"exec", "--part", "1/2", "--pid", "1"}, alone);
  refused({"exec", "--part", "1/2"}, "no command was given: demarc exec --part 1/2 -- CMD");
  ::setenv("DEMARC_TENANT", "a", 1);
  refused(command("1/2", {"context"}), alone);
  ::unsetenv("DEMARC_TENANT");
  EXPECT_FALSE(std::filesystem::exists(server));
  const auto failed = run_demarc(command("1/2", {"context"}, {"--memory", "much"}));
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("memory: 'much' is not a number of bytes"));
}

}  // namespace
}  // namespace demarc
