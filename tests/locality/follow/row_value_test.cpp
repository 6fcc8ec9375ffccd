// Every operation on every kind of value is what it is thread by thread.
#include "follow/row_value.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace demarc::locality {
namespace {

__extension__ using Wide = __int128;
__extension__ using Bits = unsigned __int128;

// What PTX says of one thread; a, b and c are numbers of `bits` bits, c of a wide sum of twice as
// many.
std::uint64_t plainly(const OperationShape& shape, std::uint64_t a, std::uint64_t b,
                      std::uint64_t c) {
  const unsigned bits = shape.bits;
  const auto number = [&](std::uint64_t value) {
    Wide wide = value;
    if (shape.is_signed && (value >> (bits - 1) & 1U) != 0) wide -= Wide{1} << bits;
    return wide;
  };
  const Wide x = number(a);
  const Wide y = number(b);
  const auto low = [](Wide value) { return static_cast<std::uint64_t>(value); };
  const Bits product = static_cast<Bits>(x) * static_cast<Bits>(y);
  switch (shape.operation) {
    case Operation::copy:
      return a;
    case Operation::add:
      return low(x + y);
    case Operation::subtract:
      return low(x - y);
    case Operation::multiply:
    case Operation::multiply_wide:
      return static_cast<std::uint64_t>(product);
    case Operation::multiply_high:
      return static_cast<std::uint64_t>(product >> bits);
    case Operation::multiply_add:
    case Operation::multiply_add_wide:
      return static_cast<std::uint64_t>(product) + c;
    case Operation::shift_left: {
      const std::uint64_t by = b & 0xffffffffU;
      return by >= bits ? 0 : a << by;
    }
    case Operation::shift_right:
      return low(x >> std::min<std::uint64_t>(b & 0xffffffffU, bits));
    case Operation::divide:
      return y == 0 ? ~std::uint64_t{0} : low(x / y);
    case Operation::remainder:
      return y == 0 ? a : low(x % y);
    case Operation::bit_and:
      return a & b;
    case Operation::bit_or:
      return a | b;
    case Operation::bit_xor:
      return a ^ b;
    case Operation::bit_not:
      return ~a;
    case Operation::negate:
      return low(-x);
    case Operation::absolute:
      return (a >> (bits - 1) & 1U) != 0 ? 0 - a : a;
    case Operation::minimum:
      return x < y ? a : b;
    case Operation::maximum:
      return x > y ? a : b;
    case Operation::extract: {
      // The sign is that of the highest bit taken, or of the highest there is.
      const std::uint64_t at = b & 0xffU;
      const std::uint64_t length = std::min<std::uint64_t>(c & 0xffU, bits);
      std::uint64_t taken = 0;
      for (std::uint64_t i = 0; i < 64 && length > 0; ++i) {
        const std::uint64_t from = at + std::min<std::uint64_t>(i, length - 1);
        const bool beyond = i >= length || at + i >= bits;
        const std::uint64_t bit = from < bits ? a >> from & 1U : a >> (bits - 1) & 1U;
        if (!beyond || shape.is_signed) taken |= bit << i;
      }
      return taken;
    }
    case Operation::funnel_left:
      return ((b << 32U | a) << (c & 31U)) >> 32U;
    case Operation::funnel_right:
      return (b << 32U | a) >> (c & 31U);
    case Operation::convert:
      return low(x);
    case Operation::select:
      return c != 0 ? a : b;
    case Operation::equal:
      return x == y ? 1 : 0;
    case Operation::not_equal:
      return x != y ? 1 : 0;
    case Operation::less:
      return x < y ? 1 : 0;
    case Operation::less_equal:
      return x <= y ? 1 : 0;
    case Operation::greater:
      return x > y ? 1 : 0;
    case Operation::greater_equal:
      return x >= y ? 1 : 0;
    default:
      return 0;
  }
}

constexpr std::uint32_t width = 12;

std::uint64_t any_number(unsigned bits) {
  return truncated(*rc::gen::element<std::uint64_t>(0, 1, 2, 3, 5, 8, 31, 32, 63, 64, 0x7fffffff,
                                                    0x80000000, ~std::uint64_t{0},
                                                    ~std::uint64_t{0} - 6, std::uint64_t{1} << 63U,
                                                    *rc::gen::arbitrary<std::uint64_t>()),
                   bits);
}

// For `bits` bits; of one, as comparisons leave it.
Value any_value(RowArithmetic& arithmetic, Row row, unsigned bits) {
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return Linear{any_number(bits)};
    case 1:
      if (bits == 1) {
        const auto low = *rc::gen::inRange(row.begin, row.end);
        const auto high = *rc::gen::inRange(low + 1, row.end + 1);
        return Window{low, high, *rc::gen::arbitrary<bool>()};
      }
      return Linear{any_number(bits),
                    *rc::gen::element<std::int64_t>(1, -1, 2, 4, -7, 100, 1 << 28)};
    default: {
      std::vector<std::uint64_t> lanes;
      for (std::uint32_t x = 0; x < width; ++x) lanes.push_back(any_number(bits));
      return arithmetic.from_lanes(row, bits, [&lanes](std::uint32_t x) { return lanes[x]; });
    }
  }
}

