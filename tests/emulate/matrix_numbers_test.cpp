// Matrix products of any numbers, in every instruction set: whole numbers are exact, doubles are
// rounded product by product, all others as a tensor core of Hopper rounds them.
#include <cmath>
#include <random>

#include "matrix_fragments.hpp"
#include "tensor_sums.hpp"

namespace demarc::emulate::matrices {
namespace {

// Any bits; but of most floating-point numbers the exponent is a middling one, so that sums are not
// those of one large product, or no numbers.
std::uint64_t any_bits(std::mt19937_64& engine, const std::string& type) {
  const std::uint64_t bits = engine();
  const std::uint64_t kind = engine() % 64;
  if (kind == 0) return bits;
  if (kind < 8) return 0;
  if (type == "f32" || type == "tf32") return (bits & 0x83ffffff) | 0x3c000000;
  if (type == "bf16") return (bits & 0x83ff) | 0x3c00;
  if (type == "f64") return (bits & 0x803fffffffffffff) | 0x3fc0000000000000;
  if (type == "f16") return bits & 0xbfff;
  if (type == "e4m3" || type == "e5m2") return bits & 0xbf;
  return bits;
}

std::uint64_t rounded(double sum, const std::string& type) {
  if (type == "f16") return narrow_f16().round(sum);
  if (type == "f64") return test::bits(sum);
  if (type == "s32") return static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
  return std::isnan(sum) ? 0x7fffffffU : test::bits(static_cast<float>(sum));
}

// The matrices of a product as numbers.
struct Matrices {
  std::vector<std::vector<double>> a, b, c;

  explicit Matrices(const Shape& s)
      : a(s.m, std::vector<double>(s.k)),
        b(s.k, std::vector<double>(s.n)),
        c(s.m, std::vector<double>(s.n)) {}
  [[nodiscard]] double sum(const Shape& s, const Place& at) const {
    double sum = c[at.row][at.column];
    if (s.d == "f32" || s.d == "f16") {
      test::TensorSum made{s.a, s.b, s.d, a[at.row], {}, sum};
      for (unsigned k = 0; k < s.k; ++k) made.y.push_back(b[k][at.column]);
      return made.value();
    }
    for (unsigned k = 0; k < s.k; ++k) {
      const double x = a[at.row][k];
      const double y = b[k][at.column];
      sum = s.d == "f64" ? std::fma(x, y, sum) : sum + x * y;
    }
    return sum;
  }
};

gpu::Memory fill(const Shape& s, const Fragments& fragments, std::uint64_t seed,
                 Matrices& matrices) {
  gpu::Memory memory(1, std::vector<std::byte>(fragments.bytes()));
  std::mt19937_64 engine(seed);
  const auto put = [&](const Fragment& fragment, std::size_t at, const std::string& type,
                       auto&& number) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < fragment.elements(); ++i) {
        const unsigned width = bits_of(type);
        const std::uint64_t ones =
            width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
        const std::uint64_t bits = any_bits(engine, type) & ones;
        fragment.set(memory[0].data() + at, lane, i, bits);
        number(lane, i) = number_of(bits, type);
      }
    }
  };
  put(fragments.a, 0, s.a, [&](unsigned lane, unsigned i) -> double& {
    return matrices.a[place_a(s, lane, i).row][place_a(s, lane, i).column];
  });
  put(fragments.b, fragments.at_b(), s.b, [&](unsigned lane, unsigned i) -> double& {
    return matrices.b[place_b(s, lane, i).row][place_b(s, lane, i).column];
  });
  put(fragments.c, fragments.at_c(), s.c, [&](unsigned lane, unsigned i) -> double& {
    return matrices.c[place_c(s, lane, i).row][place_c(s, lane, i).column];
  });
  return memory;
}

Result<std::vector<std::byte>> result_of(const std::string& text, const gpu::Memory& memory,
                                         InstructionSet set) {
  const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
  if (!parsed.diagnostics.ok())
    return invalid_input("{}", ptx::format(parsed.diagnostics.list.front(), "t.ptx"));
  Options options;
  options.instruction_set = set;
  DEMARC_TRY(const Outcome outcome,
             run_on(parsed.module, test::launch_of(1, 32, memory[0].size()), memory, options));
  return outcome.buffers[0];
}

std::vector<InstructionSet> sets() {
  std::vector<InstructionSet> out;
  for (const auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (set <= widest_instruction_set()) out.push_back(set);
  }
  return out;
}

Shape shape_of(unsigned m, unsigned n, unsigned k, const std::string& a, const std::string& b,
               const std::string& sum) {
  return {fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{}", m, n, k, sum, a, b, sum),
          m,
          n,
          k,
          a,
          b,
          sum,
          sum};
}

class MatrixNumbers : public testing::TestWithParam<Shape> {};

