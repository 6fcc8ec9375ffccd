// Modules that Triton made, plain and coloured: what they compute is what their kernels say, and in
// coloured memory the same to the byte, with every byte of others left alone.
#include <cmath>
#include <random>

#include "colored_launch.hpp"
#include "demarc/base/files.hpp"
#include "demarc/ptx/parser.hpp"
#include "instructions/reference.hpp"
#include "paths.hpp"

namespace demarc::emulate::triton {
namespace {

using Bytes = std::vector<std::byte>;
using test::narrow_e4m3;
using test::narrow_f16;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

using Half = std::uint16_t;
Half half(double value) {
  return static_cast<Half>(narrow_f16().round(value));
}
double number(Half bits) {
  return narrow_f16().value(bits);
}

// A buffer by its number, or a number.
using Argument = std::variant<std::size_t, gpu::Scalar>;

gpu::Scalar whole(std::int64_t value) {
  return gpu::make_scalar(gpu::ScalarType::i32, value);
}
gpu::Scalar real(float value) {
  return gpu::make_scalar(gpu::ScalarType::u32, std::int64_t{std::bit_cast<std::int32_t>(value)});
}

struct ModuleRun {
  std::string file;
  std::string kernel;
  std::uint32_t blocks = 1;
  std::uint32_t shared_bytes = 0;
  std::vector<Bytes> buffers;
  std::vector<Argument> arguments;

