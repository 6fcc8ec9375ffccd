// Carries out matrix products of a warpgroup, with operands that descriptors name.
#include "ops/warpgroup.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include "ops/swizzle.hpp"

namespace demarc::emulate {

namespace {

constexpr unsigned group_warps = 4;
constexpr unsigned piece_bytes = 16;
constexpr unsigned piece_rows = 8;  // rows of 16 bits
constexpr unsigned max_columns = 256;
constexpr unsigned max_depth = 32;        // numbers along k
constexpr unsigned max_depth_bytes = 32;  // and their bytes, as many for every type

// Numbers of the operands, and the sums.
struct Numbers {
  alignas(64) double a[WarpgroupDetails::warp_rows * max_depth];
  alignas(64) double b[max_depth * max_columns];
  alignas(64) double sums[WarpgroupDetails::warp_rows * max_columns];
};

// Sixteen bytes of each of eight rows, or of eight k.
using Addresses = std::array<std::uint64_t, max_columns * max_depth_bytes / piece_bytes>;
using Pieces = std::array<std::byte, max_columns * max_depth_bytes>;

MatrixDescriptor descriptor_of(Warp& w, const WarpgroupOperand& operand) {
  return MatrixDescriptor::read(w.at<std::uint64_t>(operand.descriptor)[0]);
}

// Pieces of shared memory, through the checks of the space; what may not be read is zeros.
void read_pieces(Warp& w, const WarpgroupDetails& details, std::span<const std::uint64_t> addresses,
                 std::byte* bytes) {
  for (std::size_t first = 0; first < addresses.size(); first += warp_size) {
    const std::size_t count = std::min<std::size_t>(warp_size, addresses.size() - first);
    auto* slot = w.at<std::uint64_t>(details.scratch);
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      slot[lane] = addresses[first + std::min<std::size_t>(lane, count - 1)];
    }
    Access x;
    const MicroOp& part = details.part;
    w.program->tables.fronts[part.kind](w, &part, x, AccessMode::load);
    for (unsigned lane = 0; lane < count; ++lane) {
      std::byte* const to = bytes + (first + lane) * piece_bytes;
      if ((x.mask >> lane & 1U) == 0) {
        std::memset(to, 0, piece_bytes);
        continue;
      }
      std::memcpy(to, reinterpret_cast<const void*>(x.addresses[lane] + x.delta), piece_bytes);
    }
  }
}

// One operand in memory: `rows` from `first_row` on, which go along the rows of the product's
// matrix (a), or along its columns (b).
struct MemoryPart {
  const WarpgroupOperand& operand;
  MatrixType type;
  unsigned first_row;
  unsigned rows;
};

// Eight rows by the numbers of a piece are read at once.
void read_memory(Warp& w, const WarpgroupDetails& details, const MemoryPart& part,
                 MatrixSteps::Read along_k, MatrixSteps::Read along_rows, double* out,
                 bool k_is_column) {
  const MatrixDescriptor where = descriptor_of(w, part.operand);
  const unsigned depth = details.size.k;
  const unsigned in_piece = depth * piece_bytes / max_depth_bytes;
  const unsigned pitch = k_is_column ? depth : part.rows;
  Addresses addresses;
  std::size_t count = 0;
  alignas(64) Pieces bytes;
  const auto place = [&](unsigned row, unsigned k) {
    return k_is_column ? std::size_t{row} * pitch + k : std::size_t{k} * pitch + row;
  };
  if (part.operand.along_rows) {
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned row = 0; row < part.rows; row += piece_rows) {
        addresses[count++] = where.along_rows(part.first_row + row, k);
      }
    }
    read_pieces(w, details, {addresses.data(), count}, bytes.data());
    const std::size_t stride = part.rows / piece_rows * piece_bytes;  // of k
    for (unsigned k = 0; k < depth; k += piece_rows) {
      for (unsigned row = 0; row < part.rows; row += piece_rows) {
        along_rows(&bytes[k * stride + row / piece_rows * piece_bytes], stride, out + place(row, k),
                   pitch);
      }
    }
    return;
  }
  for (unsigned row = 0; row < part.rows; ++row) {
    for (unsigned k = 0; k < depth; k += in_piece) {
      addresses[count++] = where.along_k(part.first_row + row, k / in_piece * piece_bytes);
    }
  }
  read_pieces(w, details, {addresses.data(), count}, bytes.data());
  for (unsigned row = 0; row < part.rows; row += piece_rows) {
    for (unsigned k = 0; k < depth; k += in_piece) {
      along_k(&bytes[std::size_t{row} * max_depth_bytes + k / in_piece * piece_bytes],
              max_depth_bytes, out + place(row, k), pitch);
    }
  }
}

void negate(double* numbers, unsigned count) {
  for (unsigned i = 0; i < count; ++i) numbers[i] = -numbers[i];
}

// Why a product cannot be made.
struct Objection {
  FindingKind kind;
  const char* why;
};

std::optional<Objection> objection(Warp& w, const WarpgroupDetails& details) {
  if (w.mask != full_mask) {
    return Objection{FindingKind::trap,
                     "not all lanes of a warp take part in a product of its warpgroup"};
  }
  if (w.index / group_warps * group_warps + group_warps > w.program->warps()) {
    return Objection{FindingKind::trap, "not all warps of a warpgroup take part in its product"};
  }
  for (const WarpgroupOperand* operand : {&details.a, &details.b}) {
    if (!operand->in_memory) continue;
    const auto* words = w.at<std::uint64_t>(operand->descriptor);
    if (!operand->uniform &&
        !std::all_of(words, words + warp_size, [&](auto word) { return word == words[0]; })) {
      return Objection{
          FindingKind::trap,
          "the lanes of a warp give different descriptors to a product of their warpgroup"};
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
  return swizzled_address(address, swizzled_bytes);
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
  if (n == 0 || n > max_columns || n % 8 != 0) return false;
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
    return w.block->stop_with(w, op, lane, found->kind, found->why);
  }
  const ProductSize& size = s.size;
  Numbers numbers;
  if (s.a.in_memory) {
    const MemoryPart part{s.a, s.types.a, w.index % group_warps * size.m, size.m};
    read_memory(w, s, part, s.steps.a_rows, s.steps.a_columns, numbers.a, true);
  } else {
    read_a(w, size, s.steps.a_rows, s.a.fragment, numbers.a);
  }
  read_memory(w, s, {s.b, s.types.b, 0, size.n}, s.steps.b_columns, s.steps.b_rows, numbers.b,
              false);
  if (s.a.negated) negate(numbers.a, size.m * size.k);
  if (s.b.negated) negate(numbers.b, size.k * size.n);
  std::byte* registers[WarpgroupDetails::max_registers];
  for (unsigned i = 0; i < s.registers; ++i) registers[i] = w.frame + s.d[i];
  if (((w.at<Mask>(s.scale)[0] & 1U) != 0) != s.scale_negated) {
    read_sums(size, s.steps.read_sums, registers, s.registers, numbers.sums);
  } else {
    std::fill_n(numbers.sums, size.m * size.n, 0.0);
  }
  s.steps.add(size, s.steps.rule, numbers.a, numbers.b, numbers.sums);
  write_sums(size, s.steps.write_sums, numbers.sums, registers, s.registers);
  return op + 1;
}

}  // namespace matrix_ops
}  // namespace demarc::emulate
