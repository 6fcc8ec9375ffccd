// Versions of the driver, by which its calls of the kernel module are laid out. What is mapped is
// tested where it is used (tests/guest/share/shown_window_test.cpp).
#include "demarc/driver/page_mappings.hpp"

#include <gtest/gtest.h>

namespace demarc::cuda {
namespace {

TEST(PageMappings, of_known_versions_name_so_many_processors) {
  for (const char* version : {"515.65.01", "535.288.01", "550.163.01"}) {
    EXPECT_EQ(mapped_processors(version), 32U) << version;
  }
  for (const char* version : {"555.58.02", "580.159.04", "595.45.04"}) {
    EXPECT_EQ(mapped_processors(version), 256U) << version;
  }
}

TEST(PageMappings, of_other_versions_are_not_known) {
  for (const char* version : {"", "580", "x580.1", "514.99", "596.1", "1.580", "551.1", "554.9"}) {
    EXPECT_EQ(mapped_processors(version), 0U) << version;
  }
}

}  // namespace
}  // namespace demarc::cuda
