#include "ops/matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "lanes/functions.hpp"

namespace demarc::emulate {

namespace {

constexpr unsigned most_m = 32;
constexpr unsigned most_n = 32;
constexpr unsigned most_k = 256;

// Products are exact; the sum over k is taken in double precision (integers: exactly) and rounded
// once to the type of d. Hardware sums f16, bf16 and tf32 products in f32 with truncation, so its
// results may differ in the last bits.
struct Product {
  double a[most_m][most_k];
  double b[most_n][most_k];  // by column

  [[nodiscard]] double element(const MatrixDetails& s, unsigned row, unsigned column,
                               double c) const {
    const double* x = a[row];
    const double* y = b[column];
    double sum = c;
    if (s.d_type == MatrixType::f64) {
      for (unsigned k = 0; k < s.k; ++k) sum = std::fma(x[k], y[k], sum);
    } else if (s.exclusive) {
      for (unsigned k = 0; k < s.k; ++k) sum += x[k] != y[k] ? 1 : 0;
    } else {
      for (unsigned k = 0; k < s.k; ++k) sum += x[k] * y[k];
    }
    return sum;
  }
};

std::uint64_t product_bits(Warp& w, const MatrixDetails& s, const Product& product,
                           FragmentPlace at, unsigned lane, unsigned i) {
  const double c = matrix_value(fragment_bits(w, s.c, s.c_uniform, s.c_type, lane, i), s.c_type);
  return matrix_result(product.element(s, at.row, at.column, c), s.d_type, s.saturate);
}

}  // namespace

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
    case MatrixType::e4m3:
      return lane_to_double(bits & 0xff, LaneType::e4m3x2);
    case MatrixType::e5m2:
      return lane_to_double(bits & 0xff, LaneType::e5m2x2);
    case MatrixType::s8:
      return static_cast<double>(static_cast<std::int8_t>(bits));
    case MatrixType::u8:
      return static_cast<double>(static_cast<std::uint8_t>(bits));
    case MatrixType::s4:
      return static_cast<double>(static_cast<std::int8_t>(bits << 4) >> 4);
    case MatrixType::u4:
      return static_cast<double>(bits & 15U);
    case MatrixType::b1:
      return static_cast<double>(bits & 1U);
    case MatrixType::s32:
      return static_cast<double>(static_cast<std::int32_t>(bits));
  }
  return 0;
}

std::uint64_t matrix_result(double sum, MatrixType type, bool saturate) {
  switch (type) {
    case MatrixType::s32: {
      const auto whole = static_cast<std::int64_t>(sum);
      return saturate ? static_cast<std::uint32_t>(
                            std::clamp<std::int64_t>(whole, -2147483648LL, 2147483647LL))
                      : static_cast<std::uint32_t>(whole);
    }
    case MatrixType::f16:
      return lane_from_double(sum, LaneType::f16, Rounding::rn);
    case MatrixType::f64:
      return std::bit_cast<std::uint64_t>(sum);
    default:
      return lane_from_double(sum, LaneType::f32, Rounding::rn);
  }
}

std::uint64_t fragment_bits(Warp& w, const std::uint32_t* slots, const bool* uniform,
                            MatrixType type, unsigned lane, unsigned i) {
  const unsigned bits = matrix_bits(type);
  const unsigned together = bits >= 32 ? 1 : 32 / bits;
  const unsigned at = i / together;
  const std::size_t from = uniform != nullptr && uniform[at] ? 0 : lane;
  if (bits == 64) return w.at<std::uint64_t>(slots[at])[from];
  const std::uint32_t word = w.at<std::uint32_t>(slots[at])[from];
  return word >> (i % together * bits);
}

void set_fragment_bits(Warp& w, const std::uint32_t* slots, MatrixType type, unsigned lane,
                       unsigned i, std::uint64_t value) {
  const unsigned bits = matrix_bits(type);
  if (bits == 64) {
    w.at<std::uint64_t>(slots[i])[lane] = value;
    return;
  }
  const unsigned together = 32 / bits;
  std::uint32_t& word = w.at<std::uint32_t>(slots[i / together])[lane];
  const unsigned shift = i % together * bits;
  const std::uint32_t ones = bits == 32 ? ~0U : ((1U << bits) - 1) << shift;
  word = (word & ~ones) | ((static_cast<std::uint32_t>(value) << shift) & ones);
}

unsigned matrix_bits(MatrixType type) {
  switch (type) {
    case MatrixType::f16:
    case MatrixType::bf16:
      return 16;
    case MatrixType::e4m3:
    case MatrixType::e5m2:
    case MatrixType::s8:
    case MatrixType::u8:
      return 8;
    case MatrixType::s4:
    case MatrixType::u4:
      return 4;
    case MatrixType::b1:
      return 1;
    case MatrixType::f64:
      return 64;
    default:
      return 32;
  }
}

unsigned registers_for(unsigned elements, MatrixType type) {
  return type == MatrixType::f64 ? elements : (elements * matrix_bits(type) + 31) / 32;
}

