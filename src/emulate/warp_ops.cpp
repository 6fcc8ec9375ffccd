#include "warp_ops.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lane_functions.hpp"

namespace demarc::emulate {

unsigned matrix_bits(MatrixType type) {
  switch (type) {
    case MatrixType::f16:
    case MatrixType::bf16:
      return 16;
    case MatrixType::s8:
    case MatrixType::u8:
      return 8;
    case MatrixType::f64:
      return 64;
    default:
      return 32;
  }
}

unsigned elements_of_a(const MatrixDetails& shape) {
  const unsigned elements = shape.m * shape.k / warp_size;
  switch (shape.a_type) {
    case MatrixType::f16:
    case MatrixType::bf16:
      return shape.m == 16 && shape.n == 8 && (shape.k == 8 || shape.k == 16) ? elements : 0;
    case MatrixType::tf32:
      return shape.m == 16 && shape.n == 8 && (shape.k == 4 || shape.k == 8) ? elements : 0;
    case MatrixType::f64:
      return (shape.m == 8 && shape.n == 8 && shape.k == 4) ||
                     (shape.m == 16 && shape.n == 8 &&
                      (shape.k == 4 || shape.k == 8 || shape.k == 16))
                 ? elements
                 : 0;
    case MatrixType::s8:
    case MatrixType::u8:
      return (shape.m == 8 && shape.n == 8 && shape.k == 16) ||
                     (shape.m == 16 && shape.n == 8 && (shape.k == 16 || shape.k == 32))
                 ? elements
                 : 0;
    default:
      return 0;
  }
}

unsigned elements_of_b(const MatrixDetails& shape) {
  return shape.k * shape.n / warp_size;
}

// One lane's elements lie side by side in a 32-bit register; consecutive groups alternate between
// the upper and the lower eight rows (where there are 16), then move on along k.
FragmentPlace place_in_a(const MatrixDetails& shape, unsigned lane, unsigned i) {
  const unsigned together = std::max(32 / matrix_bits(shape.a_type), 1U);
  const unsigned group = lane / 4;
  const unsigned in_group = lane % 4;
  const unsigned part = i / together;
  const unsigned inside = i % together;
  if (shape.m == 8) return {group, in_group * together + inside};
  return {group + (part % 2) * 8, (part / 2) * 4 * together + in_group * together + inside};
}

FragmentPlace place_in_b(const MatrixDetails& shape, unsigned lane, unsigned i) {
  const unsigned together = std::max(32 / matrix_bits(shape.b_type), 1U);
  const unsigned group = lane / 4;
  const unsigned in_group = lane % 4;
  return {(i / together) * 4 * together + in_group * together + i % together, group};
}

FragmentPlace place_in_c(unsigned lane, unsigned i) {
  return {lane / 4 + (i / 2) * 8, lane % 4 * 2 + i % 2};
}

namespace warp_ops {

namespace {

std::uint64_t get(Warp& w, const WarpDetails& details, unsigned operand, unsigned width,
                  unsigned lane) {
  std::uint64_t value = 0;
  std::memcpy(
      &value,
      w.frame + details.slot[operand] + (details.uniform[operand] ? 0 : std::size_t{lane} * width),
      width);
  return value;
}

void set_bit(Mask& mask, unsigned lane, bool value) {
  mask = (mask & ~(Mask{1} << lane)) | (static_cast<Mask>(value) << lane);
}

const MicroOp* shuffle(Warp& w, const MicroOp* op, const WarpDetails& details) {
  std::uint32_t result[warp_size];
  Mask in_range = 0;
  const auto* data = w.at<std::uint32_t>(details.slot[0]);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const auto b = static_cast<unsigned>(get(w, details, 1, 4, lane)) & 31U;
    const auto c = static_cast<unsigned>(get(w, details, 2, 4, lane));
    const unsigned clamp = c & 31U;
    const unsigned segment = (c >> 8) & 31U;
    const unsigned highest = (lane & segment) | (clamp & ~segment & 31U);
    const unsigned lowest = lane & segment;
    unsigned from = lane;
    bool valid = false;
    switch (details.operation) {
      case WarpOperation::shuffle_up:
        valid = static_cast<int>(lane) - static_cast<int>(b) >= static_cast<int>(highest);
        from = lane - b;
        break;
      case WarpOperation::shuffle_down:
        from = lane + b;
        valid = from <= highest;
        break;
      case WarpOperation::shuffle_butterfly:
        from = lane ^ b;
        valid = from <= highest;
        break;
      default:
        from = lowest | (b & ~segment & 31U);
        valid = from <= highest;
        break;
    }
    if (!valid) from = lane;
    in_range |= static_cast<Mask>(valid) << lane;
    result[lane] = data[details.uniform[0] ? 0 : from];
  }
  auto* d = w.at<std::uint32_t>(op->d);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if (((w.mask >> lane) & 1U) != 0 && details.has_result) d[lane] = result[lane];
  }
  if (details.has_predicate) {
    Mask& p = *w.at<Mask>(details.predicate);
    p = (p & ~w.mask) | (in_range & w.mask);
  }
  return op + 1;
}

const MicroOp* vote(Warp& w, const MicroOp* op, const WarpDetails& details) {
  Mask p = *w.at<Mask>(details.slot[0]);
  if (details.negated) p = ~p;
  p &= w.mask;
  if (details.operation == WarpOperation::vote_ballot) {
    auto* d = w.at<std::uint32_t>(op->d);
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      if (((w.mask >> lane) & 1U) != 0) d[lane] = p;
    }
    return op + 1;
  }
  bool value = false;
  switch (details.operation) {
    case WarpOperation::vote_all:
      value = p == w.mask;
      break;
    case WarpOperation::vote_any:
      value = p != 0;
      break;
    default:
      value = p == 0 || p == w.mask;
      break;
  }
  Mask& d = *w.at<Mask>(op->d);
  d = (d & ~w.mask) | (value ? w.mask : 0);
  return op + 1;
}