  [[nodiscard]] ptx::Module module() const {
    const auto path =
        demarc::test::source_dir() / "tests" / "ptx" / "corpus" / "triton" / (file + ".ptx");
    return ptx::parse_whole(read_file(path).value(), file).value();
  }
  [[nodiscard]] gpu::Launch launch(const ptx::Module& module) const {
    gpu::Launch made;
    gpu::KernelLaunch& one = made.kernels.emplace_back();
    one.kernel = kernel;
    one.grid.x = blocks;
    one.block.x = 128;
    one.dynamic_shared_bytes = shared_bytes;
    for (const Argument& argument : arguments) {
      const auto* buffer = std::get_if<std::size_t>(&argument);
      one.arguments.emplace_back(buffer != nullptr ? gpu::Argument(gpu::BufferUse{*buffer, 0})
                                                   : gpu::Argument(std::get<1>(argument)));
    }
    // Triton's scratch memory, of which these kernels have none.
    const ptx::Function* function = module.find_function(kernel);
    while (one.arguments.size() < function->parameters.size()) {
      one.arguments.emplace_back(gpu::make_scalar(gpu::ScalarType::u64, std::int64_t{0}));
    }
    for (const Bytes& bytes : buffers) {
      gpu::Buffer& buffer = made.buffers.emplace_back();
      buffer.bytes = bytes.size();
      buffer.output = true;
    }
    return made;
  }
};

// What it computes, once it has computed the same in colours.
std::vector<Bytes> everywhere(const ModuleRun& run) {
  const ptx::Module module = run.module();
  const gpu::Launch launch = run.launch(module);
  const auto contents = [&](auto) { return gpu::Memory(run.buffers); };
  const gpu::Memory results = colored::plain_results(module, launch, contents);
  EXPECT_NE(results, run.buffers) << "nothing was written";
  const colored::MaskColors parity({0xc4000}, 1);
  const colored::RemainderColors remainders(0);
  const colored::RemainderColorsAtLoad at_load(1);
  for (const colored::Colors* colors :
       std::initializer_list<const colored::Colors*>{&parity, &remainders, &at_load}) {
    colored::expect_same_in(*colors, module, launch, contents, results);
  }
  return results;
}

TEST(TritonModules, a_product_by_warpgroups) {
  constexpr std::uint32_t m = 128;
  constexpr std::uint32_t n = 128;
  constexpr std::uint32_t k = 96;
  std::mt19937 engine(3);
  std::vector<Half> a(m * k);
  std::vector<Half> b(k * n);
  for (Half& x : a) x = half(static_cast<int>(engine() % 13) - 6);
  for (Half& x : b) x = half(static_cast<int>(engine() % 13) - 6);
  const ModuleRun run{"matmul_sm90",
                      "matmul",
                      1,
                      96 << 10,
                      {bytes_of(a), bytes_of(b), Bytes(2 * m * n)},
                      {0U, 1U, 2U, whole(m), whole(n), whole(k), whole(k), whole(n), whole(n)}};
  const auto c = values_of<Half>(everywhere(run)[2]);
  for (std::uint32_t i = 0; i < m; ++i) {
    for (std::uint32_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::uint32_t l = 0; l < k; ++l) sum += number(a[i * k + l]) * number(b[l * n + j]);
      ASSERT_EQ(c[i * n + j], half(sum)) << i << ", " << j;
    }
  }
}

class Attention : public testing::TestWithParam<const char*> {};

TEST_P(Attention, is_that_of_its_rows) {
  constexpr std::uint32_t rows = 64;
  constexpr std::uint32_t n = 128;
  constexpr std::uint32_t d = 64;
  constexpr double scale = 0.125;
  std::mt19937 engine(5);
  const auto drawn = [&](std::uint32_t count) {
    std::vector<Half> values(count);
    for (Half& x : values) x = half(static_cast<double>(engine() % 2001) / 1000 - 1);
    return values;
  };
  const auto q = drawn(rows * d);
  const auto k = drawn(n * d);
  const auto v = drawn(n * d);
  const ModuleRun run{GetParam(),
                      "attention",
                      1,
                      64 << 10,
                      {bytes_of(q), bytes_of(k), bytes_of(v), Bytes(2 * rows * d)},
                      {0U, 1U, 2U, 3U, whole(n), real(scale)}};
  const auto o = values_of<Half>(everywhere(run)[3]);
  for (std::uint32_t i = 0; i < rows; ++i) {
    std::vector<double> weights(n);
    double norm = 0;
    for (std::uint32_t j = 0; j < n; ++j) {
      double product = 0;
      for (std::uint32_t l = 0; l < d; ++l) product += number(q[i * d + l]) * number(k[j * d + l]);
      norm += weights[j] = std::exp2(product * scale);
    }
    for (std::uint32_t l = 0; l < d; ++l) {
      double sum = 0;
      for (std::uint32_t j = 0; j < n; ++j) sum += weights[j] / norm * number(v[j * d + l]);
      ASSERT_NEAR(number(o[i * d + l]), sum, 2e-3) << i << ", " << l;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TritonModules, Attention,
                         testing::Values("attention_sm80", "attention_sm90"),
                         [](const auto& one) { return std::string(one.param); });

TEST(TritonModules, a_softmax) {
  constexpr std::uint32_t n = 1000;
  std::mt19937 engine(7);
  std::vector<float> x(2 * n);
  for (float& value : x) value = static_cast<float>(engine() % 2000) / 250 - 4;
  const ModuleRun run{"softmax_sm75",
                      "softmax",
                      2,
                      1 << 10,
                      {Bytes(8 * n), bytes_of(x)},
                      {0U, 1U, whole(n), whole(n)}};
  const auto y = values_of<float>(everywhere(run)[0]);
  for (std::uint32_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (std::uint32_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[row * n + i]));
    for (std::uint32_t i = 0; i < n; ++i) {
      const double wanted = std::exp(static_cast<double>(x[row * n + i])) / sum;
      ASSERT_NEAR(y[row * n + i], wanted, 1e-5 * wanted) << row << ", " << i;
    }
  }
}

TEST(TritonModules, a_histogram) {
  constexpr std::uint32_t n = 1000;
  std::mt19937 engine(9);
  std::vector<std::int32_t> x(n);
  std::vector<std::int32_t> wanted(256);
  for (std::int32_t& value : x) {
    value = static_cast<std::int32_t>(engine() % 700);
    ++wanted[static_cast<std::size_t>(value & 255)];
  }
  const ModuleRun run{"histogram_sm100",          "histogram",       2, 0,
                      {Bytes(1024), bytes_of(x)}, {0U, 1U, whole(n)}};
  EXPECT_EQ(values_of<std::int32_t>(everywhere(run)[0]), wanted);
}

TEST(TritonModules, a_dropout) {
  constexpr std::uint32_t n = 1500;
  constexpr float p = 0.25F;
  std::vector<float> x(n);
  for (std::uint32_t i = 0; i < n; ++i) x[i] = static_cast<float>(i + 1);
  const ModuleRun run{"dropout_sm80",
                      "dropout",
                      2,
                      0,
                      {Bytes(4 * n), bytes_of(x)},
                      {0U, 1U, whole(n), real(p), whole(11)}};
  const auto y = values_of<float>(everywhere(run)[0]);
  double kept = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (y[i] == 0) continue;
    ASSERT_NEAR(y[i], x[i] / (1 - p), 1e-6 * y[i]) << i;
    ++kept;
  }
  EXPECT_NEAR(kept, n * (1 - p), 4 * std::sqrt(n * p * (1 - p)));
}

class Fp8 : public testing::TestWithParam<const char*> {};

TEST_P(Fp8, is_the_scaled_number_rounded) {
  constexpr std::uint32_t n = 1024;
  std::mt19937 engine(13);
  std::vector<Half> x(n);
  for (Half& value : x) value = half(static_cast<double>(engine() % 4001) / 1000 - 2);
  const ModuleRun run{
      GetParam(), "fp8_scale", 1, 0, {Bytes(n), bytes_of(x)}, {0U, 1U, real(3.5F), whole(n)}};
  const auto y = everywhere(run)[0];
  for (std::uint32_t i = 0; i < n; ++i) {
    ASSERT_EQ(static_cast<std::uint64_t>(y[i]), narrow_e4m3().round(number(x[i]) * 3.5)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(TritonModules, Fp8, testing::Values("fp8_scale_sm90", "fp8_scale_sm100"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace demarc::emulate::triton
