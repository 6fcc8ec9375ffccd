// Loads and stores, compiled once for each instruction set. An access has a front, chosen by state
// space, which computes the addresses, finds their shape (all lanes base + stride * lane, or
// scattered), checks them and records the trace; and a tail, chosen by element size, which moves
// the data.
#include <cstring>

#include "machine.hpp"

#if defined(__clang__)
#define DEMARC_SOME_LANES(n) \
  _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < (n); ++l)
#else
#define DEMARC_SOME_LANES(n) _Pragma("GCC ivdep") for (unsigned l = 0; l < (n); ++l)
#endif
#define DEMARC_LANES DEMARC_SOME_LANES(warp_size)
#define DEMARC_INLINE [[gnu::always_inline]] inline

namespace demarc::emulate::DEMARC_ISA {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

template <class T>
DEMARC_INLINE T* slot(Warp& w, u32 offset) {
  return reinterpret_cast<T*>(w.frame + offset);
}

#include "front.inl"

template <class M>
DEMARC_INLINE M read_host(u64 address) {
  M value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}
template <class M>
DEMARC_INLINE void write_host(u64 address, M value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

// NOLINTBEGIN(bugprone-signed-char-misuse): M may be the integer of 8 bits, whose sign is meant.
template <class M, class R>
DEMARC_INLINE void load_element(const Access& x, u64 distance, R* d) {
  const s64 stride = x.stride + static_cast<s64>(x.pitch);
  const u64 delta = x.delta + distance;
  if (x.affine && stride == 0) {
    const R v =
        static_cast<R>(read_host<M>(x.addresses[__builtin_ctz(x.mask)] + x.delta +
                                    static_cast<u64>(__builtin_ctz(x.mask)) * x.pitch + distance));
    if (x.mask == full_mask) {
      DEMARC_LANES d[l] = v;
    } else {
      DEMARC_LANES d[l] = ((x.mask >> l) & 1U) != 0 ? v : d[l];
    }
    return;
  }
  if (x.mask == full_mask) {
    if (x.affine && stride == static_cast<s64>(sizeof(M))) {
      struct [[gnu::packed]] Packed {
        M value;
      };
      const auto* p = reinterpret_cast<const Packed*>(x.addresses[0] + delta);
      DEMARC_LANES d[l] = static_cast<R>(p[l].value);
      return;
    }
    if (x.halves && x.pitch == 0 && stride == 0) {
      const R low = static_cast<R>(read_host<M>(x.base + delta));
      const R high = static_cast<R>(read_host<M>(x.second + delta));
      DEMARC_LANES d[l] = l < 16 ? low : high;
      return;
    }
    if (x.halves && x.pitch == 0 && stride == static_cast<s64>(sizeof(M))) {
      M both[warp_size];
      std::memcpy(both, reinterpret_cast<const void*>(x.base + delta), sizeof(M) * 16);
      std::memcpy(both + 16, reinterpret_cast<const void*>(x.second + delta), sizeof(M) * 16);
      DEMARC_LANES d[l] = static_cast<R>(both[l]);
      return;
    }
    for (unsigned l = 0; l < warp_size; ++l) {
      d[l] = static_cast<R>(read_host<M>(x.addresses[l] + delta + l * x.pitch));
    }
    return;
  }
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(rest));
    d[l] = static_cast<R>(read_host<M>(x.addresses[l] + delta + l * x.pitch));
  }
}

// What runs after a load: another loop, once registers hold what was not written.
DEMARC_INLINE const MicroOp* after_load(Warp& w, const MicroOp* op) {
  if (!w.begins) [[likely]]
    return op + 1;
  w.resume = static_cast<u32>(op + 1 - w.program->code.data());
  return nullptr;
}

template <class M, class R>
const MicroOp* run_load(Warp& w, const MicroOp* op) {
  Access x;
  if (!fronts[op->kind](w, op, x, AccessMode::load)) return op + 1;
  if (op->aux == nullptr) [[likely]] {
    if ((op->uniform & uniform_d) != 0) {
      const auto l = static_cast<unsigned>(__builtin_ctz(x.mask));
      *slot<R>(w, op->d) = static_cast<R>(read_host<M>(x.addresses[l] + x.delta + l * x.pitch));
    } else {
      load_element<M>(x, 0, slot<R>(w, op->d));
    }
    return after_load(w, op);
  }
  const auto* details = static_cast<const VectorDetails*>(op->aux);
  for (unsigned i = 0; i < op->count; ++i) {
    if (details->slots[i] == VectorDetails::sink) continue;
    load_element<M>(x, i * sizeof(M), slot<R>(w, details->slots[i]));
  }
  return after_load(w, op);
}
// NOLINTEND(bugprone-signed-char-misuse)