const MicroOp* match(Warp& w, const MicroOp* op, const WarpDetails& details) {
  auto* d = w.at<std::uint32_t>(op->d);
  Mask result[warp_size] = {};
  Mask same_everywhere = 0;
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const auto members = static_cast<Mask>(get(w, details, 1, 4, lane)) & w.mask;
    const std::uint64_t mine = get(w, details, 0, details.width, lane);
    for (Mask others = members; others != 0; others &= others - 1) {
      const auto other = static_cast<unsigned>(std::countr_zero(others));
      if (get(w, details, 0, details.width, other) == mine) result[lane] |= Mask{1} << other;
    }
    if (details.operation == WarpOperation::match_all) {
      const bool all = result[lane] == members;
      set_bit(same_everywhere, lane, all);
      if (!all) result[lane] = 0;
    }
  }
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (details.has_result) d[lane] = result[lane];
  }
  if (details.has_predicate) {
    Mask& p = *w.at<Mask>(details.predicate);
    p = (p & ~w.mask) | (same_everywhere & w.mask);
  }
  return op + 1;
}

const MicroOp* reduce(Warp& w, const MicroOp* op, const WarpDetails& details) {
  std::uint32_t result[warp_size] = {};
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const auto members = static_cast<Mask>(get(w, details, 1, 4, lane)) & w.mask;
    bool first = true;
    std::uint32_t sum = 0;
    for (Mask others = members; others != 0; others &= others - 1) {
      const auto value = static_cast<std::uint32_t>(
          get(w, details, 0, 4, static_cast<unsigned>(std::countr_zero(others))));
      if (first) {
        sum = value;
        first = false;
        continue;
      }
      const bool less = details.is_signed
                            ? static_cast<std::int32_t>(value) < static_cast<std::int32_t>(sum)
                            : value < sum;
      switch (details.operation) {
        case WarpOperation::reduce_add:
          sum += value;
          break;
        case WarpOperation::reduce_min:
          sum = less ? value : sum;
          break;
        case WarpOperation::reduce_max:
          sum = less ? sum : value;
          break;
        case WarpOperation::reduce_and:
          sum &= value;
          break;
        case WarpOperation::reduce_or:
          sum |= value;
          break;
        default:
          sum ^= value;
          break;
      }
    }
    result[lane] = sum;
  }
  auto* d = w.at<std::uint32_t>(op->d);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    d[lane] = result[lane];
  }
  return op + 1;
}

}  // namespace

