// A result that is used without being looked at is found at once, in every build.
#include "demarc/base/result.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace demarc {
namespace {

// What `use` throws; "nothing" when it does not.
template <class Use>
std::string thrown(Use use) {
  try {
    use();
  } catch (const std::logic_error& mistake) {
    return mistake.what();
  }
  return "nothing";
}

Result<std::string> failed() {
  return invalid_input("{}:{}: no such thing", "file", 7);
}

TEST(Result, says_the_message_of_an_error_whose_value_is_taken) {
  const auto kept = failed();
  auto changing = failed();
  const std::string said = "a value was taken of an error: file:7: no such thing";
  EXPECT_EQ(thrown([&] { static_cast<void>(*kept); }), said);
  EXPECT_EQ(thrown([&] { *changing = "x"; }), said);
  EXPECT_EQ(thrown([&] { static_cast<void>(*failed()); }), said);
  EXPECT_EQ(thrown([&] { static_cast<void>(kept->size()); }), said);
  EXPECT_EQ(thrown([&] { changing->clear(); }), said);
  EXPECT_EQ(thrown([&] { static_cast<void>(kept.value()); }), said);
  EXPECT_EQ(thrown([&] { changing.value().clear(); }), said);
  EXPECT_EQ(thrown([&] { static_cast<void>(failed().value()); }), said);
}

TEST(Result, says_that_a_value_has_no_error) {
  const Result<std::string> kept = "x";
  Result<std::string> changing = "x";
  const Result<void> done;
  const std::string said = "an error was taken of a value";
  EXPECT_EQ(thrown([&] { static_cast<void>(kept.error()); }), said);
  EXPECT_EQ(thrown([&] { changing.error().message = "y"; }), said);
  EXPECT_EQ(thrown([&] { static_cast<void>(Result<int>(1).error()); }), said);
  EXPECT_EQ(thrown([&] { static_cast<void>(done.error()); }), said);
}

TEST(Result, gives_what_it_holds) {
  Result<std::string> text = "abc";
  EXPECT_EQ(*text, "abc");
  EXPECT_EQ(text->size(), 3U);
  EXPECT_EQ(text.value(), "abc");
  *text = "d";
  EXPECT_EQ(std::as_const(text)->front(), 'd');
  EXPECT_EQ(failed().error().message, "file:7: no such thing");
  EXPECT_EQ(failed().error().kind, ErrorKind::invalid_input);
  Result<std::unique_ptr<int>> moved = std::make_unique<int>(4);
  const std::unique_ptr<int> taken = *std::move(moved);
  EXPECT_EQ(*taken, 4);
}

TEST(Result, is_copied_as_it_is_also_where_its_value_could_be_made_of_anything) {
  Result<bool> no = false;
  Result<bool> copy = no;  // not `true` because `no` holds a value
  EXPECT_FALSE(*copy);
  const Result<bool> moved = std::move(copy);
  EXPECT_FALSE(*moved);
  const Result<bool> wrong = invalid_input("wrong");
  no = wrong;
  EXPECT_FALSE(no.has_value());
  const Result<double> of_another = Result<int>(3);
  EXPECT_EQ(*of_another, 3.0);
}

}  // namespace
}  // namespace demarc
