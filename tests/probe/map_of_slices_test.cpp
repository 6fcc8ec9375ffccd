// What slices alone say of an address map, and what is left unsaid.
#include <gtest/gtest.h>

#include "demarc/probe/slices.hpp"

namespace demarc::probe {
namespace {

MemoryFacts two_mebibyte_pages() {
  MemoryFacts facts;
  facts.page_bytes = std::uint64_t{2} << 20U;
  return facts;
}

SliceFinding two_modules(std::size_t kinds) {
  SliceFinding finding;
  finding.decided = true;
  finding.model.chunk_bytes = 256;
  finding.model.masks = {0x12000};
  finding.model.clusters.sizes.assign(kinds, 100);
  return finding;
}

TEST(MapOfSlices, counts_slices_where_remainders_explain_them) {
  SliceFinding finding = two_modules(9);
  finding.remainders.emplace();
  finding.remainders->slices = 10;
  finding.remainders->stage = {5, {{0x800, 0x4000, 0x8000}}};
  const gpu::AddressMap map = map_of_slices(two_mebibyte_pages(), finding);
  EXPECT_EQ(map.slices, 10U) << "two slices that look alike are one kind of nine";
  EXPECT_EQ(map.interleave_bytes, 0x800U) << "the lowest digit of the number";
  EXPECT_EQ(map.address_bits, 21U);
  EXPECT_EQ(map.stack->modulus, 5U);
}

TEST(MapOfSlices, counts_modules_where_each_is_one_kind) {
  const gpu::AddressMap map = map_of_slices(two_mebibyte_pages(), two_modules(2));
  EXPECT_EQ(map.slices, 2U);
  EXPECT_EQ(map.interleave_bytes, 0x2000U);
}

TEST(MapOfSlices, says_no_number_of_slices_where_nothing_explains_the_kinds) {
  const gpu::AddressMap map = map_of_slices(two_mebibyte_pages(), two_modules(9));
  EXPECT_EQ(map.slices, 0U);
  EXPECT_EQ(map.module.count(), 2U);
  EXPECT_EQ(map.interleave_bytes, 256U) << "the chunk that was measured as one";
}

TEST(MapOfSlices, says_nothing_of_what_is_not_decided) {
  SliceFinding finding = two_modules(2);
  finding.decided = false;
  const gpu::AddressMap map = map_of_slices(two_mebibyte_pages(), finding);
  EXPECT_EQ(map.slices, 0U);
  EXPECT_EQ(map.interleave_bytes, 0U);
  EXPECT_TRUE(map.module.empty());
}

}  // namespace
}  // namespace demarc::probe
