// Carries out atomics, 16-byte accesses, small asynchronous copies and matrix loads and stores.
#include "ops/memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "groups.hpp"
#include "lanes/functions.hpp"

namespace demarc::emulate {

namespace {

std::uint64_t add_small(std::uint64_t a, std::uint64_t b, LaneType type) {
  LaneInput input;
  input.in[0] = a;
  input.in[1] = b;
  LaneDetails details;
  details.type = type;
  details.rounding = Rounding::rn;
  return lane::add(input, details);
}

std::uint64_t add_f32(std::uint64_t a, std::uint64_t b, bool flush) {
  const auto in = [&](std::uint64_t bits) {
    if (flush && (bits & 0x7f800000U) == 0) bits &= 0x80000000U;
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  };
  const float sum = in(a) + in(b);
  auto bits = std::bit_cast<std::uint32_t>(sum);
  if (sum != sum) return 0x7fffffffU;
  if (flush && (bits & 0x7f800000U) == 0) bits &= 0x80000000U;
  return bits;
}

LaneType lane_of(AtomicType type) {
  switch (type) {
    case AtomicType::f16:
      return LaneType::f16;
    case AtomicType::bf16:
      return LaneType::bf16;
    case AtomicType::f16x2:
      return LaneType::f16x2;
    case AtomicType::bf16x2:
      return LaneType::bf16x2;
    case AtomicType::f64:
      return LaneType::f64;
    default:
      return LaneType::f32;
  }
}

template <class Word>
std::uint64_t exchange_with(std::uint64_t host, bool plain, bool flush,
                            const AtomicDetails& details, std::uint64_t b, std::uint64_t c,
                            bool& changed) {
  auto* word = reinterpret_cast<Word*>(host);
  if (plain) {
    const Word old = *word;
    *word = static_cast<Word>(atomic_value(details.kind, details.type, old, b, c, flush));
    changed = changed || *word != old;
    return old;
  }
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const auto wanted =
        static_cast<Word>(atomic_value(details.kind, details.type, old, b, c, flush));
    if (__atomic_compare_exchange_n(word, &old, wanted, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      changed = changed || wanted != old;
      return old;
    }
  }
}

std::uint64_t operand_of(Warp& w, std::uint32_t slot, bool uniform, unsigned bytes, unsigned lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, w.frame + slot + (uniform ? 0 : std::size_t{lane} * bytes), bytes);
  return value;
}

}  // namespace

std::uint64_t atomic_value(AtomicKind kind, AtomicType type, std::uint64_t old, std::uint64_t b,
                           std::uint64_t c, bool flush) {
  const bool is_signed = type == AtomicType::s32 || type == AtomicType::s64;
  const bool wide = type == AtomicType::b64 || type == AtomicType::u64 || type == AtomicType::s64 ||
                    type == AtomicType::f64;
  const auto extend = [&](std::uint64_t bits) {
    return type == AtomicType::s32 ? std::int64_t{static_cast<std::int32_t>(bits)}
                                   : static_cast<std::int64_t>(bits);
  };
  const std::uint64_t low = wide ? ~std::uint64_t{0} : 0xffffffffU;
  switch (kind) {
    case AtomicKind::add:
      switch (type) {
        case AtomicType::f32:
          return add_f32(old, b, flush);
        case AtomicType::f64:
          return std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) +
                                              std::bit_cast<double>(b));
        case AtomicType::f16:
        case AtomicType::bf16:
        case AtomicType::f16x2:
        case AtomicType::bf16x2:
          return add_small(old, b, lane_of(type));
        default:
          return (old + b) & low;
      }
    case AtomicKind::min:
    case AtomicKind::max: {
      const bool most = kind == AtomicKind::max;
      if (type == AtomicType::f16 || type == AtomicType::bf16 || type == AtomicType::f16x2 ||
          type == AtomicType::bf16x2) {
        LaneInput input;
        input.in[0] = old;
        input.in[1] = b;
        LaneDetails details;
        details.type = lane_of(type);
        details.sources = 2;
        return most ? lane::max(input, details) : lane::min(input, details);
      }
      const bool less = is_signed ? extend(b) < extend(old) : b < old;
      return less != most ? b : old;
    }
    case AtomicKind::inc:
      return old >= b ? 0 : old + 1;
    case AtomicKind::dec:
      return old == 0 || old > b ? b : old - 1;
    case AtomicKind::exch:
      return b;
    case AtomicKind::cas:
      return old == b ? c : old;
    case AtomicKind::bit_and:
      return old & b;
    case AtomicKind::bit_or:
      return old | b;
    case AtomicKind::bit_xor:
      return old ^ b;
  }
  return old;
}

