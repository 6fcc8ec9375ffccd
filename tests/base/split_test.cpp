// Pieces of text between separators.
#include "demarc/base/split.hpp"

#include <gmock/gmock.h>

namespace demarc {
namespace {

using testing::ElementsAre;

TEST(Split, gives_one_piece_more_than_there_are_separators) {
  EXPECT_THAT(split_at("a,bc,", ','), ElementsAre("a", "bc", ""));
  EXPECT_THAT(split_at(",", ','), ElementsAre("", ""));
  EXPECT_THAT(split_at("a b", ','), ElementsAre("a b"));
  EXPECT_THAT(split_at("", ','), ElementsAre(""));
}

}  // namespace
}  // namespace demarc
