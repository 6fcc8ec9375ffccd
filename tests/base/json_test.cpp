// Tests that wrong JSON is refused with its place, and that text keeps the order of keys.
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

TEST(Json, each_kind_of_value_is_read_and_every_other_refused) {
  const Json value = Json::parse(
      R"({"s": "x", "b": true, "n": 1.5, "i": 7, "big": 18446744073709551615, "a": [1], "o": {}})");
  auto object = JsonObject::of(value, "x").value();
  EXPECT_EQ(*object.string("s"), "x");
  EXPECT_EQ(*object.string_or("none", "y"), "y");
  EXPECT_EQ(*object.string_or("s", "y"), "x");
  EXPECT_EQ(*object.boolean_or("b", false), true);
  EXPECT_EQ(*object.boolean_or("none", true), true);
  EXPECT_EQ(*object.number("n"), 1.5);
  EXPECT_EQ(*object.number_or("none", 2.5), 2.5);
  EXPECT_EQ(*object.number_or("i", 2.5), 7.0);
  EXPECT_EQ(*object.integer_or("none", 0, 9, 4), 4);
  EXPECT_EQ((*object.array("a"))->size(), 1U);
  EXPECT_TRUE(object.object("o"));
  EXPECT_EQ(object.boolean_or("n", true).error().message,
            "x.n: true or false was expected, found number");
  EXPECT_EQ(object.number("s").error().message, "x.s: a number was expected, found string");
  EXPECT_EQ(object.string("n").error().message, "x.n: a string was expected, found number");
  EXPECT_EQ(object.array("o").error().message, "x.o: an array was expected, found object");
  EXPECT_EQ(object.object("a").error().message, "x.a: an object was expected, found array");
  EXPECT_EQ(object.integer("big", 0, INT64_MAX).error().message,
            "x.big: 18446744073709551615 is above 9223372036854775807");
}

TEST(Json, bounds_belong_to_what_they_bound) {
  const Json value = Json::parse(R"({"i": 7})");
  auto object = JsonObject::of(value, "x").value();
  EXPECT_TRUE(object.integer("i", 7, 7));
  EXPECT_EQ(object.integer("i", 8, 9).error().message, "x.i: 7 is not within 8 .. 9");
  EXPECT_FALSE(object.integer("i", 0, 6));
  EXPECT_TRUE(object.finish());
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

TEST(Json, a_number_of_a_kind_is_written_as_the_bare_number) {
  using Sm = Index<struct JsonTestSmTag>;
  EXPECT_EQ(json_text(Json{{"sm", Sm(7)}, {"sms", std::vector{Sm(0), Sm(131)}}}),
            R"({"sm":7,"sms":[0,131]})");
}

TEST(Json, bytes_that_are_not_utf8_are_replaced) {
  EXPECT_EQ(json_text(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(Json, own_text_that_is_not_json_is_discarded) {
  EXPECT_TRUE(own_json("{").is_discarded());
}

}  // namespace
}  // namespace demarc
