// Where a warp's access goes: addresses, shape, place, checks, trace; for each state space. Part of
// memory.inl, included inside its namespace.

// A sum with a register of 32 bits is one of 32 bits: it wraps.
DEMARC_INLINE void compute_addresses(Warp& w, const MicroOp* op, u64* out) {
  const u64 imm = op->imm;
  const u32 low = static_cast<u32>(imm);
  const bool narrow = (op->flags & memory_narrow_address) != 0;
  if ((op->uniform & uniform_a) != 0) {
    const u64 a = narrow ? u64{*slot<u32>(w, op->a) + low} : *slot<u64>(w, op->a) + imm;
    DEMARC_LANES out[l] = a;
  } else if (narrow) {
    const u32* a = slot<u32>(w, op->a);
    DEMARC_LANES out[l] = u64{a[l] + low};
  } else {
    const u64* a = slot<u64>(w, op->a);
    DEMARC_LANES out[l] = a[l] + imm;
  }
}

DEMARC_INLINE void find_shape(Access& x) {
  const u64* a = x.addresses;
  if (x.mask == full_mask) {
    // Two rows of 16: of one line, or of a block 16 threads wide. The ramp is multiplied once.
    const u64 base = a[0];
    const u64 second = a[16];
    const u64 stride = a[1] - base;
    const u64 half = stride * 8;
    u64 off = 0;
    DEMARC_SOME_LANES(8) {
      const u64 ramp = stride * l;
      off |= (a[l] ^ (base + ramp)) | (a[l + 8] ^ (base + half + ramp)) |
             (a[l + 16] ^ (second + ramp)) | (a[l + 24] ^ (second + half + ramp));
    }
    const bool one_line = second == base + half * 2;
    x.base = base;
    x.stride = static_cast<s64>(stride);
    x.affine = off == 0 && one_line;
    x.halves = off == 0 && !one_line;
    x.second = x.affine ? 0 : second;
  } else {
    x.halves = false;
    x.second = 0;
    const Mask m = x.mask;
    const auto first = static_cast<unsigned>(__builtin_ctz(m));
    const Mask rest = m & (m - 1);
    u64 stride = 0;
    if (rest != 0) {
      const auto second = static_cast<unsigned>(__builtin_ctz(rest));
      const auto step = static_cast<s64>(a[second] - a[first]);
      stride = second == first + 1 ? static_cast<u64>(step)
                                   : static_cast<u64>(step / static_cast<s64>(second - first));
    }
    const u64 base = a[first] - stride * first;
    u64 off = 0;
    DEMARC_LANES off |= ((m >> l) & 1U) != 0 ? a[l] ^ (base + stride * l) : 0;
    x.base = base;
    x.stride = static_cast<s64>(stride);
    x.affine = off == 0;
  }
  // A stride must fit the trace's 56 bits.
  if (x.stride != (static_cast<s64>(static_cast<u64>(x.stride) << 8) >> 8)) {
    x.affine = false;
    x.halves = false;
  }
}

DEMARC_INLINE void find_extent(const Access& x, u32 bytes, u64& low, u64& high, u64& bits) {
  const u64* a = x.addresses;
  const Mask m = x.mask;
  if (x.affine) {
    const u64 first = a[__builtin_ctz(m)];
    const u64 last = a[31 - __builtin_clz(m)];
    low = first < last ? first : last;
    high = (first < last ? last : first) + bytes;
    bits = first | static_cast<u64>(x.stride);
    return;
  }
  if (x.halves) {
    const u64 across = static_cast<u64>(x.stride) * 15;
    const u64 ends[4] = {x.base, x.base + across, x.second, x.second + across};
    low = ends[0];
    high = ends[0];
    for (unsigned i = 1; i < 4; ++i) {
      low = ends[i] < low ? ends[i] : low;
      high = ends[i] > high ? ends[i] : high;
    }
    high += bytes;
    bits = x.base | x.second | static_cast<u64>(x.stride);
    return;
  }
  u64 least = ~u64{0};
  u64 most = 0;
  u64 any = 0;
  if (m == full_mask) {
    DEMARC_LANES {
      least = a[l] < least ? a[l] : least;
      most = a[l] > most ? a[l] : most;
      any |= a[l];
    }
  } else {
    DEMARC_LANES {
      const bool on = ((m >> l) & 1U) != 0;
      const u64 lower = on ? a[l] : ~u64{0};
      const u64 upper = on ? a[l] : 0;
      least = lower < least ? lower : least;
      most = upper > most ? upper : most;
      any |= upper;
    }
  }
  low = least;
  high = most + bytes;
  bits = any;
}

