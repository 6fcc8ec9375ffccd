// Which names a mistyped one may mean.
#include "demarc/base/near_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> verbs{"isolate", "list", "topo", "mm", "va", "probe"};

TEST(NearNames, one_change_is_a_missing_an_added_another_or_a_swapped_letter) {
  EXPECT_EQ(edit_distance("list", "list"), 0U);
  EXPECT_EQ(edit_distance("lst", "list"), 1U);
  EXPECT_EQ(edit_distance("liist", "list"), 1U);
  EXPECT_EQ(edit_distance("lost", "list"), 1U);
  EXPECT_EQ(edit_distance("lsit", "list"), 1U);
  EXPECT_EQ(edit_distance("", "list"), 4U);
  EXPECT_EQ(edit_distance("abcd", ""), 4U);
  EXPECT_EQ(edit_distance(std::string(100, 'a'), std::string(200, 'a')), 0U) << "of 64 letters";
}

TEST(NearNames, are_those_that_differ_by_a_third_of_their_letters_or_by_one) {
  EXPECT_THAT(near_names("lsit", verbs), ElementsAre("list"));
  EXPECT_THAT(near_names("ISOLAET", verbs), ElementsAre("isolate"));
  EXPECT_THAT(near_names("mn", verbs), ElementsAre("mm"));
  EXPECT_THAT(near_names("isolxxx", verbs), IsEmpty());
  EXPECT_THAT(near_names("xyzzy", verbs), IsEmpty());
}

TEST(NearNames, the_nearest_comes_first_and_three_are_enough) {
  const std::vector<std::string> names{"abcdefxxx", "abcdefghx", "abcdefgxx", "abcdefghi",
                                       "abcdefgxi"};
  EXPECT_THAT(near_names("abcdefghi", names), ElementsAre("abcdefghi", "abcdefghx", "abcdefgxi"));
}

TEST(NearNames, are_offered_in_a_sentence) {
  EXPECT_EQ(did_you_mean("tpoo", verbs), "; did you mean topo?");
  EXPECT_EQ(did_you_mean("vm", verbs), "; did you mean mm or va?");
  EXPECT_EQ(did_you_mean("xyzzy", verbs), "");
  EXPECT_EQ(did_you_mean("tpoo", verbs, "demarc --help"),
            "; did you mean topo? demarc --help shows all");
  EXPECT_EQ(did_you_mean("xyzzy", verbs, "demarc --help"), "; demarc --help shows all");
}

}  // namespace
}  // namespace demarc
