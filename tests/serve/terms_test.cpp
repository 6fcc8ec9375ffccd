// What a configuration means on a card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/serve/config.hpp"
#include "two_halves.hpp"

namespace demarc::serve {
namespace {

using gpu::TpcSet;
using testing::HasSubstr;

// Two GPCs of four TPCs of two SMs, three domains, 64 MiB a colour.
CardNumbers small_card() {
  return {gpu::regular_topology(2, 4, 2), 4,
          [](const color::ColorSet& colors) -> Result<std::uint64_t> {
            if (colors == color::ColorSet(0x80, 8)) return invalid_input("no such share");
            return std::uint64_t{colors.size()} << 26U;
          }};
}

Result<std::vector<Terms>> terms_from(std::string_view text, CardNumbers card = small_card()) {
  auto config = parse_config(text, "f.toml");
  if (!config) return tl::unexpected(config.error());
  return terms_of(*config, card);
}
std::string terms_refusal(std::string_view text) {
  const auto terms = terms_from(text);
  return terms ? "taken" : terms.error().message;
}

// Mappings are the machine's, so that what no tenant asks for is divided among those that do not
// ask.
TEST(ServeTerms, divide_the_windows_that_the_card_has_mappings_for) {
  CardNumbers card = small_card();
  card.no_windows = "because";
  const auto windows = [&](const std::string& of_a, const std::string& of_b) {
    const auto terms = terms_from("[tenants.a]\nsms = 1\ncolors = [0]\n" + of_a +
                                      "\n[tenants.b]\nsms = 1\ncolors = [1]\n" + of_b + "\n",
                                  card);
    if (!terms) return terms.error().message;
    return fmt::format("{} and {} MiB", (*terms)[0].window_bytes >> 20U,
                       (*terms)[1].window_bytes >> 20U);
  };
  EXPECT_EQ(windows("", ""), "0 and 0 MiB");
  EXPECT_EQ(windows("windows = \"2 MiB\"", ""),
            "f.toml:4:11: tenant 'a': windows must be left out on this card: because");
  EXPECT_EQ(windows("windows = \"0\"", ""), "0 and 0 MiB");
  card.window_bytes = std::uint64_t{90} << 20U;
  EXPECT_EQ(windows("", ""), "44 and 44 MiB") << "whole steps of 2 MiB";
  EXPECT_EQ(windows("windows = \"16 MiB\"", ""), "16 and 64 MiB") << "no more than it has memory";
  EXPECT_EQ(windows("windows = \"50 MiB\"", "windows = \"40 MiB\""), "50 and 40 MiB");
  EXPECT_EQ(windows("windows = \"50 MiB\"", "windows = \"42 MiB\""),
            "f.toml:8:11: tenant 'b': 44040192 bytes of windows were asked for, but the kernel "
            "module has mappings for 94371840 and 41943040 are left");
  EXPECT_EQ(windows("windows = \"0\"", ""), "0 and 64 MiB");
  // What a tenant has that stays is not there for those that stand before it.
  const auto config = parse_config(
                          "[tenants.a]\nsms = 1\ncolors = [0]\nwindows = \"50 MiB\"\n"
                          "[tenants.b]\nsms = 1\ncolors = [1]\n",
                          "f.toml")
                          .value();
  Terms stays{"b", TpcSet{7}, {2, 2}, 2, 1 << 26, 1 << 26};
  stays.window_bytes = std::uint64_t{44} << 20U;
  EXPECT_EQ(terms_of(config, card, {stays}).error().message,
            "f.toml:4:11: tenant 'a': 52428800 bytes of windows were asked for, but the kernel "
            "module has mappings for 94371840 and 48234496 are left");
  stays.window_bytes = std::uint64_t{40} << 20U;
  EXPECT_EQ(terms_of(config, card, {stays}).value()[1].window_bytes, stays.window_bytes);
  EXPECT_EQ(windows("windows = \"much\"", ""),
            "f.toml:4:11: windows: 'much' is not a number of bytes; write it as 4096, 64K, 512 MiB "
            "or 16GiB");
}

TEST(ServeTerms, give_every_tenant_TPCs_colours_bytes_and_a_domain) {
  const auto terms = terms_from(two_halves).value();
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[0], (Terms{"a", TpcSet{2, 3, 4, 5}, {1, 2}, 1, 1 << 26, 1 << 26}));
  EXPECT_EQ(terms[1], (Terms{"b", TpcSet{0, 1}, {2, 2}, 2, 1 << 26, 1 << 26}));
}

TEST(ServeTerms, of_a_share_in_per_cent_have_no_SM_less) {
  CardNumbers large = small_card();
  large.topology = gpu::regular_topology(16, 8, 1);
  for (const auto& [share, tpcs] :
       {std::pair("100 %", 128U), std::pair("50 %", 64U), std::pair("0.1 %", 1U),
        std::pair("50.1 %", 65U), std::pair("50.0000000004 %", 64U)}) {
    const auto terms =
        terms_from(fmt::format("[tenants.a]\nsms = \"{}\"\ncolors = [0]\n", share), large);
    EXPECT_EQ(terms.value()[0].tpcs.size(), tpcs) << share;
  }
}

TEST(ServeTerms, of_equal_parts_have_whole_GPCs) {
  const auto terms = terms_from(R"([tenants.a]
tpcs = "2/2"
colors = "2/2"
[tenants.b]
tpcs = "1/2"
colors = "1/2"
[tenants.c]
sms = 1
colors = "1/2"
)");
  EXPECT_EQ(terms.error().message,
            "f.toml:9:10: tenant 'c': the colours 0 of 2 also belong to tenant 'b'");
  const auto halves = terms_from(
                          "[tenants.a]\ntpcs = \"2/2\"\ncolors = \"2/2\"\n"
                          "[tenants.b]\ntpcs = \"1/2\"\ncolors = \"1/2\"\n")
                          .value();
  EXPECT_EQ(halves[0].tpcs, (TpcSet{4, 5, 6, 7}));
  EXPECT_EQ(halves[1].tpcs, (TpcSet{0, 1, 2, 3}));
  EXPECT_THAT(terms_refusal("[tenants.a]\ntpcs = \"1/3\"\ncolors = \"1/3\"\n"),
              HasSubstr("f.toml:2:8: "));
  EXPECT_EQ(terms_refusal("[tenants.a]\ntpcs = \"1/2\"\ncolors = [0]\n[tenants.b]\ntpcs = \"3\"\n"
                          "colors = [1]\n"),
            "f.toml:5:8: tenant 'b': the TPCs 3 also belong to tenant 'a'");
}

TEST(ServeTerms, of_equal_parts_have_the_TPCs_that_their_split_deals_out) {
  const auto halves = [](const std::string& a, const std::string& b) {
    return fmt::format(
        "[tenants.a]\ntpcs = \"1/2\"\n{}\ncolors = [0]\n"
        "[tenants.b]\ntpcs = \"2/2\"\n{}\ncolors = [1]\n",
        a, b);
  };
  const std::string dealt = "split = \"distributed\"";
  const auto terms = terms_from(halves(dealt, dealt)).value();
  EXPECT_EQ(terms[0].tpcs, (TpcSet{0, 2, 4, 6}));
  EXPECT_EQ(terms[1].tpcs, (TpcSet{1, 3, 5, 7}));
  EXPECT_EQ(terms_from(halves("split = \"gpc-aligned\"", "")).value()[1].tpcs,
            (TpcSet{4, 5, 6, 7}));
  EXPECT_EQ(terms_refusal(halves(dealt, "")),
            "f.toml:6:8: tenant 'b': the TPCs 4,6 also belong to tenant 'a'");
  // Of four parts that are dealt out in turn, the second has none of the first half's TPCs, and the
  // third has.
  const auto quarter = [&](const char* part) {
    return terms_refusal(
        fmt::format("[tenants.a]\ntpcs = \"1/2\"\n{}\ncolors = [0]\n"
                    "[tenants.b]\ntpcs = \"{}\"\n{}\ncolors = [1]\n",
                    dealt, part, dealt));
  };
  EXPECT_EQ(quarter("2/4"), "taken");
  EXPECT_EQ(quarter("3/4"), "f.toml:6:8: tenant 'b': the TPCs 2,6 also belong to tenant 'a'");
}

TEST(ServeTerms, of_a_split_say_whether_the_card_or_the_number_of_parts_is_at_fault) {
  const auto refused = [](const std::string& split) {
    return terms_from(fmt::format("[tenants.a]\ntpcs = \"1/3\"\n{}colors = [0]\n", split)).error();
  };
  EXPECT_EQ(refused("").kind, ErrorKind::invalid_input);
  EXPECT_THAT(refused("").message,
              testing::StartsWith("f.toml:2:8: 3 parts cannot be gpc-aligned"));
  const Error sides = refused("split = \"side-aware\"\n");
  EXPECT_EQ(sides.kind, ErrorKind::missing_capability);
  EXPECT_THAT(sides.message, testing::StartsWith("f.toml:3:9: side-aware split: the L2 side"));
}

TEST(ServeTerms, take_domains_that_are_named_first) {
  const auto terms = terms_from(R"([tenants.a]
sms = 1
colors = [0]
bytes = "32 MiB"
[tenants.b]
sms = 3
colors = [1]
sync_domain = 1
)")
                         .value();
  EXPECT_EQ(terms[0].sync_domain, 2U);
  EXPECT_EQ(terms[1].sync_domain, 1U);
  EXPECT_EQ(terms[0].bytes, 32U << 20U);
  EXPECT_EQ(terms[0].tpcs, (TpcSet{0}));
  EXPECT_EQ(terms[1].tpcs, (TpcSet{1, 2}));
  CardNumbers old = small_card();
  old.sync_domains = 1;
  EXPECT_FALSE(terms_from(two_halves, old).value()[0].sync_domain);
}

TEST(ServeTerms, take_domains_that_no_program_beside_the_server_has) {
  CardNumbers card = small_card();
  card.domains_beside = 0x2;
  EXPECT_EQ(terms_from(two_halves, card).value()[0].sync_domain, 2U);
  EXPECT_EQ(terms_from(two_halves, card).value()[1].sync_domain, 3U);
  card.domains_beside = 0x6;
  EXPECT_THAT(terms_from(two_halves, card).error().message, HasSubstr("'b': no domain is free"));
  EXPECT_EQ(terms_from(two_halves, card).error().kind, ErrorKind::missing_capability);
  CardNumbers two = small_card();
  two.sync_domains = 2;
  EXPECT_EQ(terms_from("[tenants.a]\nsms = 1\ncolors = [0]\n", two).value()[0].sync_domain, 1U);
  EXPECT_THAT(terms_from(two_halves, two).error().message,
              HasSubstr("'b': no domain is free: the card has 1 that a tenant can have"));
}

TEST(ServeTerms, of_tenants_without_a_domain_have_none_and_take_none) {
  const auto terms = terms_from(
      "[tenants.a]\nsms = 1\ncolors = [0]\nsync_domain = \"none\"\n"
      "[tenants.b]\nsms = 1\ncolors = [1]\n");
  EXPECT_EQ(terms.value()[0].sync_domain, std::nullopt);
  EXPECT_EQ(terms.value()[1].sync_domain, 1U);
}

// A tenant that was moved and grew, and a configuration in which another one comes before it.
TEST(ServeTerms, that_are_kept_stay_whatever_comes_beside_them) {
  const Terms moved{"b", TpcSet{0, 7}, {2, 2}, 1, 1 << 26, 1 << 20};
  const auto config = parse_config(
      "[tenants.a]\nsms = 4\ncolors = [0]\n[tenants.b]\nsms = \"50 %\"\ncolors = [1]\n", "f.toml");
  const auto terms = terms_of(*config, small_card(), {moved}).value();
  EXPECT_EQ(terms[1], moved);
  EXPECT_EQ(terms[0].tpcs, (TpcSet{1, 2}));
  EXPECT_EQ(terms[0].sync_domain, 2U);
  const auto named = parse_config(
      "[tenants.a]\ntpcs = \"6-7\"\ncolors = [0]\n[tenants.b]\nsms = 4\ncolors = [1]\n", "f.toml");
  EXPECT_EQ(terms_of(*named, small_card(), {moved}).error().message,
            "f.toml:2:8: tenant 'a': the TPCs 7 also belong to tenant 'b'");
}

TEST(ServeTerms, that_two_tenants_would_share_are_refused_with_the_place) {
  const auto two = [](const std::string& a, const std::string& b) {
    return terms_refusal("[tenants.a]\n" + a + "\n[tenants.b]\n" + b + "\n");
  };
  EXPECT_EQ(two("tpcs = \"0-1\"\ncolors = [0]", "gpcs = \"0\"\ncolors = [1]"),
            "f.toml:5:8: tenant 'b': the TPCs 0-1 also belong to tenant 'a'");
  EXPECT_EQ(two("sms = 1\ncolors = [0]", "sms = 1\ncolors = [0, 1]"),
            "f.toml:6:10: tenant 'b': the colours 0 of 2 also belong to tenant 'a'");
  EXPECT_EQ(two("sms = 12\ncolors = [0]", "sms = 5\ncolors = [1]"),
            "f.toml:5:7: tenant 'b': 5 SMs were asked for, but 4 of 16 are free");
  EXPECT_EQ(
      two("sms = 1\ncolors = [0]\nsync_domain = 3", "sms = 1\ncolors = [1]\nsync_domain = 3"),
      "f.toml:8:15: tenant 'b': the memory synchronisation domain 3 also belongs to tenant 'a'");
  EXPECT_EQ(two("sms = 1\ncolors = [0]", "sms = 1\ncolors = [1]\nsync_domain = 4"),
            "f.toml:7:15: tenant 'b': the card has the domains 1 to 3 for tenants");
  EXPECT_EQ(two("tpcs = \"0\"\ncolors = [0]", "tpcs = \"8\"\ncolors = [1]"),
            "f.toml:5:8: tpcs: 8 is above the highest index, 7");
  EXPECT_EQ(two("sms = 1\ncolors = [0]", "sms = 1\ncolors = [1]\nbytes = \"65 MiB\""),
            "f.toml:7:9: tenant 'b': 68157440 bytes were asked for, but its colours hold 67108864");
}

TEST(ServeTerms, that_the_card_has_not_are_refused) {
  std::string text = "colors = 8\n";
  for (int i = 0; i < 4; ++i) {
    text += fmt::format("[tenants.t{}]\nsms = 1\ncolors = [{}]\n", i, i);
  }
  EXPECT_EQ(
      terms_refusal(text),
      "f.toml:11:1: tenant 't3': no domain is free: the card has 3 that a tenant can have, and "
      "programs beside the server may have some of them: divide it among fewer tenants (--part "
      "K/N: "
      "give a smaller N), or give sync_domain = \"none\"");
  EXPECT_EQ(terms_refusal(text + "sync_domain = \"none\"\n"), "taken");
  CardNumbers old = small_card();
  old.sync_domains = 1;
  EXPECT_TRUE(terms_from(text, old)) << "nobody has one there";
  EXPECT_EQ(
      terms_from("[tenants.a]\nsms = 1\ncolors = [0]\nsync_domain = 1", old).error().message,
      "f.toml:4:15: tenant 'a': the card has one memory synchronisation domain for all programs");
  EXPECT_EQ(terms_refusal("colors = 8\n[tenants.a]\nsms = 1\ncolors = [7]"),
            "f.toml:4:10: tenant 'a': no such share");
}

}  // namespace
}  // namespace demarc::serve
