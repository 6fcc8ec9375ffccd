// Tests that device addresses of coloured memory are those of the colouring.
#include "demarc/card/colored_memory.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace demarc::cuda {
namespace {

constexpr std::uint64_t page = 1U << 21U;

color::Coloring quarters() {
  return color::Coloring::make(std::vector<std::uint64_t>{0xc4000, 0x18a000}, page).value();
}

template <unsigned Masks>
colored_layout<Masks> layout_of(const color::Coloring& coloring, std::uint32_t color) {
  colored_layout<Masks> layout;
  for (unsigned i = 0; i < Masks; ++i) {
    const auto mask = static_cast<unsigned>(coloring.masks()[i]);
    layout.mask[i] = mask;
    layout.pivot[i] = static_cast<unsigned>(std::countr_zero(mask));
    layout.wanted[i] = (color >> i) & 1U;
  }
  return layout;
}

TEST(ColoredMemory, device_addresses_are_those_of_the_colouring) {
  const auto coloring = quarters();
  for (std::uint32_t color = 0; color < 4; ++color) {
    const auto layout = layout_of<2>(coloring, color);
    for (std::uint64_t at = 0; at < 3 * page; at += 4099) {
      ASSERT_EQ(layout.address(at), coloring.position(color::LinearByte(at), color).raw())
          << at << " of colour " << color;
    }
  }
}

TEST(ColoredMemory, a_pointer_advanced_by_elements_points_to_the_same_as_indexing) {
  auto layout = layout_of<2>(quarters(), 3);
  layout.base = 0x7f0000000000ULL;
  const colored_ptr<float, 2> data(layout);
  for (std::uint64_t i = 0; i < 100000; i += 997)
    EXPECT_EQ((data + static_cast<long long>(i)).get(), data.get(i));
}

TEST(ColoredMemory, sixteen_bytes_stay_together) {
  const auto layout = layout_of<2>(quarters(), 1);
  for (std::uint64_t at = 0; at < page; at += 16) {
    ASSERT_EQ(layout.address(at + 15), layout.address(at) + 15);
  }
}

TEST(ColoredMemory, half_of_four_colours_is_a_share_of_its_own) {
  const auto coloring = quarters();
  for (const std::uint64_t members : {0x3U, 0x5U, 0x9U, 0xcU, 0x6U, 0x1U, 0xfU}) {
    const color::ColorSet colors(members, 4);
    const auto share = share_of_colors(coloring, colors);
    ASSERT_TRUE(share.has_value()) << share.error().message;
    EXPECT_EQ(share->coloring.colors() * colors.size(), 4U);
    for (std::uint64_t at = 0; at < page / 4; at += 1024) {
      const auto position = share->coloring.position(color::LinearByte(at), share->color);
      EXPECT_TRUE(colors.contains(coloring.color(position))) << members << " at " << at;
    }
  }
}

TEST(ColoredMemory, three_of_four_colours_are_refused_with_what_would_be_right) {
  const auto share = share_of_colors(quarters(), {0x7, 4});
  ASSERT_FALSE(share.has_value());
  EXPECT_NE(share.error().message.find("1, 2, 4"), std::string::npos);
  EXPECT_FALSE(share_of_colors(quarters(), {0x10, 4}).has_value());
  EXPECT_FALSE(share_of_colors(quarters(), {0, 4}).has_value());
  EXPECT_EQ(share_of_colors(quarters(), {0x1, 2}).error().message,
            "colours 0 of 2: give some of the 4 colours, at least one");
}

}  // namespace
}  // namespace demarc::cuda
