// One owner for a card, as users see it: servers, programs with parts of their own, and what a
// killed server left.
#include <sys/stat.h>

#include <algorithm>

#include "served_card.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

class CardOwner : public test::ServedCard {
 protected:
  [[nodiscard]] std::string demarc() const { return (test::build_dir() / "demarc").string(); }
  [[nodiscard]] std::vector<std::string> subject(const std::vector<std::string>& steps) const {
    std::vector<std::string> words{"--", (test::build_dir() / "demarc_exec_subject").string(),
                                   test::fake_libcuda().string(), log()};
    words.insert(words.end(), steps.begin(), steps.end());
    return words;
  }
  [[nodiscard]] std::vector<std::string> exec(std::vector<std::string> options,
                                              const std::vector<std::string>& steps) const {
    options.insert(options.begin(), "exec");
    const auto words = subject(steps);
    options.insert(options.end(), words.begin(), words.end());
    return options;
  }
  // What it says is kept, and it ends with this process.
  [[nodiscard]] static ProcessOptions kept_words() {
    ProcessOptions options;
    options.output = ChildStream::null;
    options.error = ChildStream::kept;
    options.death_signal = SIGKILL;
    return options;
  }
  // A program that has counted and waits for `go`.
  [[nodiscard]] Process waiting(const std::vector<std::string>& options,
                                std::vector<std::string> steps = {"context", "count"}) const {
    std::error_code ignored;
    std::filesystem::remove(log(), ignored);
    std::filesystem::remove(go(), ignored);
    steps.push_back("wait-for=" + go());
    auto words = exec(options, steps);
    words.insert(words.begin(), demarc());
    ProcessOptions options_of_one = kept_words();
    options_of_one.own_group = false;  // a signal for demarc exec is not for the program
    auto program = Process::spawn(words, options_of_one).value();
    while (program.running() && read_file(log()).value_or("").find("count") == std::string::npos) {
      ::usleep(1000);
    }
    EXPECT_THAT(read_file(log()).value_or(""), HasSubstr("count right")) << program.kept();
    return program;
  }
  void let_go() const { EXPECT_TRUE(write_file(go(), "")); }
  [[nodiscard]] std::string log() const { return folder / "log"; }
  [[nodiscard]] std::string go() const { return folder / "go"; }
  [[nodiscard]] auto second_server(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"serve", "--config", two_tenants(), "--socket",
                                   folder / "second"};
    words.insert(words.end(), more.begin(), more.end());
    return run_demarc(words);
  }
};

TEST_F(CardOwner, is_one_server_whatever_its_socket_and_its_namespaces) {
  const auto server = serving(two_tenants());
  auto refused = second_server();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("another demarc serve (process"));
  EXPECT_THAT(refused.err, HasSubstr("(demarc serve)) divides GPU-fafafafa"));
  ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  refused = run_demarc(
      exec({"--part", "1/2", "--memory", "64 MiB", "--description", "h100-sxm"}, {"context"}));
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("another demarc serve (process"));
  ::setenv("DEMARC_FAKE_DEVICES", "2", 1);
  auto other_card = Process::spawn({demarc(), "serve", "--config", two_tenants(), "--socket",
                                    folder / "other", "--device", "cuda:1"},
                                   kept_words())
                        .value();
  while (other_card.running() &&
         other_card.kept().find("bytes in the colours") == std::string::npos) {
    ::usleep(10000);
  }
  ::unsetenv("DEMARC_FAKE_DEVICES");
  EXPECT_THAT(other_card.kept(), HasSubstr("bytes in the colours")) << "of its own claims";
  if (::geteuid() != 0) return;
  auto apart = Process::spawn({"unshare", "-n", "-m", "-i", "-u", demarc(), "serve", "--config",
                               two_tenants(), "--socket", folder / "third"},
                              kept_words())
                   .value();
  EXPECT_EQ(apart.wait(-1)->exit_code, 2);
  EXPECT_THAT(apart.kept(), HasSubstr("another demarc serve (process"));
}

