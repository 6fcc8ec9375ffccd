#include "ops/warpgroup.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace demarc::emulate {

namespace {

constexpr unsigned warp_rows = 16;
constexpr unsigned group_warps = 4;
constexpr unsigned piece_bytes = 16;
constexpr unsigned piece_rows = 8;  // of 16 bits
constexpr unsigned most_columns = 256;

// Bits 4 to 6 of the address are XORed with bits 7 to 9, as many as the width has.
constexpr unsigned swizzle_from = 7;
constexpr unsigned swizzle_to = 4;

// Numbers of one operand, [k][row].
struct Numbers {
  unsigned rows;
  std::vector<double> values;

  Numbers(unsigned depth, unsigned rows_of_each) : rows(rows_of_each), values(depth * rows) {}
  [[nodiscard]] double& at(unsigned k, unsigned row) { return values[std::size_t{k} * rows + row]; }
};

// Pieces of shared memory, through the checks of the space; what may not be read stays zeros.
std::vector<std::byte> pieces_at(Warp& w, const WarpgroupDetails& details,
                                 std::span<const std::uint64_t> addresses) {
  std::vector<std::byte> bytes(addresses.size() * piece_bytes);
  for (std::size_t first = 0; first < addresses.size(); first += warp_size) {
    const std::size_t count = std::min<std::size_t>(warp_size, addresses.size() - first);
    auto* slot = w.at<std::uint64_t>(details.scratch);
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      slot[lane] = addresses[first + std::min<std::size_t>(lane, count - 1)];
    }
    Access x;
    const MicroOp& part = details.part;
    if (!w.program->tables.fronts[part.kind](w, &part, x, AccessMode::load)) continue;
    for (unsigned lane = 0; lane < count; ++lane) {
      if ((x.mask >> lane & 1U) == 0) continue;
      std::memcpy(&bytes[(first + lane) * piece_bytes],
                  reinterpret_cast<const void*>(x.addresses[lane] + x.delta + lane * x.pitch),
                  piece_bytes);
    }
  }
  return bytes;
}

// Element `i` of a piece.
double element(const std::byte* piece, unsigned i, MatrixType type) {
  const unsigned bits = matrix_bits(type);
  std::uint64_t word = 0;
  std::memcpy(&word, piece + i * bits / 8, std::max(bits / 8, 1U));
  return matrix_value(word >> (i * bits % 8), type);
}

void read_memory(Warp& w, const WarpgroupDetails& details, const MatrixDescriptor& where,
                 bool along_rows, MatrixType type, unsigned first_row, Numbers& out) {
  const unsigned in_piece = 8 * piece_bytes / matrix_bits(type);
  const unsigned depth = details.k;
  std::vector<std::uint64_t> addresses;
  if (along_rows) {
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned row = 0; row < out.rows; row += piece_rows) {
        addresses.push_back(where.along_rows(first_row + row, k));
      }
    }
  } else {
    for (unsigned row = 0; row < out.rows; ++row) {
      for (unsigned k = 0; k < depth; k += in_piece) {
        addresses.push_back(where.along_k(first_row + row, k / in_piece * piece_bytes));
      }
    }
  }
  const std::vector<std::byte> bytes = pieces_at(w, details, addresses);
  const std::byte* piece = bytes.data();
  if (along_rows) {
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned row = 0; row < out.rows; ++row) {
        out.at(k, row) = element(piece + row / piece_rows * piece_bytes, row % piece_rows, type);
      }
      piece += out.rows / piece_rows * piece_bytes;
    }
    return;
  }
  for (unsigned row = 0; row < out.rows; ++row) {
    for (unsigned k = 0; k < depth; ++k) {
      out.at(k, row) = element(piece + k / in_piece * piece_bytes, k % in_piece, type);
    }
    piece += depth / in_piece * piece_bytes;
  }
}

void read_fragment(Warp& w, const WarpgroupDetails& details, Numbers& out) {
  MatrixDetails shape;
  shape.m = warp_rows;
  shape.k = details.k;
  shape.a_type = details.a_type;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    for (unsigned i = 0; i < warp_rows * details.k / warp_size; ++i) {
      const FragmentPlace at = place_in_a(shape, lane, i);
      out.at(at.column, at.row) = matrix_value(
          fragment_bits(w, details.a.fragment, nullptr, details.a_type, lane, i), details.a_type);
    }
  }
}

MatrixDescriptor descriptor_of(Warp& w, const WarpgroupOperand& operand) {
  return MatrixDescriptor::read(w.at<std::uint64_t>(operand.descriptor)[0]);
}

// Where element `i` of d lies among the warp's rows.
FragmentPlace place_in_d(unsigned lane, unsigned i) {
  return {lane / 4 + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2 + i % 2};
}

void negate(Numbers& numbers) {
  for (double& value : numbers.values) value = -value;
}

// Why a product cannot be made.
struct Objection {
  FindingKind kind;
  const char* why;
};

