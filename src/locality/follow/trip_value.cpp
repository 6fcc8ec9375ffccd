// Computes values over the trips of a loop: which stay linear in the number of the trip, and on
// what conditions.
#include <algorithm>

#include "follow/exact_value.hpp"
#include "follow/row_value.hpp"

namespace demarc::locality {
namespace {

// More trips than a kernel makes in a lifetime.
constexpr std::int64_t max_trips = std::int64_t{1} << 40U;

Linear in_trip(const Linear& value, std::uint64_t trip) {
  return {value.base + static_cast<std::uint64_t>(value.trip) * trip, value.stride};
}

// Linear in the trip wherever its operands are, modulo 2^bits.
bool keeps_linear(const OperationShape& shape, const Linear& a, const Linear& b) {
  switch (shape.operation) {
    case Operation::copy:
    case Operation::add:
    case Operation::subtract:
    case Operation::negate:
    case Operation::bit_not:
    case Operation::convert:
      return true;
    case Operation::multiply:
    case Operation::multiply_add:
    case Operation::multiply_wide:
    case Operation::multiply_add_wide:
      return a.trip == 0 || b.trip == 0;
    case Operation::shift_left:
      return b.trip == 0;
    default:
      return false;
  }
}

}  // namespace

bool changes_with_trips(const Value& value) {
  const auto* linear = std::get_if<Linear>(&value);
  return linear != nullptr ? linear->trip != 0 : is<Trips>(value) || is<Varying>(value);
}

Value settled(const Value& value, std::uint64_t trip) {
  if (const auto* linear = std::get_if<Linear>(&value)) return in_trip(*linear, trip);
  const auto* trips = std::get_if<Trips>(&value);
  if (trips == nullptr) return value;
  return Linear{(trip >= trips->begin && trip < trips->end) != trips->inverted ? 1U : 0U};
}

bool holds_until(const NoWrap& condition, std::uint64_t last_trip) {
  __extension__ using Wide = __int128;
  const auto first =
      exact(in_trip(condition.value, 0), condition.bits, condition.is_signed, condition.row);
  if (!first) return false;
  const Wide moved = Wide{condition.value.trip} * static_cast<Wide>(last_trip);
  const unsigned digits = condition.is_signed ? condition.bits - 1 : condition.bits;
  const Wide high = (Wide{1} << std::min(digits, 63U)) - 1;
  const Wide low = condition.is_signed ? -high - 1 : 0;
  for (const std::uint32_t x : {condition.row.begin, condition.row.end - 1}) {
    const Wide value = Wide{first->base} + Wide{first->stride} * x + moved;
    if (value < low || value > high) return false;
  }
  return true;
}

Value RowArithmetic::compare_over_trips(const OperationShape& shape, const Linear& a,
                                        const Linear& b, Row row) {
  const auto x = exact(in_trip(a, 0), shape.bits, shape.is_signed, row);
  const auto y = exact(in_trip(b, 0), shape.bits, shape.is_signed, row);
  std::int64_t base = 0;
  std::int64_t trip = 0;
  if (!x || !y || x->stride != y->stride || __builtin_sub_overflow(x->base, y->base, &base) ||
      __builtin_sub_overflow(a.trip, b.trip, &trip) || is_far(base) || is_far(trip))
    return Varying{};
  for (const Linear* side : {&a, &b})
    if (side->trip != 0) conditions.push_back({*side, shape.bits, shape.is_signed, row});
  if (trip == 0) {
    const OperationShape wide{shape.operation, 64, 1, true};
    return evaluate_once(wide, Linear{static_cast<std::uint64_t>(base)}, Linear{}, Linear{}, row);
  }
  const Solution solution = solve(shape.operation, base, trip, 0, max_trips);
  return Trips{static_cast<std::uint64_t>(solution.low), static_cast<std::uint64_t>(solution.high),
               solution.inverted};
}

Value RowArithmetic::evaluate_over_trips(const OperationShape& shape, const Value& a,
                                         const Value& b, const Value& c, Row row) {
  if (const auto* trips = std::get_if<Trips>(&a);
      trips != nullptr && shape.operation == Operation::bit_not && shape.bits == 1)
    return Trips{trips->begin, trips->end, !trips->inverted};
  const auto* const x = std::get_if<Linear>(&a);
  const auto* const y = std::get_if<Linear>(&b);
  const auto* const z = std::get_if<Linear>(&c);
  if (shape.operation == Operation::select && uniform(c) != nullptr && z->trip == 0)
    return z->base != 0 ? a : b;
  if (x == nullptr || y == nullptr || z == nullptr) return Varying{};
  if (is_comparison(shape.operation)) return compare_over_trips(shape, *x, *y, row);
  // A predicate that each trip turns is linear modulo 2, and no number.
  if (shape.result_bits == 1 || !keeps_linear(shape, *x, *y)) return Varying{};
  // The difference between any two neighbouring trips is the same.
  const auto result_in = [&](std::uint64_t trip) {
    return evaluate_once(shape, in_trip(*x, trip), in_trip(*y, trip), in_trip(*z, trip), row);
  };
  const Value first = result_in(0);
  const Value second = result_in(1);
  const auto* const from = std::get_if<Linear>(&first);
  const auto* const to = std::get_if<Linear>(&second);
  if (from == nullptr || to == nullptr || from->stride != to->stride) return Varying{};
  if (shape.result_bits > shape.bits)
    for (const Linear* widened : {x, y})
      if (widened->trip != 0) conditions.push_back({*widened, shape.bits, shape.is_signed, row});
  return Linear{from->base, from->stride, sign_extended(to->base - from->base, shape.result_bits)};
}

}  // namespace demarc::locality
