// Which names a mistyped one may mean.
#include "demarc/base/near_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace demarc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> verbs{"isolate", "list", "topo", "mm", "va", "probe"};

TEST(NearNames, OneChangeIsAMissingAnAddedAnotherOrASwappedLetter) {
  EXPECT_EQ(edit_distance("list", "list"), 0U);
  EXPECT_EQ(edit_distance("lst", "list"), 1U);
  EXPECT_EQ(edit_distance("liist", "list"), 1U);
  EXPECT_EQ(edit_distance("lost", "list"), 1U);
  EXPECT_EQ(edit_distance("lsit", "list"), 1U);
  EXPECT_EQ(edit_distance("", "list"), 4U);
  EXPECT_EQ(edit_distance("abcd", ""), 4U);
  EXPECT_EQ(edit_distance(std::string(100, 'a'), std::string(200, 'a')), 0U) << "of 64 letters";
}

TEST(NearNames, AreThoseThatDifferByAThirdOfTheirLettersOrByOne) {
  EXPECT_THAT(near_names("lsit", verbs), ElementsAre("list"));
  EXPECT_THAT(near_names("ISOLAET", verbs), ElementsAre("isolate"));
  EXPECT_THAT(near_names("mn", verbs), ElementsAre("mm"));
  EXPECT_THAT(near_names("isolxxx", verbs), IsEmpty());
  EXPECT_THAT(near_names("xyzzy", verbs), IsEmpty());
}

TEST(NearNames, TheNearestComesFirstAndThreeAreEnough) {
  const std::vector<std::string> names{"abcdefxxx", "abcdefghx", "abcdefgxx", "abcdefghi",
                                       "abcdefgxi"};
  EXPECT_THAT(near_names("abcdefghi", names), ElementsAre("abcdefghi", "abcdefghx", "abcdefgxi"));
}

TEST(NearNames, AreOfferedInASentence) {
  EXPECT_EQ(did_you_mean("tpoo", verbs), "; did you mean topo?");
  EXPECT_EQ(did_you_mean("vm", verbs), "; did you mean mm or va?");
  EXPECT_EQ(did_you_mean("xyzzy", verbs), "");
}

}  // namespace
}  // namespace demarc
