// The rules by which a launch gets its mask.
#include "masks/mask_choice.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace demarc::cuda {
namespace {

using Kind = MaskChoice::Kind;

// Leaves these bits of the first word; ours.
HardwareMask leaving(std::uint32_t bits) {
  return {{~bits, ~0U, ~0U, ~0U}};
}

TEST(MaskChoice, without_any_mask_nothing_is_written) {
  EXPECT_EQ(choose_mask({}).kind, Kind::none);
}

TEST(MaskChoice, the_drivers_mask_of_a_stream_is_finer_than_the_processs_and_coarser_than_ours) {
  const HardwareMask own = leaving(3);
  const HardwareMask driver = {{4, 0, 0, 0}};
  EXPECT_EQ(choose_mask({&own, true, &driver, nullptr}).kind, Kind::keep);
  EXPECT_EQ(choose_mask({nullptr, false, &driver, nullptr}).kind, Kind::keep);
  const MaskChoice ours = choose_mask({&own, false, &driver, nullptr});
  EXPECT_EQ(ours.kind, Kind::write);
  EXPECT_EQ(ours.mask, own);
}

TEST(MaskChoice, under_a_ceiling_a_launch_gets_what_its_mask_and_the_ceiling_leave) {
  const HardwareMask own = leaving(0b0110);
  const HardwareMask driver = {{0b0001, 0, 0, 0}};
  const HardwareMask ceiling = leaving(0b0011);
  EXPECT_EQ(choose_mask({&own, false, nullptr, &ceiling}).mask, leaving(0b0010));
  EXPECT_EQ(choose_mask({&own, true, nullptr, &ceiling}).mask, leaving(0b0010));
  EXPECT_EQ(choose_mask({nullptr, false, &driver, &ceiling}).mask, leaving(0b0010));
  EXPECT_EQ(choose_mask({&own, true, &driver, &ceiling}).mask, leaving(0b0010));
  EXPECT_EQ(choose_mask({nullptr, false, nullptr, &ceiling}).mask, ceiling);
}

TEST(MaskChoice, a_mask_that_leaves_nothing_of_the_ceiling_is_empty) {
  const HardwareMask own = leaving(0b0100);
  const HardwareMask ceiling = leaving(0b0011);
  const MaskChoice choice = choose_mask({&own, false, nullptr, &ceiling});
  EXPECT_EQ(choice.kind, Kind::empty);
  EXPECT_EQ(choice.mask, ceiling) << "where the handler returns, the launch stays inside";
}

RC_GTEST_PROP(MaskChoice, no_mask_leaves_the_ceiling,
              (std::uint64_t own_bits, std::uint64_t driver_bits, std::uint64_t ceiling_bits,
               bool of_process)) {
  const auto mask_of = [](std::uint64_t bits) {
    return HardwareMask{{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
                         static_cast<std::uint32_t>(bits * 3), ~0U}};
  };
  const HardwareMask own = mask_of(own_bits);
  const HardwareMask driver = mask_of(driver_bits);
  const HardwareMask ceiling = mask_of(ceiling_bits);
  for (const HardwareMask* o : {static_cast<const HardwareMask*>(nullptr), &own}) {
    for (const HardwareMask* d : {static_cast<const HardwareMask*>(nullptr), &driver}) {
      const MaskChoice choice = choose_mask({o, of_process, d, &ceiling});
      RC_ASSERT(choice.kind == Kind::write || choice.kind == Kind::empty);
      RC_ASSERT(choice.mask.covers(ceiling));
      RC_ASSERT(choice.mask == ceiling || !choice.mask.everything());
    }
  }
}

}  // namespace
}  // namespace demarc::cuda
