// A configuration says what it means, or where it is wrong.
#include "demarc/serve/config.hpp"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fork_at_rest.hpp"
#include "two_halves.hpp"

namespace demarc::serve {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string config_refusal(std::string_view text) {
  const auto config = parse_config(text, "f.toml");
  return config ? "taken" : config.error().message;
}

// The refusal of a tenant with these lines.
std::string tenant_refusal(const std::string& lines) {
  return config_refusal("[tenants.a]\n" + lines + "\n");
}

// The parser of TOML would abort, or follow dots until its stack is full: another process asks.
bool is_refused_apart(const std::string& text, const std::string& beginning) {
  const pid_t process = test::fork_at_rest();
  if (process == 0) ::_exit(config_refusal(text).starts_with(beginning) ? 0 : 1);
  int status = -1;
  ::waitpid(process, &status, 0);
  return status == 0;
}

TEST(ServeConfigApart, ends_no_process_that_reads_it) {
  EXPECT_TRUE(is_refused_apart(std::string(two_halves), "taken"));
  EXPECT_TRUE(is_refused_apart("card = 0\ncolors = 2\n" + std::string(two_halves), "taken"));
  EXPECT_TRUE(is_refused_apart("memory = \"64 MiB\"\n" + std::string(two_halves), "taken"));
  EXPECT_TRUE(is_refused_apart("socket = 1\n" + std::string(two_halves),
                               "f.toml:1:10: socket: text in quotes was expected"));
  EXPECT_TRUE(is_refused_apart("tenants = 1", "f.toml:1:11: tenants: at least one table"));
  EXPECT_TRUE(is_refused_apart("tenants.a = 1", "f.toml:1:13: tenants.a: a table was expected"));
}

TEST(ServeConfig, has_defaults_for_all_but_the_tenants) {
  const auto config = parse_config(two_halves, "f.toml").value();
  EXPECT_EQ(config.card, 0U);
  EXPECT_EQ(config.colors, 2U);
  EXPECT_FALSE(config.memory);
  EXPECT_EQ(config.reserve, std::uint64_t{6} << 30U);
  EXPECT_TRUE(config.socket.empty());
  EXPECT_FALSE(config.group);
  EXPECT_FALSE(config.metrics);
  EXPECT_EQ(config.mps, MpsUse::automatic);
  ASSERT_EQ(config.tenants.size(), 2U);
  EXPECT_EQ(config.tenants[0].name, "a");
  EXPECT_EQ(config.tenants[0].choice.sms_percent, 50);
  EXPECT_EQ(config.tenants[0].colors, color::ColorSet(1, 2));
  EXPECT_EQ(config.tenants[1].colors, color::ColorSet(2, 2));
  EXPECT_EQ(config.tenants[1].choice_place, "f.toml:6:8");
  EXPECT_FALSE(config.tenants[1].bytes);
  EXPECT_FALSE(config.tenants[1].sync_domain);
}

TEST(ServeConfig, says_everything_there_is_to_say) {
  const std::string group = ::getgrgid(::getegid())->gr_name;
  const auto config = parse_config(fmt::format(R"(card = 3
description = "h200.json"
colors = 8
memory = "64 GiB"
socket = "/run/x.sock"
group = "{}"
metrics = 9464
mps = "off"
[tenants."with blanks"]
gpcs = "0-2"
colors = [0, 3, 7]
bytes = 4194304
sync_domain = 2
[tenants.c]
sms = 5
colors = "4/8"
bytes = "8 MiB"
sync_domain = "free"
)",
                                               group),
                                   "f.toml")
                          .value();
  EXPECT_EQ(config.card, 3U);
  EXPECT_EQ(config.description, "h200.json");
  EXPECT_EQ(config.colors, 8U);
  EXPECT_EQ(config.memory, std::uint64_t{64} << 30U);
  EXPECT_EQ(config.socket, "/run/x.sock");
  EXPECT_EQ(config.group, ::getegid());
  EXPECT_EQ(config.metrics, 9464);
  EXPECT_EQ(config.mps, MpsUse::off);
  const TenantConfig& c = config.tenants[0];
  EXPECT_EQ(c.choice.sms, 5U);
  EXPECT_EQ(c.colors, color::ColorSet(8, 8));
  EXPECT_EQ(c.bytes, 8U << 20U);
  EXPECT_FALSE(c.sync_domain);
  const TenantConfig& first = config.tenants[1];
  EXPECT_EQ(first.name, "with blanks");
  EXPECT_EQ(first.choice.gpcs, "0-2");
  EXPECT_EQ(first.colors, color::ColorSet(0x89, 8));
  EXPECT_EQ(first.bytes, 4194304U);
  EXPECT_EQ(first.sync_domain, 2U);
  EXPECT_EQ(
      parse_config(std::string("reserve = \"3GiB\"\n").append(two_halves), "f").value().reserve,
      std::uint64_t{3} << 30U);
}

