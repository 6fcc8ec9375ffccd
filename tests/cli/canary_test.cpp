// A server on the stand-in for libcuda whose canaries are programs in leases, as on a card with
// MPS.
#include "demarc/base/json.hpp"
#include "mps_control.hpp"
#include "served_card.hpp"

namespace demarc {
namespace {

using test::run_demarc;

class Canary : public test::ServedCard {
 protected:
  void SetUp() override {
    ServedCard::SetUp();
    test::write_mps_control(folder);
    programs_ = std::getenv("PATH");
    ::setenv("PATH", (folder.string() + ":" + programs_).c_str(), 1);
    ::setenv("DEMARC_FAKE_MPS", ".mps", 1);
  }
  void TearDown() override {
    ::setenv("PATH", programs_.c_str(), 1);
    ::unsetenv("DEMARC_FAKE_MPS");
    ServedCard::TearDown();
  }
  [[nodiscard]] std::string with_tpcs_of_b(const std::string& tpcs) const {
    return config(fmt::format(R"(description = "h100-sxm"
memory = "64 MiB"
mps = "on"
canary = true
[tenants.a]
tpcs = "0-5"
colors = "1/2"
canary_baseline = 10
[tenants.b]
tpcs = "{}"
colors = "2/2"
)",
                              tpcs));
  }
  [[nodiscard]] static Json tenant(std::size_t index) {
    const auto list = run_demarc({"lease", "list", "--json"});
    EXPECT_EQ(list.exit_code, 0) << list.err;
    return parse_json(list.out, "list").value().at("tenants").at(index);
  }
  static void wait_until(const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) ::usleep(20'000);
    ASSERT_TRUE(done());
  }

 private:
  std::string programs_;
};

TEST_F(Canary, measures_in_a_lease_of_its_tenant_that_is_not_a_programs) {
  auto server = serving(with_tpcs_of_b("6-11"));
  ASSERT_TRUE(server.running()) << server.kept();
  wait_until([&] { return tenant(0).at("canary_slowdown").is_number(); });
  const Json a = tenant(0);
  EXPECT_GT(a.at("canary_slowdown"), 2)
      << "more than one instruction for each cycle of the baseline";
  EXPECT_EQ(a.at("canary_baseline_cycles"), 10);
  EXPECT_NE(a.at("given_bytes"), 0);
  EXPECT_EQ(a.at("leases"), 0);
  EXPECT_EQ(a.at("processes").size(), 0U);
  EXPECT_EQ(a.at("launches_total"), 0);
  EXPECT_EQ(run_demarc({"lease", "check", "a"}).exit_code, 0);
  wait_until([&] { return tenant(1).at("given_bytes") != 0; });
  EXPECT_EQ(with_tpcs_of_b("7-11"), folder / "f.toml");
  ::kill(server.pid(), SIGHUP);  // not the daemon of MPS, too
  wait_until([&] { return tenant(1).at("tpcs") == "7-11"; });
  wait_until([&] { return tenant(1).at("given_bytes") != 0; });
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(-1)->exit_code, 0) << server.kept();
}

}  // namespace
}  // namespace demarc