TEST_F(CardOwner, gives_it_to_the_next_server_when_it_is_about_to_end_for_want_of_programs) {
  auto idle = Process::spawn({demarc(), "serve", "--config", two_tenants(), "--end-when-idle", "1",
                              "--socket", folder / "idle"},
                             kept_words())
                  .value();
  while (idle.running() && idle.kept().find("bytes in the colours") == std::string::npos) {
    ::usleep(10000);
  }
  auto next = serving(two_tenants());
  EXPECT_THAT(next.kept(), HasSubstr("starts or ends on GPU-fafafafa"));
  EXPECT_THAT(next.kept(), HasSubstr("bytes in the colours"));
  EXPECT_EQ(idle.wait(-1)->exit_code, 0);
}

TEST_F(CardOwner, lends_nothing_that_programs_of_a_killed_server_have) {
  for (const bool closes : {false, true}) {
    auto server = serving(two_tenants());
    auto program = waiting({"--tenant", "a"},
                           closes ? std::vector<std::string>{"context", "count", "close-files"}
                                  : std::vector<std::string>{"context", "count"});
    server.signal(SIGKILL);
    EXPECT_TRUE(server.wait(-1));
    for (const char* file : {"socket", "socket.lock"}) std::filesystem::remove(folder / file);
    if (closes) {
      program.signal(SIGKILL);
      EXPECT_TRUE(program.wait(-1));
    }
    const auto refused = second_server();
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("programs of a demarc serve that has ended still have its "
                                       "parts of GPU-fafafafa"));
    EXPECT_THAT(refused.err, HasSubstr("(demarc_exec_subject"));
    EXPECT_EQ(second_server({"--survivors", "maybe"}).exit_code, 1);
    const auto config = two_tenants();
    auto next =
        Process::spawn({demarc(), "serve", "--config", config, "--survivors", "end"}, kept_words())
            .value();
    while (next.running() && next.kept().find("bytes in the colours") == std::string::npos) {
      ::usleep(10000);
    }
    EXPECT_THAT(next.kept(), HasSubstr(": ending them"));
    EXPECT_EQ(run_demarc(exec({"--tenant", "a"}, {"context", "count"})).exit_code, 0);
    EXPECT_TRUE(closes || program.wait(-1)->exit_code == 128 + SIGTERM);
    next.signal(SIGTERM);
    EXPECT_EQ(next.wait(-1)->exit_code, 0) << next.kept();
  }
}