namespace memory_ops {

// The lanes of a warp in ascending order.
const MicroOp* atomic(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const AtomicDetails*>(op->aux);
  Access x;
  if (!w.program->tables.fronts[op->kind](w, op, x, AccessMode::atomic)) return op + 1;
  const bool plain = w.plain_atomics || x.space != MemorySpace::global;
  // f32 sums flush denormals in global memory and keep them in shared memory (PTX ISA 9.7.13.5).
  const bool flush = x.space == MemorySpace::global;
  const unsigned bytes = op->bytes;
  bool changed = false;
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t c = details.kind == AtomicKind::cas
                                ? operand_of(w, details.c, details.c_uniform, bytes, lane)
                                : 0;
    for (unsigned i = 0; i < op->count; ++i) {
      const std::uint64_t b = operand_of(w, details.b[i], details.b_uniform[i], bytes, lane);
      const std::uint64_t host = x.addresses[lane] + x.delta + lane * x.pitch + i * bytes;
      std::uint64_t old = 0;
      if (bytes == 2) {
        old = exchange_with<std::uint16_t>(host, plain, flush, details, b, c, changed);
      } else if (bytes == 4) {
        old = exchange_with<std::uint32_t>(host, plain, flush, details, b, c, changed);
      } else {
        old = exchange_with<std::uint64_t>(host, plain, flush, details, b, c, changed);
      }
      if (details.d[i] != AtomicDetails::sink)
        std::memcpy(w.frame + details.d[i] + std::size_t{lane} * bytes, &old, bytes);
    }
  }
  const bool bounds = details.kind == AtomicKind::min || details.kind == AtomicKind::max;
  if (details.d[0] != AtomicDetails::sink && !bounds) polled(w, changed);
  return op + 1;
}

namespace {

constexpr std::size_t wide_bytes = 16;

std::byte* wide_lane(Warp& w, std::uint32_t slot, unsigned lane) {
  return w.frame + slot + wide_bytes * lane;
}
std::byte* wide_host(const Access& x, unsigned lane) {
  return reinterpret_cast<std::byte*>(x.addresses[lane] + x.delta + lane * x.pitch);
}

}  // namespace

const MicroOp* load_wide(Warp& w, const MicroOp* op) {
  Access x;
  if (!w.program->tables.fronts[op->kind](w, op, x, AccessMode::load)) return op + 1;
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::memcpy(wide_lane(w, op->d, lane), wide_host(x, lane), wide_bytes);
  }
  if (!w.begins) return op + 1;
  w.resume = index_of(w, op) + 1;
  return nullptr;
}

const MicroOp* store_wide(Warp& w, const MicroOp* op) {
  Access x;
  if (!w.program->tables.fronts[op->kind](w, op, x, AccessMode::store)) return op + 1;
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::memcpy(wide_host(x, lane), wide_lane(w, op->b, lane), wide_bytes);
  }
  return op + 1;
}

const MicroOp* copy_lanes(Warp& w, const MicroOp* op) {
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::size_t from = (op->uniform & uniform_a) != 0 ? 0 : lane * op->c;
    std::memcpy(w.frame + op->d + lane * op->b, w.frame + op->a + from, op->bytes);
  }
  return op + 1;
}

namespace {

std::byte* lane_in_local(Warp& w, const MicroOp* op, std::size_t lane) {
  Block& block = *w.block;
  const std::size_t thread = std::size_t{w.index} * warp_size + lane;
  return block.local.data() + thread * block.local_bytes + w.local_base + op->imm;
}

}  // namespace

const MicroOp* frame_to_local(Warp& w, const MicroOp* op) {
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    std::byte* const to = lane_in_local(w, op, lane);
    std::memcpy(to, w.frame + op->a + lane * op->c, op->b);
    if (w.block->local_shadow.empty()) continue;
    std::fill_n(w.block->local_shadow.data() + (to - w.block->local.data()), op->b, wholly_written);
  }
  return op + 1;
}

const MicroOp* local_to_frame(Warp& w, const MicroOp* op) {
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    std::memcpy(w.frame + op->a + lane * op->c, lane_in_local(w, op, lane), op->b);
  }
  return op + 1;
}

const MicroOp* move_wide(Warp& w, const MicroOp* op) {
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::memcpy(wide_lane(w, op->d, lane), wide_lane(w, op->a, lane), wide_bytes);
  }
  return op + 1;
}

const MicroOp* join_wide(Warp& w, const MicroOp* op) {
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t parts[2] = {operand_of(w, op->a, (op->uniform & uniform_a) != 0, 8, lane),
                                    operand_of(w, op->b, (op->uniform & uniform_b) != 0, 8, lane)};
    std::memcpy(wide_lane(w, op->d, lane), parts, sizeof parts);
  }
  return op + 1;
}

