// What --device takes is read in one place, and written back as it is read.
#include "demarc/device/device_ref.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc::gpu {
namespace {

using ::testing::HasSubstr;

TEST(DeviceRef, is_a_card_a_simulated_device_or_a_planted_model_and_nothing_else) {
  EXPECT_EQ(std::get<CardRef>(parse_device_ref("cuda:3").value()).index, 3U);
  EXPECT_EQ(std::get<CardRef>(parse_device_ref("cuda").value()).index, 0U);
  EXPECT_EQ(std::get<SimulatedRef>(parse_device_ref("sim:h100-sxm").value()).name, "h100-sxm");
  EXPECT_EQ(std::get<PlantedRef>(parse_device_ref("planted:h100").value()).name, "h100");
  for (const char* text : {"cuda:3", "sim:my.json", "planted:h200"}) {
    EXPECT_EQ(to_string(parse_device_ref(text).value()), text);
  }
  for (const char* text : {"cuda:", "cuda:x", "sim:", "sim", "planted:", "planted", "gpu:0", ""}) {
    EXPECT_FALSE(parse_device_ref(text)) << text;
  }
  EXPECT_THAT(parse_device_ref("gpu:0", "--peer").error().message,
              HasSubstr("--peer gpu:0: write cuda:N for a real GPU or sim:NAME for a simulated"));
}

TEST(DeviceRef, a_planted_model_is_no_gpu) {
  EXPECT_TRUE(std::holds_alternative<CardRef>(parse_gpu_ref("cuda:1").value()));
  EXPECT_TRUE(std::holds_alternative<SimulatedRef>(parse_gpu_ref("sim:x").value()));
  EXPECT_THAT(parse_gpu_ref("planted:h100").error().message,
              HasSubstr("--device planted:h100: write cuda:N for a real GPU or sim:NAME"));
}

TEST(DeviceRef, of_another_kind_than_the_one_that_will_do_is_refused_with_what_would_be_right) {
  EXPECT_EQ(parse_ref_as<CardRef>("cuda:2", "give cuda:N").value().index, 2U);
  EXPECT_EQ(parse_ref_as<CardRef>("sim:x", "give cuda:N", "--peer").error(),
            (Error{ErrorKind::invalid_input, "--peer sim:x: give cuda:N"}));
  for (const char* text : {"cuda:0", "planted:x", "gpu:0", "sim"}) {
    EXPECT_EQ(parse_ref_as<SimulatedRef>(text, "give sim:NAME").error().message,
              fmt::format("--device {}: give sim:NAME", text));
  }
  EXPECT_THAT(parse_ref_as<CardRef>("cuda:1024", "give cuda:N").error().message,
              HasSubstr("no machine has that many GPUs"));
}

TEST(DeviceRef, a_number_that_is_no_cards_is_refused_and_not_cut_down) {
  EXPECT_EQ(std::get<CardRef>(parse_device_ref("cuda:1023").value()).index, 1023U);
  for (const char* text : {"cuda:1024", "cuda:4294967296", "cuda:4294967297"}) {
    const auto refused = parse_device_ref(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(refused.error().message, HasSubstr("no machine has that many GPUs"));
  }
  for (const char* text : {"cuda:18446744073709551616", "cuda:-1", "cuda:0 ", "cuda: 0", "cuda:1,2",
                           "CUDA:0", "cuda:+1"}) {
    const auto refused = parse_device_ref(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_FALSE(refused.error().message.empty());
  }
}

}  // namespace
}  // namespace demarc::gpu