template <class M>
DEMARC_INLINE void store_element(const Access& x, u64 distance, const M* v, bool uniform) {
  const u64 delta = x.delta + distance;
  const s64 stride = x.stride + static_cast<s64>(x.pitch);
  if (x.mask == full_mask) {
    if (x.affine && stride == static_cast<s64>(sizeof(M)) && !uniform) {
      std::memcpy(reinterpret_cast<void*>(x.addresses[0] + delta), v, sizeof(M) * warp_size);
      return;
    }
    if (x.halves && x.pitch == 0 && stride == static_cast<s64>(sizeof(M)) && !uniform) {
      std::memcpy(reinterpret_cast<void*>(x.base + delta), v, sizeof(M) * 16);
      std::memcpy(reinterpret_cast<void*>(x.second + delta), v + 16, sizeof(M) * 16);
      return;
    }
    if (uniform) {
      const M value = *v;
      for (unsigned l = 0; l < warp_size; ++l)
        write_host<M>(x.addresses[l] + delta + l * x.pitch, value);
      return;
    }
    for (unsigned l = 0; l < warp_size; ++l)
      write_host<M>(x.addresses[l] + delta + l * x.pitch, v[l]);
    return;
  }
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(rest));
    write_host<M>(x.addresses[l] + delta + l * x.pitch, v[uniform ? 0 : l]);
  }
}

// The register may be wider than the element; registers are little endian, so a narrowing store
// needs its stride.
template <class M, class R>
DEMARC_INLINE void store_narrowed(const Access& x, u64 distance, const R* v, bool uniform) {
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(__builtin_ctz(rest));
    write_host<M>(x.addresses[l] + x.delta + distance + l * x.pitch,
                  static_cast<M>(v[uniform ? 0 : l]));
  }
}

template <class M>
DEMARC_INLINE void store_from(Warp& w, const MicroOp* op, const Access& x, u64 distance, u32 offset,
                              bool uniform) {
  const unsigned width = uniform ? sizeof(M) : op->width;
  if (width == sizeof(M)) {
    store_element<M>(x, distance, slot<M>(w, offset), uniform);
  } else if (width == 2) {
    store_narrowed<M>(x, distance, slot<u16>(w, offset), uniform);
  } else if (width == 4) {
    store_narrowed<M>(x, distance, slot<u32>(w, offset), uniform);
  } else {
    store_narrowed<M>(x, distance, slot<u64>(w, offset), uniform);
  }
}

template <class M>
const MicroOp* run_store(Warp& w, const MicroOp* op) {
  Access x;
  if (!fronts[op->kind](w, op, x, AccessMode::store)) return op + 1;
  if (op->aux == nullptr) [[likely]] {
    store_from<M>(w, op, x, 0, op->b, (op->uniform & uniform_b) != 0);
    return op + 1;
  }
  const auto* details = static_cast<const VectorDetails*>(op->aux);
  for (unsigned i = 0; i < op->count; ++i) {
    store_from<M>(w, op, x, i * sizeof(M), details->slots[i], details->uniform[i] != 0);
  }
  return op + 1;
}

constexpr MemoryHandlers memory_handlers = {
    {run_load<u8, u16>, run_load<u8, u32>, run_load<u8, u64>, run_load<s8, s16>, run_load<s8, s32>,
     run_load<s8, s64>, run_load<u16, u16>, run_load<u16, u32>, run_load<u16, u64>,
     run_load<s16, s32>, run_load<s16, s64>, run_load<u32, u32>, run_load<u32, u64>,
     run_load<s32, s64>, run_load<u64, u64>, run_load<u8, u8>},
    {run_store<u8>, run_store<u16>, run_store<u32>, run_store<u64>}};

// Start of a straight run of imm instructions: the accounts, the turn, the trace. The first c of
// them come before the next header within the run.
const MicroOp* run_header(Warp& w, const MicroOp* op) {
  const u64 count = op->imm;
  w.budget -= static_cast<s64>(count);
  if (w.budget < 0) [[unlikely]] {
    w.resume = static_cast<u32>(op - w.program->code.data());
    return nullptr;
  }
  w.warp_instructions += count;
  w.thread_instructions += count * static_cast<unsigned>(__builtin_popcount(w.mask));
  if (w.trace_runs) {
    u64* out = w.block->trace_room(2);
    out[0] = trace_detail::head(trace_detail::kind_run, op->instruction, w.mask);
    out[1] = op->c;
  }
  return op + 1;
}

}  // namespace

const AluHandlers* alu_table();
const MatrixSteps* matrix_steps();

HandlerTables tables() {
  return {alu_table(), &memory_handlers, fronts, run_header, matrix_steps()};
}

}  // namespace demarc::emulate::DEMARC_ISA
