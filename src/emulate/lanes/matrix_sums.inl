// How sums of products come about: which are rounded, where, and to what. A part of matrix.inl.
//
// The tensor cores of a Hopper GPU do not round every sum. They add the products of a block and
// what these are added to as fixed-point numbers: each is cut, towards zero, some bits below the
// largest exponent among them, which for a product is the sum of its factors' exponents. The exact
// sum of what is left is cut to f32 or rounded to f16. Measured on an H200, to the bit
// (docs/measurements/emulate.md).

DEMARC_INLINE f64 larger(f64 a, f64 b) {
  return a > b ? a : b;
}
DEMARC_INLINE Row larger(const Row& a, const Row& b) {
#if defined(__AVX512F__)
  return _mm512_max_pd(a, b);
#elif defined(__AVX2__)
  return _mm256_max_pd(a, b);
#else
  Row out;
  for (unsigned i = 0; i < row_columns; ++i) out[i] = larger(a[i], b[i]);
  return out;
#endif
}

// Cut to a whole number; its magnitude is below 2^31.
DEMARC_INLINE f64 whole(f64 value) {
  return static_cast<f64>(static_cast<s32>(value));
}
DEMARC_INLINE Row whole(const Row& values) {
#if defined(__AVX512F__)
  return _mm512_roundscale_pd(values, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return _mm256_round_pd(values, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  Row out;
  for (unsigned i = 0; i < row_columns; ++i) out[i] = whole(values[i]);
  return out;
#endif
}

using RowBits [[gnu::vector_size(row_bytes)]] = s64;
constexpr s64 exponent_bits = s64{0x7ff} << 52;
constexpr s64 mantissa_bits = (s64{1} << 52) - 1;
constexpr s64 magnitude_bits = exponent_bits | mantissa_bits;

// The words of a number and of a row of them, and back.
DEMARC_INLINE s64 words_of(f64 value) {
  return __builtin_bit_cast(s64, value);
}
DEMARC_INLINE RowBits words_of(const Row& values) {
  return __builtin_bit_cast(RowBits, values);
}
DEMARC_INLINE f64 number_of(s64 words) {
  return __builtin_bit_cast(f64, words);
}
DEMARC_INLINE Row number_of(const RowBits& words) {
  return __builtin_bit_cast(Row, words);
}
// All ones where it holds.
DEMARC_INLINE s64 where(bool holds) {
  return -static_cast<s64>(holds);
}
DEMARC_INLINE RowBits where(const RowBits& holds) {
  return holds;
}

// 2 to the exponent of finite numbers, which is at least that of `least`; 0 of 0.
template <class Sums>
DEMARC_INLINE Sums power_of(const Sums& values, f64 least) {
  const Sums powers = larger(number_of(words_of(values) & exponent_bits), Sums{} + least);
  return number_of(words_of(powers) & where(values != 0));
}
// 1 / x of a power of two.
template <class Sums>
DEMARC_INLINE Sums inverse(const Sums& power) {
  return number_of((s64{2046} << 52) - words_of(power));
}

// Sums as f32 of so many bits, cut; nothing is +0, and what is too large infinite.
template <class Sums>
DEMARC_INLINE Sums cut_to_f32(const Sums& sums, const SumRule& rule) {
  constexpr f64 least = 0x1p-126;
  constexpr f64 too_large = 0x1p128;
  const Sums unit = larger(number_of(words_of(sums) & exponent_bits), Sums{} + least) * rule.unit;
  const Sums cut = whole(sums * inverse(unit)) * unit;
  const auto infinite = where(number_of(words_of(cut) & magnitude_bits) >= too_large);
  return number_of(((words_of(cut) & ~(infinite & mantissa_bits)) | (infinite & exponent_bits)) &
                   where(cut != 0));
}
// Sums that are rounded to f16 later; what that makes nothing is +0.
template <class Sums>
DEMARC_INLINE Sums cut_to_f16(const Sums& sums) {
  constexpr f64 nothing = 0x1p-25;
  return number_of(words_of(sums) & where(number_of(words_of(sums) & magnitude_bits) > nothing));
}

// The most products that are summed at once.
constexpr unsigned max_in_block = 32;

// A row of a with the powers of its numbers.
struct BlockRow {
  const f64* numbers;
  f64 powers[max_in_block];
};

// c += a * b of finite numbers, for some rows of a side by side; b and its powers are `count`
// numbers or rows of numbers.
template <unsigned rows, class Sums>
DEMARC_INLINE void add_aligned_sums(const SumRule& rule, unsigned count, const BlockRow* a,
                                    const Sums* b, const Sums* powers_of_b, Sums* c) {
  constexpr f64 least = 0x1p-600;  // where all are 0
  Sums largest[rows];
  for (unsigned i = 0; i < rows; ++i) {
    largest[i] = larger(power_of(c[i], rule.least_c), Sums{} + least);
  }
  for (unsigned k = 0; k < count; ++k) {
    for (unsigned i = 0; i < rows; ++i)
      largest[i] = larger(largest[i], a[i].powers[k] * powers_of_b[k]);
  }
  Sums scale[rows];
  for (unsigned i = 0; i < rows; ++i) {
    scale[i] = rule.scale * inverse(largest[i]);
    c[i] = whole(c[i] * scale[i]);
  }
  for (unsigned k = 0; k < count; ++k) {
    for (unsigned i = 0; i < rows; ++i) c[i] += whole(a[i].numbers[k] * b[k] * scale[i]);
  }
  for (unsigned i = 0; i < rows; ++i) {
    c[i] *= inverse(scale[i]);
    c[i] = rule.to_f16 ? cut_to_f16(c[i]) : cut_to_f32(c[i], rule);
  }
}

DEMARC_INLINE bool is_finite(f64 value) {
  return value * 0 == 0;
}
// For a multiple of eight numbers.
bool are_finite(const f64* numbers, unsigned count) {
  Row zeros{};
  for (unsigned i = 0; i < count; i += row_columns) {
    Row values;
    std::memcpy(&values, numbers + i, sizeof values);
    zeros += values * 0;
  }
  for (unsigned i = 0; i < row_columns; ++i) {
    if (zeros[i] != 0) return false;
  }
  return true;
}

struct KBlock {
  unsigned first = 0;  // along k
  unsigned count = 0;
};

DEMARC_INLINE BlockRow block_row(const SumRule& rule, const KBlock& block, const f64* row) {
  BlockRow out{row + block.first, {}};
  for (unsigned k = 0; k < block.count; ++k) {
    out.powers[k] = power_of(out.numbers[k], rule.least_a);
  }
  return out;
}

constexpr unsigned rows_at_once = 4;

void add_finite_block(const ProductSize& size, const SumRule& rule, const KBlock& block,
                      const f64* a, const f64* b, f64* sums) {
  for (unsigned row = 0; row < size.m; row += tile_rows) {
    BlockRow rows[tile_rows];
    for (unsigned i = 0; i < tile_rows; ++i) {
      rows[i] = block_row(rule, block, a + std::size_t{row + i} * size.k);
    }
    for (unsigned column = 0; column < size.n; column += row_columns) {
      Row factors[max_in_block];
      Row powers[max_in_block];
      for (unsigned k = 0; k < block.count; ++k) {
        std::memcpy(&factors[k], b + std::size_t{block.first + k} * size.n + column, sizeof(Row));
        powers[k] = power_of(factors[k], rule.least_b);
      }
      for (unsigned first = 0; first < tile_rows; first += rows_at_once) {
        f64* const at = sums + std::size_t{row + first} * size.n + column;
        Row c[rows_at_once];
        for (unsigned i = 0; i < rows_at_once; ++i)
          std::memcpy(&c[i], at + std::size_t{i} * size.n, sizeof(Row));
        add_aligned_sums<rows_at_once>(rule, block.count, rows + first, factors, powers, c);
        for (unsigned i = 0; i < rows_at_once; ++i)
          std::memcpy(at + std::size_t{i} * size.n, &c[i], sizeof(Row));
      }
    }
  }
}

// Where an infinity or no number takes part, the sum is that of IEEE 754.
void add_any_block(const ProductSize& size, const SumRule& rule, const KBlock& block, const f64* a,
                   const f64* b, f64* sums) {
  for (unsigned row = 0; row < size.m; ++row) {
    const BlockRow numbers = block_row(rule, block, a + std::size_t{row} * size.k);
    for (unsigned column = 0; column < size.n; ++column) {
      f64 factors[max_in_block];
      f64 powers[max_in_block];
      f64& c = sums[std::size_t{row} * size.n + column];
      f64 plain = c;
      bool finite = is_finite(c);
      for (unsigned k = 0; k < block.count; ++k) {
        factors[k] = b[std::size_t{block.first + k} * size.n + column];
        powers[k] = power_of(factors[k], rule.least_b);
        plain += numbers.numbers[k] * factors[k];
        finite = finite && is_finite(numbers.numbers[k]) && is_finite(factors[k]);
      }
      if (finite) {
        add_aligned_sums<1>(rule, block.count, &numbers, factors, powers, &c);
      } else {
        c = plain;
      }
    }
  }
}

void add_aligned(const ProductSize& size, const SumRule& rule, const f64* a, const f64* b,
                 f64* sums) {
  const bool finite = are_finite(a, size.m * size.k) && are_finite(b, size.k * size.n);
  for (KBlock block{0, rule.block}; block.first < size.k; block.first += block.count) {
    if (finite && are_finite(sums, size.m * size.n)) {
      add_finite_block(size, rule, block, a, b, sums);
    } else {
      add_any_block(size, rule, block, a, b, sums);
    }
  }
}

// For every four products along k the first two come first. Their sums are those of f16 and begin
// with nothing; c is added in the end.
void add_halves(const ProductSize& size, const SumRule& rule, const f64* a, const f64* b,
                f64* sums) {
  constexpr unsigned max_rows = 16;
  f64 half_of_a[max_rows * max_in_block];
  f64 half_of_b[max_in_block * tile_columns];
  f64 made[max_rows * tile_columns] = {};
  const ProductSize half{size.m, size.n, size.k / 2};
  for (unsigned first = 0; first < 4; first += 2) {
    for (unsigned k = 0; k < half.k; ++k) {
      const unsigned from = k / 2 * 4 + first + k % 2;
      for (unsigned row = 0; row < size.m; ++row)
        half_of_a[row * half.k + k] = a[row * size.k + from];
      std::memcpy(half_of_b + std::size_t{k} * size.n, b + std::size_t{from} * size.n,
                  size.n * sizeof(f64));
    }
    add_aligned(half, rule, half_of_a, half_of_b, made);
    if (!rule.to_f16) continue;
    for (f64& sum : made) sum = F16Numbers::value(F16Results::word(sum), 0);
  }
  for (unsigned i = 0; i < size.m * size.n; ++i) sums[i] += made[i];
}

// m8n8k4 of f16, which Hopper has no tensor cores for: f32 arithmetic, c in the end.
void add_in_turn(const ProductSize& size, const SumRule& rule, const f64* a, const f64* b,
                 f64* sums) {
  using Narrow [[gnu::vector_size(row_bytes / 2)]] = f32;
  const auto rounded = [](const Row& values) {
    return __builtin_convertvector(__builtin_convertvector(values, Narrow), Row);
  };
  for (unsigned row = 0; row < size.m; ++row) {
    for (unsigned column = 0; column < size.n; column += row_columns) {
      Row sum = rule.to_f16 ? -Row{} : Row{};
      Row values;
      for (unsigned i = 0; i < size.k; ++i) {
        const unsigned k = rule.to_f16 ? size.k - 1 - i : i;
        std::memcpy(&values, b + std::size_t{k} * size.n + column, sizeof values);
        sum = rounded(sum + a[std::size_t{row} * size.k + k] * values);
      }
      f64* const c = sums + std::size_t{row} * size.n + column;
      std::memcpy(&values, c, sizeof values);
      values = rounded(sum + values);
      std::memcpy(c, &values, sizeof values);
    }
  }
}