TEST_P(MatrixNumbers, are_summed_and_rounded_as_their_types_are) {
  const Shape& s = GetParam();
  const Fragments fragments(s);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Matrices matrices(s);
    const gpu::Memory memory = fill(s, fragments, seed, matrices);
    for (const InstructionSet set : sets()) {
      const auto got = result_of(fragments.text(s), memory, set);
      ASSERT_TRUE(got) << got.error().message;
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < fragments.d.elements(); ++i) {
          const double sum = matrices.sum(s, place_c(s, lane, i));
          const std::uint64_t bits = fragments.d.get(got->data() + fragments.at_d(), lane, i);
          if (s.d == "f64" && std::isnan(sum)) {
            ASSERT_TRUE(std::isnan(test::f64_of(bits)));
          } else {
            ASSERT_EQ(bits, rounded(sum, s.d))
                << to_string(set) << ", lane " << lane << ": " << sum;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, MatrixNumbers,
                         testing::Values(shape_of(16, 8, 16, "f16", "f16", "f32"),
                                         shape_of(16, 8, 16, "f16", "f16", "f16"),
                                         shape_of(16, 8, 8, "bf16", "bf16", "f32"),
                                         shape_of(16, 8, 8, "tf32", "tf32", "f32"),
                                         shape_of(16, 8, 16, "f64", "f64", "f64"),
                                         shape_of(8, 8, 4, "f64", "f64", "f64"),
                                         shape_of(16, 8, 32, "e4m3", "e5m2", "f32"),
                                         shape_of(16, 8, 32, "e5m2", "e4m3", "f16"),
                                         shape_of(16, 8, 32, "s8", "u8", "s32"),
                                         shape_of(8, 8, 16, "u8", "s8", "s32"),
                                         shape_of(16, 8, 64, "s4", "u4", "s32")),
                         [](const auto& one) {
                           return fmt::format("{}_and_{}_to_{}_m{}k{}", one.param.a, one.param.b,
                                              one.param.d, one.param.m, one.param.k);
                         });

TEST(MatrixProducts, sums_beyond_32_bits_wrap_or_stay_at_the_ends) {
  for (const bool saturates : {false, true}) {
    Shape s = shape_of(16, 8, 32, "s8", "s8", "s32");
    if (saturates) s.mnemonic.insert(s.mnemonic.find(".s32"), ".satfinite");
    const Fragments fragments(s);
    for (const int sign : {1, -1}) {
      gpu::Memory memory(1, std::vector<std::byte>(fragments.bytes()));
      const std::int64_t c = sign > 0 ? 2147483647LL - 5 : -2147483648LL + 5;
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < fragments.a.elements(); ++i)
          fragments.a.set(memory[0].data(), lane, i, static_cast<std::uint8_t>(sign * 127));
        for (unsigned i = 0; i < fragments.b.elements(); ++i)
          fragments.b.set(memory[0].data() + fragments.at_b(), lane, i, 127);
        for (unsigned i = 0; i < fragments.c.elements(); ++i) {
          fragments.c.set(memory[0].data() + fragments.at_c(), lane, i,
                          static_cast<std::uint32_t>(c));
        }
      }
      const std::int64_t sum = c + std::int64_t{sign} * 32 * 127 * 127;
      const std::int64_t end = sign > 0 ? 2147483647LL : -2147483648LL;
      for (const InstructionSet set : sets()) {
        const auto got = result_of(fragments.text(s), memory, set);
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(fragments.d.get(got->data() + fragments.at_d(), 9, 1),
                  static_cast<std::uint32_t>(saturates ? end : sum));
      }
    }
  }
}

// c and d are the same in all lanes before the product, which every other lane executes.
TEST(MatrixProducts, lanes_that_do_not_execute_keep_d_and_c_may_be_one_value_of_all_lanes) {
  const Shape s = shape_of(16, 8, 16, "f16", "f16", "f32");
  const Fragments fragments(s);
  Matrices matrices(s);
  const gpu::Memory memory = fill(s, fragments, 3, matrices);
  for (auto& row : matrices.c) row.assign(row.size(), 2.0);
  std::string before = ".reg .b32 %odd;\nand.b32 %odd, %thread, 1;\nsetp.eq.u32 %p, %odd, 0;\n";
  for (unsigned i = 0; i < 4; ++i)
    before += fmt::format("mov.b32 %c{0}, 0f40000000;\nmov.b32 %d{0}, 0f41100000;\n", i);
  for (const InstructionSet set : sets()) {
    const auto got = result_of(fragments.text(s, before, "@%p "), memory, set);
    ASSERT_TRUE(got) << got.error().message;
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < fragments.d.elements(); ++i) {
        const std::uint64_t expected =
            lane % 2 == 0 ? rounded(matrices.sum(s, place_c(s, lane, i)), "f32") : 0x41100000;
        EXPECT_EQ(fragments.d.get(got->data() + fragments.at_d(), lane, i), expected)
            << to_string(set) << ", lane " << lane;
      }
    }
  }
}

}  // namespace
}  // namespace demarc::emulate::matrices
