#include "demarc/base/json.hpp"

#include <gtest/gtest.h>

namespace demarc {
namespace {

TEST(Json, errors_name_the_place_and_what_was_expected) {
  const Json value = Json::parse(R"({"l2": {"ways": "many"}, "sms": 4.5})");
  auto object = JsonObject::of(value, "x.json");
  ASSERT_TRUE(object);
  auto l2 = object->object("l2");
  ASSERT_TRUE(l2);
  EXPECT_EQ(l2->integer("ways", 1, 64).error().message,
            "x.json.l2.ways: a whole number was expected, found \"many\"");
  EXPECT_EQ(object->integer("sms", 1, 64).error().message,
            "x.json.sms: a whole number was expected, found 4.5");
  EXPECT_EQ(object->string("name").error().message, "x.json: the key 'name' is missing");
}

TEST(Json, unknown_keys_are_loud) {
  const Json value = Json::parse(R"({"sms": 4, "smz": 5})");
  auto object = JsonObject::of(value, "x.json");
  ASSERT_EQ(*object->integer("sms", 1, 64), 4);
  EXPECT_EQ(object->finish().error().message, "x.json: unknown key 'smz'");
}

TEST(Json, malformed_text_names_its_source) {
  EXPECT_TRUE(parse_json("{", "x.json").error().message.starts_with("x.json: not valid JSON"));
}

TEST(Json, numbers_beyond_a_double_are_refused) {
  for (const char* text : {"1e600", "{\"a\": [-1e999]}"}) {
    const auto json = parse_json(text, "x.json");
    ASSERT_FALSE(json) << text;
    EXPECT_TRUE(json.error().message.starts_with("x.json: a number is beyond 1.8e308"))
        << json.error().message;
  }
}

TEST(Json, text_keeps_the_order_of_keys_and_indents_on_demand) {
  const Json value{{"sms", 4}, {"l2", {1.5, nullptr}}};
  EXPECT_EQ(json_text(value), R"({"sms":4,"l2":[1.5,null]})");
  EXPECT_EQ(json_text(value, 2), "{\n  \"sms\": 4,\n  \"l2\": [\n    1.5,\n    null\n  ]\n}");
  EXPECT_EQ(own_json(json_text(value, 2)), value);
}

TEST(Json, bytes_that_are_not_utf8_are_replaced) {
  EXPECT_EQ(json_text(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(Json, own_text_that_is_not_json_is_discarded) {
  EXPECT_TRUE(own_json("{").is_discarded());
}

}  // namespace
}  // namespace demarc
