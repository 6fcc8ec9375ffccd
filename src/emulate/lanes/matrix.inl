// The steps of matrix products, compiled once for each instruction set: the including file defines
// DEMARC_ISA, the namespace.
#include "lanes/matrix.hpp"

#include <algorithm>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define DEMARC_INLINE [[gnu::always_inline]] inline

namespace demarc::emulate::DEMARC_ISA {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
using f32 = float;
using f64 = double;

constexpr unsigned group_lanes = 4;

DEMARC_INLINE f32 f32_of(u32 bits) {
  return __builtin_bit_cast(f32, bits);
}

// A type of numbers: the words that hold them, how many there are in one, and the value of each.
struct F16Numbers {
  using Word = u16;
  static constexpr unsigned in_word = 1;
  DEMARC_INLINE static f64 value(Word word, unsigned) {
    constexpr u32 bias = 112U << 23;
    const u32 magnitude = word & 0x7fffU;
    const f32 small = static_cast<f32>(static_cast<s32>(magnitude)) * 0x1p-24F;
    const u32 large = (magnitude << 13) + (magnitude >= 0x7c00 ? 2 * bias : bias);
    const u32 bits = magnitude < 0x400 ? __builtin_bit_cast(u32, small) : large;
    return static_cast<f64>(f32_of(bits | (word & 0x8000U) << 16));
  }
};
struct Bf16Numbers {
  using Word = u16;
  static constexpr unsigned in_word = 1;
  DEMARC_INLINE static f64 value(Word word, unsigned) {
    return static_cast<f64>(f32_of(u32{word} << 16));
  }
};
struct Tf32Numbers {
  using Word = u32;
  static constexpr unsigned in_word = 1;
  DEMARC_INLINE static f64 value(Word word, unsigned) {
    return static_cast<f64>(f32_of(word & ~0x1fffU));
  }
};
struct E5m2Numbers {
  using Word = u8;
  static constexpr unsigned in_word = 1;
  DEMARC_INLINE static f64 value(Word word, unsigned) {
    return F16Numbers::value(static_cast<u16>(word << 8), 0);
  }
};
struct E4m3Numbers {
  using Word = u8;
  static constexpr unsigned in_word = 1;
  DEMARC_INLINE static f64 value(Word word, unsigned) {
    const u32 magnitude = word & 0x7fU;
    const f32 small = static_cast<f32>(static_cast<s32>(magnitude)) * 0x1p-9F;
    const u32 large = magnitude == 0x7f ? 0x7fffffffU : (magnitude << 20) + (120U << 23);
    const u32 bits = magnitude < 8 ? __builtin_bit_cast(u32, small) : large;
    return static_cast<f64>(f32_of(bits | (word & 0x80U) << 24));
  }
};
// Those that the processor knows.
template <class T>
struct PlainNumbers {
  using Word = T;
  static constexpr unsigned in_word = 1;
  DEMARC_INLINE static f64 value(Word word, unsigned) { return static_cast<f64>(word); }
};
template <bool is_signed>
struct FourBitNumbers {
  using Word = u8;
  static constexpr unsigned in_word = 2;
  DEMARC_INLINE static f64 value(Word word, unsigned i) {
    const s32 bits = word >> (4 * i) & 15;
    return static_cast<f64>(is_signed ? (bits ^ 8) - 8 : bits);
  }
};
// How many of them the registers of a group of lanes hold.
template <class Numbers>
constexpr unsigned in_group = group_lanes* Numbers::in_word*(
    sizeof(typename Numbers::Word) < 4 ? 4 / sizeof(typename Numbers::Word) : 1);

template <class Numbers>
DEMARC_INLINE void widen(const void* from, unsigned count, f64* to) {
  const auto* words = static_cast<const typename Numbers::Word*>(from);
  for (unsigned i = 0; i < count / Numbers::in_word; ++i) {
    for (unsigned j = 0; j < Numbers::in_word; ++j) {
      to[i * Numbers::in_word + j] = Numbers::value(words[i], j);
    }
  }
}

template <class Numbers>
void widen_numbers(const void* from, unsigned count, f64* to) {
  widen<Numbers>(from, count, to);
}

template <class Numbers>
void read_rows(const std::byte* from, std::size_t stride, f64* to, unsigned pitch) {
  for (unsigned row = 0; row < tile_rows; ++row) {
    widen<Numbers>(from + row * stride, in_group<Numbers>, to + std::size_t{row} * pitch);
  }
}

template <class Numbers>
void read_columns(const std::byte* from, std::size_t stride, f64* to, unsigned pitch) {
  constexpr unsigned count = in_group<Numbers>;
  f64 numbers[tile_columns][count];
  for (unsigned column = 0; column < tile_columns; ++column) {
    widen<Numbers>(from + column * stride, count, numbers[column]);
  }
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned column = 0; column < tile_columns; ++column) {
      to[std::size_t{i} * pitch + column] = numbers[column][i];
    }
  }
}

