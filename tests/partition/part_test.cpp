// Parts are counted from 1 on wherever a person writes them, and overlap as what they stand for.
#include "demarc/partition/part.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace demarc::partition {
namespace {

TEST(Parts, are_counted_from_1_on) {
  EXPECT_EQ(parse_part("1/2").value(), (Part{0, 2}));
  EXPECT_EQ(parse_part("64/64").value(), (Part{63, 64}));
  EXPECT_EQ(to_string(parse_part("2/3").value()), "2/3");
  EXPECT_EQ(parse_part("0/2").error().message,
            "'0/2': parts are counted from 1 on, so the first of 2 is 1/2");
}

TEST(Parts, that_are_none_are_refused) {
  for (const char* wrong :
       {"3/2", "1/1", "0/1", "1/65", "1/x", "x/2", "1/2/3", "/2", "1/", "12", "", "1 /2", "-1/2"}) {
    const auto part = parse_part(wrong);
    ASSERT_FALSE(part) << wrong;
    EXPECT_EQ(part.error().kind, ErrorKind::invalid_input);
    EXPECT_EQ(part.error().message,
              fmt::format("'{}': K/N was expected, the K-th of N equal parts (2 to 64), such as "
                          "1/2 for the first half",
                          wrong));
  }
}

RC_GTEST_PROP(Parts, overlap_where_they_have_a_thing_in_common, ()) {
  const auto part = [] {
    const auto of = *rc::gen::inRange(2U, max_parts + 1);
    return Part{*rc::gen::inRange(0U, of), of};
  };
  const Part a = part();
  const Part b = part();
  const std::uint32_t things = a.of * b.of;
  bool common = false;
  for (std::uint32_t thing = 0; thing < things; ++thing) {
    common = common || (a.first(things) <= thing && thing < a.end(things) &&
                        b.first(things) <= thing && thing < b.end(things));
  }
  RC_ASSERT(overlap(a, b) == common);
}

}  // namespace
}  // namespace demarc::partition
