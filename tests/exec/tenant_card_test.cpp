// What decides on a card whether code without PTX can run: of a description, and of the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "confine_fixture.hpp"
#include "program_doctor_fixture.hpp"

namespace demarc::cuda {
namespace {

using testing::IsEmpty;

TEST(TenantCard, of_a_description_has_what_it_says) {
  const TenantCard h200 = card_named("h200");
  EXPECT_EQ(h200.name, "NVIDIA H200");
  EXPECT_EQ(h200.capability.number(), 90U);
  EXPECT_EQ(h200.sms, 132U);
  EXPECT_TRUE(h200.has_colors);
  EXPECT_FALSE(h200.windows);
  const TenantCard h100 = card_named("h100-sxm");
  ASSERT_TRUE(h100.windows);
  EXPECT_EQ(h100.windows->granule, 8192U);
  EXPECT_EQ(h100.why_no_windows + h100.why_no_colors, "");
  const TenantCard v100 = card_named("v100");
  EXPECT_FALSE(v100.has_colors || v100.windows);
  EXPECT_THAT(v100.options, IsEmpty());
}

// The card of the stand-in driver.
class TenantCardOfDriver : public Confine {
 protected:
  static fake::FakeConfig card_called(const char* name) {
    fake::FakeConfig card = fake::small_gpu();
    std::snprintf(card.name, sizeof card.name, "%s", name);
    return card;
  }
  // In a process of its own: the stand-in belongs to it.
  static void expect(const fake::FakeConfig& config, const std::function<int()>& what) {
    test::configure(config);
    EXPECT_EQ(Supervised::apart(what), 0);
  }
};

TEST_F(TenantCardOfDriver, is_described_by_its_name_and_its_numbers_are_the_drivers) {
  expect(card_called("NVIDIA H100 80GB HBM3"), [] {
    const auto card = tenant_card(0, "");
    REQUIRE_IN_CHILD(card);
    REQUIRE_IN_CHILD(card->name == "NVIDIA H100 80GB HBM3");
    REQUIRE_IN_CHILD(card->sms == 24 && card->capability.number() == 90);
    REQUIRE_IN_CHILD(card->windows && card->has_colors && card->options.empty());
    REQUIRE_IN_CHILD(::waitpid(-1, nullptr, WNOHANG) == -1);  // nothing that it started
    return 0;
  });
}

TEST_F(TenantCardOfDriver, without_a_description_has_no_colours_unless_one_is_given) {
  expect(fake::small_gpu(), [] {
    const auto card = tenant_card(0, "");
    REQUIRE_IN_CHILD(card && !card->has_colors);
    REQUIRE_IN_CHILD(card->why_no_colors.starts_with("no description of 'Fake GPU' is built in"));
    const auto described = tenant_card(0, "h200");
    REQUIRE_IN_CHILD(described && described->has_colors && described->name == "Fake GPU");
    REQUIRE_IN_CHILD(described->description == "h200" && described->sms == 24);
    REQUIRE_IN_CHILD(described->options.empty());
    const auto wrong = tenant_card(0, "none");
    REQUIRE_IN_CHILD(!wrong && wrong.error().kind == ErrorKind::invalid_input);
    return 0;
  });
}

TEST_F(TenantCardOfDriver, that_is_not_there_or_a_part_of_one_is_an_error_of_the_machine) {
  expect(fake::small_gpu(), [] {
    const auto other = tenant_card(7, "");
    REQUIRE_IN_CHILD(!other && other.error().kind == ErrorKind::missing_capability);
    ::setenv("DEMARC_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    const auto none = tenant_card(0, "");
    REQUIRE_IN_CHILD(!none && none.error().kind == ErrorKind::missing_capability);
    return 0;
  });
  fake::FakeConfig instance = fake::small_gpu();
  instance.instance_uuid = 0xab;
  expect(instance, [] {
    const auto part = tenant_card(0, "");
    REQUIRE_IN_CHILD(!part && part.error().message.find("MIG") != std::string::npos);
    return 0;
  });
}

}  // namespace
}  // namespace demarc::cuda
