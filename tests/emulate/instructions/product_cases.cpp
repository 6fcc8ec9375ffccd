// Products by mma, wgmma and wmma of every type: their PTX, and numbers that show how sums round.
#include "instructions/product_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "instructions/matrix_registers.hpp"

namespace demarc::emulate::test {
namespace {

// A floating-point type by the widths of its fields.
struct Format {
  const char* name;
  unsigned bits;
  unsigned mantissa;
  unsigned bias;
  unsigned largest;  // exponent field of a finite number

  [[nodiscard]] unsigned exponent_ones() const { return (1U << (bits - 1 - mantissa)) - 1; }
};
constexpr Format formats[] = {
    {"f16", 16, 10, 15, 30},     {"bf16", 16, 7, 127, 254}, {"tf32", 32, 23, 127, 254},
    {"e4m3", 8, 3, 7, 14},       {"e5m2", 8, 2, 15, 30},    {"f32", 32, 23, 127, 254},
    {"f64", 64, 52, 1023, 2046},
};
const Format& format_of(const std::string& name) {
  return *std::find_if(std::begin(formats), std::end(formats),
                       [&](const Format& one) { return name == one.name; });
}

// What the numbers of a product are like.
enum class Kind : std::uint8_t {
  near,       // exponents next to each other
  wide,       // exponents far from each other
  without_c,  // c is 0
  positive,
  large_c,
  small,    // the least exponents of the type
  special,  // some of any bits: infinities and no numbers among them
  signs,    // zeros and ones
  large,    // sums beyond the largest number
  tiny,     // sums that are denormal or nothing
  denormal  // factors that are denormal, beside larger ones
};
constexpr unsigned kinds = 11;

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t draw(const Format& type, Kind kind, bool is_c) {
    switch (kind) {
      case Kind::near:
        return number(type, -2, 1);
      case Kind::wide:
        return is_c ? number(type, -12, 12) : number(type, -std::min(span(type), 10), span(type));
      case Kind::without_c:
        return is_c ? 0 : number(type, -4, 3);
      case Kind::positive:
        return number(type, -4, 3) & ~sign_of(type);
      case Kind::large_c:
        return is_c ? number(type, 6, 13) : number(type, -3, 3);
      case Kind::small:
        return with_exponent(type, engine_() % 8);
      case Kind::special:
        if (engine_() % (is_c ? 2 : 24) != 0) return number(type, -2, 1);
        return any_bits(type);
      case Kind::signs:
        if (engine_() % (is_c ? 2 : 8) != 0) return any_bits(type) & sign_of(type);
        return (any_bits(type) & sign_of(type)) | std::uint64_t{type.bias} << type.mantissa;
      case Kind::large:
        if (is_c || type.largest < 100) return with_exponent(type, type.largest - engine_() % 3);
        return with_exponent(type, type.bias + type.bias / 2 + 1 - engine_() % 3);
      case Kind::tiny:
        if (is_c || type.largest < 100) return with_exponent(type, engine_() % 3);
        return with_exponent(type, type.bias / 2 - engine_() % 12);
      case Kind::denormal:
        break;
    }
    return with_exponent(type, engine_() % 3 != 0 ? 0 : (is_c ? engine_() % 3 : type.bias));
  }

 private:
  static std::uint64_t sign_of(const Format& type) { return std::uint64_t{1} << (type.bits - 1); }
  static int span(const Format& type) {
    return type.largest < 15 ? 5 : type.largest < 100 ? 7 : 10;
  }
  std::uint64_t any_bits(const Format& type) { return engine_() >> (64 - type.bits); }
  std::uint64_t with_exponent(const Format& type, std::uint64_t exponent) {
    const std::uint64_t ones = std::uint64_t{type.exponent_ones()} << type.mantissa;
    return (any_bits(type) & ~ones) | exponent << type.mantissa;
  }
  // From 2^low to below 2^(high + 1), as far as the type goes.
  std::uint64_t number(const Format& type, int low, int high) {
    const auto drawn = low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1));
    const int exponent = static_cast<int>(type.bias) + drawn;
    return with_exponent(
        type, static_cast<std::uint64_t>(std::clamp(exponent, 1, static_cast<int>(type.largest))));
  }

  std::mt19937_64 engine_;
};