TEST(ServeConfig, has_canaries_for_all_tenants_or_for_some) {
  const auto canaries = [](const std::string& head, const std::string& of_a) {
    const auto config = parse_config(head + "[tenants.a]\nsms = 1\ncolors = \"1/2\"\n" + of_a +
                                         "\n[tenants.b]\nsms = 1\ncolors = \"2/2\"\n",
                                     "f")
                            .value();
    return std::pair(config.tenants[0].canary, config.tenants[1].canary);
  };
  EXPECT_EQ(canaries("", ""), std::pair(false, false));
  EXPECT_EQ(canaries("", "canary = true"), std::pair(true, false));
  EXPECT_EQ(canaries("canary = true\n", ""), std::pair(true, true));
  EXPECT_EQ(canaries("canary = true\n", "canary = false"), std::pair(false, true));
  EXPECT_EQ(config_refusal("canary = 1\n" + std::string(two_halves)),
            "f.toml:1:10: canary: true or false was expected");
  const auto baseline = [](const std::string& value) {
    const auto config = parse_config(
        "[tenants.a]\nsms = 1\ncolors = \"1/2\"\ncanary = true\ncanary_baseline = " + value, "f");
    return config ? config->tenants[0].canary_baseline_cycles : std::nullopt;
  };
  EXPECT_EQ(baseline("300"), 300.0);
  EXPECT_EQ(baseline("281.5"), 281.5);
  for (const char* value : {"0", "-1.5", "inf", "nan", "true", "\"300\""}) {
    EXPECT_EQ(baseline(value), std::nullopt) << value;
  }
  EXPECT_EQ(tenant_refusal("sms = 1\ncolors = \"1/2\"\ncanary = true\ncanary_baseline = 0"),
            "f.toml:5:19: canary_baseline: a number above 0 was expected");
  EXPECT_EQ(tenant_refusal("sms = 1\ncolors = \"1/2\"\ncanary_baseline = 300"),
            "f.toml:4:19: canary_baseline: tenant 'a' has no canary: write canary = true, too");
}

TEST(ServeConfig, divides_the_memory_as_finely_as_its_tenants_need) {
  const auto config = parse_config(R"([tenants.a]
sms = 1
colors = "2/2"
[tenants.b]
sms = 1
colors = "2/4"
)",
                                   "f")
                          .value();
  EXPECT_EQ(config.colors, 4U);
  EXPECT_EQ(config.tenants[0].colors, color::ColorSet(0b1100, 4));
  EXPECT_EQ(config.tenants[1].colors, color::ColorSet(0b0010, 4));
}