void equals_thread_by_thread(Operation operation) {
  OperationShape shape;
  shape.operation = operation;
  const bool logic = operation >= Operation::bit_and && operation <= Operation::bit_not;
  const bool funnel = operation == Operation::funnel_left || operation == Operation::funnel_right;
  const bool wide =
      operation == Operation::multiply_wide || operation == Operation::multiply_add_wide;
  const bool compares = operation >= Operation::equal && operation <= Operation::greater_equal;
  const unsigned bits = funnel  ? 32
                        : wide  ? *rc::gen::element(16U, 32U)
                        : logic ? *rc::gen::element(1U, 32U, 64U)
                                : *rc::gen::element(16U, 32U, 64U);
  shape.bits = static_cast<std::uint8_t>(bits);
  shape.result_bits =
      static_cast<std::uint8_t>(operation == Operation::convert ? *rc::gen::element(16U, 32U, 64U)
                                : compares                      ? 1
                                                                : (wide ? 2 * bits : bits));
  shape.is_signed = *rc::gen::arbitrary<bool>();
  RowArithmetic arithmetic(width);
  const Row row{*rc::gen::inRange(0U, 4U), *rc::gen::inRange(5U, width + 1)};
  const unsigned c_bits = operation == Operation::select ? 1 : wide ? 2 * bits : bits;
  const Value a = any_value(arithmetic, row, bits);
  const Value b = any_value(arithmetic, row, bits);
  const bool third = operation == Operation::multiply_add ||
                     operation == Operation::multiply_add_wide || operation == Operation::extract ||
                     funnel || operation == Operation::select;
  const Value c = third ? any_value(arithmetic, row, c_bits) : Linear{};
  const Value result = arithmetic.evaluate(shape, a, b, c, row);
  RC_ASSERT(!is<Unknown>(result));
  for (std::uint32_t x = row.begin; x < row.end; ++x) {
    const std::uint64_t expected =
        truncated(plainly(shape, arithmetic.at(a, x, bits), arithmetic.at(b, x, bits),
                          arithmetic.at(c, x, c_bits)),
                  shape.result_bits);
    RC_ASSERT(arithmetic.at(result, x, shape.result_bits) == expected);
  }
}

RC_GTEST_PROP(RowValue, an_operation_on_a_row_is_that_of_its_threads, ()) {
  for (int i = static_cast<int>(Operation::copy); i < static_cast<int>(Operation::poison); ++i) {
    const auto operation = static_cast<Operation>(i);
    for (int times = 0; times < 5; ++times) equals_thread_by_thread(operation);
  }
}

// For the shape's values, with trips where they are linear, or a predicate of the trips.
Value any_value_over_trips(RowArithmetic& arithmetic, Row row, unsigned bits) {
  if (bits == 1 && *rc::gen::arbitrary<bool>())
    return Trips{*rc::gen::inRange<std::uint64_t>(0, 4), *rc::gen::inRange<std::uint64_t>(0, 7),
                 *rc::gen::arbitrary<bool>()};
  Value value = any_value(arithmetic, row, bits);
  if (auto* linear = std::get_if<Linear>(&value))
    linear->trip = *rc::gen::element<std::int64_t>(0, 0, 1, -1, 4, 100, -(1 << 28));
  return value;
}

