// A whole server with canaries. A script stands in for the program of a canary, another one for the
// daemon of MPS.
#include "demarc/guest/control.hpp"
#include "whole_server.hpp"

namespace demarc::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

class ServersWithCanaries : public WholeServers {
 protected:
  void SetUp() override {
    WholeServers::SetUp();
    test::write_mps_control(folder);
    ASSERT_TRUE(write_file(folder / "canary",
                           fmt::format("#!/bin/sh\necho $* >> {}\nwhile sleep 0.01; do echo 300; "
                                       "done\n",
                                       (folder / "started").string())));
    std::filesystem::permissions(folder / "canary", std::filesystem::perms::owner_all);
    programs_ = std::getenv("PATH");
    ::setenv("PATH", (folder.string() + ":" + programs_).c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", programs_.c_str(), 1);
    WholeServers::TearDown();
  }
  void write_tenants(const std::string& head, const std::string& of_a) const {
    write_config("description = \"h100-sxm\"\nmemory = \"16 MiB\"\n" + head +
                 tenant_of_file("a", "0-3", "1/2", of_a) + tenant_of_file("b", "6-11", "2/2"));
  }
  [[nodiscard]] ServePlan plan_with_canary() const {
    auto wanted = plan();
    wanted.program = folder / "canary";
    return wanted;
  }
  [[nodiscard]] lease::TenantStatus status(std::size_t tenant) const {
    return client().list().value().tenants.at(tenant);
  }
  [[nodiscard]] std::string started() const { return read_file(folder / "started").value_or(""); }
  [[nodiscard]] std::string line_of(const char* tenant) const {
    return fmt::format("exec --tenant {} --socket {} -- {} lease canary\n", tenant, socket,
                       (folder / "canary").string());
  }
  static void wait_until(const std::function<bool()>& done) {
    for (int i = 0; i < 20'000 && !done(); ++i) ::usleep(1000);
    ASSERT_TRUE(done());
  }

 private:
  std::string programs_;
};

TEST_F(ServersWithCanaries, tell_the_slowdown_of_tenants_that_want_one) {
  write_tenants("mps = \"on\"\n", "canary = true\n");
  WholeServer server(plan_with_canary(), good_card);
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  wait_until([&] { return status(0).canary_slowdown.has_value(); });
  EXPECT_EQ(status(0).canary_slowdown, 1.0);
  EXPECT_EQ(status(0).canary_baseline_cycles, 300.0);
  EXPECT_EQ(status(1).canary_slowdown, std::nullopt);
  EXPECT_EQ(started(), line_of("a"));
  server.signal(SIGHUP);
  ASSERT_TRUE(server.says(read_again_line)) << server.said();
  EXPECT_EQ(status(0).canary_baseline_cycles, 300.0);
  wait_until([&] { return started() == line_of("a") + line_of("a"); });
  write_tenants("mps = \"on\"\n", "canary = true\ncanary_baseline = 150\n");
  server.signal(SIGHUP);
  ASSERT_TRUE(server.says(read_again_line, 2)) << server.said();
  wait_until([&] { return status(0).canary_slowdown == 2.0; });
  write_tenants("mps = \"on\"\n", "");
  server.signal(SIGHUP);
  ASSERT_TRUE(server.says(read_again_line, 3)) << server.said();
  EXPECT_EQ(status(0).canary_baseline_cycles, std::nullopt);
  EXPECT_EQ(server.end_by(), 0) << server.said();
  EXPECT_THAT(server.said(), Not(HasSubstr("has ended, so its slowdown")));
}

TEST_F(ServersWithCanaries, start_none_where_programs_take_turns) {
  write_tenants("canary = true\nmps = \"off\"\n", "canary_baseline = 300\n");
  WholeServer server(plan_with_canary(), good_card);
  ASSERT_TRUE(
      server.says("canary: programs take turns without MPS and do not interfere with each other's "
                  "reads, so no canary runs"))
      << server.said();
  ASSERT_TRUE(server.says(serving_line)) << server.said();
  EXPECT_EQ(status(0).canary_baseline_cycles, std::nullopt);
  EXPECT_EQ(server.end_by(), 0) << server.said();
  EXPECT_EQ(started(), "");
}

TEST_F(ServersWithCanaries, cannot_be_told_to_end_when_they_are_idle) {
  write_tenants("mps = \"on\"\n", "canary = true\n");
  auto wanted = plan_with_canary();
  EXPECT_TRUE(plan_config(wanted));
  wanted.end_when_idle = 5;
  EXPECT_THAT(plan_config(wanted).error().message,
              HasSubstr("canary: a server with canaries always has connections"));
  write_tenants("mps = \"on\"\n", "");
  EXPECT_TRUE(plan_config(wanted));
}

}  // namespace
}  // namespace demarc::serve
