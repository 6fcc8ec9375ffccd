// The value of a register for a row of threads: those that differ in %tid.x alone. x counts from 0;
// a path of the kernel is followed for the threads begin <= x < end of a row.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace demarc::locality {

struct Row {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// It depends on loaded data, or was not followed.
struct Unknown {
  friend bool operator==(const Unknown&, const Unknown&) = default;
};
// base + stride * x, modulo 2^bits of the register.
struct Linear {
  std::uint64_t base = 0;
  std::int64_t stride = 0;  // 0: the same for all threads
  std::int64_t trip = 0;    // what each trip of the loop that is being closed adds
  friend bool operator==(const Linear&, const Linear&) = default;
};
// A predicate: true for begin <= x < end, the other way round when `inverted`.
struct Window {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool inverted = false;
  friend bool operator==(const Window&, const Window&) = default;
};
// Each thread's own, in a vector of RowArithmetic.
struct Lanes {
  std::size_t vector = 0;
  friend bool operator==(const Lanes&, const Lanes&) = default;
};
// A predicate: true in the trips begin <= t < end, the other way round when `inverted`.
struct Trips {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool inverted = false;
  friend bool operator==(const Trips&, const Trips&) = default;
};
// It changes with the trip, and not as one of the others.
struct Varying {
  friend bool operator==(const Varying&, const Varying&) = default;
};
using Value = std::variant<Unknown, Linear, Window, Lanes, Trips, Varying>;

template <class Alternative>
[[nodiscard]] bool is(const Value& value) {
  return std::holds_alternative<Alternative>(value);
}
// Null unless the value is the same for all threads.
[[nodiscard]] inline const Linear* uniform(const Value& value) {
  const auto* linear = std::get_if<Linear>(&value);
  return linear != nullptr && linear->stride == 0 ? linear : nullptr;
}

[[nodiscard]] inline std::uint64_t truncated(std::uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}
[[nodiscard]] inline std::int64_t sign_extended(std::uint64_t value, unsigned bits) {
  if (bits >= 64) return static_cast<std::int64_t>(value);
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return static_cast<std::int64_t>((truncated(value, bits) ^ sign) - sign);
}

// Integer operations that a value can be followed through. The comparisons yield predicates.
enum class Operation : std::uint8_t {
  copy,
  add,
  subtract,
  multiply,  // low half
  multiply_high,
  multiply_wide,  // result twice as wide
  multiply_add,
  multiply_add_wide,
  shift_left,
  shift_right,
  divide,
  remainder,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  negate,
  absolute,
  minimum,
  maximum,
  extract,  // bfe
  funnel_left,
  funnel_right,
  convert,  // from `bits`/`is_signed` to `result_bits`
  select,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  poison  // the result is unknown
};

struct OperationShape {
  Operation operation = Operation::poison;
  std::uint8_t bits = 32;  // bits of the operands
  std::uint8_t result_bits = 32;
  bool is_signed = false;
};

// Is it another value in another trip?
[[nodiscard]] bool changes_with_trips(const Value& value);
// The value in that trip, of one that is not varying.
[[nodiscard]] Value settled(const Value& value, std::uint64_t trip);

// A value that must not wrap around as its type reads it, in any trip.
struct NoWrap {
  Linear value;
  unsigned bits = 0;
  bool is_signed = false;
  Row row;
};
[[nodiscard]] bool holds_until(const NoWrap& condition, std::uint64_t last_trip);

// Evaluates operations on rows. Vectors live until clear().
class RowArithmetic {
 public:
  explicit RowArithmetic(std::uint32_t width) : width_(width) {}

  void clear() { used_ = 0; }
  // What the values with trips that were evaluated since rest on.
  std::vector<NoWrap> conditions;
  [[nodiscard]] Value evaluate(const OperationShape& shape, const Value& a, const Value& b,
                               const Value& c, Row row);
  // For a value that is not unknown.
  [[nodiscard]] std::uint64_t at(const Value& value, std::uint32_t x, unsigned bits) const;
  // A value given lane by lane; becomes uniform, affine or a window where it is one.
  template <class F>
  [[nodiscard]] Value from_lanes(Row row, unsigned bits, F&& f) {
    const std::size_t index = new_vector();
    std::vector<std::uint64_t>& lanes = vectors_[index];
    for (std::uint32_t x = row.begin; x < row.end; ++x) lanes[x] = f(x);
    return simplified(index, row, bits);
  }

 private:
  std::size_t new_vector();
  Value simplified(std::size_t index, Row row, unsigned bits);
  Value lane_by_lane(const OperationShape& shape, const Value& a, const Value& b, const Value& c,
                     Row row);
  // Nothing where the result is not a single value of these kinds.
  static std::optional<Value> linear(const OperationShape& shape, const Linear& a, const Linear& b,
                                     const Linear& c, Row row);
  static std::optional<Value> compare(const OperationShape& shape, const Linear& a, const Linear& b,
                                      Row row);
  static std::optional<Value> combine_windows(Operation operation, const Value& a, const Value& b);
  Value evaluate_once(const OperationShape& shape, const Value& a, const Value& b, const Value& c,
                      Row row);
  Value evaluate_over_trips(const OperationShape& shape, const Value& a, const Value& b,
                            const Value& c, Row row);
  Value compare_over_trips(const OperationShape& shape, const Linear& a, const Linear& b, Row row);

  std::uint32_t width_;
  std::vector<std::vector<std::uint64_t>> vectors_;
  std::size_t used_ = 0;
};

}  // namespace demarc::locality