void equals_trip_by_trip(Operation operation) {
  OperationShape shape;
  shape.operation = operation;
  const bool wide =
      operation == Operation::multiply_wide || operation == Operation::multiply_add_wide;
  const bool compares = operation >= Operation::equal && operation <= Operation::greater_equal;
  const unsigned bits = wide                              ? 32
                        : operation == Operation::bit_not ? *rc::gen::element(1U, 32U)
                                                          : *rc::gen::element(32U, 64U);
  shape.bits = static_cast<std::uint8_t>(bits);
  shape.result_bits =
      static_cast<std::uint8_t>(operation == Operation::convert ? *rc::gen::element(16U, 32U, 64U)
                                : compares                      ? 1
                                                                : (wide ? 2 * bits : bits));
  shape.is_signed = *rc::gen::arbitrary<bool>();
  RowArithmetic arithmetic(width);
  const Row row{*rc::gen::inRange(0U, 4U), *rc::gen::inRange(5U, width + 1)};
  const unsigned c_bits = operation == Operation::select ? 1 : wide ? 2 * bits : bits;
  const bool third = operation == Operation::multiply_add ||
                     operation == Operation::multiply_add_wide || operation == Operation::select;
  const Value a = any_value_over_trips(arithmetic, row, bits);
  const Value b = any_value_over_trips(arithmetic, row, bits);
  const Value c = third ? any_value_over_trips(arithmetic, row, c_bits) : Linear{};
  const Value result = arithmetic.evaluate(shape, a, b, c, row);
  if (is<Varying>(result)) return;
  for (std::uint64_t trip = 0; trip < 7; ++trip) {
    const bool holds =
        std::all_of(arithmetic.conditions.begin(), arithmetic.conditions.end(),
                    [trip](const NoWrap& condition) { return holds_until(condition, trip); });
    if (!holds) return;
    const auto at = [&](const Value& value, std::uint32_t x, unsigned of_bits) {
      return arithmetic.at(settled(value, trip), x, of_bits);
    };
    for (std::uint32_t x = row.begin; x < row.end; ++x)
      RC_ASSERT(at(result, x, shape.result_bits) ==
                truncated(plainly(shape, at(a, x, bits), at(b, x, bits), at(c, x, c_bits)),
                          shape.result_bits));
  }
}

RC_GTEST_PROP(RowValue, what_is_linear_in_the_trip_is_what_each_trip_gives, ()) {
  for (const Operation operation : {Operation::copy,          Operation::add,
                                    Operation::subtract,      Operation::multiply,
                                    Operation::multiply_wide, Operation::multiply_add,
                                    Operation::shift_left,    Operation::bit_and,
                                    Operation::bit_not,       Operation::negate,
                                    Operation::convert,       Operation::select,
                                    Operation::equal,         Operation::not_equal,
                                    Operation::less,          Operation::less_equal,
                                    Operation::greater,       Operation::greater_equal,
                                    Operation::multiply_high, Operation::multiply_add_wide})
    for (int times = 0; times < 5; ++times) equals_trip_by_trip(operation);
}

TEST(RowValue, a_number_that_wraps_around_in_a_late_trip_does_not_hold_until_then) {
  const Linear counter{.trip = 1};
  EXPECT_TRUE(holds_until({counter, 32, true, {0, 1}}, 0x7fffffffU));
  EXPECT_FALSE(holds_until({counter, 32, true, {0, 1}}, 0x80000000U));
  EXPECT_TRUE(holds_until({counter, 32, false, {0, 1}}, 0xffffffffU));
  EXPECT_FALSE(holds_until({counter, 32, false, {0, 1}}, std::uint64_t{1} << 32U));
  const Linear down{.base = 10, .stride = 1, .trip = -1};
  EXPECT_TRUE(holds_until({down, 32, false, {2, 5}}, 12));
  EXPECT_FALSE(holds_until({down, 32, false, {2, 5}}, 13));
}

Value of(Operation operation, const Value& a, const Value& b = Linear{}) {
  RowArithmetic arithmetic(32);
  return arithmetic.evaluate({operation, 32, 32, true}, a, b, Linear{}, {0, 32});
}

TEST(RowValue, what_is_linear_stays_so_and_its_comparisons_are_windows) {
  const Linear x{.base = 3, .stride = 4};
  EXPECT_EQ(of(Operation::add, x, x), Value(Linear{6, 8}));
  EXPECT_EQ(of(Operation::subtract, x, x), Value(Linear{0}));
  EXPECT_EQ(of(Operation::multiply, x, Linear{3}), Value(Linear{9, 12}));
  EXPECT_EQ(of(Operation::shift_left, x, Linear{3}), Value(Linear{24, 32}));
  EXPECT_EQ(of(Operation::less, x, Linear{43}), Value(Window{0, 10}));
  EXPECT_EQ(of(Operation::less, x, Linear{1000}), Value(Linear{1}));
}

TEST(RowValue, what_is_not_known_stays_so) {
  EXPECT_EQ(of(Operation::add, Unknown{}), Value(Unknown{}));
  EXPECT_EQ(of(Operation::add, Linear{1}, Unknown{}), Value(Unknown{}));
  EXPECT_EQ(of(Operation::poison, Linear{1}), Value(Unknown{}));
}

}  // namespace
}  // namespace demarc::locality
