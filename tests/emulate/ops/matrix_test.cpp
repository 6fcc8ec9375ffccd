// Matrix products against a plain triple loop over matrices in memory.
#include <random>

#include "matrix_fragments.hpp"

namespace demarc::emulate::matrices {
namespace {

using test::run_text;

// Small whole numbers, so that every sum is exact whatever its order.
std::uint64_t bits_for(std::mt19937& engine, const std::string& type) {
  const int value = static_cast<int>(engine() % 13) - 6;
  if (type == "f16") return narrow_f16().round(value);
  if (type == "bf16") return narrow_bf16().round(value);
  if (type == "e4m3") return narrow_e4m3().round(value);
  if (type == "e5m2") return narrow_e5m2().round(engine() % 2 == 0 ? 2 : -3);
  if (type == "f32" || type == "tf32") return test::bits(static_cast<float>(value));
  if (type == "f64") return test::bits(static_cast<double>(value));
  if (type == "s32") return static_cast<std::uint32_t>(value * 1000);
  return engine() & ((1U << bits_of(type)) - 1);
}

void expect_product(const Shape& s, bool exclusive = false) {
  const Fragments fragments(s);
  const auto& [fa, fb, fc, fd] = fragments;
  const std::size_t at_b = fragments.at_b();
  const std::size_t at_c = fragments.at_c();
  const std::size_t at_d = fragments.at_d();
  gpu::Launch launch = test::launch_of(1, 32, at_d + fd.bytes());
  gpu::Memory memory(1);
  memory[0].resize(at_d + fd.bytes());
  std::vector<std::vector<double>> a(s.m, std::vector<double>(s.k));
  std::vector<std::vector<double>> b(s.k, std::vector<double>(s.n));
  std::vector<std::vector<double>> c(s.m, std::vector<double>(s.n));
  std::mt19937 engine(5);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < fa.elements(); ++i) {
      const std::uint64_t bits = bits_for(engine, s.a);
      fa.set(memory[0].data(), lane, i, bits);
      a[place_a(s, lane, i).row][place_a(s, lane, i).column] = number_of(bits, s.a);
    }
    for (unsigned i = 0; i < fb.elements(); ++i) {
      const std::uint64_t bits = bits_for(engine, s.b);
      fb.set(memory[0].data() + at_b, lane, i, bits);
      b[place_b(s, lane, i).row][place_b(s, lane, i).column] = number_of(bits, s.b);
    }
    for (unsigned i = 0; i < fc.elements(); ++i) {
      const std::uint64_t bits = bits_for(engine, s.c);
      fc.set(memory[0].data() + at_c, lane, i, bits);
      c[place_c(s, lane, i).row][place_c(s, lane, i).column] = number_of(bits, s.c);
    }
  }
  const std::string text = fragments.text(s);
  const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok()) << ptx::format(parsed.diagnostics.list.front(), "t.ptx");
  const auto outcome = run_on(parsed.module, launch, memory);
  ASSERT_TRUE(outcome) << s.mnemonic << ": " << outcome.error().message;
  EXPECT_TRUE(outcome->findings.empty());
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < fd.elements(); ++i) {
      const Place at = place_c(s, lane, i);
      double sum = c[at.row][at.column];
      for (unsigned k = 0; k < s.k; ++k) {
        const double x = a[at.row][k];
        const double y = b[k][at.column];
        sum += exclusive ? (x != y ? 1 : 0) : x * y;
      }
      ASSERT_EQ(number_of(fd.get(outcome->buffers[0].data() + at_d, lane, i), s.d), sum)
          << s.mnemonic << " row " << at.row << " column " << at.column;
    }
  }
}

