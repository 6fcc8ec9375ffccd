// Multiply-adds per second of the emulator's matrix products on one core, beside those of its
// scalar code and of a loop over vectors compiled for this machine. Results are checked first.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "native_loops.hpp"
#include "thread_time.hpp"

namespace demarc::bench {
namespace {

constexpr double target = 1;  // thousand million multiply-adds a second
constexpr double least_seconds = 0.4;

// One instruction in a loop. All registers of a and b are `ones`, those of c are `one`.
struct Product {
  std::string name;
  std::string instruction;  // behind it: d, a, b, c
  unsigned multiply_adds;   // per warp
  unsigned depth;           // products in an element of d
  unsigned d_registers, a_registers, b_registers;
  std::uint64_t ones;
  std::string sum = "f32";
  unsigned threads = 32;
};

constexpr std::uint64_t ones_of_f16 = 0x3c003c00;
constexpr std::uint64_t ones_of_bf16 = 0x3f803f80;
constexpr std::uint64_t one_of_f32 = 0x3f800000;
constexpr std::uint64_t ones_of_e4m3 = 0x38383838;
constexpr std::uint64_t ones_of_s8 = 0x01010101;
constexpr std::uint64_t ones_of_s4 = 0x11111111;
constexpr std::uint64_t ones_of_b1 = 0xffffffff;
constexpr std::uint64_t one_of_f64 = 0x3ff0000000000000;

Product mma(unsigned m, unsigned n, unsigned k, const std::string& type, std::uint64_t ones,
            const std::string& sum, unsigned a_registers, unsigned b_registers) {
  const bool halves = sum == "f16";
  return {.name = fmt::format("mma m{}n{}k{} {} to {}", m, n, k, type, sum),
          .instruction = fmt::format("mma.sync.aligned.m{0}n{1}k{2}.row.col.{4}.{3}.{3}.{4}{5}", m,
                                     n, k, type, sum, type == "b1" ? ".and.popc" : ""),
          .multiply_adds = m * n * k,
          .depth = k,
          .d_registers = m * n / 32 / (halves ? 2 : 1),
          .a_registers = a_registers,
          .b_registers = b_registers,
          .ones = ones,
          .sum = sum};
}

std::vector<Product> products() {
  return {mma(16, 8, 8, "f16", ones_of_f16, "f32", 2, 1),
          mma(16, 8, 16, "f16", ones_of_f16, "f32", 4, 2),
          mma(16, 8, 16, "f16", ones_of_f16, "f16", 4, 2),
          mma(16, 8, 16, "bf16", ones_of_bf16, "f32", 4, 2),
          mma(16, 8, 8, "tf32", one_of_f32, "f32", 4, 2),
          mma(16, 8, 32, "e4m3", ones_of_e4m3, "f32", 4, 2),
          mma(16, 8, 32, "s8", ones_of_s8, "s32", 4, 2),
          mma(16, 8, 64, "s4", ones_of_s4, "s32", 4, 2),
          mma(16, 8, 256, "b1", ones_of_b1, "s32", 4, 2),
          mma(8, 8, 4, "f64", one_of_f64, "f64", 1, 1),
          mma(16, 8, 16, "f64", one_of_f64, "f64", 8, 4),
          {.name = "mma m8n8k4 f16 to f32",
           .instruction = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
           .multiply_adds = 4 * 8 * 8 * 4,
           .depth = 4,
           .d_registers = 8,
           .a_registers = 2,
           .b_registers = 2,
           .ones = ones_of_f16},
          {.name = "wmma m16n16k16 f16 to f32",
           .instruction = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
           .multiply_adds = 16 * 16 * 16,
           .depth = 16,
           .d_registers = 8,
           .a_registers = 8,
           .b_registers = 8,
           .ones = ones_of_f16}};
}

Product warpgroup(unsigned n) {
  return {.name = fmt::format("wgmma m64n{}k16 f16 to f32", n),
          .instruction = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.f16.f16", n),
          .multiply_adds = 16 * n * 16,
          .depth = 16,
          .d_registers = n / 2,
          .a_registers = 0,
          .b_registers = 0,
          .ones = ones_of_f16,
          .threads = 128};
}

std::string list_of(char letter, unsigned count) {
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i)
    text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", letter, i);
  return text + "}";
}

constexpr unsigned in_loop = 8;  // instructions

// The buffer: of every thread a number of a, b and c, then of d.
std::string text_of(const Product& product, unsigned turns) {
  const bool wide = product.sum == "f64";
  const bool group = product.a_registers == 0;
  const unsigned bytes = wide ? 8 : 4;
  const char* const sum = wide ? "f64" : product.sum == "f32" ? "f32" : "b32";
  std::string text = fmt::format(
      ".version 8.4\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 tile[16384];\n"
      ".visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
      ".reg .{} %a<8>, %b<8>; .reg .{} %c<128>, %d<128>;\n"
      "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, {};\n"
      "add.s64 %rd2, %rd1, %rd2;\n",
      wide ? "f64" : "b32", sum, bytes);
  const auto load = [&](char letter, const char* type, unsigned count, unsigned at) {
    for (unsigned i = 0; i < count; ++i) {
      text += fmt::format("ld.global.{} %{}{}, [%rd2+{}];\n", type, letter, i,
                          at * product.threads * bytes);
    }
  };
  load('a', wide ? "f64" : "b32", product.a_registers, 0);
  load('b', wide ? "f64" : "b32", product.b_registers, 0);
  load(group ? 'd' : 'c', sum, product.d_registers, 1);
  if (group) {
    text +=
        "mov.u32 %r2, tile;\nmov.u32 %r4, 0x3c003c00;\nmad.lo.u32 %r3, %r1, 128, %r2;\n"
        "mov.u32 %r5, 0;\nFILL:\nst.shared.u32 [%r3], %r4;\nadd.u32 %r3, %r3, 4;\n"
        "add.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 32;\n@%p1 bra FILL;\nbar.sync 0;\n"
        "shr.u32 %r5, %r2, 4;\ncvt.u64.u32 %rd3, %r5;\n"
        // eight rows follow each other by 256 bytes, eight numbers of k by 128
        "or.b64 %rd3, %rd3, 0x0000001000080000;\nfence.proxy.async;\n";
  }
  text += "mov.u32 %r6, 0;\nLOOP:\n";
  const std::string d = list_of('d', product.d_registers);
  for (unsigned i = 0; i < in_loop; ++i) {
    if (group) {
      text += fmt::format("{} {}, %rd3, %rd3, 0, 1, 1, 0, 0;\n", product.instruction, d);
    } else {
      text += fmt::format("{} {}, {}, {}, {};\n", product.instruction, d,
                          list_of('a', product.a_registers), list_of('b', product.b_registers),
                          list_of('c', product.d_registers));
    }
  }
  text += fmt::format("add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, {};\n@%p1 bra LOOP;\n", turns);
  for (unsigned i = 0; i < product.d_registers; ++i) {
    text +=
        fmt::format("st.global.{} [%rd2+{}], %d{};\n", sum, (2 + i) * product.threads * bytes, i);
  }
  return text + "ret;\n}\n";
}

// The scalar code that does the same: one multiply-add of each lane.
std::string scalar_text(unsigned turns) {
  std::string text =
      ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<20>;\n"
      "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
      "add.s64 %rd2, %rd1, %rd2;\nld.global.f32 %f0, [%rd2];\nld.global.f32 %f1, [%rd2+128];\n"
      "mov.u32 %r6, 0;\nLOOP:\n";
  for (unsigned i = 0; i < in_loop; ++i)
    text += fmt::format("fma.rn.f32 %f{}, %f0, %f0, %f1;\n", 2 + i);
  text += fmt::format("add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, {};\n@%p1 bra LOOP;\n", turns);
  return text + "st.global.f32 [%rd2+256], %f2;\nret;\n}\n";
}

std::uint64_t bits_of(double value, const std::string& type) {
  if (type == "f64") return std::bit_cast<std::uint64_t>(value);
  if (type == "f32") return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == "s32") return static_cast<std::uint32_t>(value);
  // Small whole numbers in f16, two of them in a register.
  const auto exponent =
      static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(value)) - 1);
  const auto mantissa = static_cast<std::uint32_t>(value) << (10 - exponent) & 0x3ffU;
  const std::uint32_t half = (exponent + 15) << 10 | mantissa;
  return half | half << 16;
}