// Types of sums: the words that hold them, and the word of each value.
struct F32Results {
  using Word = u32;
  DEMARC_INLINE static Word word(f64 value) {
    const f32 rounded = static_cast<f32>(value);
    return rounded == rounded ? __builtin_bit_cast(u32, rounded) : 0x7fffffffU;
  }
};
struct F16Results {
  using Word = u16;
  // With `unit`, 2^52 of the last places of a half, added, the sum's mantissa is the number of
  // them.
  DEMARC_INLINE static Word word(f64 value) {
    constexpr u64 infinity = 0x7c00;
    constexpr u64 least_exponent = 1023 - 14;
    constexpr u64 max_exponent = 1023 + 16;
    const u64 bits = __builtin_bit_cast(u64, value);
    const u64 magnitude = bits & ~(u64{1} << 63);
    u64 exponent = magnitude >> 52;
    exponent = exponent < least_exponent ? least_exponent : exponent;
    const bool large = exponent >= max_exponent;
    exponent = large ? max_exponent : exponent;
    const f64 unit = __builtin_bit_cast(f64, (exponent + 42) << 52);
    const f64 sum = __builtin_bit_cast(f64, large ? 0 : magnitude) + unit;
    const u64 places = __builtin_bit_cast(u64, sum) & ((u64{1} << 52) - 1);
    u64 half = ((exponent - least_exponent) << 10) + places;
    half = large || half > infinity ? infinity : half;
    half |= bits >> 48 & 0x8000;
    return static_cast<u16>(value == value ? half : 0x7fff);
  }
};
struct F64Results {
  using Word = f64;
  DEMARC_INLINE static Word word(f64 value) { return value; }
};
// The low bits of a whole number are those of its sum with 1.5 * 2^52.
struct S32Results {
  using Word = u32;
  DEMARC_INLINE static Word word(f64 value) {
    return static_cast<u32>(__builtin_bit_cast(u64, value + 0x1.8p52));
  }
};
struct SaturatedResults {
  using Word = u32;
  DEMARC_INLINE static Word word(f64 value) {
    const f64 below = value < 0x7fffffffp0 ? value : 0x7fffffffp0;
    return S32Results::word(below > -0x80000000p0 ? below : -0x80000000p0);
  }
};

template <class Results>
void narrow_numbers(const f64* from, unsigned count, void* to) {
  auto* words = static_cast<typename Results::Word*>(to);
  for (unsigned i = 0; i < count; ++i) words[i] = Results::word(from[i]);
}

template <class Word>
constexpr unsigned sum_registers = sizeof(Word) < 4 ? 1 : 2;

template <class Numbers>
void read_sums(const std::byte* const* registers, f64* to, unsigned pitch) {
  using Word = typename Numbers::Word;
  if constexpr (sum_registers<Word> == 1) {
    read_rows<Numbers>(registers[0], group_lanes * 4, to, pitch);
  } else {
    const auto* even = reinterpret_cast<const Word*>(registers[0]);
    const auto* odd = reinterpret_cast<const Word*>(registers[1]);
    for (unsigned row = 0; row < tile_rows; ++row) {
      for (unsigned lane = 0; lane < group_lanes; ++lane) {
        f64* const pair = to + std::size_t{row} * pitch + lane * 2;
        pair[0] = Numbers::value(even[row * group_lanes + lane], 0);
        pair[1] = Numbers::value(odd[row * group_lanes + lane], 0);
      }
    }
  }
}

template <class Results>
void write_sums(const f64* from, unsigned pitch, std::byte* const* registers) {
  using Word = typename Results::Word;
  Word words[tile_rows][tile_columns];
  for (unsigned row = 0; row < tile_rows; ++row) {
    for (unsigned column = 0; column < tile_columns; ++column) {
      words[row][column] = Results::word(from[std::size_t{row} * pitch + column]);
    }
  }
  if constexpr (sum_registers<Word> == 1) {
    std::memcpy(registers[0], words, sizeof words);
  } else {
    auto* even = reinterpret_cast<Word*>(registers[0]);
    auto* odd = reinterpret_cast<Word*>(registers[1]);
    for (unsigned row = 0; row < tile_rows; ++row) {
      for (unsigned lane = 0; lane < group_lanes; ++lane) {
        even[row * group_lanes + lane] = words[row][lane * 2];
        odd[row * group_lanes + lane] = words[row][lane * 2 + 1];
      }
    }
  }
}

// Sums side by side in a row, as many as a vector of the instruction set holds.
#if defined(__AVX512F__)
constexpr unsigned row_bytes = 64;
#elif defined(__AVX2__)
constexpr unsigned row_bytes = 32;
#else
constexpr unsigned row_bytes = 16;
#endif
constexpr unsigned row_columns = row_bytes / sizeof(f64);
using Row [[gnu::vector_size(row_bytes)]] = f64;