// An instruction: what it multiplies, and how many of its threads and registers hold it.
struct Product {
  std::string mnemonic;
  std::string d, a, b, c;  // types
  unsigned m = 0, n = 0, k = 0;
  unsigned threads = 32;

  [[nodiscard]] bool by_memory() const { return mnemonic.rfind("wmma", 0) == 0; }
  [[nodiscard]] bool by_warpgroup() const { return threads == 128; }
  // Numbers of each matrix; m8n8k4 of f16 is four products.
  [[nodiscard]] unsigned products() const {
    return a == "f16" && m == 8 && n == 8 && k == 4 ? 4 : 1;
  }
  [[nodiscard]] std::size_t a_bytes() const { return bytes(m * k, a); }
  [[nodiscard]] std::size_t b_bytes() const { return bytes(k * n, b); }
  [[nodiscard]] std::size_t c_bytes() const { return bytes(m * n, c); }
  [[nodiscard]] std::size_t d_bytes() const { return bytes(m * n, d); }

 private:
  [[nodiscard]] std::size_t bytes(unsigned elements, const std::string& type) const {
    return std::size_t{elements} * products() * format_of(type).bits / 8;
  }
};

std::string with_registers(const Product& one) {
  const MatrixRegisters a{'a', one.a, one.a_bytes(), one.threads};
  const MatrixRegisters b{'b', one.b, one.b_bytes(), one.threads};
  const MatrixRegisters c{'c', one.c, one.c_bytes(), one.threads};
  const MatrixRegisters d{'d', one.d, one.d_bytes(), one.threads};
  return a.declaration() + b.declaration() + c.declaration() + d.declaration() +
         a.moves("ld", "%in", 0) + b.moves("ld", "%in", one.a_bytes()) +
         c.moves("ld", "%in", one.a_bytes() + one.b_bytes()) +
         fmt::format("{} {}, {}, {}, {};\n", one.mnemonic, d.list(), a.list(), b.list(), c.list()) +
         d.moves("st", "%out", 0);
}

// b lies in shared memory: 8 columns of 32 bytes along k, in two halves of 16 bytes.
std::string by_warpgroup(const Product& one) {
  const MatrixRegisters a{'a', one.a, one.a_bytes(), one.threads};
  const MatrixRegisters sums{'d', one.d, one.d_bytes(), one.threads};
  const bool small = one.a == "e4m3" || one.a == "e5m2" || one.a == "tf32";
  return a.declaration() + sums.declaration() +
         ".reg .b32 %word, %place;\n.reg .b64 %described;\n.reg .pred %beyond;\n"
         ".shared .align 128 .b8 columns[256];\n" +
         a.moves("ld", "%in", 0) + sums.moves("ld", "%in", one.a_bytes() + one.b_bytes()) +
         fmt::format(
             "setp.ge.u32 %beyond, %thread, 64;\n@%beyond bra LOADED;\n"
             "mad.wide.u32 %at, %thread, 4, %in;\nld.global.b32 %word, [%at+{}];\n"
             "mov.u32 %place, columns;\nmad.lo.u32 %place, %thread, 4, %place;\n"
             "st.shared.b32 [%place], %word;\nLOADED:\nbar.sync 0;\n"
             "fence.proxy.async.shared::cta;\n"
             // Addresses and steps of 16 bytes: 128 along k, 256 along the columns.
             "mov.u32 %place, columns;\nshr.u32 %place, %place, 4;\n"
             "cvt.u64.u32 %described, %place;\nor.b64 %described, %described, {};\n",
             one.a_bytes(), std::uint64_t{8} << 16 | std::uint64_t{16} << 32) +
         fmt::format(
             "wgmma.fence.sync.aligned;\n{} {}, {}, %described, 1, 1, 1{};\n"
             "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
             one.mnemonic, sums.list(), a.list(), small ? "" : ", 0") +
         sums.moves("st", "%out", 0);
}

