// Matrix products of a warp: mma and wmma.
#include <array>
#include <bit>
#include <cstring>

#include "ops/matrix.hpp"

namespace demarc::emulate {

namespace {

constexpr unsigned max_m = 32;
constexpr unsigned max_n = 32;
constexpr unsigned max_k = 64;
constexpr unsigned max_sums = 16 * 16;
constexpr unsigned max_register_bytes = warp_size * sizeof(double);
constexpr unsigned fragment_bytes = Fragment::max_registers * max_register_bytes;

// Where the registers of a fragment stand; those that are the same in all lanes are spread in
// `copies`.
class SourceRegisters {
 public:
  SourceRegisters(const Warp& w, const Fragment& fragment) {
    const unsigned bytes = warp_size * fragment.lane_bytes;
    for (unsigned i = 0; i < fragment.registers; ++i) {
      const std::byte* const at = w.frame + fragment.slots[i];
      registers_[i] = at;
      if (!fragment.uniform[i]) continue;
      std::byte* const copy = copies_ + std::size_t{i} * max_register_bytes;
      for (unsigned byte = 0; byte < bytes; ++byte) copy[byte] = at[byte % fragment.lane_bytes];
      registers_[i] = copy;
    }
  }
  [[nodiscard]] const std::byte* const* get() const { return registers_; }

 private:
  const std::byte* registers_[Fragment::max_registers];
  alignas(64) std::byte copies_[fragment_bytes];
};

// Where results are written: into the registers, or where not all lanes execute beside them.
class ResultRegisters {
 public:
  ResultRegisters(const Warp& w, const Fragment& fragment) : warp_(w), fragment_(fragment) {
    for (unsigned i = 0; i < fragment.registers; ++i) {
      registers_[i] = w.mask == full_mask ? w.frame + fragment.slots[i]
                                          : copies_ + std::size_t{i} * max_register_bytes;
    }
  }
  [[nodiscard]] std::byte* const* get() const { return registers_; }
  // Hands the lanes that execute what has been written beside the registers.
  void finish() const {
    if (warp_.mask == full_mask) return;
    const std::size_t bytes = fragment_.lane_bytes;
    for (Mask rest = warp_.mask; rest != 0; rest &= rest - 1) {
      const std::size_t at = static_cast<unsigned>(std::countr_zero(rest)) * bytes;
      for (unsigned i = 0; i < fragment_.registers; ++i)
        std::memcpy(warp_.frame + fragment_.slots[i] + at, registers_[i] + at, bytes);
    }
  }