struct FusedMultiplyAdd {
  DEMARC_INLINE static void add(Row& sum, f64 a, const Row& b) {
#if defined(__AVX512F__)
    sum = _mm512_fmadd_pd(_mm512_set1_pd(a), b, sum);
#elif defined(__FMA__)
    sum = _mm256_fmadd_pd(_mm256_set1_pd(a), b, sum);
#else
    for (unsigned i = 0; i < row_columns; ++i) sum[i] = __builtin_fma(a, b[i], sum[i]);
#endif
  }
};
// For products that are exact, where a rounding of its own changes nothing.
struct MultiplyAdd {
  DEMARC_INLINE static void add(Row& sum, f64 a, const Row& b) {
#if defined(__FMA__)
    FusedMultiplyAdd::add(sum, a, b);
#else
    sum += a * b;
#endif
  }
};
template <bool different>
struct CountBits {
  DEMARC_INLINE static void add(Row& sum, f64 a, const Row& b) {
    const auto word = static_cast<u32>(a);
    for (unsigned i = 0; i < row_columns; ++i) {
      const auto other = static_cast<u32>(b[i]);
      sum[i] += __builtin_popcount(different ? word ^ other : word & other);
    }
  }
};

template <class Step>
void add_products(const ProductSize& size, const SumRule& /*rule*/, const f64* a, const f64* b,
                  f64* sums) {
  for (unsigned row = 0; row < size.m; row += tile_rows) {
    for (unsigned column = 0; column < size.n; column += row_columns) {
      Row rows[tile_rows];
      for (unsigned i = 0; i < tile_rows; ++i) {
        std::memcpy(&rows[i], sums + std::size_t{row + i} * size.n + column, sizeof(Row));
      }
      for (unsigned k = 0; k < size.k; ++k) {
        Row factors;
        std::memcpy(&factors, b + std::size_t{k} * size.n + column, sizeof(Row));
        const f64* const column_of_a = a + std::size_t{row} * size.k + k;
#pragma GCC unroll 8
        for (unsigned i = 0; i < tile_rows; ++i) {
          Step::add(rows[i], column_of_a[std::size_t{i} * size.k], factors);
        }
      }
      for (unsigned i = 0; i < tile_rows; ++i) {
        std::memcpy(sums + std::size_t{row + i} * size.n + column, &rows[i], sizeof(Row));
      }
    }
  }
}

#include "lanes/matrix_sums.inl"

template <class Numbers>
constexpr void set_numbers(MatrixSteps& steps, MatrixType type) {
  const auto at = static_cast<std::size_t>(type);
  steps.widen[at] = widen_numbers<Numbers>;
  steps.rows[at] = read_rows<Numbers>;
  steps.columns[at] = read_columns<Numbers>;
}

template <class Numbers, class Results>
constexpr void set_sums(MatrixSteps& steps, MatrixType type) {
  const auto at = static_cast<std::size_t>(type);
  steps.widen[at] = widen_numbers<Numbers>;
  steps.read_sums[at] = read_sums<Numbers>;
  steps.narrow[at] = narrow_numbers<Results>;
  steps.write_sums[at] = write_sums<Results>;
}

constexpr MatrixSteps make_steps() {
  MatrixSteps steps;
  set_numbers<F16Numbers>(steps, MatrixType::f16);
  set_numbers<Bf16Numbers>(steps, MatrixType::bf16);
  set_numbers<Tf32Numbers>(steps, MatrixType::tf32);
  set_numbers<PlainNumbers<f64>>(steps, MatrixType::f64);
  set_numbers<E4m3Numbers>(steps, MatrixType::e4m3);
  set_numbers<E5m2Numbers>(steps, MatrixType::e5m2);
  set_numbers<PlainNumbers<s8>>(steps, MatrixType::s8);
  set_numbers<PlainNumbers<u8>>(steps, MatrixType::u8);
  set_numbers<FourBitNumbers<true>>(steps, MatrixType::s4);
  set_numbers<FourBitNumbers<false>>(steps, MatrixType::u4);
  set_numbers<PlainNumbers<u32>>(steps, MatrixType::b1);
  set_sums<F16Numbers, F16Results>(steps, MatrixType::f16);
  set_sums<PlainNumbers<f32>, F32Results>(steps, MatrixType::f32);
  set_sums<PlainNumbers<f64>, F64Results>(steps, MatrixType::f64);
  set_sums<PlainNumbers<s32>, S32Results>(steps, MatrixType::s32);
  steps.narrow_saturated = narrow_numbers<SaturatedResults>;
  steps.write_saturated = write_sums<SaturatedResults>;
  steps.add_whole = add_products<MultiplyAdd>;
  steps.add_fused = add_products<FusedMultiplyAdd>;
  steps.add_aligned = add_aligned;
  steps.add_halves = add_halves;
  steps.add_in_turn = add_in_turn;
  steps.add_common_bits = add_products<CountBits<false>>;
  steps.add_different_bits = add_products<CountBits<true>>;
  return steps;
}

constexpr MatrixSteps steps = make_steps();

}  // namespace

const MatrixSteps* matrix_steps() {
  return &steps;
}

}  // namespace demarc::emulate::DEMARC_ISA
