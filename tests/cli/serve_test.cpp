// A server on the stand-in for libcuda, and the verbs that speak to it.
#include "served_card.hpp"

namespace demarc {
namespace {

using test::run_demarc;
using testing::HasSubstr;

class ServeProgram : public test::ServedCard {};

TEST_F(ServeProgram, owns_a_card_until_it_is_told_to_end) {
  auto server = serving(two_tenants());
  const auto list = run_demarc({"lease", "list"});
  EXPECT_EQ(list.exit_code, 0) << list.err << server.kept();
  EXPECT_THAT(list.out, HasSubstr("a       0-5   0        1"));
  EXPECT_THAT(list.out, HasSubstr("b       6-11  1        2       16 MiB"));
  EXPECT_THAT(run_demarc({"lease", "grow", "a", "--bytes", "4MiB"}).out, HasSubstr("4 MiB"));
  EXPECT_THAT(run_demarc({"lease", "move", "b", "--tpcs", "7", "--json"}).out,
              HasSubstr("\"tpcs\": \"7\""));
  const auto taken = run_demarc({"lease", "move", "b", "--tpcs", "0"});
  EXPECT_EQ(taken.exit_code, 1);
  EXPECT_EQ(taken.err, "demarc lease: tenants 'a' and 'b' share the TPCs 0\n");
  const auto missed = run_demarc({"lease", "slo", "a"});
  EXPECT_EQ(missed.exit_code, 1);
  EXPECT_THAT(missed.err, HasSubstr("tenant 'a' has no lease"));
  static_cast<void>(run_demarc({"exec", "--tenant", "a", "--", test::build_dir() / "demarc",
                                "lease", "slo", "a", "--misses", "3"}));
  static_cast<void>(run_demarc(
      {"exec", "--tenant", "a", "--", test::build_dir() / "demarc", "lease", "slo", "a"}));
  EXPECT_THAT(run_demarc({"lease", "list", "--json"}).out, HasSubstr("\"slo_misses\": 4,"));
  EXPECT_EQ(run_demarc({"lease", "revoke", "a"}).exit_code, 0);
  EXPECT_EQ(run_demarc({"lease", "list", "--html", folder / "page.html"}).exit_code, 0);
  EXPECT_THAT(read_file(folder / "page.html").value(), HasSubstr("<td>a</td>"));
  const auto second = run_demarc({"serve", "--config", two_tenants()});
  EXPECT_EQ(second.exit_code, 1) << second.err;
  EXPECT_THAT(second.err, HasSubstr("another demarc serve listens there"));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(-1)->exit_code, 0) << server.kept();
  EXPECT_EQ(run_demarc({"lease", "list"}).exit_code, 2);
}

TEST_F(ServeProgram, times_reads_by_a_canary_in_a_tenant) {
  auto server = serving(two_tenants());
  const auto canary = test::build_dir() / "demarc";
  const auto timed =
      run_demarc({"exec", "--tenant", "a", "--", canary, "lease", "canary", "--count", "2"});
  EXPECT_EQ(timed.exit_code, 0) << timed.err << server.kept();
  double first = 0;
  double second = 0;
  EXPECT_EQ(std::sscanf(timed.out.c_str(), "%lf\n%lf\n", &first, &second), 2) << timed.out;
  EXPECT_GT(first, 1);
  EXPECT_EQ(first, second) << "the stand-in counts instructions";
  for (const bool set : {false, true}) {
    if (set) ::setenv("DEMARC_TENANT", "", 1);
    const auto refused = run_demarc({"lease", "canary"});
    ::unsetenv("DEMARC_TENANT");
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("this process has no lease: start it with demarc exec "
                                       "--tenant NAME -- demarc lease canary"));
  }
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(-1)->exit_code, 0) << server.kept();
}

