// A card in equal parts without a configuration.
#include "demarc/serve/division.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "demarc/base/files.hpp"
#include "demarc/base/owned_file.hpp"
#include "demarc/serve/config.hpp"
#include "fork_at_rest.hpp"
#include "not_run.hpp"
#include "own_process.hpp"
#include "paths.hpp"

namespace demarc::serve {
namespace {

using gpu::TpcSet;
using testing::HasSubstr;

TEST(Divisions, listen_in_the_folder_of_the_user) {
  ::setenv("XDG_RUNTIME_DIR", "/tmp/of-the-user", 1);
  ::setenv("DEMARC_SOCKET", "/tmp/elsewhere", 1);
  EXPECT_EQ(division_socket(3, 2), "/tmp/of-the-user/demarc-cuda3-2.sock");
  ::unsetenv("DEMARC_SOCKET");
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(division_socket(0, 4), "/run/demarc-cuda0-4.sock");
}

Result<std::vector<Terms>> terms_of_division(std::uint32_t parts, std::uint32_t domains = 4) {
  const auto config = parse_config(division_config({0, {0, parts}, "", "", "", {}}), "d").value();
  const CardNumbers card{
      gpu::regular_topology(4, 4, 2), domains,
      [](const color::ColorSet&) -> Result<std::uint64_t> { return std::uint64_t{1} << 26U; }};
  return terms_of(config, card);
}

TEST(Divisions, have_equal_parts_of_TPCs_and_colours_each_in_a_domain_of_its_own) {
  const auto halves = terms_of_division(2).value();
  ASSERT_EQ(halves.size(), 2U);
  EXPECT_EQ(halves[0].name, "part-1-of-2");
  EXPECT_EQ(halves[0].tpcs | halves[1].tpcs,
            TpcSet({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(halves[0].colors, color::ColorSet(1, 2));
  EXPECT_EQ(halves[1].colors, color::ColorSet(2, 2));
  EXPECT_EQ(halves[0].sync_domain, 1U);
  EXPECT_EQ(halves[1].sync_domain, 2U);
  const auto quarters = terms_of_division(4, 5).value();
  ASSERT_EQ(quarters.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(quarters[i].tpcs.size(), 4U);
    EXPECT_EQ(quarters[i].colors, color::ColorSet::run(i, 1, 4));
    EXPECT_EQ(quarters[i].sync_domain, i + 1);
  }
}

TEST(Divisions, give_each_third_one_of_three_colours) {
  const auto config = parse_config(division_config({0, {0, 3}, "", "", "", {}}), "d").value();
  EXPECT_EQ(config.colors, 3U);
  const auto thirds = terms_of_division(3).value();
  ASSERT_EQ(thirds.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(thirds[i].name, fmt::format("part-{}-of-3", i + 1));
    EXPECT_EQ(thirds[i].colors, color::ColorSet::run(i, 1, 3));
    EXPECT_GE(thirds[i].tpcs.size(), 4U);
  }
  EXPECT_EQ((thirds[0].tpcs | thirds[1].tpcs | thirds[2].tpcs).size(), 16U);
}

TEST(Divisions, have_no_more_parts_than_domains_that_are_not_everybodys) {
  EXPECT_TRUE(terms_of_division(3));
  EXPECT_THAT(terms_of_division(4).error().message,
              HasSubstr("no domain is free: the card has 3 that a tenant can have"));
  EXPECT_TRUE(terms_of_division(4, 1)) << "a card without domains";
}

TEST(Divisions, are_of_the_memory_that_is_asked_for) {
  const auto config =
      parse_config(division_config({1, {1, 2}, "3 GiB", "a \"b\"\\c.json", "", {}}), "d").value();
  EXPECT_EQ(config.card, 1U);
  EXPECT_EQ(config.memory, std::uint64_t{3} << 30U);
  EXPECT_EQ(config.description, "a \"b\"\\c.json");
  EXPECT_FALSE(parse_config(division_config({0, {0, 2}, "much", "", "", {}}), "d"));
}

TEST(Divisions, of_wrong_wishes_are_refused_before_a_server_is_started) {
  const auto refusal = [](std::uint32_t parts, const std::string& memory) {
    ::setenv("XDG_RUNTIME_DIR", "/no/such/folder", 1);
    const auto joined = join_division({0, {0, parts}, memory, "", "/no/such/program", {}});
    ::unsetenv("XDG_RUNTIME_DIR");
    EXPECT_EQ(joined.error().kind, ErrorKind::invalid_input);
    return joined.error().message;
  };
  EXPECT_EQ(refusal(2, "abc"),
            "--part 1/2, --memory 'abc': memory: 'abc' is not a number of bytes; write it as 4096, "
            "64K, 512 MiB or 16GiB")
      << "what was given, and not what is written from it";
  EXPECT_THAT(refusal(2, "64\nMiB"), HasSubstr("unescaped control characters"));
  EXPECT_THAT(refusal(4, "7 MiB"), HasSubstr("7340032 bytes are less than 2097152 for each of 4"));
  EXPECT_THAT(refusal(4, "8 MiB"), HasSubstr("XDG_RUNTIME_DIR names the folder")) << "it is right";
}

class JoiningADivision : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_RUNTIME_DIR"); }
  // A server that says this and ends.
  [[nodiscard]] Result<JoinedDivision> join(const std::string& script) {
    const auto program = folder / "server";
    static_cast<void>(write_file(program, "#!/bin/sh\n" + script + "\n"));
    ::chmod(program.c_str(), 0700);
    return join_division({0,
                          {0, 2},
                          "1 GiB",
                          "",
                          program,
                          [&](const auto& line) {
                            told = line;
                            all_told.push_back(line);
                            when_told();
                          },
                          ending_seconds,
                          starting_seconds});
  }
  std::filesystem::path folder = test::fresh_folder("division");
  double ending_seconds = 20;
  double starting_seconds = 120;
  std::string told;
  std::vector<std::string> all_told;
  std::function<void()> when_told = [] {};
};

TEST_F(JoiningADivision, says_at_once_that_a_server_has_ended) {
  const std::string socket = division_socket(0, 2);
  const pid_t later = test::fork_at_rest();
  if (later == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::usleep(20'000'000);
    const auto other = lease::PacketListener::listen(socket, {});
    for (;;) ::pause();
  }
  EXPECT_FALSE(join("exit 2")) << "it waited for another one";
  ::kill(later, SIGKILL);
  ::waitpid(later, nullptr, 0);
}

TEST_F(JoiningADivision, says_why_a_server_did_not_start) {
  const auto joined = join("echo \"$@\" >&2; echo no card >&2; exit 2");
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().kind, ErrorKind::missing_capability);
  const std::string socket = folder / "demarc-cuda0-2.sock";
  EXPECT_EQ(
      joined.error().message,
      fmt::format("the server that divides the card has ended: serve --config {}.toml --socket "
                  "{} --end-when-idle 5\nno card\n",
                  socket, socket));
  EXPECT_THAT(told, HasSubstr("a server is started (log: " + socket + ".log); it takes 1 GiB"));
  EXPECT_THAT(join("exit 0").error().message, HasSubstr("it said nothing"));
}

TEST_F(JoiningADivision, starts_a_server_of_its_configuration_which_may_write_what_it_likes) {
  const auto joined = join("cat \"$3\" >&2; echo to nobody && echo written >&2; exit 2");
  EXPECT_EQ(joined.error().message,
            fmt::format("the server that divides the card has ended: {}written\n",
                        division_config({0, {0, 2}, "1 GiB", "", "", {}})));
}

TEST_F(JoiningADivision, says_why_a_start_cannot_be_locked) {
  starting_seconds = 0;
  EXPECT_TRUE(test::passes_in_a_process([&] {
    test::refuse_calls({SYS_flock}, ENOLCK);
    const auto joined = join("exit 2");
    EXPECT_EQ(joined.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(joined.error().message,
              fmt::format("'{}': No locks available", (folder / "demarc-cuda0.start").string()));
  }));
}

TEST_F(JoiningADivision, says_that_there_are_too_many_processes) {
  if (::geteuid() != 0) DEMARC_NOT_RUN("only root can be a user without processes");
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_TRUE(test::passes_in_a_process([&] {
    ASSERT_EQ(::chdir(folder.c_str()), 0);
    folder = "/proc/self/cwd";  // users who may go through the folders above it
    ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
    ASSERT_EQ(::setuid(54321), 0);
    const rlimit two{2, 2};  // this one and one more, which cannot start the server
    ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &two), 0);
    const auto joined = join("exit 2");
    EXPECT_EQ(joined.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(joined.error().message,
                testing::EndsWith("server cannot be started: there are too many processes"));
  }));
}

TEST_F(JoiningADivision, has_the_exit_code_of_a_server_that_did_not_start) {
  EXPECT_EQ(join("exit 1").error().kind, ErrorKind::invalid_input);
  EXPECT_EQ(join("exit 2").error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(join("exit 3").error().kind, ErrorKind::check_failed);
  for (const char* end : {"exit 0", "exit 127", "kill -1 $$", "kill -2 $$"}) {
    EXPECT_EQ(join(end).error().kind, ErrorKind::missing_capability) << end;
  }
  int reaper = -1;
  ASSERT_EQ(::prctl(PR_GET_CHILD_SUBREAPER, &reaper), 0);
  EXPECT_EQ(reaper, 0) << "as it was";
}

TEST_F(JoiningADivision, waits_no_longer_for_another_starter_than_it_is_told) {
  const std::string path = folder / "demarc-cuda0.start";
  const OwnedFile starter(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(starter.get(), LOCK_EX), 0);
  starting_seconds = 0.04;
  when_told = [&] { ::flock(starter.get(), LOCK_UN); };
  const auto joined = join("exit 0");
  EXPECT_EQ(joined.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(joined.error().message,
            fmt::format("'{}': another demarc exec --part has started a server for 0.04 s and "
                        "holds this file: does it stand still?",
                        path));
  EXPECT_THAT(all_told, testing::IsEmpty()) << "one that starts at once is not spoken of";
  starting_seconds = 10;
  ASSERT_EQ(::flock(starter.get(), LOCK_UN), 0);
  EXPECT_THAT(join("exit 0").error().message, HasSubstr("it said nothing")) << "it had its turn";
  ASSERT_EQ(::flock(starter.get(), LOCK_EX), 0);
  std::thread other([&] {
    ::usleep(100'000);
    ::flock(starter.get(), LOCK_UN);
  });
  EXPECT_THAT(join("exit 0").error().message, HasSubstr("it said nothing")) << "it waited for it";
  other.join();
}

TEST_F(JoiningADivision, gives_the_server_none_of_the_callers_files) {
  const int own = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(own, 77), 77);
  const int lowest = ::fcntl(own, F_DUPFD, 3);  // from here on there is a file 3
  const OwnedFile input(::dup(STDIN_FILENO));
  ::dup2(own, STDIN_FILENO);
  const auto joined = join(
      "for n in 3 77; do [ ! -e /proc/$$/fd/$n ] || echo it has $n; done >&2\n"
      "links=$(readlink /proc/$$/fd/0 /proc/$$/fd/1); echo \"$links\" >&2; exit 2");
  ::dup2(input.get(), STDIN_FILENO);
  for (const int file : {lowest, 77, own}) ::close(file);
  EXPECT_THAT(joined.error().message, testing::EndsWith("ended: /dev/null\n/dev/null\n"));
}

// It ends neither with the terminal nor with the group of the one who came first.
TEST_F(JoiningADivision, starts_the_server_in_a_session_of_its_own) {
  const auto joined = join("cut -d' ' -f6 /proc/self/stat >&2; exit 2");
  const std::string& said = joined.error().message;
  const std::string session = said.substr(said.rfind(' ') + 1);
  EXPECT_GT(std::atoi(session.c_str()), 0) << said;
  EXPECT_NE(std::atoi(session.c_str()), ::getsid(0));
}

TEST_F(JoiningADivision, keeps_its_files_from_others_and_follows_no_link) {
  const auto start = folder / "demarc-cuda0.start";
  const auto log = folder / "demarc-cuda0-2.sock.log";
  const mode_t before = ::umask(0);
  // What the server says are the modes of the files while it starts.
  EXPECT_THAT(join(fmt::format("stat -c %a {} {} >&2; exit 2", start.string(), log.string()))
                  .error()
                  .message,
              testing::EndsWith("600\n600\n"));
  ::umask(before);
  for (const auto& file : {start, log}) {
    EXPECT_FALSE(std::filesystem::exists(file)) << "nothing is left of a start that failed";
    std::filesystem::create_symlink(folder / "elsewhere", file);
    EXPECT_THAT(join("exit 2").error().message,
                HasSubstr(file.string() + "': Too many levels of symbolic links"));
    std::filesystem::remove(file);
  }
}

TEST_F(JoiningADivision, says_that_a_program_or_a_folder_is_not_there) {
  const auto joined = join_division({0, {0, 2}, "", "", "/no/such/program", [](const auto&) {}});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(joined.error().message, "the server that divides the card has ended: it said nothing");
  ::setenv("XDG_RUNTIME_DIR", "/no/such/folder", 1);
  EXPECT_THAT(join("exit 0").error().message,
              HasSubstr("XDG_RUNTIME_DIR names the folder, which must belong to you"));
}

// Its memory is not free yet, and its daemon of MPS runs, whatever parts it had.
TEST_F(JoiningADivision, waits_for_the_server_before_which_is_still_ending) {
  for (const std::uint32_t parts : {2U, 3U, 64U}) {
    all_told.clear();
    auto ending = lease::PacketListener::listen(division_socket(0, parts), {}).value();
    ending.close();
    const pid_t other = test::fork_at_rest();
    if (other == 0) {
      ::usleep(50'000);
      ::_exit(0);  // with the last copy of the lock
    }
    { const auto given_up = std::move(ending); }
    const auto joined = join("echo it was started >&2; exit 2");
    EXPECT_THAT(joined.error().message, HasSubstr("it was started"));
    EXPECT_THAT(all_told, testing::ElementsAre(HasSubstr("cuda:0 is still ending"),
                                               HasSubstr("a server is started")));
    ::waitpid(other, nullptr, 0);
  }
}

TEST_F(JoiningADivision, waits_no_longer_than_a_server_has_to_end) {
  auto ending = lease::PacketListener::listen(division_socket(0, 2), {}).value();
  ending.close();
  const pid_t other = test::fork_at_rest();
  if (other == 0) {
    ::usleep(2'000'000);
    ::_exit(0);
  }
  { const auto given_up = std::move(ending); }
  ending_seconds = 0.05;
  const auto joined = join("echo it was started >&2; exit 2");
  EXPECT_EQ(joined.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(joined.error().message, HasSubstr(division_socket(0, 2)));
  EXPECT_THAT(joined.error().message, testing::Not(HasSubstr("it was started")));
  EXPECT_THAT(all_told, testing::ElementsAre(HasSubstr("cuda:0 is still ending")));
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

TEST_F(JoiningADivision, is_refused_where_the_card_is_divided_otherwise) {
  {
    const auto most = lease::PacketListener::listen(division_socket(0, 64), {}).value();
    EXPECT_THAT(join("exit 0").error().message, HasSubstr("cuda:0 is divided into 64 parts"));
  }
  const auto thirds = lease::PacketListener::listen(division_socket(0, 3), {}).value();
  EXPECT_EQ(join("exit 0").error().message,
            "cuda:0 is divided into 3 parts by programs that run: give --part K/3, or wait until "
            "they have ended");
  const auto other_card = lease::PacketListener::listen(division_socket(1, 3), {}).value();
  const auto halves = lease::PacketListener::listen(division_socket(0, 2), {}).value();
  const auto joined = join("exit 0");
  ASSERT_TRUE(joined) << "whoever is there is joined first";
  EXPECT_EQ(joined->tenant, "part-1-of-2");
  EXPECT_EQ(joined->socket, division_socket(0, 2));
  EXPECT_EQ(told, "a server already divides cuda:0 into 2 parts, and its memory cannot be changed");
  told.clear();
  ASSERT_TRUE(join_division({0, {1, 2}, "", "", "none", [&](const auto& line) { told = line; }}));
  EXPECT_EQ(told, "");
}

}  // namespace
}  // namespace demarc::serve