TEST_F(CardOwner, gives_programs_beside_the_server_nothing_of_its_tenants) {
  const auto server = serving(two_tenants());
  const auto refused = run_demarc(exec({"--tpcs", "5-6"}, {"context", "launch"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("the TPCs 5-6 of GPU-fafafafa"));
  EXPECT_THAT(refused.err, HasSubstr("belong to tenants of demarc serve (process"));
  EXPECT_FALSE(std::filesystem::exists(log())) << "it did not run";
  EXPECT_EQ(run_demarc({"lease", "move", "b", "--tpcs", "8-11"}).exit_code, 0);
  const auto beside = run_demarc(exec({"--tpcs", "6-7", "--audit"}, {"context", "launch"}));
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
  EXPECT_THAT(beside.err, HasSubstr("domain 3")) << "1 and 2 are the tenants'";
  auto program = waiting({"--tpcs", "6-7"});
  const auto moved = run_demarc({"lease", "move", "b", "--tpcs", "7-11"});
  EXPECT_EQ(moved.exit_code, 2);
  EXPECT_THAT(moved.err, HasSubstr("the TPCs 7 of"));
  EXPECT_THAT(moved.err, HasSubstr("belong to a program under demarc exec (process"));
  let_go();
  EXPECT_EQ(program.wait(-1)->exit_code, 0);
  EXPECT_EQ(run_demarc({"lease", "move", "b", "--tpcs", "7-11"}).exit_code, 0);
  const auto observed = run_demarc(exec({"--observe"}, {"context", "launch"}));
  EXPECT_THAT(observed.err, HasSubstr("this program has none of its parts"));
}

TEST_F(CardOwner, gives_a_server_nothing_that_a_program_has) {
  auto program = waiting({"--tpcs", "5"});
  const auto refused = run_demarc({"serve", "--config", two_tenants()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("the TPCs 5 of GPU-fafafafa"));
  EXPECT_THAT(refused.err, HasSubstr("belong to a program under demarc exec (process"));
  let_go();
  EXPECT_EQ(program.wait(-1)->exit_code, 0);
}

// Measurements use all of a card. They are not held up, but nobody is to take their figures for
// those of an idle card.
TEST_F(CardOwner, is_named_by_each_verb_that_measures_on_the_whole_card) {
  const std::vector<std::vector<std::string>> verbs{
      {"run", "bundled:vecadd"},
      {"verify", "--mode", "mask", "--tpcs", "11"},
      {"verify", "--colors", "0", "--description", "h100-sxm"},
      {"topo", "--refresh"},
      {"blocks"},
      {"isolate", "--modes", "none", "--victims", "va", "--aggressors", "va"},
      {"attack", "--mode", "mask", "--victims", "va"},
      {"calibrate", "--measure-only"},
      {"probe", "memory"},
      {"probe", "translation"},
      {"translate", "--launch", "bundled:vecadd", "--measure", "cuda:0"}};
  // They end with `child`: some take minutes on the stand-in.
  const auto said_by = [&](const std::vector<std::string>& verb, const std::string& awaited) {
    std::vector<std::string> words{demarc()};
    words.insert(words.end(), verb.begin(), verb.end());
    auto child = Process::spawn(words, kept_words()).value();
    while (child.running() && child.kept().find(awaited) == std::string::npos) ::usleep(1000);
    return child.kept();
  };
  {
    const auto server = serving(two_tenants());
    for (const auto& verb : verbs) {
      EXPECT_THAT(said_by(verb, "disturb each other"),
                  HasSubstr("demarc " + verb[0] +
                            ": GPU-fafafafa-fafa-fafa-fafa-fafafafafafa is "
                            "shared: demarc serve (process"));
    }
  }
  auto program = waiting({"--tpcs", "4-5"});
  EXPECT_THAT(run_demarc({"run", "bundled:vecadd"}).err,
              testing::ContainsRegex(
                  "shared: demarc exec \\(process.*\\)\\) has its TPCs 4-5; this measurement"));
  let_go();
  EXPECT_EQ(program.wait(-1)->exit_code, 0);
  EXPECT_EQ(run_demarc({"run", "bundled:vecadd"}).err, "") << "alone on the card";
  const auto within = run_demarc({"exec", "--sms", "50%", "--", demarc(), "verify"});
  EXPECT_THAT(within.err, testing::Not(HasSubstr("is shared"))) << "its own TPCs are not others'";
}

TEST_F(CardOwner, lets_programs_share_t_p_cs_where_both_say_so) {
  auto first = waiting({"--sms", "50%"});
  const auto other = run_demarc(exec({"--sms", "50%"}, {"context"}));
  EXPECT_EQ(other.exit_code, 0) << other.err << "the other half is free";
  const auto refused = run_demarc(exec({"--sms", "51%"}, {"context"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::ContainsRegex("are free: the TPCs .* belong to process"));
  let_go();
  EXPECT_EQ(first.wait(-1)->exit_code, 0);
  auto sharing = waiting({"--sms", "50%", "--allow-overlap"});
  EXPECT_EQ(run_demarc(exec({"--sms", "50%", "--allow-overlap"}, {"context"})).exit_code, 0);
  let_go();
  EXPECT_EQ(sharing.wait(-1)->exit_code, 0);
}

TEST_F(CardOwner, keeps_what_cannot_change_when_it_reads_its_configuration_again) {
  auto server = serving(two_tenants());
  static_cast<void>(
      config("description = \"h100-sxm\"\nmemory = \"32 MiB\"\nmps = \"off\"\n"
             "card = 1\n[tenants.a]\ntpcs = \"0\"\ncolors = \"1/2\"\n"));
  server.signal(SIGHUP);
  while (server.running() && server.kept().find("stays as it was") == std::string::npos) {
    ::usleep(1000);
  }
  EXPECT_THAT(server.kept(),
              HasSubstr("f.toml: card, memory: this cannot change while the server"));
  EXPECT_THAT(run_demarc({"lease", "list"}).out, HasSubstr("b       6-11"));
}

// 'a' has what is left by number. A tenant that comes before it takes nothing from it.
TEST_F(CardOwner, leaves_tenants_of_which_it_reads_nothing_new) {
  const std::string head =
      "description = \"h100-sxm\"\nmemory = \"64 MiB\"\nmps = \"off\"\ncolors = 4\n";
  const std::string tenant_b = "[tenants.b]\nsms = \"25 %\"\ncolors = [0, 1]\n";
  auto server = serving(config(head + tenant_b + "[tenants.c]\nsms = 2\ncolors = [3]\n"));
  const auto idle = run_demarc({"lease", "move", "b", "--tpcs", "8,10"});
  EXPECT_EQ(idle.exit_code, 0);
  EXPECT_EQ(idle.err, "");
  auto program = waiting({"--tenant", "b"});
  const auto moved = run_demarc({"lease", "move", "b", "--tpcs", "8,10-11"});
  EXPECT_EQ(moved.exit_code, 0);
  EXPECT_THAT(moved.err, HasSubstr("kernels of tenant 'b' that already run stay on the TPCs that "
                                   "they have until they end; its next launches go to 8,10-11"));
  static_cast<void>(config(head + "[tenants.a]\nsms = 6\ncolors = [3]\n" + tenant_b));
  server.signal(SIGHUP);
  while (server.running() && server.kept().find("was read again") == std::string::npos &&
         server.kept().find("stays as it was") == std::string::npos) {
    ::usleep(1000);
  }
  EXPECT_THAT(server.kept(), testing::Not(HasSubstr("stays as it"))) << server.kept();
  const auto list = run_demarc({"lease", "list"});
  EXPECT_THAT(list.out, HasSubstr("b       8,10-11"));
  EXPECT_THAT(list.out, HasSubstr("0,1      1"));
  let_go();
  EXPECT_EQ(program.wait(-1)->exit_code, 0);
}

TEST_F(CardOwner, ends_with_its_programs_when_the_card_was_reset) {
  ::setenv("DEMARC_FAKE_DEAD", (folder / "dead").c_str(), 1);
  auto server = serving(two_tenants());
  auto program = waiting({"--tenant", "a"});
  ::unsetenv("DEMARC_FAKE_DEAD");
  EXPECT_TRUE(write_file(folder / "dead", ""));
  EXPECT_EQ(server.wait(-1)->exit_code, 2);
  EXPECT_THAT(server.kept(), HasSubstr("the card was reset, or the server's context on it died"));
  EXPECT_THAT(server.kept(), HasSubstr("start demarc serve again"));
  EXPECT_EQ(program.wait(-1)->exit_code, 128 + SIGKILL);
}

TEST_F(CardOwner, is_served_to_programs_in_other_folders_by_a_relative_socket) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  ::setenv("DEMARC_SOCKET", "relative", 1);
  {
    auto server = serving(two_tenants());
    EXPECT_THAT(server.kept(), HasSubstr((folder / "relative").string()));
    auto words = exec({"--tenant", "a"}, {"context", "count"});
    words.insert(std::find(words.begin(), words.end(), "--") + 1,
                 {"sh", "-c", "cd / && exec \"$@\"", "sh"});
    const auto outcome = run_demarc(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(read_file(log()).value_or(""), HasSubstr("count right"));
  }
  std::filesystem::current_path(before);
}

TEST_F(CardOwner, reads_its_configuration_from_regular_files_only) {
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto refused = run_demarc({"serve", "--config", pipe});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(pipe + ": a regular file was expected"));
}

TEST_F(CardOwner, leaves_a_program_its_exit_code_where_the_report_cannot_be_written) {
  const auto outcome = run_demarc(
      exec({"--sms", "50%", "--audit", "--json=/dev/full"}, {"context", "launch", "exit=7"}));
  EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full"));
  EXPECT_EQ(
      run_demarc(exec({"--sms", "50%", "--audit", "--json=/dev/full"}, {"context"})).exit_code, 1);
}

TEST_F(CardOwner, is_said_by_a_check_without_a_card) {
  ::setenv("DEMARC_LIBCUDA", "/no/such/library", 1);
  const auto refused = run_demarc(
      {"serve", "--check", "--config",
       config(
           "[tenants.a]\ngpcs = \"0\"\ncolors = [0]\n[tenants.b]\ngpcs = \"0\"\ncolors = [0]\n")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("f.toml:6:10: tenant 'b': the colours 0 of 2 also belong to"));
  const auto good = run_demarc({"serve", "--check", "--config", two_tenants()});
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_THAT(good.out, HasSubstr("f.toml: 2 tenants\ntenant  TPCs"));
  EXPECT_THAT(good.out, HasSubstr("\nb       6-11 (6)"));
}

}  // namespace
}  // namespace demarc