const MicroOp* split_wide(Warp& w, const MicroOp* op) {
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint64_t parts[2];
    std::memcpy(parts, wide_lane(w, op->a, lane), sizeof parts);
    if ((op->flags & 1U) == 0) w.at<std::uint64_t>(op->b)[lane] = parts[0];
    if ((op->flags & 2U) == 0) w.at<std::uint64_t>(op->c)[lane] = parts[1];
  }
  return op + 1;
}

const MicroOp* copy_async(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const AsyncDetails*>(op->aux);
  const Mask all = w.mask;
  // Bytes that are read: the rest of what is written are zeros. A lane that reads nothing does not
  // touch its source.
  std::uint32_t size[warp_size];
  Mask reading = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    size[lane] = details.bytes;
    if (details.has_source_bytes) {
      const auto given = static_cast<std::uint32_t>(
          operand_of(w, details.source_bytes, details.source_bytes_uniform, 4, lane));
      size[lane] = std::min(given, details.bytes);
    }
    if (size[lane] > 0) reading |= Mask{1} << lane;
  }
  std::byte data[warp_size][16] = {};
  Access from;
  w.mask = all & reading;
  if (w.program->tables.fronts[op->kind](w, op, from, AccessMode::load)) {
    for (Mask rest = from.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      std::memcpy(
          data[lane],
          reinterpret_cast<const void*>(from.addresses[lane] + from.delta + lane * from.pitch),
          size[lane]);
    }
  }
  w.mask = all;
  Access to;
  if (w.program->tables.fronts[details.destination.kind](w, &details.destination, to,
                                                         AccessMode::store)) {
    for (Mask rest = to.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      std::memcpy(reinterpret_cast<void*>(to.addresses[lane] + to.delta + lane * to.pitch),
                  data[lane], details.bytes);
    }
  }
  return op + 1;
}

namespace {

// Lanes 8i .. 8i+7 give the row addresses of matrix i; lanes beyond them take no part in the
// access.
bool matrix_rows(Warp& w, const MicroOp* op, Access& x, unsigned matrices, AccessMode mode) {
  const Mask all = w.mask;
  w.mask = all & (matrices == 4 ? full_mask : (Mask{1} << (8 * matrices)) - 1);
  const bool some = w.program->tables.fronts[op->kind](w, op, x, mode);
  w.mask = all;
  return some;
}

}  // namespace

const MicroOp* load_matrix(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const MatrixAccessDetails*>(op->aux);
  Access x;
  if (!matrix_rows(w, op, x, details.matrices, AccessMode::load)) return op + 1;
  for (unsigned m = 0; m < details.matrices; ++m) {
    std::uint16_t rows[8][8] = {};
    for (unsigned r = 0; r < 8; ++r) {
      const unsigned lane = 8 * m + r;
      if (((x.mask >> lane) & 1U) == 0) continue;
      std::memcpy(rows[r],
                  reinterpret_cast<const void*>(x.addresses[lane] + x.delta + lane * x.pitch), 16);
    }
    auto* d = w.at<std::uint32_t>(details.slots[m]);
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      if (((w.mask >> lane) & 1U) == 0) continue;
      const unsigned row = lane / 4;
      const unsigned column = lane % 4 * 2;
      const std::uint32_t low = details.transposed ? rows[column][row] : rows[row][column];
      const std::uint32_t high = details.transposed ? rows[column + 1][row] : rows[row][column + 1];
      d[lane] = low | (high << 16);
    }
  }
  return op + 1;
}

const MicroOp* store_matrix(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const MatrixAccessDetails*>(op->aux);
  Access x;
  if (!matrix_rows(w, op, x, details.matrices, AccessMode::store)) return op + 1;
  for (unsigned m = 0; m < details.matrices; ++m) {
    std::uint16_t rows[8][8] = {};
    const auto* a = w.at<std::uint32_t>(details.slots[m]);
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      const unsigned row = lane / 4;
      const unsigned column = lane % 4 * 2;
      const auto low = static_cast<std::uint16_t>(a[lane]);
      const auto high = static_cast<std::uint16_t>(a[lane] >> 16);
      (details.transposed ? rows[column][row] : rows[row][column]) = low;
      (details.transposed ? rows[column + 1][row] : rows[row][column + 1]) = high;
    }
    for (unsigned r = 0; r < 8; ++r) {
      const unsigned lane = 8 * m + r;
      if (((x.mask >> lane) & 1U) == 0) continue;
      std::memcpy(reinterpret_cast<void*>(x.addresses[lane] + x.delta + lane * x.pitch), rows[r],
                  16);
    }
  }
  return op + 1;
}

}  // namespace memory_ops
}  // namespace demarc::emulate