const MicroOp* exchange(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const WarpDetails*>(op->aux);
  switch (details.operation) {
    case WarpOperation::shuffle_up:
    case WarpOperation::shuffle_down:
    case WarpOperation::shuffle_butterfly:
    case WarpOperation::shuffle_index:
      return shuffle(w, op, details);
    case WarpOperation::vote_all:
    case WarpOperation::vote_any:
    case WarpOperation::vote_uniform:
    case WarpOperation::vote_ballot:
      return vote(w, op, details);
    case WarpOperation::match_any:
    case WarpOperation::match_all:
      return match(w, op, details);
    case WarpOperation::active_mask:
    case WarpOperation::elect: {
      const auto leader = static_cast<unsigned>(std::countr_zero(w.mask));
      auto* d = w.at<std::uint32_t>(op->d);
      for (Mask rest = w.mask; rest != 0 && details.has_result; rest &= rest - 1) {
        d[std::countr_zero(rest)] = details.operation == WarpOperation::elect ? leader : w.mask;
      }
      if (details.has_predicate) {
        Mask& p = *w.at<Mask>(details.predicate);
        p = (p & ~w.mask) | (Mask{1} << leader);
      }
      return op + 1;
    }
    default:
      return reduce(w, op, details);
  }
}

namespace {

double matrix_value(std::uint64_t bits, MatrixType type) {
  switch (type) {
    case MatrixType::f16:
      return lane_to_double(bits & 0xffff, LaneType::f16);
    case MatrixType::bf16:
      return lane_to_double(bits & 0xffff, LaneType::bf16);
    case MatrixType::tf32:
      return lane_to_double(bits & 0xffffffffU, LaneType::tf32);
    case MatrixType::f32:
      return lane_to_double(bits & 0xffffffffU, LaneType::f32);
    case MatrixType::f64:
      return std::bit_cast<double>(bits);
    case MatrixType::s8:
      return static_cast<double>(static_cast<std::int8_t>(bits));
    case MatrixType::u8:
      return static_cast<double>(static_cast<std::uint8_t>(bits));
    case MatrixType::s32:
      return static_cast<double>(static_cast<std::int32_t>(bits));
  }
  return 0;
}

// Element i of a fragment whose 32-bit (f64: 64-bit) registers stand in `slots`.
std::uint64_t fragment_bits(Warp& w, const std::uint32_t* slots, MatrixType type, unsigned lane,
                            unsigned i) {
  const unsigned bits = matrix_bits(type);
  if (bits == 64) return w.at<std::uint64_t>(slots[i])[lane];
  const unsigned together = 32 / bits;
  const std::uint32_t word = w.at<std::uint32_t>(slots[i / together])[lane];
  return word >> (i % together * bits);
}

}  // namespace