// What the unit of systemd starts, with the file and the socket of this test in place of those in
// /etc and /run.
TEST_F(ServeProgram, starts_as_the_unit_does_with_the_configuration_that_is_installed) {
  const auto packaging = test::source_dir() / "packaging";
  const auto unit = read_file(packaging / "demarc.service.in").value();
  EXPECT_THAT(unit, HasSubstr("\nExecStart=@program@ serve --config /etc/demarc/demarc.toml "
                              "--socket /run/demarc/demarc.sock\n"));
  const auto shipped = read_file(packaging / "demarc.toml").value();
  auto server = serving(config("description = \"h100-sxm\"\nmemory = \"64 MiB\"\n" + shipped));
  const auto list = run_demarc({"lease", "list"});
  EXPECT_EQ(list.exit_code, 0) << list.err << server.kept();
  EXPECT_THAT(list.out, HasSubstr("a       0,2-3,5-6,8-9  0        1"));
  EXPECT_THAT(list.out, HasSubstr("b       1,4,7,10-11    1        2"));
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(-1)->exit_code, 0) << server.kept();
}

TEST_F(ServeProgram, is_found_by_its_clients_where_a_user_starts_it) {
  ::unsetenv("DEMARC_SOCKET");
  ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  auto server = serving(two_tenants());
  for (const auto& words :
       {std::vector<std::string>{"list"}, std::vector<std::string>{"check", "a"},
        std::vector<std::string>{"grow", "a", "--bytes", "4MiB"},
        std::vector<std::string>{"cdi"}}) {
    std::vector<std::string> all{"lease"};
    all.insert(all.end(), words.begin(), words.end());
    const auto outcome = run_demarc(all);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  EXPECT_THAT(run_demarc({"exec", "--tenant", "a", "--", "true"}).err,
              HasSubstr("'a' has its TPCs alone while it has its turn"));
  EXPECT_TRUE(std::filesystem::is_socket(folder / "demarc.sock"));
  ::unsetenv("XDG_RUNTIME_DIR");
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(-1)->exit_code, 0) << server.kept();
}

TEST_F(ServeProgram, is_refused_with_the_place_of_what_is_wrong) {
  const auto refused = [&](const std::string& text) {
    const auto outcome = run_demarc({"serve", "--config", config(text)});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refused("cards = 1\n[tenants.a]\nsms = 1\ncolors = [0]\n"),
              HasSubstr("f.toml:1:1: unknown key 'cards'"));
  const std::string head = "description = \"h100-sxm\"\nmemory = \"16 MiB\"\n";
  EXPECT_THAT(refused(head + "[tenants.a]\ntpcs = \"0-12\"\ncolors = [0]\n"),
              HasSubstr("f.toml:4:8: tpcs: 12 is above"));
  EXPECT_EQ(run_demarc({"serve", "--config", (folder / "none").string()}).exit_code, 1);
  EXPECT_EQ(run_demarc({"serve"}).exit_code, 1);
}

TEST_F(ServeProgram, checks_a_configuration_without_a_card) {
  ::setenv("DEMARC_LIBCUDA", "/no/such/library", 1);
  const auto good = run_demarc({"serve", "--check", "--config", two_tenants()});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("f.toml: 2 tenants"));
  EXPECT_EQ(run_demarc({"serve", "--config", two_tenants()}).exit_code, 2);
}

TEST_F(ServeProgram, refuses_options_that_cannot_be) {
  for (const auto& [option, value, said] :
       {std::array{"--device", "sim:h100-sxm", "only a real GPU is served"},
        std::array{"--mps", "maybe", "on, off or auto was expected"}}) {
    const auto outcome = run_demarc({"serve", "--config", two_tenants(), option, value});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(said));
  }
  EXPECT_EQ(run_demarc({"lease"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"lease", "grow", "a"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"lease", "move", "a"}).exit_code, 1);
  EXPECT_EQ(run_demarc({"lease", "list", "--socket", "/no/such/socket"}).exit_code, 2);
}

}  // namespace
}  // namespace demarc