TEST(ServeConfig, is_refused_with_the_place_of_what_is_wrong) {
  const auto with = [](const std::string& line) {
    return config_refusal(line + "\n" + std::string(two_halves));
  };
  EXPECT_THAT(with("card = "), HasSubstr("f.toml:1:"));
  EXPECT_THAT(with("cards = 1"), HasSubstr("f.toml:1:1: unknown key 'cards'; the keys here are: "));
  EXPECT_EQ(with("card = -1"), "f.toml:1:8: card: a whole number from 0 to 1023 was expected");
  EXPECT_EQ(with("card = 1024"), "f.toml:1:8: card: a whole number from 0 to 1023 was expected");
  EXPECT_EQ(with("card = 1.5"), "f.toml:1:8: card: a whole number from 0 to 1023 was expected");
  EXPECT_EQ(with("colors = 1"), "f.toml:1:10: colors: a whole number from 2 to 64 was expected");
  EXPECT_EQ(with("socket = 1"), "f.toml:1:10: socket: text in quotes was expected");
  EXPECT_EQ(with("metrics = 0"),
            "f.toml:1:11: metrics: a whole number from 1 to 65535 was expected");
  EXPECT_EQ(with("mps = \"maybe\""), "f.toml:1:7: mps: 'maybe': on, off or auto was expected");
  EXPECT_EQ(with("group = \"no such group\""),
            "f.toml:1:9: group: this machine has no group 'no such group'");
  EXPECT_EQ(with("memory = \"much\""),
            "f.toml:1:10: memory: 'much' is not a number of bytes; write it as 4096, 64K, 512 MiB "
            "or 16GiB");
  EXPECT_THAT(with("memory = true"), HasSubstr("f.toml:1:10: memory: ''"));
  EXPECT_EQ(with("memory = 1\nreserve = 2"),
            "f.toml:2:11: reserve: memory already says how much the server takes: leave one out");
  EXPECT_EQ(config_refusal("card = 1"),
            "f.toml: tenants: at least one table such as [tenants.detector] was expected");
  EXPECT_THAT(config_refusal("tenants = 1"), HasSubstr("f.toml:1:11: tenants: at least one table"));
  EXPECT_THAT(config_refusal("[tenants]"), HasSubstr("tenants: at least one table"));
  EXPECT_EQ(config_refusal("tenants.a = 1"), "f.toml:1:13: tenants.a: a table was expected");
  EXPECT_THAT(config_refusal("[tenants.a]\ncolors = \"1/2\"\nsms = 1\n[tenants.a]\n"),
              HasSubstr("f.toml:4:"));
  EXPECT_THAT(read_config("/no/such/file").error().message, HasSubstr("/no/such/file"));
}

TEST(ServeConfig, takes_the_least_and_the_greatest_numbers) {
  for (const std::string line :
       {"card = 0", "card = 1023", "colors = 2", "colors = 64", "metrics = 1", "metrics = 65535"}) {
    EXPECT_EQ(config_refusal(line + "\n" + std::string(two_halves)), "taken") << line;
  }
  for (const std::string sms : {"1", "1024"}) {
    EXPECT_EQ(config_refusal("[tenants.a]\ncolors = \"1/2\"\nsms = " + sms), "taken") << sms;
  }
}