// Products are exact; the sum over k is taken in double precision (integers: exactly) and rounded
// once to the type of d. Hardware sums f16, bf16 and tf32 products in f32 with truncation, so its
// results may differ in the last bits.
const MicroOp* multiply(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const MatrixDetails*>(op->aux);
  double a[16][32];
  double b[32][8];
  const unsigned in_a = elements_of_a(s);
  const unsigned in_b = elements_of_b(s);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    for (unsigned i = 0; i < in_a; ++i) {
      const FragmentPlace at = place_in_a(s, lane, i);
      a[at.row][at.column] = matrix_value(fragment_bits(w, s.a, s.a_type, lane, i), s.a_type);
    }
    for (unsigned i = 0; i < in_b; ++i) {
      const FragmentPlace at = place_in_b(s, lane, i);
      b[at.row][at.column] = matrix_value(fragment_bits(w, s.b, s.b_type, lane, i), s.b_type);
    }
  }
  const unsigned in_c = s.m * s.n / warp_size;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    std::uint64_t out[8] = {};
    for (unsigned i = 0; i < in_c; ++i) {
      const FragmentPlace at = place_in_c(lane, i);
      std::uint64_t c_bits = 0;
      if (s.c_uniform[s.c_type == MatrixType::f16 ? i / 2 : i]) {
        std::memcpy(&c_bits, w.frame + s.c[s.c_type == MatrixType::f16 ? i / 2 : i], 8);
        if (s.c_type == MatrixType::f16) c_bits >>= i % 2 * 16;
      } else {
        c_bits = fragment_bits(w, s.c, s.c_type, lane, i);
      }
      if (s.d_type == MatrixType::f64) {
        double sum = std::bit_cast<double>(c_bits);
        for (unsigned k = 0; k < s.k; ++k) sum = std::fma(a[at.row][k], b[k][at.column], sum);
        out[i] = std::bit_cast<std::uint64_t>(sum);
        continue;
      }
      double sum = matrix_value(c_bits, s.c_type);
      for (unsigned k = 0; k < s.k; ++k) sum += a[at.row][k] * b[k][at.column];
      switch (s.d_type) {
        case MatrixType::s32: {
          const auto whole = static_cast<std::int64_t>(sum);
          out[i] = s.saturate ? static_cast<std::uint32_t>(
                                    std::clamp<std::int64_t>(whole, -2147483648LL, 2147483647LL))
                              : static_cast<std::uint32_t>(whole);
          break;
        }
        case MatrixType::f16:
          out[i] = lane_from_double(sum, LaneType::f16, Rounding::rn);
          break;
        default:
          out[i] = lane_from_double(sum, LaneType::f32, Rounding::rn);
          break;
      }
    }
    // Every lane's a and b were read already; c is read by its own lane only.
    if (((w.mask >> lane) & 1U) == 0) continue;
    for (unsigned i = 0; i < in_c; ++i) {
      if (s.d_type == MatrixType::f64) {
        w.at<std::uint64_t>(s.d[i])[lane] = out[i];
      } else if (s.d_type == MatrixType::f16) {
        if (i % 2 == 0)
          w.at<std::uint32_t>(s.d[i / 2])[lane] =
              static_cast<std::uint32_t>(out[i] | (out[i + 1] << 16));
      } else {
        w.at<std::uint32_t>(s.d[i])[lane] = static_cast<std::uint32_t>(out[i]);
      }
    }
  }
  return op + 1;
}

const MicroOp* move_matrix(Warp& w, const MicroOp* op) {
  const auto* a = w.at<std::uint32_t>(op->a);
  std::uint16_t rows[8][8];
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    rows[lane / 4][lane % 4 * 2] = static_cast<std::uint16_t>(a[lane]);
    rows[lane / 4][lane % 4 * 2 + 1] = static_cast<std::uint16_t>(a[lane] >> 16);
  }
  auto* d = w.at<std::uint32_t>(op->d);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if (((w.mask >> lane) & 1U) == 0) continue;
    const std::uint32_t low = rows[lane % 4 * 2][lane / 4];
    const std::uint32_t high = rows[lane % 4 * 2 + 1][lane / 4];
    d[lane] = low | (high << 16);
  }
  return op + 1;
}

}  // namespace warp_ops
}  // namespace demarc::emulate
