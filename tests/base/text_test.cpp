// Tests that text is appended as fmt formats it and that items are joined.
#include "demarc/base/text.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace demarc {
namespace {

TEST(Text, pieces_are_appended_as_fmt_formats_them) {
  std::string out = "a";
  append(out, "[{:>4}|{:.2f}|{:#x}]", 7, 1.0 / 3, 255U);
  append(out, "{:<{}}.", "b", 3);
  EXPECT_EQ(out, "a[   7|0.33|0xff]b  .");
}

TEST(Text, joined_items_have_separators_between_them_alone) {
  EXPECT_EQ(joined(std::vector<int>{}, ", "), "");
  EXPECT_EQ(joined(std::vector<int>{7}, ", "), "7");
  EXPECT_EQ(joined(std::vector<int>{1, -2, 3}, ", "), "1, -2, 3");
}

TEST(Text, empty_items_are_joined_too) {
  EXPECT_EQ(joined(std::vector<std::string>{"", "a", ""}, "/"), "/a/");
}

TEST(Text, the_last_line_is_the_last_one_that_is_not_blank) {
  EXPECT_EQ(last_line("one\ntwo \t\r\n\n \n"), "two");
  EXPECT_EQ(last_line("one\n  two"), "  two");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line(" \n\n"), "");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace demarc