TEST(ServeConfig, of_a_tenant_is_refused_with_the_place_of_what_is_wrong) {
  EXPECT_EQ(tenant_refusal("colors = \"1/2\""),
            "f.toml:1:1: tenant 'a': exactly one of tpcs, gpcs, sms was expected");
  EXPECT_EQ(tenant_refusal("tpcs = \"0\"\nsms = 1\ncolors = \"1/2\""),
            "f.toml:3:7: tenant 'a': exactly one of tpcs, gpcs, sms was expected");
  EXPECT_EQ(tenant_refusal("tpcs = \"\"\ncolors = \"1/2\""),
            "f.toml:2:8: a list such as \"0-15,20\" was expected");
  EXPECT_EQ(tenant_refusal("tpcs = 1\ncolors = \"1/2\""),
            "f.toml:2:8: tpcs: text in quotes was expected");
  EXPECT_EQ(tenant_refusal("tpcs = \"0/2\"\ncolors = \"1/2\""),
            "f.toml:2:8: tpcs: '0/2': parts are counted from 1 on, so the first of 2 is 1/2");
  EXPECT_THAT(tenant_refusal("tpcs = \"3/2\"\ncolors = \"1/2\""),
              HasSubstr("f.toml:2:8: tpcs: '3/2': K/N was expected"));
  for (const char* sms : {"1", "1024", "\"66\"", "\"100%\"", "\"100 %\"", "\"0.5%\""}) {
    EXPECT_EQ(tenant_refusal(fmt::format("sms = {}\ncolors = \"1/2\"", sms)), "taken") << sms;
  }
  for (const char* sms : {"0", "-1", "\"0%\"", "\"101%\"", "\"half\"", "\"\"", "true"}) {
    EXPECT_THAT(tenant_refusal(fmt::format("sms = {}\ncolors = \"1/2\"", sms)),
                testing::AllOf(StartsWith("f.toml:2:7: sms: '"),
                               HasSubstr("': a number of SMs from 1 on was expected, such as 66, "
                                         "or a percentage of the card's SMs, such as 50%")))
        << sms;
  }
  EXPECT_EQ(tenant_refusal("sms = 1025\ncolors = \"1/2\""),
            "f.toml:2:7: sms: 1025 SMs were asked for; at most 1024 are possible");
  EXPECT_EQ(tenant_refusal("share = \"50 %\"\ncolors = \"1/2\""),
            "f.toml:2:9: share: this key is gone; write sms = \"50%\" for half of the SMs");
  EXPECT_EQ(tenant_refusal("sms = 1"),
            "f.toml:1:1: tenant 'a' has no colors: its memory would belong to all tenants");
  for (const char* colors : {"\"3/2\"", "\"1\"", "\"\""}) {
    EXPECT_THAT(tenant_refusal(fmt::format("sms = 1\ncolors = {}", colors)),
                HasSubstr(": K/N was expected, the K-th of N equal parts"))
        << colors;
  }
  EXPECT_EQ(tenant_refusal("sms = 1\ncolors = \"0/2\""),
            "f.toml:3:10: colors: '0/2': parts are counted from 1 on, so the first of 2 is 1/2");
  for (const char* colors : {"1", "[]"}) {
    EXPECT_THAT(tenant_refusal(fmt::format("sms = 1\ncolors = {}", colors)),
                HasSubstr("f.toml:3:10: colors: a part such as \"1/2\", the first half, or a list"))
        << colors;
  }
  EXPECT_EQ(tenant_refusal("sms = 1\ncolors = \"64/64\""), "taken");
  EXPECT_EQ(tenant_refusal("tpcs = \"64/64\"\ncolors = [0, 1]"), "taken");
  for (const char* colors : {"[2]", "[-1]", "[\"0\"]"}) {
    EXPECT_EQ(tenant_refusal(fmt::format("sms = 1\ncolors = {}", colors)),
              "f.toml:3:10: colors: numbers from 0 to 1 were expected");
  }
  EXPECT_EQ(config_refusal("colors = 4\n[tenants.a]\nsms = 1\ncolors = \"1/3\""),
            "f.toml:4:10: colors: 4 colours cannot be divided into 3 parts");
  EXPECT_EQ(
      config_refusal("[tenants.a]\nsms = 1\ncolors = \"1/9\"\n[tenants.b]\nsms = 1\ncolors = "
                     "\"1/8\""),
      "f.toml:6:10: colors: the parts of all tenants need 72 colours; at most 64 are possible");
  EXPECT_THAT(tenant_refusal("sms = 1\ncolors = \"1/2\"\nbytes = \"-1\""),
              HasSubstr("f.toml:4:9: bytes: '-1'"));
  for (const char* domain : {"\"all\"", "0", "-1", "1.5", "4294967296"}) {
    EXPECT_EQ(
        tenant_refusal(fmt::format("sms = 1\ncolors = \"1/2\"\nsync_domain = {}", domain)),
        "f.toml:4:15: sync_domain: \"free\", \"none\" or the number of a domain from 1 on was "
        "expected; domain 0 is that of all programs without one");
  }
  EXPECT_EQ(tenant_refusal("sms = 1\ncolors = \"1/2\"\ncolor = 1"),
            "f.toml:4:1: unknown key 'color'; the keys here are: tpcs, gpcs, sms, split, "
            "colors, bytes, windows, sync_domain, canary, canary_baseline");
  EXPECT_EQ(tenant_refusal("tpcs = \"1/2\"\nsplit = \"fair\"\ncolors = \"1/2\""),
            "f.toml:3:9: split: 'fair': packed, distributed, gpc-aligned, side-aware or "
            "side-aligned was expected");
  EXPECT_EQ(tenant_refusal("tpcs = \"1/2\"\nsplit = 1\ncolors = \"1/2\""),
            "f.toml:3:9: split: text in quotes was expected");
  for (const char* choice : {"tpcs = \"0-1\"", "gpcs = \"0\"", "sms = 1", "sms = \"50 %\""}) {
    EXPECT_EQ(
        tenant_refusal(fmt::format("split = \"packed\"\n{}\ncolors = \"1/2\"", choice)),
        "f.toml:2:9: split: only parts are dealt out: write tpcs = \"1/2\" for the first half, "
        "or leave split out")
        << choice;
  }
}