Result<double> run_once(const Product& product, const std::string& text, unsigned checked) {
  const ptx::ParseResult parsed = ptx::parse(text, "products.ptx");
  if (!parsed.diagnostics.ok())
    return invalid_input("{}", ptx::format(parsed.diagnostics.list.front(), "products.ptx"));
  const bool wide = product.sum == "f64";
  const std::size_t bytes = wide ? 8 : 4;
  gpu::Launch launch;
  gpu::Buffer buffer;
  buffer.bytes = (2 + product.d_registers) * product.threads * bytes;
  buffer.output = true;
  launch.buffers.push_back(buffer);
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.block.x = product.threads;
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  launch.kernels.push_back(kernel);
  gpu::Memory memory(1, std::vector<std::byte>(buffer.bytes));
  const std::uint64_t one = bits_of(1, product.sum);
  for (std::size_t thread = 0; thread < product.threads; ++thread) {
    std::memcpy(&memory[0][thread * bytes], &product.ones, bytes);
    std::memcpy(&memory[0][(product.threads + thread) * bytes], &one, bytes);
  }
  emulate::Options options;
  options.threads = 1;
  options.instruction_limit = ~std::uint64_t{0} >> 1;
  DEMARC_TRY(const emulate::Outcome outcome,
             emulate::run_on(parsed.module, launch, std::move(memory), options));
  if (!outcome.findings.empty())
    return check_failed("{}", emulate::describe(outcome.findings.front(), "products.ptx"));
  const std::uint64_t expected =
      bits_of(product.depth + (product.a_registers == 0 ? 0 : 1), product.sum);
  for (std::size_t i = 2 * product.threads; i < (2 + checked) * product.threads; ++i) {
    std::uint64_t got = 0;
    std::memcpy(&got, &outcome.buffers[0][i * bytes], bytes);
    if (got != expected) {
      return check_failed("{}: word {} is {:x} and not {:x}", product.name, i, got, expected);
    }
  }
  return outcome.kernels.front().cpu_seconds;
}