std::optional<Objection> objection(Warp& w, const WarpgroupDetails& details) {
  if (w.mask != full_mask) {
    return Objection{FindingKind::trap, "a product of a warpgroup without all of its lanes"};
  }
  if (w.index / group_warps * group_warps + group_warps > w.program->warps()) {
    return Objection{FindingKind::trap, "a product of a warpgroup that has not all of its warps"};
  }
  for (const WarpgroupOperand* operand : {&details.a, &details.b}) {
    if (!operand->in_memory) continue;
    const auto* words = w.at<std::uint64_t>(operand->descriptor);
    if (!operand->uniform &&
        !std::all_of(words, words + warp_size, [&](auto word) { return word == words[0]; })) {
      return Objection{FindingKind::trap,
                       "lanes of a warp give a product of a warpgroup different descriptors"};
    }
    if (descriptor_of(w, *operand).base_offset != 0) {
      return Objection{FindingKind::limit,
                       "a matrix descriptor with a base offset, which the emulator does not cover"};
    }
  }
  return std::nullopt;
}

}  // namespace

MatrixDescriptor MatrixDescriptor::read(std::uint64_t bits) {
  constexpr std::uint64_t field = 0x3fff;  // in units of 16 bytes
  constexpr unsigned widths[] = {0, 128, 64, 32};
  MatrixDescriptor out;
  out.start = (bits & field) * piece_bytes;
  out.leading = (bits >> 16 & field) * piece_bytes;
  out.stride = (bits >> 32 & field) * piece_bytes;
  out.base_offset = static_cast<unsigned>(bits >> 49 & 7U);
  out.swizzled_bytes = widths[bits >> 62];
  return out;
}

std::uint64_t MatrixDescriptor::swizzled(std::uint64_t address) const {
  if (swizzled_bytes == 0) return address;
  const std::uint64_t ones = swizzled_bytes / piece_bytes - 1;
  return address ^ (address >> swizzle_from & ones) << swizzle_to;
}

std::uint64_t MatrixDescriptor::along_k(unsigned row, unsigned byte) const {
  const std::uint64_t group = start + row / 8 * stride;
  if (swizzled_bytes == 0) return group + row % 8 * piece_bytes + byte / piece_bytes * leading;
  return swizzled(group + std::uint64_t{row % 8} * swizzled_bytes + byte);
}

std::uint64_t MatrixDescriptor::along_rows(unsigned row, unsigned k) const {
  if (swizzled_bytes == 0) {
    return start + row / piece_rows * stride + k / 8 * leading + k % 8 * piece_bytes;
  }
  const unsigned rows = swizzled_bytes / piece_bytes * piece_rows;
  return swizzled(start + row / rows * leading + k / 8 * stride +
                  std::uint64_t{k % 8} * swizzled_bytes + row % rows / piece_rows * piece_bytes);
}

bool is_warpgroup_shape(MatrixType a_type, unsigned n, unsigned k) {
  if (n == 0 || n > most_columns || n % 8 != 0) return false;
  switch (a_type) {
    case MatrixType::f16:
    case MatrixType::bf16:
    case MatrixType::tf32:
    case MatrixType::e4m3:
    case MatrixType::e5m2:
      return k == 8 * 32 / matrix_bits(a_type);
    // Of whole numbers beyond 24 columns there are every other.
    case MatrixType::s8:
    case MatrixType::u8:
    case MatrixType::b1:
      return k == 8 * 32 / matrix_bits(a_type) && (n <= 24 || n % 16 == 0);
    default:
      return false;
  }
}

namespace matrix_ops {

const MicroOp* multiply_warpgroup(Warp& w, const MicroOp* op) {
  const auto& s = *static_cast<const WarpgroupDetails*>(op->aux);
  if (const auto found = objection(w, s)) {
    const auto lane = static_cast<unsigned>(std::countr_zero(w.mask));
    w.block->report(w, op, lane, found->kind, found->why);
    w.block->stopped = true;
    return nullptr;
  }
  Numbers a(s.k, warp_rows);
  Numbers b(s.k, s.n);
  if (s.a.in_memory) {
    read_memory(w, s, descriptor_of(w, s.a), s.a.along_rows, s.a_type,
                w.index % group_warps * warp_rows, a);
  } else {
    read_fragment(w, s, a);
  }
  read_memory(w, s, descriptor_of(w, s.b), s.b.along_rows, s.b_type, 0, b);
  if (s.a.negated) negate(a);
  if (s.b.negated) negate(b);
  const bool adds = ((w.at<Mask>(s.scale)[0] & 1U) != 0) != s.scale_negated;
  const unsigned elements = warp_rows * s.n / warp_size;  // of a lane
  std::vector<double> sums(std::size_t{warp_rows} * s.n);
  for (unsigned lane = 0; adds && lane < warp_size; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      const FragmentPlace at = place_in_d(lane, i);
      sums[std::size_t{at.row} * s.n + at.column] =
          matrix_value(fragment_bits(w, s.d, nullptr, s.d_type, lane, i), s.d_type);
    }
  }
  for (unsigned row = 0; row < warp_rows; ++row) {
    double* const sum = &sums[std::size_t{row} * s.n];
    for (unsigned k = 0; k < s.k; ++k) {
      const double factor = a.at(k, row);
      const double* const column = &b.at(k, 0);
      for (unsigned n = 0; n < s.n; ++n) sum[n] += factor * column[n];
    }
  }
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      const FragmentPlace at = place_in_d(lane, i);
      set_fragment_bits(
          w, s.d, s.d_type, lane, i,
          matrix_result(sums[std::size_t{at.row} * s.n + at.column], s.d_type, s.saturate));
    }
  }
  return op + 1;
}

}  // namespace matrix_ops
}  // namespace demarc::emulate