DEMARC_INLINE void record_access(Warp& w, const MicroOp* op, const Access& x) {
  Block& block = *w.block;
  if (x.affine) {
    u64* out = block.trace_room(3);
    out[0] = trace_detail::head(trace_detail::kind_affine, op->instruction, x.mask);
    out[1] = x.base;
    out[2] = (static_cast<u64>(x.stride) & 0x00ffffffffffffffU) | (static_cast<u64>(x.space) << 56);
    return;
  }
  if (x.halves) {
    u64* out = block.trace_room(4);
    out[0] = trace_detail::head(trace_detail::kind_halves, op->instruction, x.mask);
    out[1] = x.base;
    out[2] = (static_cast<u64>(x.stride) & 0x00ffffffffffffffU) | (static_cast<u64>(x.space) << 56);
    out[3] = x.second;
    return;
  }
  u64* out = block.trace_room(2 + static_cast<unsigned>(__builtin_popcount(x.mask)));
  *out++ = trace_detail::head(trace_detail::kind_scattered, op->instruction, x.mask);
  *out++ = static_cast<u64>(x.space);
  if (x.mask == full_mask) {
    std::memcpy(out, x.addresses, sizeof x.addresses);
  } else {
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) *out++ = x.addresses[__builtin_ctz(rest)];
  }
}

#include "shadow.inl"

DEMARC_INLINE void use_region(Access& x, const Region& region) {
  x.delta = region.delta;
  x.pitch = 0;
  x.shadow = region.shadow;
  x.shadow_delta = reinterpret_cast<u64>(region.shadow) - (region.low + region.delta);
}

// A warp walks through a buffer in strides of a whole grid, too far apart for the processor to see
// where it goes: its second next place is fetched, if it goes on as it did.
DEMARC_INLINE void fetch_ahead(const Access& x, AccessHint& hint, u64 low, u64 high) {
  constexpr u64 near = 2048;  // bytes
  constexpr u64 line = 64;
  const u64 step = low - hint.low;
  hint.low = low;
  if (step + near < 2 * near || high - low > 4 * line) return;
  const u64 ahead = 2 * step + x.delta;
  for (u64 at = low; at < high; at += line)
    __builtin_prefetch(reinterpret_cast<const void*>(at + ahead));
}