TEST(MatrixProducts, every_shape_and_type_of_mma_is_the_triple_loop) {
  const auto mma = [](unsigned m, unsigned n, unsigned k, const char* a, const char* b,
                      const char* c, const char* d, const char* more = "") {
    expect_product(
        {fmt::format("mma.sync.aligned.m{}n{}k{}.row.col{}.{}.{}.{}.{}", m, n, k, more, d, a, b, c),
         m, n, k, a, b, c, d});
  };
  for (const unsigned k : {8U, 16U}) {
    mma(16, 8, k, "f16", "f16", "f32", "f32");
    mma(16, 8, k, "f16", "f16", "f16", "f16");
    mma(16, 8, k, "bf16", "bf16", "f32", "f32");
  }
  for (const unsigned k : {4U, 8U}) mma(16, 8, k, "tf32", "tf32", "f32", "f32");
  mma(8, 8, 4, "f64", "f64", "f64", "f64");
  for (const unsigned k : {4U, 8U, 16U}) mma(16, 8, k, "f64", "f64", "f64", "f64");
  for (const char* a : {"s8", "u8"}) {
    for (const char* b : {"s8", "u8"}) {
      mma(8, 8, 16, a, b, "s32", "s32");
      mma(16, 8, 16, a, b, "s32", "s32");
      mma(16, 8, 32, a, b, "s32", "s32", ".satfinite");
    }
  }
  for (const char* a : {"s4", "u4"}) {
    mma(8, 8, 32, a, "s4", "s32", "s32");
    mma(16, 8, 32, a, "u4", "s32", "s32");
    mma(16, 8, 64, a, "s4", "s32", "s32");
  }
  for (const char* a : {"e4m3", "e5m2"}) {
    mma(16, 8, 32, a, "e4m3", "f32", "f32");
    mma(16, 8, 16, a, "e5m2", "f16", "f16");
  }
}

TEST(MatrixProducts, single_bits_are_counted_after_and_or_exclusive_or) {
  for (const auto& [m, k] :
       std::vector<std::pair<unsigned, unsigned>>{{8, 128}, {16, 128}, {16, 256}}) {
    for (const bool exclusive : {false, true}) {
      expect_product({fmt::format("mma.sync.aligned.m{}n8k{}.row.col.s32.b1.b1.s32.{}.popc", m, k,
                                  exclusive ? "xor" : "and"),
                      m, 8, k, "b1", "b1", "s32", "s32"},
                     exclusive);
    }
  }
}

// The buffer: a (f16, 8x4 or 4x8 in memory order of the layout) of quad q, then b, each lane its
// four elements; c and d as the lanes hold them.
TEST(MatrixProducts, the_four_quads_of_m8n8k4_multiply_on_their_own) {
  for (const std::string a_layout : {"row", "col"}) {
    for (const std::string b_layout : {"row", "col"}) {
      gpu::Memory memory(1);
      memory[0].resize(32 * 8 * 2 + 32 * 32);
      std::mt19937 engine(9);
      double a[4][8][4] = {};
      double b[4][4][8] = {};
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned quad = lane % 16 / 4;
        const unsigned l = lane % 4 + (lane >= 16 ? 4 : 0);
        for (unsigned i = 0; i < 4; ++i) {
          const std::uint64_t x = bits_for(engine, "f16");
          const std::uint64_t y = bits_for(engine, "f16");
          std::memcpy(memory[0].data() + lane * 8 + i * 2, &x, 2);
          std::memcpy(memory[0].data() + 256 + lane * 8 + i * 2, &y, 2);
          const unsigned upper = lane >= 16 ? 4 : 0;
          (a_layout == "row" ? a[quad][l][i] : a[quad][i + upper][lane % 4]) = number_of(x, "f16");
          (b_layout == "col" ? b[quad][i][l] : b[quad][lane % 4][i + upper]) = number_of(y, "f16");
        }
      }
      const std::string text = test::kernel_of("", fmt::format(R"(
.reg .b32 %d<8>;
add.s64 %rd3, %rd1, 512;
mad.wide.u32 %rd4, %r1, 32, %rd3;
ld.global.v2.b32 {{%r10, %r11}}, [%rd2];
ld.global.v2.b32 {{%r12, %r13}}, [%rd2+256];
mma.sync.aligned.m8n8k4.{}.{}.f32.f16.f16.f32 {{%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}}, {{%r10, %r11}}, {{%r12, %r13}}, {{0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000, 0f3F800000}};
st.global.v4.b32 [%rd4], {{%d0, %d1, %d2, %d3}};
st.global.v4.b32 [%rd4+16], {{%d4, %d5, %d6, %d7}};)",
                                                               a_layout, b_layout));
      const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
      ASSERT_TRUE(parsed.diagnostics.ok()) << ptx::format(parsed.diagnostics.list.front(), "t.ptx");
      const auto outcome = run_on(parsed.module, test::launch_of(1, 32, memory[0].size()), memory);
      ASSERT_TRUE(outcome) << outcome.error().message;
      for (unsigned lane = 0; lane < 32; ++lane) {
        const unsigned quad = lane % 16 / 4;
        for (unsigned i = 0; i < 8; ++i) {
          const unsigned row = (lane & 1U) + (i & 2U) + (lane >= 16 ? 4 : 0);
          const unsigned column = (i & 4U) + (lane & 2U) + (i & 1U);
          double sum = 1;
          for (unsigned k = 0; k < 4; ++k) sum += a[quad][row][k] * b[quad][k][column];
          float got = 0;
          std::memcpy(&got, outcome->buffers[0].data() + 512 + lane * 32 + i * 4, 4);
          ASSERT_EQ(static_cast<double>(got), sum)
              << a_layout << b_layout << " lane " << lane << " element " << i;
        }
      }
    }
  }
}

