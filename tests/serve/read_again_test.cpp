// A configuration that a running server reads again: what may differ, and which tenants it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/serve/config.hpp"

namespace demarc::serve {
namespace {

using testing::HasSubstr;

constexpr const char* two_parts = R"([tenants.a]
tpcs = "0-1"
colors = "1/2"
[tenants.b]
tpcs = "2-3"
colors = "2/2"
)";

Config config_of(const std::string& head, const std::string& tenants = two_parts) {
  return parse_config(head + tenants, "f.toml").value();
}
std::string refusal_of(const Config& now, const Config& next) {
  const auto read = read_again(now, next);
  return read ? "taken" : read.error().message;
}

TEST(ReadAgain, keys_that_cannot_change_are_refused_by_name) {
  Config now = config_of("");
  now.socket = "/run/a";
  Config other = now;
  EXPECT_EQ(refusal_of(now, other), "taken");
  const auto refused = [&](const char* key, const std::function<void(Config&)>& change) {
    other = now;
    change(other);
    EXPECT_EQ(refusal_of(now, other),
              fmt::format("f.toml: {}: this cannot change while the server runs: start the server "
                          "again, or write what was there",
                          key));
    EXPECT_NE(refusal_of(other, now), "taken") << key;
  };
  refused("card", [](Config& config) { config.card = 1; });
  refused("description", [](Config& config) { config.description = "x"; });
  refused("memory", [](Config& config) { config.memory = 1 << 30; });
  refused("reserve", [](Config& config) { config.reserve = 1; });
  refused("socket", [](Config& config) { config.socket = "/run/b"; });
  refused("group", [](Config& config) { config.group = 1; });
  refused("metrics", [](Config& config) { config.metrics = 80; });
  refused("mps", [](Config& config) { config.mps = MpsUse::off; });
  refused("card, group", [](Config& config) {
    config.group = 1;
    config.card = 2;
  });
}

TEST(ReadAgain, colours_are_those_of_the_division_that_is_there) {
  const Config quarters = config_of("", R"([tenants.a]
tpcs = "0-1"
colors = "1/4"
[tenants.b]
tpcs = "2-3"
colors = "2/2"
)");
  ASSERT_EQ(quarters.colors, 4U);
  const auto without = read_again(quarters, config_of("", R"([tenants.b]
tpcs = "2-3"
colors = "2/2"
)"));
  EXPECT_EQ(without->colors, 4U);
  EXPECT_EQ(without->tenants[0].colors, color::ColorSet(0xc, 4)) << "as it was beside a quarter";
  const Config halves = config_of("");
  const auto finer = read_again(halves, config_of("", R"([tenants.a]
tpcs = "0-1"
colors = [0, 1]
[tenants.c]
tpcs = "5"
colors = "2/4"
)"));
  EXPECT_EQ(
      finer.error().message,
      "f.toml:6:10: tenant 'c': colours: the memory was divided into 2 colours when the server "
      "started, of which this is not a whole number: start the server again");
  const auto whole = read_again(halves, config_of("colors = 4\n", R"([tenants.a]
tpcs = "0-1"
colors = [2, 3]
)"));
  EXPECT_EQ(whole->tenants[0].colors, color::ColorSet(2, 2));
  EXPECT_EQ(
      refusal_of(halves, config_of("colors = 3\n", "[tenants.a]\nsms = 1\ncolors = [0]\n")),
      "f.toml:4:10: tenant 'a': colours: the memory was divided into 2 colours when the server "
      "started, of which this is not a whole number: start the server again");
}

TEST(ReadAgain, wishes_are_the_same_wherever_they_stand_in_the_file) {
  const auto wish = [](const std::string& lines) {
    return config_of("", "[tenants.a]\n" + lines + "\ncolors = [0]\n").tenants[0];
  };
  const auto same = [&](const std::string& a, const std::string& b) {
    return same_wishes(wish(a), wish("\n" + b));
  };
  EXPECT_TRUE(same("tpcs = \"0-1\"", "tpcs = \"0-1\""));
  EXPECT_FALSE(same("tpcs = \"0-1\"", "tpcs = \"0-2\""));
  EXPECT_FALSE(same("gpcs = \"0\"", "gpcs = \"1\""));
  EXPECT_FALSE(same("sms = 1", "sms = 2"));
  EXPECT_FALSE(same("sms = \"50 %\"", "sms = \"40 %\""));
  EXPECT_FALSE(same("tpcs = \"1/2\"", "tpcs = \"2/2\""));
  EXPECT_FALSE(same("tpcs = \"1/2\"", "tpcs = \"1/3\""));
  EXPECT_FALSE(same("tpcs = \"1/2\"\nsplit = \"packed\"", "tpcs = \"1/2\""));
  EXPECT_TRUE(same("tpcs = \"1/2\"\nsplit = \"gpc-aligned\"", "tpcs = \"1/2\""));
  EXPECT_FALSE(same("sms = 1\nbytes = 4194304", "sms = 1"));
  EXPECT_FALSE(same("sms = 1\nsync_domain = 1", "sms = 1"));
  EXPECT_FALSE(same("sms = 1\nsync_domain = \"none\"", "sms = 1"));
  TenantConfig other = wish("sms = 1");
  other.colors = {2, 2};
  EXPECT_FALSE(same_wishes(other, wish("sms = 1")));
}

}  // namespace
}  // namespace demarc::serve
