// Which connection gives way to another one, and when none does.
#include "demarc/serve/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc::serve {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr SeatLimits limits{10, 4, 2};

Seat seat(const std::string& party, bool needed, int used) {
  return {party, needed, Clock::time_point(std::chrono::seconds(used))};
}
std::vector<Seat> seats(std::size_t count, const std::string& party, bool needed) {
  std::vector<Seat> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(seat(party, needed, 100 - static_cast<int>(i)));
  }
  return all;
}
std::string words_of(const std::vector<Seat>& there, const std::string& party, bool own) {
  const auto room = make_room(there, party, own, limits);
  if (!room) return room.error().message;
  return *room ? std::to_string(**room) : "room";
}

TEST(Admission, has_room_for_so_many_of_a_party) {
  EXPECT_EQ(words_of(seats(3, "user 5", false), "user 5", false), "room");
  EXPECT_EQ(words_of(seats(4, "user 5", false), "user 6", false), "room");
  EXPECT_EQ(words_of(seats(9, "user 0", false), "user 0", true), "room") << "its own user";
}

TEST(Admission, of_a_party_with_all_its_places_takes_the_one_that_asked_nothing_for_longest) {
  auto there = seats(4, "user 5", false);
  there[1].used = Clock::time_point(std::chrono::seconds(1));
  EXPECT_EQ(words_of(there, "user 5", false), "1");
  there[1].needed = true;
  EXPECT_EQ(words_of(there, "user 5", false), "3");
  EXPECT_THAT(words_of(seats(4, "user 5", true), "user 5", false),
              HasSubstr("user 5 already has 4 connections"));
}

TEST(Admission, takes_no_place_of_another_party_for_one_that_has_all_its_own) {
  auto there = seats(4, "user 5", true);
  there.push_back(seat("user 6", false, 1));
  EXPECT_THAT(words_of(there, "user 5", false), HasSubstr("user 5 already has 4 connections"));
  EXPECT_EQ(words_of(there, "user 6", false), "room");
}

TEST(Admission, keeps_places_for_its_own_user) {
  auto there = seats(4, "user 5", true);
  for (const Seat& one : seats(4, "user 6", true)) there.push_back(one);
  EXPECT_THAT(words_of(there, "user 7", false), HasSubstr("already has 8 connections"));
  EXPECT_EQ(words_of(there, "user 0", true), "room");
}

TEST(Admission, where_all_places_are_taken_takes_one_of_the_party_that_has_the_most) {
  auto there = seats(6, "user 0", false);
  for (const Seat& one : seats(4, "user 5", false)) there.push_back(one);
  EXPECT_EQ(words_of(there, "user 0", true), "5");
  for (std::size_t i = 0; i < 6; ++i) there[i].needed = true;
  EXPECT_EQ(words_of(there, "user 0", true), "9");
  for (Seat& one : there) one.needed = true;
  EXPECT_THAT(words_of(there, "user 0", true), HasSubstr("already has 10 connections"));
  auto later = seats(4, "user 0", false);
  for (const Seat& one : seats(6, "user 5", false)) later.push_back(one);
  EXPECT_EQ(words_of(later, "user 0", true), "9") << "whatever its name";
}

TEST(Admission, has_no_more_places_than_files) {
  const auto many = SeatLimits::for_files(1 << 20).value();
  EXPECT_EQ(many.all, SeatLimits().all);
  EXPECT_EQ(many.of_a_party, SeatLimits().of_a_party);
  EXPECT_EQ(many.reserve, SeatLimits().reserve);
  const auto few = SeatLimits::for_files(1024).value();
  EXPECT_EQ(few.all, 256U);
  EXPECT_EQ(few.of_a_party, 128U);
  EXPECT_EQ(few.reserve, 64U);
  EXPECT_EQ(few.holders(), 96U);
  const auto least = SeatLimits::for_files(448).value();
  EXPECT_EQ(least.all, 64U);
  EXPECT_EQ(least.of_a_party, 32U);
  EXPECT_EQ(least.reserve, 16U);
  for (const std::size_t files : {std::size_t{0}, std::size_t{447}}) {
    const auto refused = SeatLimits::for_files(files);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(refused.error().message,
              fmt::format("this process may have {} files open, and a server needs 448 at least: "
                          "raise the limit (ulimit -n; LimitNOFILE of systemd)",
                          files));
  }
}

}  // namespace
}  // namespace demarc::serve
