// Imports of loaded libraries, by name.
#include "demarc/driver/import_slot.hpp"

#include <gmock/gmock.h>
#include <sys/ioctl.h>

#include <cstdint>

#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

TEST(ImportSlots, are_found_in_the_library_that_holds_an_address_and_lead_elsewhere_once_set) {
  const auto* inside = reinterpret_cast<const void*>(test::fake_gpu()->api().cuInit);
  const auto slot = ImportSlot::find(inside, "ioctl");
  ASSERT_TRUE(slot) << slot.error().message;
  const void* const before = slot->function();
  EXPECT_NE(before, nullptr);
  ASSERT_TRUE(slot->set(&before));
  EXPECT_EQ(ImportSlot::find(inside, "ioctl")->function(), &before);
  ASSERT_TRUE(slot->set(before));
  EXPECT_EQ(slot->function(), before);
}

TEST(ImportSlots, are_refused_for_what_is_not_imported_and_where_no_library_is) {
  const auto* inside = reinterpret_cast<const void*>(test::fake_gpu()->api().cuInit);
  const auto other = ImportSlot::find(inside, "a_function_of_nobody");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(other.error().message, "the library imports no function 'a_function_of_nobody'");
  const int here = 0;
  const auto nowhere = ImportSlot::find(&here, "ioctl");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().message, "no library was found for 'ioctl'");
}

}  // namespace
}  // namespace demarc::cuda