struct Wmma {
  unsigned m, n, k;
  std::string type;  // type of a and b
  std::string sum;   // sum of c and d
  unsigned a_registers, b_registers, c_registers;
};

void expect_wmma(const Wmma& s, const std::string& a_layout, const std::string& b_layout) {
  const unsigned in_bytes = bits_of(s.type) / 8;
  const unsigned sum_bytes = bits_of(s.sum) / 8;
  const unsigned a_stride = (a_layout == "row" ? s.k : s.m) + 8;  // not packed
  const unsigned b_stride = (b_layout == "row" ? s.n : s.k) + 8;
  const unsigned at_b = 32 * 48 * in_bytes;
  const unsigned at_c = 2 * at_b;
  const unsigned at_d = at_c + s.m * s.n * sum_bytes;
  gpu::Memory memory(1);
  memory[0].resize(at_d + s.m * s.n * sum_bytes);
  std::mt19937 engine(11);
  std::vector<std::vector<double>> a(s.m, std::vector<double>(s.k));
  std::vector<std::vector<double>> b(s.k, std::vector<double>(s.n));
  std::vector<std::vector<double>> c(s.m, std::vector<double>(s.n));
  const auto put = [&](std::size_t at, const std::string& type) {
    const std::uint64_t bits = bits_for(engine, type);
    std::memcpy(memory[0].data() + at, &bits, bits_of(type) / 8);
    return number_of(bits, type);
  };
  for (unsigned i = 0; i < s.m; ++i) {
    for (unsigned k = 0; k < s.k; ++k)
      a[i][k] = put((a_layout == "row" ? i * a_stride + k : k * a_stride + i) * in_bytes, s.type);
    for (unsigned j = 0; j < s.n; ++j) c[i][j] = put(at_c + (i * s.n + j) * sum_bytes, s.sum);
  }
  for (unsigned k = 0; k < s.k; ++k) {
    for (unsigned j = 0; j < s.n; ++j)
      b[k][j] =
          put(at_b + (b_layout == "row" ? k * b_stride + j : j * b_stride + k) * in_bytes, s.type);
  }
  const auto list = [](char letter, unsigned count) {
    std::string text = "{";
    for (unsigned r = 0; r < count; ++r)
      text += fmt::format("{}%{}{}", r == 0 ? "" : ", ", letter, r);
    return text + "}";
  };
  const unsigned in_width = s.type == "f64" ? 64 : 32;
  const unsigned sum_width = s.sum == "f64" ? 64 : 32;
  const std::string shape = fmt::format("m{}n{}k{}", s.m, s.n, s.k);
  const std::string types = s.type == "f16"
                                ? fmt::format("{}.{}", s.sum, s.sum)
                                : fmt::format("{}.{}.{}.{}", s.sum, s.type, s.type, s.sum);
  const std::string text = test::kernel_of(
      "",
      fmt::format(".reg .b{0} %a<8>, %b<8>;\n.reg .b{1} %c<8>, %d<8>;\n", in_width, sum_width) +
          fmt::format("add.s64 %rd4, %rd1, {};\nadd.s64 %rd5, %rd1, {};\nadd.s64 %rd6, %rd1, {};\n",
                      at_b, at_c, at_d) +
          fmt::format("wmma.load.a.sync.aligned.{}.{}.global.{} {}, [%rd1], {};\n", a_layout, shape,
                      s.type, list('a', s.a_registers), a_stride) +
          fmt::format("wmma.load.b.sync.aligned.{}.{}.global.{} {}, [%rd4], {};\n", b_layout, shape,
                      s.type, list('b', s.b_registers), b_stride) +
          fmt::format("wmma.load.c.sync.aligned.row.{}.global.{} {}, [%rd5];\n", shape, s.sum,
                      list('c', s.c_registers)) +
          fmt::format("wmma.mma.sync.aligned.{}.{}.{}.{} {}, {}, {}, {};\n", a_layout, b_layout,
                      shape, types, list('d', s.c_registers), list('a', s.a_registers),
                      list('b', s.b_registers), list('c', s.c_registers)) +
          fmt::format("wmma.store.d.sync.aligned.row.{}.global.{} [%rd6], {}, {};", shape, s.sum,
                      list('d', s.c_registers), s.n));
  const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok()) << ptx::format(parsed.diagnostics.list.front(), "t.ptx");
  const auto outcome = run_on(parsed.module, test::launch_of(1, 32, memory[0].size()), memory);
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
  for (unsigned i = 0; i < s.m; ++i) {
    for (unsigned j = 0; j < s.n; ++j) {
      double sum = c[i][j];
      for (unsigned k = 0; k < s.k; ++k) sum += a[i][k] * b[k][j];
      std::uint64_t bits = 0;
      std::memcpy(&bits, outcome->buffers[0].data() + at_d + (i * s.n + j) * sum_bytes, sum_bytes);
      ASSERT_EQ(number_of(bits, s.sum), sum) << text;
    }
  }
}

