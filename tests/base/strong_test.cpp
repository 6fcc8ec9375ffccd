// Numbers of kinds: what they can do, and that mixing them does not compile.
#include "demarc/base/strong.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <unordered_set>

#include "demarc/base/per_index.hpp"

namespace demarc {
namespace {

using Page = Index<struct StrongTestPageTag>;
using Sm = Index<struct StrongTestSmTag>;
using Byte = Location<struct StrongTestByteTag>;
using Ticks = Quantity<struct StrongTestTicksTag>;

template <class A, class B>
concept Equals = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Orders = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtracts = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Multiplies = requires(A a, B b) {
  a* b;
};
template <class A, class B>
concept Divides = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept LooksUp = requires(A a, B b) {
  a[b];
};
template <class A, class B>
constexpr bool passes_for = std::is_convertible_v<A, B> || std::is_assignable_v<B&, A>;

// Each kind with itself, beside what must not compile.
static_assert(Equals<Page, Page> && !Equals<Page, Sm> && !Equals<Page, std::uint32_t>);
static_assert(Orders<Page, Page> && !Orders<Page, Sm> && !Orders<Ticks, std::uint64_t>);
static_assert(passes_for<Page, Page> && !passes_for<Page, Sm> && !passes_for<Byte, Ticks>);
static_assert(!passes_for<Page, std::uint32_t> && !passes_for<std::uint32_t, Page>);
static_assert(!passes_for<Ticks, std::uint64_t> && !passes_for<int, Ticks>);
static_assert(std::is_constructible_v<Page, std::uint64_t> && !std::is_constructible_v<Page, Sm>);
static_assert(!std::is_constructible_v<Ticks, Byte> && !std::is_constructible_v<Ticks, double>);
static_assert(!std::is_constructible_v<Ticks, bool>);
// Indices have no arithmetic.
static_assert(!Adds<Page, Page> && !Adds<Page, int> && !Subtracts<Page, Page>);
static_assert(!Multiplies<Page, int> && !Divides<Page, int>);
// Locations: distances alone.
static_assert(Adds<Byte, std::uint64_t> && Subtracts<Byte, std::uint64_t>);
static_assert(Subtracts<Byte, Byte> && !Adds<Byte, Byte> && !Adds<Byte, Ticks>);
static_assert(!Multiplies<Byte, int> && !Divides<Byte, int>);
// Quantities: their own kind, and multiples.
static_assert(Adds<Ticks, Ticks> && !Adds<Ticks, std::uint64_t> && !Adds<Ticks, Byte>);
static_assert(Multiplies<Ticks, std::uint64_t> && !Multiplies<Ticks, Ticks>);
static_assert(Divides<Ticks, Ticks> && Divides<Ticks, std::uint64_t> && !Divides<Ticks, Byte>);
// Arrays: their own index alone.
static_assert(LooksUp<PerIndex<Page, int>, Page> && !LooksUp<PerIndex<Page, int>, Sm>);
static_assert(!LooksUp<PerIndex<Page, int>, std::size_t>);
static_assert(!passes_for<PerIndex<Sm, int>, PerIndex<Page, int>>);
// The host sees the number alone.
static_assert(std::is_trivially_copyable_v<Ticks> && sizeof(Ticks) == 8 && sizeof(Page) == 4);

TEST(Strong, a_quantity_adds_subtracts_scales_and_gives_ratios) {
  constexpr Ticks a(7);
  static_assert(a + Ticks(5) == Ticks(12) && a - Ticks(5) == Ticks(2));
  static_assert(3 * a == Ticks(21) && a * 3 == Ticks(21) && a / 2 == Ticks(3) && a / Ticks(2) == 3);
  Ticks sum = a;
  sum += Ticks(2);
  EXPECT_EQ(sum, Ticks(9));
  sum -= Ticks(4);
  EXPECT_EQ(sum, Ticks(5));
  EXPECT_EQ(++sum, Ticks(6));
  EXPECT_TRUE(a < Ticks(8) && !(a < Ticks(7)) && a > Ticks(6) && !(a > Ticks(7)));
  EXPECT_TRUE(a <= Ticks(7) && !(a <= Ticks(6)) && a >= Ticks(7) && !(a >= Ticks(8)));
  EXPECT_EQ(Ticks(), Ticks(0));
}

TEST(Strong, a_location_moves_by_distances_and_two_are_a_distance_apart) {
  constexpr Byte first(0x1000);
  static_assert(first + 16 == Byte(0x1010) && first - 16 == Byte(0xff0));
  static_assert(Byte(0x1010) - first == 16);
  EXPECT_GT(first + 1, first);
}

TEST(Strong, an_index_is_hashed_ordered_printed_and_counted_up) {
  EXPECT_EQ(std::unordered_set<Page>({Page(1), Page(2), Page(1)}).size(), 2U);
  EXPECT_EQ(std::hash<Page>{}(Page(77)), std::hash<std::uint32_t>{}(77));
  EXPECT_EQ(fmt::format("{} {:#x}", Page(17), Byte(255)), "17 0xff");
  std::ostringstream out;
  out << Page(17);
  EXPECT_EQ(out.str(), "17");
  std::vector<std::uint32_t> counted;
  for (const Page page : indices<Page>(3)) counted.push_back(page.raw());
  EXPECT_EQ(counted, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(Strong, an_array_gives_each_index_its_own_element) {
  PerIndex<Page, int> squares;
  for (int i = 0; i < 4; ++i) squares.push_back(i * i);
  EXPECT_EQ(squares[Page(3)], 9);
  squares[Page(3)] = 10;
  EXPECT_EQ(std::as_const(squares)[Page(3)], 10);
  EXPECT_EQ(squares.at(Page(2)), 4);
  EXPECT_THROW((void)squares.at(Page(4)), std::out_of_range);
  EXPECT_EQ(squares.next_key(), Page(4));
  int sum = 0;
  for (const Page page : squares.keys()) sum += squares[page];
  EXPECT_EQ(sum, 0 + 1 + 4 + 10);
}

TEST(Strong, an_array_takes_a_vector_over_and_equals_one_of_the_same_elements) {
  PerIndex<Page, int> taken{7};
  taken = std::vector<int>{1, 2};
  EXPECT_EQ(taken, (PerIndex<Page, int>{1, 2}));
  EXPECT_EQ(taken.front(), 1);
  EXPECT_FALSE(taken == (PerIndex<Page, int>{1, 3}));
}

std::string refusal(const std::function<void()>& make) {
  try {
    make();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "made";
}

TEST(Strong, a_number_that_does_not_fit_is_refused_and_the_largest_that_does_is_not) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(Page(most).raw(), most);
  EXPECT_EQ(refusal([] { (void)Page(most + 1); }), "4294967296 does not fit a number of 4 bytes");
  EXPECT_EQ(refusal([] { (void)Ticks(-3); }), "-3 does not fit a number of 8 bytes");
  EXPECT_EQ(Page(255).raw<std::uint8_t>(), 255);
  EXPECT_EQ(refusal([] { (void)Page(256).raw<std::uint8_t>(); }),
            "256 does not fit a number of 1 bytes");
  EXPECT_EQ(refusal([] { (void)Ticks(most << 31U << 1U).raw<std::int64_t>(); }),
            "18446744069414584320 does not fit a number of 8 bytes");
}

}  // namespace
}  // namespace demarc
