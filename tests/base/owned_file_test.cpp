// Descriptors are closed once, by the last owner.
#include "demarc/base/owned_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace demarc {
namespace {

bool is_open(int descriptor) {
  return ::fcntl(descriptor, F_GETFD) >= 0;
}

TEST(OwnedFiles, are_closed_when_their_owner_goes) {
  int moved = -1;
  int released = -1;
  {
    OwnedFile first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    moved = first.get();
    OwnedFile second(std::move(first));
    EXPECT_EQ(second.get(), moved);
    OwnedFile third(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    released = third.release();
    EXPECT_EQ(third.get(), -1);
    third = std::move(second);
    EXPECT_EQ(third.get(), moved);
    EXPECT_TRUE(is_open(moved));
  }
  EXPECT_FALSE(is_open(moved));
  EXPECT_TRUE(is_open(released));
  ::close(released);
}

}  // namespace
}  // namespace demarc