TEST(WarpMatrices, loads_products_and_stores_of_every_type_and_layout_are_the_triple_loop) {
  for (const std::string a_layout : {"row", "col"}) {
    for (const std::string b_layout : {"row", "col"}) {
      expect_wmma({16, 16, 16, "f16", "f32", 8, 8, 8}, a_layout, b_layout);
      expect_wmma({16, 16, 16, "f16", "f16", 8, 8, 4}, a_layout, b_layout);
      expect_wmma({32, 8, 16, "f16", "f32", 8, 8, 8}, a_layout, b_layout);
      expect_wmma({8, 32, 16, "f16", "f32", 8, 8, 8}, a_layout, b_layout);
      expect_wmma({16, 16, 16, "bf16", "f32", 4, 4, 8}, a_layout, b_layout);
      expect_wmma({8, 32, 16, "bf16", "f32", 2, 8, 8}, a_layout, b_layout);
      expect_wmma({16, 16, 8, "tf32", "f32", 4, 4, 8}, a_layout, b_layout);
      expect_wmma({16, 16, 16, "s8", "s32", 2, 2, 8}, a_layout, b_layout);
      expect_wmma({32, 8, 16, "u8", "s32", 4, 1, 8}, a_layout, b_layout);
      expect_wmma({8, 8, 4, "f64", "f64", 1, 1, 2}, a_layout, b_layout);
    }
  }
}

