// What has been written and who touched shared memory last: the fast shapes of the checks. Part of
// front.inl, included inside its namespace.

// Runs of an access of all lanes that share one base and stride: 32 or 16 lanes; 0: scattered.
DEMARC_INLINE unsigned run_length(const Access& x) {
  return x.mask != full_mask ? 0U : (x.affine ? 32U : (x.halves ? 16U : 0U));
}

DEMARC_INLINE bool bytes_are_set(const u8* p, u32 n) {
  u32 unset = 0;
  for (u32 i = 0; i < n; ++i) unset |= p[i] != wholly_written ? 1U : 0U;
  return unset == 0;
}

DEMARC_INLINE u8* shadow_at(const Access& x, unsigned lane) {
  return reinterpret_cast<u8*>(x.addresses[lane] + x.delta + lane * x.pitch + x.shadow_delta);
}

// Rarely needed one by one.
[[gnu::noinline]] LaneShadows lane_shadows(const Access& x) {
  LaneShadows out{};
  for (Mask rest = x.shadow != nullptr ? x.mask : 0; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    out[lane] = shadow_at(x, lane);
  }
  return out;
}

[[gnu::noinline]] LaneSpaces lane_spaces(const Access& x) {
  LaneSpaces out;
  out.fill(x.space);
  return out;
}

// Shadow bytes of the access: all set (load), or to be set (store).
DEMARC_INLINE bool shadow_is_set(const Access& x, u32 bytes) {
  const s64 stride = x.stride + static_cast<s64>(x.pitch);
  bool set = true;
  if (const unsigned run = run_length(x);
      run != 0 && (stride == 0 || stride == static_cast<s64>(bytes))) {
    for (unsigned lane = 0; lane < warp_size; lane += run) {
      set &= bytes_are_set(shadow_at(x, lane), stride == 0 ? bytes : bytes * run);
    }
    return set;
  }
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const u8* p = shadow_at(x, static_cast<unsigned>(__builtin_ctz(rest)));
    if (bytes == 4) {
      u32 word;
      std::memcpy(&word, p, 4);
      set &= word == ~u32{0};
    } else {
      for (u32 i = 0; i < bytes; ++i) set &= p[i] == wholly_written;
    }
  }
  return set;
}
DEMARC_INLINE void set_shadow(const Access& x, u32 bytes) {
  if (const unsigned run = run_length(x);
      run != 0 && x.stride + static_cast<s64>(x.pitch) == static_cast<s64>(bytes)) {
    for (unsigned lane = 0; lane < warp_size; lane += run) {
      std::memset(shadow_at(x, lane), wholly_written, std::size_t{bytes} * run);
    }
    return;
  }
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    u8* p = shadow_at(x, static_cast<unsigned>(__builtin_ctz(rest)));
    if (bytes == 4) {
      const u32 word = ~u32{0};
      std::memcpy(p, &word, 4);
    } else {
      std::memset(p, wholly_written, bytes);
    }
  }
}

constexpr u64 race_others = (u64{63} << 29) | (u64{1} << 36);  // warp, several warps

// Whether other warps have touched one of the granules since `start`.
template <unsigned run>
DEMARC_INLINE bool touched_by_others(const u64* records, u64 mine, u64 start) {
  u64 any = 0;
  for (unsigned l = 0; l < run; ++l) {
    any |= (records[l] >= start && ((records[l] ^ mine) & race_others) != 0) ? u64{1} : u64{0};
  }
  return any != 0;
}

// `strong`: there were strong accesses since `start`.
template <unsigned run>
DEMARC_INLINE bool check_run(RaceShadow& races, u64 at, u64 mine, u64 start, unsigned first_lane,
                             bool loads, bool strong) {
  constexpr u64 several = u64{1} << 36;
  u64* const writes = races.writes.data() + at;
  u64* const reads = races.reads.data() + at;
  if (touched_by_others<run>(writes, mine, start) ||
      (!loads && touched_by_others<run>(reads, mine, start)))
    return false;
  if (strong && (touched_by_others<run>(races.strong_writes.data() + at, mine, start) ||
                 (!loads && touched_by_others<run>(races.strong_reads.data() + at, mine, start))))
    return false;
  if (loads) {
    for (unsigned l = 0; l < run; ++l) {
      const bool shared = reads[l] >= start && ((reads[l] ^ mine) & race_others) != 0;
      reads[l] = (mine | (u64{first_lane + l} << 24)) | (shared ? several : 0);
    }
  } else {
    for (unsigned l = 0; l < run; ++l) writes[l] = mine | (u64{first_lane + l} << 24);
  }
  return true;
}

// The common shapes of race checks (see races.cpp for the records): accesses as wide as the
// granule, side by side or all to one place. False: not such a shape, or a conflict was seen; then
// Block::check_race goes lane by lane.
DEMARC_INLINE bool check_race_fast(Warp& w, const MicroOp* op, const Access& x, u32 bytes,
                                   AccessMode mode) {
  Block& block = *w.block;
  const u32 granule = block.program->shared_granule;
  const unsigned run = run_length(x);
  if (run == 0 || bytes != granule || mode == AccessMode::atomic || block.clocks.used() ||
      (op->flags & memory_strong) != 0)
    return false;
  const bool loads = mode == AccessMode::load;
  const u64 start = block.epoch << 37;  // without clocks, it moves on at barriers alone
  const u64 mine = start | (u64{w.index} << 29) | op->instruction;
  const auto shift = static_cast<unsigned>(__builtin_ctz(granule));
  RaceShadow& races = block.races;
  const bool strong = races.strong_epoch >= block.epoch;
  if (x.stride != 0 && x.stride != static_cast<s64>(granule)) return false;
  for (unsigned lane = 0; lane < warp_size; lane += run) {
    if (lane == 16 && x.second == x.base) break;
    const u64 at = x.addresses[lane] >> shift;
    bool fine = false;
    if (x.stride == 0) {
      fine = check_run<1>(races, at, mine, start, lane, loads, strong);
    } else if (run == 32) {
      fine = check_run<32>(races, at, mine, start, lane, loads, strong);
    } else {
      fine = check_run<16>(races, at, mine, start, lane, loads, strong);
    }
    if (!fine) return false;
  }
  return true;
}
