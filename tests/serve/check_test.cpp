// What a configuration says without a card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/serve/config.hpp"

namespace demarc::serve {
namespace {

using testing::HasSubstr;

std::string checked(const std::string& a, const std::string& b, const std::string& head = "") {
  const auto config =
      parse_config(head + "[tenants.a]\n" + a + "\n[tenants.b]\n" + b + "\n", "f.toml");
  if (!config) return config.error().message;
  const auto sound = check_without_card(*config);
  return sound ? "taken" : sound.error().message;
}

TEST(WithoutACard, two_tenants_have_nothing_in_common) {
  EXPECT_EQ(checked("tpcs = \"0-3\"\ncolors = [0]", "tpcs = \"4-5\"\ncolors = [1]"), "taken");
  EXPECT_EQ(checked("tpcs = \"0-3\"\ncolors = [0]", "tpcs = \"2-5\"\ncolors = [1]"),
            "f.toml:5:8: tenant 'b': the TPCs 2-3 also belong to tenant 'a'");
  EXPECT_EQ(checked("gpcs = \"0-1\"\ncolors = [0]", "gpcs = \"1\"\ncolors = [1]"),
            "f.toml:5:8: tenant 'b': the GPCs 1 also belong to tenant 'a'");
  EXPECT_EQ(checked("gpcs = \"0\"\ncolors = [0]", "gpcs = \"1\"\ncolors = [1]"), "taken");
  EXPECT_EQ(checked("tpcs = \"2/2\"\ncolors = [0]", "tpcs = \"2/2\"\ncolors = [1]"),
            "f.toml:5:8: tenant 'b': part 2/2 also belongs to tenant 'a'");
  EXPECT_EQ(checked("tpcs = \"1/2\"\ncolors = [0]", "tpcs = \"2/2\"\ncolors = [1]"), "taken");
  EXPECT_EQ(checked("tpcs = \"1/2\"\ncolors = [0]", "tpcs = \"3/4\"\ncolors = [1]"), "taken");
  for (const char* part : {"1/4", "2/4", "1/3", "2/3"}) {
    EXPECT_THAT(
        checked("tpcs = \"1/2\"\ncolors = [0]", fmt::format("tpcs = \"{}\"\ncolors = [1]", part)),
        HasSubstr(fmt::format("f.toml:5:8: tenant 'b': TPCs of part {} also belong to tenant 'a'",
                              part)));
  }
  // Whichever comes first in the order of their names.
  EXPECT_EQ(checked("tpcs = \"2/2\"\ncolors = [0]", "tpcs = \"1/2\"\ncolors = [1]"), "taken");
  EXPECT_EQ(checked("tpcs = \"3/4\"\ncolors = [0]", "tpcs = \"1/2\"\ncolors = [1]"), "taken");
  EXPECT_EQ(checked("tpcs = \"2/4\"\ncolors = [0]", "tpcs = \"1/2\"\ncolors = [1]"),
            "f.toml:5:8: tenant 'b': TPCs of part 1/2 also belong to tenant 'a'");
  // Parts of one split; of two, the card says it.
  const std::string dealt = "tpcs = \"1/2\"\nsplit = \"distributed\"\ncolors = ";
  EXPECT_EQ(checked(dealt + "[0]", dealt + "[1]"),
            "f.toml:6:8: tenant 'b': part 1/2 also belongs to tenant 'a'");
  EXPECT_EQ(checked(dealt + "[0]", "tpcs = \"1/2\"\ncolors = [1]"), "taken");
  EXPECT_EQ(checked(dealt + "[0]", "tpcs = \"2/4\"\nsplit = \"distributed\"\ncolors = [1]"),
            "taken");
  EXPECT_EQ(checked("sms = 1\ncolors = \"1/2\"", "sms = 1\ncolors = [0, 1]"),
            "f.toml:6:10: tenant 'b': the colours 0 of 2 also belong to tenant 'a'");
  EXPECT_EQ(
      checked("sms = 1\ncolors = [0]\nsync_domain = 2", "sms = 1\ncolors = [1]\nsync_domain = 2"),
      "f.toml:8:15: tenant 'b': the memory synchronisation domain 2 also belongs to tenant 'a'");
  EXPECT_EQ(checked("sms = 1\ncolors = [0]\nsync_domain = \"none\"",
                    "sms = 1\ncolors = [1]\nsync_domain = \"none\""),
            "taken");
}

TEST(WithoutACard, all_that_two_tenants_have_in_common_is_said_at_once) {
  EXPECT_EQ(checked("gpcs = \"0-3\"\ncolors = [0]\nsync_domain = 1",
                    "gpcs = \"0-3\"\ncolors = [0]\nsync_domain = 1"),
            "f.toml:7:10: tenant 'b': the colours 0 of 2 also belong to tenant 'a'\n"
            "f.toml:6:8: tenant 'b': the GPCs 0-3 also belong to tenant 'a'\n"
            "f.toml:8:15: tenant 'b': the memory synchronisation domain 1 also belongs to tenant "
            "'a'");
}

TEST(WithoutACard, each_tenant_is_compared_with_all_before_it) {
  const std::string parts[] = {"tpcs = \"0-1\"\ncolors = [0]\nsync_domain = 1",
                               "tpcs = \"2-3\"\ncolors = [1]\nsync_domain = 2"};
  const auto third = [&](const std::string& lines) {
    return checked(parts[0], parts[1] + "\n[tenants.c]\n" + lines, "colors = 4\n");
  };
  EXPECT_EQ(third("tpcs = \"4\"\ncolors = [2]\nsync_domain = 3"), "taken");
  EXPECT_EQ(third("tpcs = \"1-2\"\ncolors = [0, 1]\nsync_domain = 2"),
            "f.toml:12:10: tenant 'c': the colours 0 of 4 also belong to tenant 'a'\n"
            "f.toml:11:8: tenant 'c': the TPCs 1 also belong to tenant 'a'\n"
            "f.toml:12:10: tenant 'c': the colours 1 of 4 also belong to tenant 'b'\n"
            "f.toml:11:8: tenant 'c': the TPCs 2 also belong to tenant 'b'\n"
            "f.toml:13:15: tenant 'c': the memory synchronisation domain 2 also belongs to tenant "
            "'b'");
}

TEST(WithoutACard, what_does_not_fit_is_refused) {
  EXPECT_EQ(
      checked("tpcs = \"1/2\"\ncolors = [0]", "sms = \"80 %\"\ncolors = [1]"),
      "f.toml:5:7: tenant 'b': the shares of the tenants up to this one are 130 % of the SMs");
  EXPECT_EQ(checked("tpcs = \"1/2\"\ncolors = [0]", "sms = \"50 %\"\ncolors = [1]"), "taken");
  EXPECT_EQ(
      checked("sms = \"80 %\"\ncolors = [0]", "sms = \"80 %\"\ncolors = [1]"),
      "f.toml:5:7: tenant 'b': the shares of the tenants up to this one are 160 % of the SMs");
  EXPECT_EQ(checked("sms = \"80 %\"\ncolors = [0]", "sms = \"20 %\"\ncolors = [1]"), "taken");
  EXPECT_THAT(checked("sms = \"50 %\"\ncolors = [0]", "sms = \"50.000005 %\"\ncolors = [1]"),
              HasSubstr("up to this one are 100 % of the SMs"))
      << "that is more than is lost in rounding";
  EXPECT_EQ(
      checked("sms = \"80 %\"\ncolors = [0]",
              "sms = \"80 %\"\ncolors = [1]\n[tenants.c]\nsms = 1\ncolors = [2]", "colors = 4\n"),
      "f.toml:6:7: tenant 'b': the shares of the tenants up to this one are 160 % of the SMs")
      << "one that asks for no share is not at fault";
  EXPECT_EQ(checked("sms = 1\ncolors = [0]", "sms = 1\ncolors = [1]\nbytes = \"33 MiB\"",
                    "memory = \"64 MiB\"\n"),
            "f.toml:8:9: tenant 'b': 34603008 bytes were asked for, but its colours hold 33554432");
  EXPECT_EQ(checked("sms = 1\ncolors = [0]", "sms = 1\ncolors = [1]\nbytes = \"32 MiB\"",
                    "memory = \"64 MiB\"\n"),
            "taken");
  EXPECT_EQ(checked("sms = 1\ncolors = [0]", "sms = 1\ncolors = [1]\nbytes = \"33 MiB\""), "taken")
      << "how much memory there is, the card says";
  EXPECT_THAT(checked("tpcs = \"5-1\"\ncolors = [0]", "tpcs = \"0\"\ncolors = [1]"),
              HasSubstr("f.toml:2:8: "));
  EXPECT_THAT(checked("tpcs = \"0\"\ncolors = [0]", "tpcs = \"5-1\"\ncolors = [1]"),
              HasSubstr("f.toml:5:8: "));
  EXPECT_THAT(checked("gpcs = \"0\"\ncolors = [0]", "gpcs = \"5-1\"\ncolors = [1]"),
              HasSubstr("f.toml:5:8: "));
}

TEST(WithoutACard, what_is_too_small_or_too_long_is_refused) {
  const auto said = [](const std::string& head, const std::string& bytes) {
    const auto config =
        parse_config(head + "[tenants.a]\nsms = 1\ncolors = [0]\n" + bytes + "\n", "f.toml");
    const auto checked = check_without_card(*config);
    return checked ? "taken" : checked.error().message;
  };
  EXPECT_EQ(said("", "bytes = 2097151"),
            "f.toml:4:9: tenant 'a': 2097151 bytes were asked for, but the least is 2097152");
  EXPECT_EQ(said("", "bytes = 2097152"), "taken");
  EXPECT_EQ(said("memory = 4194303\n", ""),
            "f.toml: memory: 4194303 bytes are less than 2097152 for each of 2 colours");
  EXPECT_EQ(said("memory = 4194304\n", ""), "taken");
  EXPECT_EQ(said("socket = \"/" + std::string(107, 's') + "\"\n", ""),
            "f.toml: socket: the path has 108 characters; at most 107 are possible");
  EXPECT_EQ(said("socket = \"/" + std::string(106, 's') + "\"\n", ""), "taken");
}

TEST(WithoutACard, a_table_says_who_is_to_have_what) {
  const auto config = parse_config(R"(memory = "64 MiB"
[tenants.a]
tpcs = "0-3,8"
colors = "1/4"
sync_domain = 2
[tenants.ab]
sms = 4
colors = [2, 3]
[tenants.b]
sms = "50 %"
colors = [1]
bytes = "8 MiB"
[tenants.c]
gpcs = "3"
colors = [2]
sync_domain = "none"
[tenants.d]
tpcs = "2/2"
colors = [3]
[tenants.e]
sms = 6
colors = [3]
)",
                                   "f.toml");
  EXPECT_EQ(config_to_text(*config),
            "f.toml: 6 tenants\n"
            "tenant  TPCs                   colours   bytes         domain\n"
            "a       0-3,8 (5)              0 of 4    about 16 MiB  2\n"
            "ab      4 SMs of the rest      2,3 of 4  about 32 MiB  free\n"
            "b       50 % of the SMs        1 of 4    8 MiB         free\n"
            "c       GPCs 3                 2 of 4    about 16 MiB  none\n"
            "d       part 2/2, gpc-aligned  3 of 4    about 16 MiB  free\n"
            "e       6 SMs of the rest      3 of 4    about 16 MiB  free\n");
  const auto one = parse_config("[tenants.a]\nsms = 1\ncolors = [0]\n", "f.toml");
  EXPECT_EQ(config_to_text(*one),
            "f.toml: 1 tenant\n"
            "tenant  TPCs               colours  bytes               domain\n"
            "a       1 SMs of the rest  0 of 2   all of its colours  free\n");
  const auto wrong = parse_config("[tenants.a]\ntpcs = \"5-1\"\ncolors = [0]\n", "f.toml");
  EXPECT_THAT(config_to_text(*wrong), HasSubstr("\na       5-1 (0)  0 of 2 "));
}

}  // namespace
}  // namespace demarc::serve