// Which thread holds what is the hardware's own affair: matrices row by row in memory.
std::string by_memory(const Product& one) {
  const std::string shape = fmt::format("m{}n{}k{}", one.m, one.n, one.k);
  // A fragment of f16 has eight registers, whatever its size.
  constexpr std::size_t of_f16 = std::size_t{8} * 4 * 32;
  const MatrixRegisters a{'a', one.a, one.a == "f16" ? of_f16 : one.a_bytes(), 32};
  const MatrixRegisters b{'b', one.b, one.b == "f16" ? of_f16 : one.b_bytes(), 32};
  const MatrixRegisters c{'c', one.c, one.c_bytes(), 32};
  const MatrixRegisters d{'d', one.d, one.d_bytes(), 32};
  const auto load = [&](const MatrixRegisters& of, std::size_t first) {
    return fmt::format(
        "add.u64 %at, %in, {};\nwmma.load.{}.sync.aligned.row.{}.global.{} {}, "
        "[%at];\n",
        first, of.letter, shape, of.type, of.list());
  };
  return a.declaration() + b.declaration() + c.declaration() + d.declaration() + load(a, 0) +
         load(b, one.a_bytes()) + load(c, one.a_bytes() + one.b_bytes()) +
         fmt::format("{} {}, {}, {}, {};\n", one.mnemonic, d.list(), a.list(), b.list(), c.list()) +
         fmt::format("wmma.store.d.sync.aligned.row.{}.global.{} [%out], {};\n", shape, one.d,
                     d.list());
}

std::string text_of(const Product& one) {
  const std::string body = one.by_warpgroup() ? by_warpgroup(one)
                           : one.by_memory()  ? by_memory(one)
                                              : with_registers(one);
  return fmt::format(
             ".version 8.7\n.target sm_90a\n.address_size 64\n"
             ".visible .entry k(.param .u64 a, .param .u64 b)\n{{\n"
             ".reg .b32 %thread, %block;\n.reg .b64 %in, %out, %at;\n"
             "ld.param.u64 %in, [a];\nld.param.u64 %out, [b];\n"
             "mov.u32 %thread, %tid.x;\nmov.u32 %block, %ctaid.x;\n"
             "mad.wide.u32 %in, %block, {}, %in;\nmad.wide.u32 %out, %block, {}, %out;\n",
             one.a_bytes() + one.b_bytes() + one.c_bytes(), one.d_bytes()) +
         body + "ret;\n}\n";
}

void append(const std::string& type, std::size_t bytes, Kind kind, bool is_c, Numbers& numbers,
            std::vector<std::byte>& out) {
  const Format& format = format_of(type);
  for (std::size_t i = 0; i < bytes * 8 / format.bits; ++i) {
    const std::uint64_t number = numbers.draw(format, kind, is_c);
    const auto* from = reinterpret_cast<const std::byte*>(&number);
    out.insert(out.end(), from, from + format.bits / 8);
  }
}

ProductCase case_of(const Product& one) {
  ProductCase made;
  made.name = one.mnemonic;
  made.text = text_of(one);
  made.threads = one.threads;
  const unsigned of_each = one.by_warpgroup() ? 1 : 2;
  made.blocks = kinds * of_each;
  made.out_bytes = one.d_bytes() * made.blocks;
  Numbers numbers(one.m * 1000 + one.k);
  for (unsigned block = 0; block < made.blocks; ++block) {
    const auto kind = static_cast<Kind>(block / of_each);
    append(one.a, one.a_bytes(), kind, false, numbers, made.in);
    append(one.b, one.b_bytes(), kind, false, numbers, made.in);
    append(one.c, one.c_bytes(), kind, true, numbers, made.in);
  }
  return made;
}

