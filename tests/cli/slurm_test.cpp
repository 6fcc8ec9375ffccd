// The prolog and epilog for Slurm: what they let begin, cancel and end; beside stand-ins for demarc
// and scancel, and beside a real server.
#include "served_card.hpp"

namespace demarc {
namespace {

using test::Outcome;
using test::run_demarc;
using testing::HasSubstr;

class Slurm : public test::ServedCard {
 protected:
  void SetUp() override {
    ServedCard::SetUp();
    set("DEMARC_CLAIMS", claims);
    set("SCANCEL", script("scancel", "echo \"$@\" >> " + (folder / "cancelled").string()));
    set("DEMARC", (test::build_dir() / "demarc").string());
    set("DEMARC_PATIENCE", "20");
  }
  void TearDown() override {
    for (const auto& name : set_) ::unsetenv(name.c_str());
    ServedCard::TearDown();
  }
  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }
  [[nodiscard]] std::string script(const std::string& name, const std::string& text) const {
    const auto path = folder / name;
    EXPECT_TRUE(write_file(path, "#!/bin/sh\n" + text + "\n"));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // demarc in whose place this is said of every tenant.
  void stand_in(int code, const std::string& said) {
    set("DEMARC", script("demarc", "echo \"$@\" >> " + (folder / "asked").string() + "\necho \"" +
                                       said + "\" >&2\nexit " + std::to_string(code)));
  }
  [[nodiscard]] Outcome run(const std::string& name, const std::string& job,
                            const std::string& comment = "") {
    set("SLURM_JOB_ID", job);
    set("SLURM_JOB_COMMENT", comment);
    return test::run_program({(test::source_dir() / "packaging" / "slurm" / name).string()});
  }
  [[nodiscard]] Outcome begin(const std::string& job, const std::string& comment) {
    return run("prolog.sh", job, comment);
  }
  [[nodiscard]] Outcome end(const std::string& job) { return run("epilog.sh", job); }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    const auto text = read_file(folder / name);
    return text ? *text : "";
  }

  std::string claims = folder / "claims";
  std::vector<std::string> set_;
};

TEST_F(Slurm, jobs_that_ask_for_no_tenant_are_left_alone) {
  stand_in(9, "nobody asks");
  EXPECT_EQ(begin("7", "").exit_code, 0);
  EXPECT_EQ(begin("7", "a word").exit_code, 0);
  EXPECT_EQ(end("7").exit_code, 0);
  EXPECT_EQ(text_of("asked"), "");
  EXPECT_EQ(text_of("cancelled"), "");
}

TEST_F(Slurm, a_free_tenant_is_the_jobs_until_it_ends) {
  stand_in(0, "free");
  EXPECT_EQ(begin("7", "demarc=a").exit_code, 0);
  EXPECT_EQ(begin("7", "demarc=a").exit_code, 0);  // once more, after a restart of slurmd
  EXPECT_EQ(begin("8", "demarc=b").exit_code, 0);
  EXPECT_EQ(text_of("cancelled"), "");
  const auto second = begin("9", "demarc=a");
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("job 9 is cancelled: tenant 'a' is job 7's"));
  EXPECT_EQ(text_of("cancelled"), "9\n");
  EXPECT_EQ(end("9").exit_code, 0);  // gives nothing back that it does not have
  EXPECT_EQ(text_of("claims/a"), "7\n");
  EXPECT_EQ(end("7").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(claims + "/a"));
  EXPECT_EQ(text_of("claims/b"), "8\n");
  EXPECT_EQ(begin("9", "demarc=a").exit_code, 0);
  EXPECT_EQ(text_of("claims/a"), "9\n");
}

TEST_F(Slurm, what_a_user_gets_wrong_cancels_the_job_and_no_more) {
  for (const std::string wrong : {"demarc", "demarc=", "demarc=../etc", "demarc=a/b", "demarc=a b",
                                  "demarc=-a", "demarc=a\nb", "demarc=$(touch x)", "demarc:a"}) {
    std::filesystem::remove(folder / "cancelled");
    const auto refused = begin("7", wrong);
    EXPECT_EQ(refused.exit_code, 0) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("demarc=NAME was expected")) << wrong;
    EXPECT_EQ(text_of("cancelled"), "7\n") << wrong;
  }
  for (const int code : {1, 3}) {
    std::filesystem::remove(folder / "cancelled");
    stand_in(code, "it says why");
    const auto refused = begin("7", "demarc=a");
    EXPECT_EQ(refused.exit_code, 0);
    EXPECT_THAT(refused.err, HasSubstr("job 7 is cancelled: it says why"));
    EXPECT_EQ(text_of("cancelled"), "7\n");
    EXPECT_FALSE(std::filesystem::exists(claims + "/a"));
  }
}

