// Tests that what counts from elsewhere does not pass for a linear byte, a byte of an arena or an
// address, and that a place turns each into the address that is meant.
#include "demarc/color/place.hpp"

#include <gtest/gtest.h>

#include "demarc/color/coloring.hpp"
#include "demarc/color/law.hpp"

namespace demarc::color {
namespace {

template <class At>
concept Places = requires(const Law& law, const Coloring& coloring, const RemainderColoring& run,
                          At at) {
  law.position(at, {});
  law.pages_of({at, 1}, 1);
  coloring.position(at, 0);
  run.position(at, 0);
};
template <class At>
concept PlacesSomewhere = requires(const Law& law, At at) {
  law.position(at, {});
}
|| requires(const Law& law, At at) {
  law.pages_of({at, 1}, 1);
}
|| requires(const Coloring& coloring, At at) {
  coloring.position(at, 0);
}
|| requires(const RemainderColoring& run, At at) {
  run.position(at, 0);
};
static_assert(Places<LinearByte>);
static_assert(!PlacesSomewhere<ArenaByte> && !PlacesSomewhere<DeviceAddress>);
static_assert(!PlacesSomewhere<ArenaPage> && !PlacesSomewhere<std::uint64_t>);

template <class At>
concept HasColor = requires(const Coloring& coloring, At at) {
  coloring.color(at);
};
static_assert(HasColor<ArenaByte> && !HasColor<LinearByte> && !HasColor<DeviceAddress>);

template <class At>
concept HasAddress = requires(const SharePlace& place, At at) {
  place.address(at);
};
template <class At>
concept HasPointer = requires(const SharePlace& place, At at) {
  place.pointer(at);
};
static_assert(HasAddress<ArenaByte> && !HasAddress<LinearByte> && !HasAddress<std::uint64_t>);
static_assert(HasPointer<LinearByte> && !HasPointer<ArenaByte> && !HasPointer<std::uint64_t>);

template <class A, class B>
constexpr bool mixes =
    std::is_constructible_v<A, B> || std::is_convertible_v<A, B> || std::is_assignable_v<A&, B>;
static_assert(!mixes<LinearByte, ArenaByte> && !mixes<ArenaByte, LinearByte>);
static_assert(!mixes<ArenaByte, DeviceAddress> && !mixes<DeviceAddress, ArenaByte>);
static_assert(!mixes<ArenaPage, ArenaByte> && !mixes<ArenaByte, ArenaPage>);
static_assert(!mixes<LinearByte, DeviceAddress> && !mixes<DeviceAddress, LinearByte>);

// A size in the place of a position does not compile.
template <class First, class Bytes>
concept MakesExtent = requires(First first, Bytes bytes) {
  Extent{first, bytes};
};
static_assert(MakesExtent<LinearByte, std::uint64_t> && !MakesExtent<ArenaByte, std::uint64_t>);
static_assert(!MakesExtent<std::uint64_t, LinearByte> && !MakesExtent<LinearByte, LinearByte>);

TEST(SharePlace,
     addresses_what_a_law_gives_from_the_arena_and_what_a_program_counts_from_the_window) {
  const SharePlace place{.arena = DeviceAddress(0x1000), .window = DeviceAddress(0x70)};
  EXPECT_EQ(place.address(ArenaByte(0x24)), DeviceAddress(0x1024));
  EXPECT_EQ(place.pointer(LinearByte(4)), DeviceAddress(0x74));
  EXPECT_EQ((Extent{LinearByte(64), 32}.end()), LinearByte(96));
}

}  // namespace
}  // namespace demarc::color