bool is_product_shape(const MatrixDetails& shape) {
  const bool small = shape.m == 8 && shape.n == 8;
  const bool large = shape.m == 16 && shape.n == 8;
  const unsigned k = shape.k;
  switch (shape.a_type) {
    case MatrixType::f16:
    case MatrixType::bf16:
      return large && (k == 8 || k == 16);
    case MatrixType::tf32:
      return large && (k == 4 || k == 8);
    case MatrixType::f64:
      return (small && k == 4) || (large && (k == 4 || k == 8 || k == 16));
    case MatrixType::e4m3:
    case MatrixType::e5m2:
      return large && (k == 16 || k == 32);
    case MatrixType::s8:
    case MatrixType::u8:
      return (small && k == 16) || (large && (k == 16 || k == 32));
    case MatrixType::s4:
    case MatrixType::u4:
      return (small && k == 32) || (large && (k == 32 || k == 64));
    case MatrixType::b1:
      return (small && k == 128) || (large && (k == 128 || k == 256));
    default:
      return false;
  }
}

bool is_fragment_shape(const MatrixDetails& shape) {
  const bool sixteen =
      shape.k == 16 && ((shape.m == 16 && shape.n == 16) || (shape.m == 8 && shape.n == 32) ||
                        (shape.m == 32 && shape.n == 8));
  switch (shape.a_type) {
    case MatrixType::f16:
    case MatrixType::bf16:
    case MatrixType::s8:
    case MatrixType::u8:
      return sixteen;
    case MatrixType::tf32:
      return shape.m == 16 && shape.n == 16 && shape.k == 8;
    case MatrixType::f64:
      return shape.m == 8 && shape.n == 8 && shape.k == 4;
    default:
      return false;
  }
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

namespace matrix_ops {

const MicroOp* multiply(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const MatrixDetails*>(op->aux);
  Product product;
  const unsigned in_a = s.m * s.k / warp_size;
  const unsigned in_b = s.k * s.n / warp_size;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    for (unsigned i = 0; i < in_a; ++i) {
      const FragmentPlace at = place_in_a(s, lane, i);
      product.a[at.row][at.column] =
          matrix_value(fragment_bits(w, s.a, nullptr, s.a_type, lane, i), s.a_type);
    }
    for (unsigned i = 0; i < in_b; ++i) {
      const FragmentPlace at = place_in_b(s, lane, i);
      product.b[at.column][at.row] =
          matrix_value(fragment_bits(w, s.b, nullptr, s.b_type, lane, i), s.b_type);
    }
  }
  // Every lane's a and b have been read; c is read by its own lane only.
  const unsigned in_c = s.m * s.n / warp_size;
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint64_t out[8] = {};
    for (unsigned i = 0; i < in_c; ++i)
      out[i] = product_bits(w, s, product, place_in_c(lane, i), lane, i);
    for (unsigned i = 0; i < in_c; ++i) set_fragment_bits(w, s.d, s.d_type, lane, i, out[i]);
  }
  return op + 1;
}

// Four products of 8 x 8 x 4: the q-th belongs to lanes 4q..4q+3 and 16+4q..16+4q+3.
const MicroOp* multiply_quads(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const MatrixDetails*>(op->aux);
  for (unsigned quad = 0; quad < 4; ++quad) {
    Product product;
    const auto lane_of = [&](unsigned l) { return quad * 4 + l % 4 + (l >= 4 ? 16 : 0); };
    for (unsigned l = 0; l < 8; ++l) {
      const unsigned upper = l >= 4 ? 4 : 0;
      for (unsigned i = 0; i < 4; ++i) {
        const double a =
            matrix_value(fragment_bits(w, s.a, nullptr, s.a_type, lane_of(l), i), s.a_type);
        const double b =
            matrix_value(fragment_bits(w, s.b, nullptr, s.b_type, lane_of(l), i), s.b_type);
        (s.a_by_column ? product.a[i + upper][l % 4] : product.a[l][i]) = a;
        (s.b_by_row ? product.b[i + upper][l % 4] : product.b[l][i]) = b;
      }
    }
    const auto place = [&](unsigned l, unsigned i, MatrixType type) {
      const unsigned lane = lane_of(l);
      if (type == MatrixType::f16) return FragmentPlace{l, i};
      return FragmentPlace{(lane & 1U) + (i & 2U) + (l >= 4 ? 4 : 0),
                           (i & 4U) + (lane & 2U) + (i & 1U)};
    };
    // d may stand in the registers of c, and lie differently.
    double c[8][8] = {};
    for (unsigned l = 0; l < 8; ++l) {
      for (unsigned i = 0; i < 8; ++i) {
        const FragmentPlace at = place(l, i, s.c_type);
        c[at.row][at.column] =
            matrix_value(fragment_bits(w, s.c, s.c_uniform, s.c_type, lane_of(l), i), s.c_type);
      }
    }
    for (unsigned l = 0; l < 8; ++l) {
      if (((w.mask >> lane_of(l)) & 1U) == 0) continue;
      for (unsigned i = 0; i < 8; ++i) {
        const FragmentPlace at = place(l, i, s.d_type);
        const double sum = product.element(s, at.row, at.column, c[at.row][at.column]);
        set_fragment_bits(w, s.d, s.d_type, lane_of(l), i,
                          matrix_result(sum, s.d_type, s.saturate));
      }
    }
  }
  return op + 1;
}