// Thousand million multiply-adds a second: the best of the runs that fit into the time.
Result<double> rate_of(const Product& product, bool scalar) {
  unsigned turns = 16;
  double best = 0;
  for (double all = 0; all < least_seconds;) {
    DEMARC_TRY(const double seconds,
               run_once(product, scalar ? scalar_text(turns) : text_of(product, turns),
                        product.d_registers));
    const double done =
        double{in_loop} * turns * product.multiply_adds * product.threads / 32 * 1e-9;
    best = std::max(best, done / seconds);
    // Runs of a twentieth of the time, so that slow moments of the machine fall into some of them.
    if (seconds < least_seconds / 20) {
      turns *= 2;
    } else {
      all += seconds;
    }
  }
  return best;
}

double native_rate() {
  std::vector<double> a(8 * native_depth, 1.0);
  std::vector<double> b(8 * native_depth, 1.0);
  double sums[64] = {};
  constexpr int turns = 2000;
  double best = 1e300;
  for (int i = 0; i < 50; ++i) {
    best = std::min(best, seconds_of([&] {
                      for (int turn = 0; turn < turns; ++turn)
                        native_products(a.data(), b.data(), sums);
                    }));
  }
  return 64.0 * native_depth * turns * 1e-9 / best;
}

int run_all() {
  const double limit = native_rate();
  const Product scalar{.name = "fma.rn.f32 of every lane",
                       .instruction = "fma.rn.f32",
                       .multiply_adds = 32,
                       .depth = 1,
                       .d_registers = 1,
                       .a_registers = 1,
                       .b_registers = 1,
                       .ones = one_of_f32};
  fmt::print(
      "thousand million multiply-adds/s, one core, {}, best of {} s; target: {}; limit: {:.1f} "
      "(multiply-adds of doubles in vectors, this core, this run)\n",
      emulate::to_string(emulate::widest_instruction_set()), least_seconds, target, limit);
  bool met = true;
  const auto print_row = [&](const Product& product, bool is_scalar) {
    const auto rate = rate_of(product, is_scalar);
    if (!rate) {
      fmt::print(stderr, "{}: {}\n", product.name, rate.error().message);
      return false;
    }
    met = met && (is_scalar || *rate >= target);
    fmt::print("{:<28} {:>8.2f} {:>6.1f} %\n", product.name, *rate, 100 * *rate / limit);
    return true;
  };
  if (!print_row(scalar, true)) return 1;
  std::vector<Product> all = products();
  for (const unsigned n : {8U, 64U, 256U}) all.push_back(warpgroup(n));
  for (const Product& product : all) {
    if (!print_row(product, false)) return 1;
  }
  return met ? 0 : 3;
}

}  // namespace
}  // namespace demarc::bench

int main() {
  return demarc::bench::run_all();
}