TEST(ServeConfig, both_spellings_of_colour_are_keys_but_not_at_once) {
  const auto config =
      parse_config("colours = 4\n[tenants.a]\nsms = 1\ncolours = \"2/2\"\n", "f.toml").value();
  EXPECT_EQ(config.colors, 4U);
  EXPECT_EQ(config.tenants[0].colors, color::ColorSet(12, 4));
  EXPECT_EQ(parse_config("[tenants.a]\nsms = 1\ncolours = \"1/3\"\n", "f.toml")->colors, 3U);
  EXPECT_EQ(tenant_refusal("sms = 1\ncolours = [9]"),
            "f.toml:3:11: colors: numbers from 0 to 1 were expected");
  EXPECT_EQ(tenant_refusal("sms = 1\ncolors = \"1/2\"\ncolours = \"2/2\""),
            "f.toml:4:1: colours: colors says the same: leave one out");
  EXPECT_EQ(tenant_refusal("sms = 1\ncolors = \"1/2\"\ncolour = 1").substr(0, 33),
            "f.toml:4:1: unknown key 'colour';");
}

TEST(ServeConfig, headers_without_a_key_and_keys_of_many_parts_are_refused) {
  for (const char* header : {"[", "[[", "[ ", "[.a]", "[[.a]]", "[]", "[[]]", "  [\t", "[\r"}) {
    EXPECT_TRUE(is_refused_apart(std::string("card = 0\n") + header + "\n",
                                 "f.toml:2: a table's name was expected"))
        << header;
  }
  std::string key = "a";
  for (int i = 0; i < 100'000; ++i) key += ".a";
  EXPECT_TRUE(is_refused_apart(key + " = 1\n", "f.toml:1: a line has at most 1000 dots"));
  const auto with_dots = [](std::size_t count) {
    return config_refusal("#" + std::string(count, '.') + "\n" + std::string(two_halves));
  };
  EXPECT_EQ(with_dots(1000), "taken");
  EXPECT_EQ(with_dots(1001), "f.toml:1: a line has at most 1000 dots");
}

TEST(ServeConfig, names_of_tenants_can_be_printed) {
  for (const char* name : {"\"\"", "\"a\\u0000b\"", "\"a\\nb\"", "\"\\u007f\""}) {
    EXPECT_THAT(config_refusal(fmt::format("[tenants.{}]\nsms = 1\ncolors = [0]\n", name)),
                HasSubstr("a tenant's name has at least one character and no control characters"))
        << name;
  }
}

}  // namespace
}  // namespace demarc::serve