namespace {

// Our fragments: element j of a lane is number lane * (elements of a lane) + j of the matrix, row
// by row. Registers with room for more hold them again.
FragmentPlace fragment_place(unsigned rows, unsigned columns, unsigned lane, unsigned j) {
  const unsigned number = lane * (rows * columns / warp_size) + j;
  return {number / columns, number % columns};
}

}  // namespace

const MicroOp* multiply_fragments(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const MatrixDetails*>(op->aux);
  Product product;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    for (unsigned j = 0; j < s.m * s.k / warp_size; ++j) {
      const FragmentPlace at = fragment_place(s.m, s.k, lane, j);
      product.a[at.row][at.column] =
          matrix_value(fragment_bits(w, s.a, nullptr, s.a_type, lane, j), s.a_type);
    }
    for (unsigned j = 0; j < s.k * s.n / warp_size; ++j) {
      const FragmentPlace at = fragment_place(s.k, s.n, lane, j);
      product.b[at.column][at.row] =
          matrix_value(fragment_bits(w, s.b, nullptr, s.b_type, lane, j), s.b_type);
    }
  }
  const unsigned in_c = s.m * s.n / warp_size;
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint64_t out[8] = {};
    for (unsigned j = 0; j < in_c; ++j)
      out[j] = product_bits(w, s, product, fragment_place(s.m, s.n, lane, j), lane, j);
    for (unsigned j = 0; j < in_c; ++j) set_fragment_bits(w, s.d, s.d_type, lane, j, out[j]);
  }
  return op + 1;
}

namespace {

// Element j of every lane, through the checks of the space.
bool fragment_access(Warp& w, const FragmentDetails& details, unsigned j, Access& x,
                     AccessMode mode) {
  const MicroOp& part = details.part;
  const bool uniform = (part.uniform & uniform_a) != 0;
  const bool narrow = (part.flags & memory_narrow_address) != 0;
  auto* addresses = w.at<std::uint64_t>(details.scratch);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const std::uint64_t base = narrow ? w.at<std::uint32_t>(part.a)[uniform ? 0 : lane]
                                      : w.at<std::uint64_t>(part.a)[uniform ? 0 : lane];
    std::uint64_t stride = details.by_column ? details.rows : details.columns;
    if (details.has_stride)
      stride = w.at<std::uint32_t>(details.stride)[details.stride_uniform ? 0 : lane];
    const FragmentPlace at = fragment_place(details.rows, details.columns, lane, j);
    const std::uint64_t element =
        details.by_column ? at.column * stride + at.row : at.row * stride + at.column;
    const std::uint64_t sum = base + part.imm + element * part.bytes;
    addresses[lane] = narrow ? static_cast<std::uint32_t>(sum) : sum;
  }
  MicroOp op = part;
  op.a = details.scratch;
  op.uniform = 0;
  op.imm = 0;
  op.flags = static_cast<std::uint8_t>(op.flags & ~memory_narrow_address);
  return w.program->tables.fronts[op.kind](w, &op, x, mode);
}

}  // namespace

const MicroOp* load_fragment(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const FragmentDetails*>(op->aux);
  const unsigned elements = details.rows * details.columns / warp_size;
  const unsigned room =
      details.registers * (matrix_bits(details.type) >= 32 ? 1 : 32 / matrix_bits(details.type));
  for (unsigned j = 0; j < elements; ++j) {
    Access x;
    if (!fragment_access(w, details, j, x, AccessMode::load)) continue;
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      std::uint64_t value = 0;
      std::memcpy(&value,
                  reinterpret_cast<const void*>(x.addresses[lane] + x.delta + lane * x.pitch),
                  details.part.bytes);
      for (unsigned i = j; i < room; i += elements)
        set_fragment_bits(w, details.slots, details.type, lane, i, value);
    }
  }
  return op + 1;
}

const MicroOp* store_fragment(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const FragmentDetails*>(op->aux);
  const unsigned elements = details.rows * details.columns / warp_size;
  for (unsigned j = 0; j < elements; ++j) {
    Access x;
    if (!fragment_access(w, details, j, x, AccessMode::store)) continue;
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      const std::uint64_t value = fragment_bits(w, details.slots, nullptr, details.type, lane, j);
      std::memcpy(reinterpret_cast<void*>(x.addresses[lane] + x.delta + lane * x.pitch), &value,
                  details.part.bytes);
    }
  }
  return op + 1;
}

}  // namespace matrix_ops
}  // namespace demarc::emulate