Product mma(unsigned m, unsigned n, unsigned k, const std::string& d, const std::string& a,
            const std::string& b, const std::string& c) {
  return {fmt::format("mma.sync.aligned.m{}n{}k{}.row.col.{}.{}.{}.{}", m, n, k, d, a, b, c),
          d,
          a,
          b,
          c,
          m,
          n,
          k};
}
Product wgmma(unsigned k, const std::string& d, const std::string& a, const std::string& b) {
  return {fmt::format("wgmma.mma_async.sync.aligned.m64n8k{}.{}.{}.{}", k, d, a, b),
          d,
          a,
          b,
          d,
          64,
          8,
          k,
          128};
}
Product wmma(unsigned m, unsigned n, unsigned k, const std::string& d, const std::string& a,
             const std::string& c) {
  const std::string types =
      a == "f16" ? fmt::format("{}.{}", d, c) : fmt::format("{}.{}.{}.{}", d, a, a, c);
  return {fmt::format("wmma.mma.sync.aligned.row.row.m{}n{}k{}.{}", m, n, k, types),
          d,
          a,
          a,
          c,
          m,
          n,
          k};
}

}  // namespace

gpu::Launch ProductCase::launch() const {
  gpu::Launch launch;
  launch.name = name;
  gpu::Buffer given;
  given.bytes = in.size();
  gpu::Buffer made;
  made.bytes = out_bytes;
  made.output = true;
  launch.buffers = {given, made};
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.grid.x = blocks;
  kernel.block.x = threads;
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  kernel.arguments.emplace_back(gpu::BufferUse{1, 0});
  launch.kernels.push_back(kernel);
  return launch;
}

std::vector<ProductCase> product_cases() {
  const Product products[] = {
      mma(16, 8, 16, "f32", "f16", "f16", "f32"),
      mma(16, 8, 8, "f32", "f16", "f16", "f32"),
      mma(16, 8, 16, "f16", "f16", "f16", "f16"),
      mma(16, 8, 8, "f16", "f16", "f16", "f16"),
      mma(16, 8, 16, "f32", "bf16", "bf16", "f32"),
      mma(16, 8, 8, "f32", "bf16", "bf16", "f32"),
      mma(16, 8, 8, "f32", "tf32", "tf32", "f32"),
      mma(16, 8, 4, "f32", "tf32", "tf32", "f32"),
      mma(16, 8, 32, "f32", "e4m3", "e4m3", "f32"),
      mma(16, 8, 32, "f32", "e5m2", "e4m3", "f32"),
      mma(16, 8, 16, "f32", "e4m3", "e5m2", "f32"),
      mma(16, 8, 32, "f16", "e4m3", "e5m2", "f16"),
      mma(16, 8, 16, "f16", "e5m2", "e5m2", "f16"),
      mma(8, 8, 4, "f32", "f16", "f16", "f32"),
      mma(8, 8, 4, "f16", "f16", "f16", "f16"),
      mma(8, 8, 4, "f32", "f16", "f16", "f16"),
      mma(8, 8, 4, "f64", "f64", "f64", "f64"),
      mma(16, 8, 16, "f64", "f64", "f64", "f64"),
      wgmma(16, "f32", "f16", "f16"),
      wgmma(16, "f16", "f16", "f16"),
      wgmma(16, "f32", "bf16", "bf16"),
      wgmma(8, "f32", "tf32", "tf32"),
      wgmma(32, "f32", "e4m3", "e4m3"),
      wgmma(32, "f32", "e5m2", "e4m3"),
      wgmma(32, "f16", "e4m3", "e5m2"),
      wgmma(32, "f16", "e5m2", "e5m2"),
      wmma(16, 16, 16, "f32", "f16", "f32"),
      wmma(16, 16, 16, "f16", "f16", "f16"),
      wmma(16, 16, 16, "f32", "f16", "f16"),
      wmma(16, 16, 16, "f16", "f16", "f32"),
      wmma(32, 8, 16, "f32", "f16", "f32"),
      wmma(8, 32, 16, "f32", "bf16", "f32"),
      wmma(16, 16, 8, "f32", "tf32", "f32"),
      wmma(8, 8, 4, "f64", "f64", "f64"),
  };
  std::vector<ProductCase> cases;
  for (const Product& one : products) cases.push_back(case_of(one));
  return cases;
}

}  // namespace demarc::emulate::test
