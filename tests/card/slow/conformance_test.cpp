// Tests that a million launches under random masks leak no block.
#include "conformance.hpp"

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

TEST(Conformance, a_million_random_masks_leak_no_block) {
  const auto card = test::fake_card();
  ASSERT_TRUE(card) << card.error().message;
  test::random_masks_never_leak(*card, 1000000, 11);
}

}  // namespace
}  // namespace demarc::cuda