// Matrix m's row r, column c holds 100 * m + 10 * r + c (as 16-bit numbers) in shared memory.
TEST(MatrixMoves, ldmatrix_hands_rows_out_and_stmatrix_puts_them_back) {
  for (const bool transposed : {false, true}) {
    for (const unsigned count : {1U, 2U, 4U}) {
      const char* trans = transposed ? ".trans" : "";
      std::string registers = "%r10";
      for (unsigned i = 1; i < count; ++i) registers += fmt::format(", %r{}", 10 + i);
      std::string body = R"(
mov.u64 %rd5, area;
cvt.u32.u64 %r20, %rd5;
mov.u32 %r3, 0;
FILL:
mad.lo.u32 %r4, %r3, 32, %r1;
shr.u32 %r5, %r4, 6;
bfe.u32 %r6, %r4, 3, 3;
and.b32 %r7, %r4, 7;
mul.lo.u32 %r5, %r5, 100;
mad.lo.u32 %r5, %r6, 10, %r5;
add.u32 %r5, %r5, %r7;
mad.lo.u32 %r6, %r4, 2, %r20;
st.shared.u16 [%r6], %r5;
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, 8;
@%p1 bra FILL;
bar.warp.sync -1;
mad.lo.u32 %r21, %r1, 16, %r20;
)";
      body += fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, [%r21];\n", count,
                          trans, registers);
      for (unsigned i = 0; i < count; ++i)
        body += fmt::format("st.global.u32 [%rd2+{}], %r{};\n", 256 * i, 10 + i);
      body += fmt::format(
          "add.u32 %r22, %r21, 512;\nstmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [%r22], {{{}}};\n",
          count, trans, registers);
      body += "bar.warp.sync -1;\n";
      for (unsigned i = 0; i < count; ++i) {
        body += fmt::format(
            "mad.lo.u32 %r23, %r1, 4, %r20;\nld.shared.u32 %r24, [%r23+{}];\nst.global.u32 "
            "[%rd2+{}], %r24;\n",
            512 + 128 * i, 256 * i + 4);
      }
      const auto outcome = run_text(test::kernel_of(".shared .align 16 .b8 area[1024];\n", body),
                                    test::launch_of(1, 32, 1024));
      ASSERT_TRUE(outcome) << outcome.error().message;
      for (const Finding& finding : outcome->findings) ADD_FAILURE() << describe(finding, "t.ptx");
      for (unsigned m = 0; m < count; ++m) {
        for (unsigned lane = 0; lane < 32; ++lane) {
          std::uint32_t words[2];
          std::memcpy(words, outcome->buffers[0].data() + 256 * m + 8 * lane, 8);
          const unsigned row = lane / 4;
          const unsigned column = lane % 4 * 2;
          const auto element = [&](unsigned r, unsigned c) {
            return transposed ? 100 * m + 10 * c + r : 100 * m + 10 * r + c;
          };
          EXPECT_EQ(words[0], element(row, column) | (element(row, column + 1) << 16))
              << "lane " << lane;
          // What stmatrix wrote is what was there.
          const unsigned at = lane * 2;
          EXPECT_EQ(words[1], (100 * m + at / 8 * 10 + at % 8) |
                                  ((100 * m + at / 8 * 10 + at % 8 + 1) << 16));
        }
      }
    }
  }
}

TEST(MatrixMoves, movmatrix_transposes) {
  const auto outcome = run_text(test::kernel_of("", R"(
shl.b32 %r3, %r1, 1;
add.u32 %r4, %r3, 1;
shl.b32 %r4, %r4, 16;
or.b32 %r3, %r3, %r4;
movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r3;
cvt.u64.u32 %rd3, %r5;
st.global.u64 [%rd2], %rd3;)"),
                                test::launch_of(1, 32, 256));
  ASSERT_TRUE(outcome) << outcome.error().message;
  const auto words = test::words_of(*outcome);
  // Element (r, c) is 8r + c.
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned r = lane / 4;
    const unsigned c = lane % 4 * 2;
    EXPECT_EQ(words[lane], (8 * c + r) | ((8 * (c + 1) + r) << 16));
  }
}

}  // namespace
}  // namespace demarc::emulate::matrices