 private:
  const Warp& warp_;
  const Fragment& fragment_;
  std::byte* registers_[Fragment::max_registers];
  alignas(64) std::byte copies_[fragment_bytes];
};

void read_b(const Warp& w, const MatrixDetails& s, double* b) {
  const unsigned depth = s.size.k / s.b.registers;
  for (unsigned i = 0; i < s.b.registers; ++i) {
    s.steps.b_columns(w.frame + s.b.slots[i], std::size_t{4} * s.b.lane_bytes,
                      b + std::size_t{i} * depth * s.size.n, s.size.n);
  }
}

// For the eight lanes of a quad.
unsigned lane_of(unsigned quad, unsigned l) {
  return quad * 4 + l % 4 + (l >= 4 ? 16 : 0);
}

// For the sums of a quad's lanes, eight of each lane: their places in the matrix, row by row.
using QuadPlaces = std::array<std::uint8_t, 64>;
constexpr QuadPlaces make_quad_places() {
  QuadPlaces places{};
  for (unsigned l = 0; l < 8; ++l) {
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned row = (l & 1U) + (i & 2U) + (l >= 4 ? 4 : 0);
      const unsigned column = (i & 4U) + (l & 2U) + (i & 1U);
      places[l * 8 + i] = static_cast<std::uint8_t>(row * 8 + column);
    }
  }
  return places;
}
// Of f16 a lane has a row.
constexpr QuadPlaces make_quad_rows() {
  QuadPlaces places{};
  for (unsigned i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint8_t>(i);
  return places;
}
constexpr QuadPlaces quad_places = make_quad_places();
constexpr QuadPlaces quad_rows = make_quad_rows();

// Words of a fragment of wmma: a lane's follow each other in the matrix, row by row, and so do the
// lanes.
template <class Word>
void gather_words(const std::byte* const* registers, unsigned count, std::byte* matrix) {
  auto* to = reinterpret_cast<Word*>(matrix);
  for (unsigned i = 0; i < count; ++i) {
    const auto* from = reinterpret_cast<const Word*>(registers[i]);
    for (unsigned lane = 0; lane < warp_size; ++lane) to[lane * count + i] = from[lane];
  }
}
template <class Word>
void scatter_words(const std::byte* matrix, unsigned count, std::byte* const* registers) {
  const auto* from = reinterpret_cast<const Word*>(matrix);
  for (unsigned i = 0; i < count; ++i) {
    auto* to = reinterpret_cast<Word*>(registers[i]);
    for (unsigned lane = 0; lane < warp_size; ++lane) to[lane] = from[lane * count + i];
  }
}

void read_fragment(const Warp& w, const Fragment& fragment, MatrixType type, unsigned elements,
                   MatrixSteps::Widen widen, double* numbers) {
  const SourceRegisters registers(w, fragment);
  alignas(64) std::byte matrix[fragment_bytes];
  const unsigned count = registers_for(elements / warp_size, type);
  if (type == MatrixType::f64) {
    gather_words<std::uint64_t>(registers.get(), count, matrix);
  } else {
    gather_words<std::uint32_t>(registers.get(), count, matrix);
  }
  widen(matrix, elements, numbers);
}

// 2 to the least exponent of numbers of the type.
double least_power(MatrixType type) {
  switch (type) {
    case MatrixType::e4m3:
      return 0x1p-6;
    case MatrixType::f16:
    case MatrixType::e5m2:
      return 0x1p-14;
    default:
      return 0x1p-126;
  }
}

bool is_8_bit_float(MatrixType type) {
  return type == MatrixType::e4m3 || type == MatrixType::e5m2;
}

// Found on an H200, like the rule itself.
SumRule sum_rule(const ProductTypes& types, ProductLayout layout, unsigned k) {
  SumRule rule;
  rule.least_a = least_power(types.a);
  rule.least_b = least_power(types.b);
  rule.block = k;
  // Among two types of sums the wider one is used.
  rule.to_f16 = types.d == MatrixType::f16 && types.c == MatrixType::f16;
  rule.least_c = least_power(rule.to_f16 ? MatrixType::f16 : MatrixType::f32);
  if (layout == ProductLayout::fragments && types.a == MatrixType::tf32) rule.block = 4;
  if (is_8_bit_float(types.a) && layout == ProductLayout::warpgroup) {
    rule.scale = 0x1p13;
    rule.unit = 0x1p-13;
  } else if (is_8_bit_float(types.a)) {
    rule.least_a = rule.least_b = least_power(MatrixType::f16);
    rule.block = k / 2;
  }
  return rule;
}

MatrixSteps::AddProducts adder_of(const MatrixSteps& steps, const ProductTypes& types,
                                  ProductLayout layout) {
  if (layout == ProductLayout::quads) return steps.add_in_turn;
  switch (types.a) {
    case MatrixType::f64:
      return steps.add_fused;
    case MatrixType::b1:
      return types.exclusive ? steps.add_different_bits : steps.add_common_bits;
    case MatrixType::f16:
    case MatrixType::bf16:
    case MatrixType::tf32:
      return steps.add_aligned;
    case MatrixType::e4m3:
    case MatrixType::e5m2:
      return layout == ProductLayout::warpgroup ? steps.add_aligned : steps.add_halves;
    default:
      return steps.add_whole;
  }
}

}  // namespace

ProductSteps product_steps(const MatrixSteps& steps, const ProductTypes& types,
                           ProductLayout layout, unsigned k) {
  const auto at = [](MatrixType type) { return static_cast<std::size_t>(type); };
  ProductSteps out;
  out.widen_a = steps.widen[at(types.a)];
  out.widen_b = steps.widen[at(types.b)];
  out.widen_c = steps.widen[at(types.c)];
  out.a_rows = steps.rows[at(types.a)];
  out.a_columns = steps.columns[at(types.a)];
  out.b_rows = steps.rows[at(types.b)];
  out.b_columns = steps.columns[at(types.b)];
  out.read_sums = steps.read_sums[at(types.c)];
  out.add = adder_of(steps, types, layout);
  out.rule = sum_rule(types, layout, k);
  out.write_sums = types.saturate ? steps.write_saturated : steps.write_sums[at(types.d)];
  out.narrow = types.saturate ? steps.narrow_saturated : steps.narrow[at(types.d)];
  return out;
}

void read_a(const Warp& w, const ProductSize& size, MatrixSteps::Read rows, const Fragment& from,
            double* a) {
  const unsigned down = size.m / tile_rows;
  const unsigned depth = size.k * down / from.registers;
  for (unsigned i = 0; i < from.registers; ++i) {
    rows(w.frame + from.slots[i], std::size_t{4} * from.lane_bytes,
         a + std::size_t{i % down} * tile_rows * size.k + i / down * depth, size.k);
  }
}

void read_sums(const ProductSize& size, MatrixSteps::ReadSums read,
               const std::byte* const* registers, unsigned count, double* sums) {
  const unsigned in_tile = count * tile_rows * tile_columns / (size.m * size.n);
  for (unsigned column = 0; column < size.n; column += tile_columns) {
    for (unsigned row = 0; row < size.m; row += tile_rows) {
      read(registers, sums + std::size_t{row} * size.n + column, size.n);
      registers += in_tile;
    }
  }
}

void write_sums(const ProductSize& size, MatrixSteps::WriteSums write, const double* sums,
                std::byte* const* registers, unsigned count) {
  const unsigned in_tile = count * tile_rows * tile_columns / (size.m * size.n);
  for (unsigned column = 0; column < size.n; column += tile_columns) {
    for (unsigned row = 0; row < size.m; row += tile_rows) {
      write(sums + std::size_t{row} * size.n + column, size.n, registers);
      registers += in_tile;
    }
  }
}

namespace matrix_ops {

const MicroOp* multiply(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const MatrixDetails*>(op->aux);
  alignas(64) double a[16 * max_k];
  alignas(64) double b[max_k * tile_columns];
  alignas(64) double sums[16 * tile_columns];
  read_a(w, s.size, s.steps.a_rows, s.a, a);
  read_b(w, s, b);
  const SourceRegisters c(w, s.c);
  read_sums(s.size, s.steps.read_sums, c.get(), s.c.registers, sums);
  s.steps.add(s.size, s.steps.rule, a, b, sums);
  const ResultRegisters d(w, s.d);
  write_sums(s.size, s.steps.write_sums, sums, d.get(), s.d.registers);
  d.finish();
  return op + 1;
}

// Four products of 8 x 8 x 4: the q-th belongs to lanes 4q..4q+3 and 16+4q..16+4q+3.
const MicroOp* multiply_quads(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const MatrixDetails*>(op->aux);
  constexpr ProductSize size{.m = 8, .n = 8, .k = 4};
  constexpr unsigned in_lane = 8;  // sums
  // Numbers of the lanes, one lane after the other.
  alignas(64) double in_a[warp_size * size.k];
  alignas(64) double in_b[warp_size * size.k];
  alignas(64) double in_c[warp_size * in_lane];
  alignas(64) double out[warp_size * in_lane];
  read_fragment(w, s.a, s.types.a, warp_size * size.k, s.steps.widen_a, in_a);
  read_fragment(w, s.b, s.types.b, warp_size * size.k, s.steps.widen_b, in_b);
  read_fragment(w, s.c, s.types.c, warp_size * in_lane, s.steps.widen_c, in_c);
  const QuadPlaces& places_of_c = s.types.c == MatrixType::f16 ? quad_rows : quad_places;
  const QuadPlaces& places_of_d = s.types.d == MatrixType::f16 ? quad_rows : quad_places;
  for (unsigned quad = 0; quad < 4; ++quad) {
    double a[8][4];
    double b[4][8];
    double sums[64];
    for (unsigned l = 0; l < 8; ++l) {
      const unsigned lane = lane_of(quad, l);
      const unsigned upper = l >= 4 ? 4 : 0;
      for (unsigned i = 0; i < 4; ++i) {
        (s.a_by_column ? a[i + upper][l % 4] : a[l][i]) = in_a[lane * size.k + i];
        (s.b_by_row ? b[l % 4][i + upper] : b[i][l]) = in_b[lane * size.k + i];
      }
      for (unsigned i = 0; i < in_lane; ++i)
        sums[places_of_c[l * in_lane + i]] = in_c[lane * in_lane + i];
    }
    s.steps.add(size, s.steps.rule, a[0], b[0], sums);
    for (unsigned l = 0; l < 8; ++l) {
      for (unsigned i = 0; i < in_lane; ++i)
        out[lane_of(quad, l) * in_lane + i] = sums[places_of_d[l * in_lane + i]];
    }
  }
  alignas(64) std::byte matrix[fragment_bytes];
  s.steps.narrow(out, warp_size * in_lane, matrix);
  const ResultRegisters d(w, s.d);
  scatter_words<std::uint32_t>(matrix, s.d.registers, d.get());
  d.finish();
  return op + 1;
}

const MicroOp* multiply_fragments(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const MatrixDetails*>(op->aux);
  const ProductSize& size = s.size;
  alignas(64) double a[max_m * 16];
  alignas(64) double b[16 * max_n];
  alignas(64) double sums[max_sums];
  read_fragment(w, s.a, s.types.a, size.m * size.k, s.steps.widen_a, a);
  read_fragment(w, s.b, s.types.b, size.k * size.n, s.steps.widen_b, b);
  read_fragment(w, s.c, s.types.c, size.m * size.n, s.steps.widen_c, sums);
  s.steps.add(size, s.steps.rule, a, b, sums);
  alignas(64) std::byte matrix[fragment_bytes];
  s.steps.narrow(sums, size.m * size.n, matrix);
  const ResultRegisters d(w, s.d);
  if (s.types.d == MatrixType::f64) {
    scatter_words<std::uint64_t>(matrix, s.d.registers, d.get());
  } else {
    scatter_words<std::uint32_t>(matrix, s.d.registers, d.get());
  }
  d.finish();
  return op + 1;
}

}  // namespace matrix_ops
}  // namespace demarc::emulate
