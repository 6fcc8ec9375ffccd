// What --tpcs, --gpcs and --sms say, and what of it can be refused without a card.
#include "demarc/partition/tpc_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc::partition {
namespace {

using testing::HasSubstr;

std::string refusal_of_sms(std::string_view text) {
  TpcChoice choice;
  const auto read = read_sms(text, "--sms", choice);
  if (read) return "";
  EXPECT_TRUE(choice.empty()) << text;
  EXPECT_EQ(read.error().kind, ErrorKind::invalid_input);
  return read.error().message;
}

TEST(TpcChoice, sms_are_a_number_or_a_percentage) {
  TpcChoice number;
  ASSERT_TRUE(read_sms("66", "--sms", number));
  EXPECT_EQ(number.sms, 66U);
  EXPECT_EQ(number.sms_percent, 0);
  for (const char* text : {"12.5%", "12.5 %"}) {
    TpcChoice percentage;
    ASSERT_TRUE(read_sms(text, "--sms", percentage));
    EXPECT_EQ(percentage.sms_percent, 12.5);
    EXPECT_EQ(percentage.sms, 0U);
  }
  for (const char* text : {"1", "4294967295", "0.1%", "100%"}) EXPECT_EQ(refusal_of_sms(text), "");
  for (const char* text :
       {"", "0", "4294967296", "-1", "1.5", "x", "66 ", "%", "0%", "100.1%", "-5%", "x%", "1/2"}) {
    EXPECT_EQ(refusal_of_sms(text),
              fmt::format("--sms: '{}': a number of SMs from 1 on was expected, such as 66, or a "
                          "percentage of the card's SMs, such as 50%",
                          text));
  }
}

TEST(TpcChoice, is_checked_without_a_card_as_far_as_it_goes) {
  const auto refusal = [](const TpcChoice& choice) {
    const auto checked = check_choice(choice);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.tpcs = "0-127", .gpcs = ""}), "");
  EXPECT_EQ(refusal({.tpcs = "", .gpcs = "0,127"}), "");
  EXPECT_EQ(refusal({.tpcs = "5-2", .gpcs = ""}), "--tpcs: '5-2' runs backwards");
  EXPECT_EQ(refusal({.tpcs = "128", .gpcs = ""}), "--tpcs: 128 is above the highest index, 127");
  EXPECT_EQ(refusal({.tpcs = "", .gpcs = "1,x"}), "--gpcs: 'x' is not a whole number");
  const std::string not_one = "give exactly one of --tpcs, --gpcs and --sms";
  EXPECT_EQ(refusal({.tpcs = "0", .gpcs = "0"}), not_one);
  EXPECT_EQ(refusal({.tpcs = "0", .gpcs = "", .sms = 1}), not_one);
  EXPECT_EQ(refusal({.tpcs = "", .gpcs = "0", .sms = 1}), not_one);
  EXPECT_EQ(refusal({.tpcs = "", .gpcs = "", .sms = 1, .sms_percent = 1}), not_one);
}

TEST(TpcChoice, becomes_the_tpcs_of_a_card) {
  const gpu::Topology topology = gpu::regular_topology(2, 2, 2);
  EXPECT_EQ(*choose_tpcs(topology, {.tpcs = "1", .gpcs = ""}), gpu::TpcSet{1});
  EXPECT_EQ(*choose_tpcs(topology, {.tpcs = "", .gpcs = "1"}),
            *gpu::tpcs_of_gpcs(topology, "1", ""));
  EXPECT_EQ(choose_tpcs(topology, {.tpcs = "", .gpcs = "", .sms = 3})->size(), 2U);
  EXPECT_EQ(choose_tpcs(topology, {.tpcs = "", .gpcs = "", .sms = 0, .sms_percent = 75})->size(),
            3U);
  EXPECT_THAT(choose_tpcs(topology, {}).error().message, HasSubstr("give exactly one of --tpcs"));
  EXPECT_THAT(choose_tpcs(topology, {.tpcs = "4", .gpcs = ""}).error().message,
              HasSubstr("4 is above the highest index, 3"));
}

}  // namespace
}  // namespace demarc::partition