TEST_F(Slurm, what_is_wrong_with_the_node_fails_the_prolog) {
  const auto failed = [&](const Outcome& outcome, const std::string& said) {
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(said));
  };
  stand_in(2, "no server");
  failed(begin("7", "demarc=a"), "lease check ends with 2: no server");
  EXPECT_FALSE(std::filesystem::exists(claims + "/a"));
  failed(begin("", "demarc=a"), "the number of a job was expected");
  failed(begin("7;8", ""), "the number of a job was expected");
  set("DEMARC", "/no/such/program");
  failed(begin("7", "demarc=a"), "lease check ends with 127");
  stand_in(3, "in use");
  set("SCANCEL", "/bin/false");
  failed(begin("7", "demarc=a"), "job 7 could not be cancelled");
  stand_in(0, "free");
  ASSERT_TRUE(write_file(folder / "file", ""));
  set("DEMARC_CLAIMS", folder / "file" / "claims");
  failed(begin("7", "demarc=a"), "cannot be made");
  EXPECT_EQ(text_of("cancelled"), "");
}

TEST_F(Slurm, an_epilog_that_cannot_end_the_jobs_programs_fails_and_keeps_the_claim) {
  stand_in(0, "free");
  ASSERT_EQ(begin("7", "demarc=a").exit_code, 0);
  set("DEMARC_PATIENCE", "0");
  for (const auto& [code, said, words] :
       {std::tuple{2, "no server", "lease check a ends with 2: no server"},
        std::tuple{1, "no such option", "lease check a ends with 1: no such option"},
        std::tuple{3, "in use", "what was revoked has not ended: in use"}}) {
    stand_in(code, said);
    const auto failed = end("7");
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_THAT(failed.err, HasSubstr(words));
    EXPECT_EQ(text_of("claims/a"), "7\n");
  }
  // One that may not revoke.
  set("DEMARC_PATIENCE", "9");
  set("DEMARC", script("demarc", "[ $2 = check ] && exit 3; echo not yours >&2; exit 1"));
  const auto failed = end("7");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.err, HasSubstr("lease revoke a ends with 1: not yours"));
  EXPECT_EQ(end("").exit_code, 1);
  // A tenant that is no more.
  stand_in(1, "demarc lease: there is no tenant 'a'; the tenants are: b");
  EXPECT_EQ(end("7").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(claims + "/a"));
}

// A server, a job whose program stays behind, and the next job.
TEST_F(Slurm, what_a_job_leaves_behind_is_ended_before_the_next_one_begins) {
  const auto server = serving(two_tenants());
  ASSERT_EQ(begin("7", "demarc=a").exit_code, 0);
  ProcessOptions options;
  options.death_signal = SIGKILL;
  options.error = ChildStream::kept;
  auto program = Process::spawn({(test::build_dir() / "demarc").string(), "exec", "--tenant", "a",
                                 "--", (test::build_dir() / "demarc_exec_subject").string(),
                                 test::fake_libcuda().string(), (folder / "log").string(),
                                 "context", "wait-for=/no/such/file"},
                                options)
                     .value();
  while (program.running() && text_of("log").empty()) ::usleep(10000);
  const auto used = run_demarc({"lease", "check", "a"});
  EXPECT_EQ(used.exit_code, 3) << used.err;
  EXPECT_THAT(used.err, HasSubstr("tenant 'a' is in use: leases: 1, processes: "))
      << program.kept();
  const auto early = begin("8", "demarc=a");
  EXPECT_THAT(early.err, HasSubstr("tenant 'a' is job 7's"));
  const auto ended = end("7");
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(run_demarc({"lease", "check", "a"}).exit_code, 0);
  EXPECT_TRUE(program.wait(20));
  std::filesystem::remove(folder / "cancelled");
  EXPECT_EQ(begin("8", "demarc=a").exit_code, 0);
  EXPECT_EQ(begin("9", "demarc=c").exit_code, 0);
  EXPECT_EQ(text_of("cancelled"), "9\n");
}

}  // namespace
}  // namespace demarc