// Addresses, shape, place, checks, trace. False: no lane is left to do anything.
template <AddressKind kind>
[[gnu::noinline]] bool front(Warp& w, const MicroOp* op, Access& x, AccessMode mode) {
  Block& block = *w.block;
  const u32 bytes = u32{op->bytes} * op->count;
  x.mask = w.mask;
  if (x.mask == 0) return false;
  compute_addresses(w, op, x.addresses);
  find_shape(x);
  ++w.memory_accesses;

  AddressKind place = kind;
  if constexpr (kind == AddressKind::generic) {
    const u64 any = x.addresses[__builtin_ctz(x.mask)];
    u64 base = 0;
    place = AddressKind::global;
    if (any - shared_window < window_bytes) {
      place = AddressKind::shared;
      base = shared_window;
    } else if (any - local_window < window_bytes) {
      place = AddressKind::local;
      base = local_window;
    } else if (any - constant_window < window_bytes) {
      place = AddressKind::constant;
      base = constant_window;
    } else if (any - param_window < window_bytes) {
      place = AddressKind::param;
      base = param_window;
    }
    bool together = base != 0;
    for (Mask rest = x.mask; together && rest != 0; rest &= rest - 1)
      together = x.addresses[__builtin_ctz(rest)] - base < window_bytes;
    if (together) {
      DEMARC_LANES x.addresses[l] -= base;
      x.base -= base;
      x.second -= base;
    } else {
      place = AddressKind::global;  // or of several spaces, which no region holds
    }
  }
  switch (place) {
    case AddressKind::shared:
      x.space = MemorySpace::shared;
      break;
    case AddressKind::local:
      x.space = MemorySpace::local;
      break;
    case AddressKind::constant:
      x.space = MemorySpace::constant;
      break;
    case AddressKind::param:
      x.space = MemorySpace::param;
      break;
    default:
      x.space = MemorySpace::global;
      break;
  }
  if (w.tracing && place != AddressKind::param) record_access(w, op, x);

  u64 low = 0;
  u64 high = 0;
  u64 bits = 0;
  find_extent(x, bytes, low, high, bits);
  const bool aligned = (bits & (bytes - 1)) == 0;
  bool found = false;
  switch (place) {
    case AddressKind::shared:
      found = aligned && low < high && high <= block.shared_region.high;
      if (found) {
        use_region(x, block.shared_region);
        if (w.check_races && (op->flags & memory_unraced) == 0 &&
            !check_race_fast(w, op, x, bytes, mode)) {
          block.check_race(w, op, x, bytes, mode);
        }
      }
      break;
    case AddressKind::local: {
      const Region region = block.local_region(w);
      found = aligned && low < high && high <= region.high;
      if (found) {
        use_region(x, region);
        x.pitch = block.local_bytes;
      }
      break;
    }
    case AddressKind::constant:
      found = aligned && low < high && high <= block.program->constant_region.high &&
              mode == AccessMode::load;
      if (found) use_region(x, block.program->constant_region);
      break;
    case AddressKind::param:
      found = aligned && low < high && high <= block.program->parameter_region.high &&
              mode == AccessMode::load;
      if (found) use_region(x, block.program->parameter_region);
      break;
    default: {
      AccessHint& hint = block.hints[op->join];
      const Region* region = hint.region;
      if (region == nullptr || low < region->low || high > region->high) {
        region = block.program->find_region(low, high);
        if (region != nullptr) hint.region = region;
      }
      found = aligned && region != nullptr && low < high &&
              (region->writable || mode == AccessMode::load);
      if (found) {
        use_region(x, *region);
        fetch_ahead(x, hint, low, high);
      }
      break;
    }
  }
  if ((mode == AccessMode::atomic || (op->flags & memory_strong) != 0) && block.clocks.used() &&
      (op->flags & memory_unraced) == 0) {
    block.order_access(w, op, x, mode);
  }
  if (!found) {
    block.slow_access(w, op, x, place, bytes, mode);
    return x.mask != 0;
  }
  if (x.shadow != nullptr) {
    if (mode != AccessMode::store && !shadow_is_set(x, bytes))
      block.read_unwritten(w, op, x, bytes, lane_shadows(x), lane_spaces(x));
    if (mode != AccessMode::load) set_shadow(x, bytes);
  }
  if (w.tracked && mode == AccessMode::store) [[unlikely]]
    block.store_tracked(w, op, x, lane_shadows(x));
  return true;
}

// Variables of a call (.param in functions): lane by lane in the frame.
template <>
[[gnu::noinline]] bool front<AddressKind::frame>(Warp& w, const MicroOp* op, Access& x,
                                                 AccessMode) {
  x.mask = w.mask;
  if (x.mask == 0) return false;
  compute_addresses(w, op, x.addresses);
  x.delta = reinterpret_cast<u64>(w.frame) + op->c;
  x.pitch = op->join;
  find_shape(x);
  x.shadow = nullptr;
  return true;
}

constexpr AccessFront fronts[] = {front<AddressKind::global>, front<AddressKind::shared>,
                                  front<AddressKind::local>,  front<AddressKind::constant>,
                                  front<AddressKind::param>,  front<AddressKind::generic>,
                                  front<AddressKind::frame>};
