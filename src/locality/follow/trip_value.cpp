// Computes values over the trips of a loop: which stay linear in the number of the trip, and on
// what conditions.
#include <algorithm>

#include "follow/exact_value.hpp"
#include "follow/row_value.hpp"

namespace demarc::locality {
namespace {

// More trips than a kernel makes in a lifetime.
constexpr std::int64_t max_trips = std::int64_t{1} << 40U;

Value in_trip(Value value, std::uint64_t trip) {
  if (is_linear(value)) value.base += static_cast<std::uint64_t>(value.trip) * trip;
  value.trip = 0;
  return value;
}

// Linear in the trip wherever its operands are, modulo 2^bits.
bool keeps_linear(const OperationShape& shape, const Value& a, const Value& b) {
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
  return value.trip != 0 || value.kind == Value::Kind::trips || value.kind == Value::Kind::varying;
}

Value settled(const Value& value, std::uint64_t trip) {
  if (value.kind != Value::Kind::trips) return in_trip(value, trip);
  const bool inside = trip >= value.base && trip < static_cast<std::uint64_t>(value.stride);
  return uniform_value(inside != value.inverted ? 1 : 0);
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

Value RowArithmetic::compare_over_trips(const OperationShape& shape, const Value& a, const Value& b,
                                        Row row) {
  const auto x = exact(in_trip(a, 0), shape.bits, shape.is_signed, row);
  const auto y = exact(in_trip(b, 0), shape.bits, shape.is_signed, row);
  std::int64_t base = 0;
  std::int64_t trip = 0;
  if (!x || !y || x->stride != y->stride || __builtin_sub_overflow(x->base, y->base, &base) ||
      __builtin_sub_overflow(a.trip, b.trip, &trip) || is_far(base) || is_far(trip))
    return varying_value();
  for (const Value* side : {&a, &b})
    if (side->trip != 0) conditions.push_back({*side, shape.bits, shape.is_signed, row});
  if (trip == 0) {
    const OperationShape wide{shape.operation, 64, 1, true};
    return evaluate_once(wide, uniform_value(static_cast<std::uint64_t>(base)), uniform_value(0),
                         uniform_value(0), row);
  }
  const Solution solution = solve(shape.operation, base, trip, 0, max_trips);
  return {Value::Kind::trips, solution.inverted, static_cast<std::uint64_t>(solution.low),
          solution.high, 0};
}

Value RowArithmetic::evaluate_over_trips(const OperationShape& shape, const Value& a,
                                         const Value& b, const Value& c, Row row) {
  if (shape.operation == Operation::bit_not && shape.bits == 1 && a.kind == Value::Kind::trips) {
    Value result = a;
    result.inverted = !result.inverted;
    return result;
  }
  if (shape.operation == Operation::select && c.kind == Value::Kind::uniform && c.trip == 0)
    return c.base != 0 ? a : b;
  if (!is_linear(a) || !is_linear(b) || !is_linear(c)) return varying_value();
  if (is_comparison(shape.operation)) return compare_over_trips(shape, a, b, row);
  // A predicate that each trip turns is linear modulo 2, and no number.
  if (shape.result_bits == 1 || !keeps_linear(shape, a, b)) return varying_value();
  // The difference between any two neighbouring trips is the same.
  const Value first = evaluate_once(shape, in_trip(a, 0), in_trip(b, 0), in_trip(c, 0), row);
  const Value second = evaluate_once(shape, in_trip(a, 1), in_trip(b, 1), in_trip(c, 1), row);
  if (!is_linear(first) || !is_linear(second) || first.stride != second.stride)
    return varying_value();
  if (shape.result_bits > shape.bits)
    for (const Value* widened : {&a, &b})
      if (widened->trip != 0) conditions.push_back({*widened, shape.bits, shape.is_signed, row});
  Value result = first;
  result.trip = sign_extended(second.base - first.base, shape.result_bits);
  return result;
}

}  // namespace demarc::locality
