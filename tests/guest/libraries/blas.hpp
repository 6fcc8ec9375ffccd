// libdemarc_blas.so in a test's process, on the stand-in driver, whose kernels run in the emulator.
// A watched driver stands between the two.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "shared_library.hpp"
#include "watched/watched_driver.hpp"

namespace demarc::cuda {

using BlasCode = int;
using BlasHandle = void*;
constexpr BlasCode blas_success = 0;
constexpr BlasCode blas_not_initialized = 1;
constexpr BlasCode blas_alloc_failed = 3;
constexpr BlasCode blas_invalid_value = 7;
constexpr BlasCode blas_arch_mismatch = 8;
constexpr BlasCode blas_execution_failed = 13;
constexpr BlasCode blas_not_supported = 15;

enum BlasType : int { type_f32 = 0, type_f64 = 1, type_f16 = 2, type_bf16 = 14 };

[[nodiscard]] inline std::uint32_t type_bytes(BlasType type) {
  return type == type_f64 ? 8 : type == type_f32 ? 4 : 2;
}

// Numbers that every type has exactly.
[[nodiscard]] inline std::vector<double> small_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = static_cast<double>(static_cast<int>(random() % 17) - 8);
  return numbers;
}

// For numbers that f16 has exactly, and NaN.
[[nodiscard]] inline std::uint16_t f16_bits(double number) {
  if (std::isnan(number)) return 0x7e00;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(number), &exponent);
  const auto sign = static_cast<unsigned>(std::signbit(number)) << 15U;
  if (fraction == 0) return static_cast<std::uint16_t>(sign);
  const auto bits = static_cast<unsigned>((2 * fraction - 1) * 1024);
  return static_cast<std::uint16_t>(sign | static_cast<unsigned>(exponent + 14) << 10U | bits);
}

[[nodiscard]] inline double f16_number(std::uint16_t bits) {
  const int exponent = bits >> 10U & 0x1fU;
  const double fraction = (bits & 0x3ffU) / 1024.0;
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -14);
  return sign * std::ldexp(1 + fraction, exponent - 15);
}

[[nodiscard]] inline std::vector<std::byte> as_type(const std::vector<double>& numbers,
                                                    BlasType type) {
  std::vector<std::byte> bytes(numbers.size() * type_bytes(type));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::byte* const at = bytes.data() + i * type_bytes(type);
    if (type == type_f64) {
      std::memcpy(at, &numbers[i], 8);
    } else if (type == type_f16) {
      const std::uint16_t half = f16_bits(numbers[i]);
      std::memcpy(at, &half, 2);
    } else {
      const auto number = static_cast<float>(numbers[i]);
      const auto* const high = reinterpret_cast<const std::byte*>(&number) + 2;
      if (type == type_f32) std::memcpy(at, &number, 4);
      if (type == type_bf16) std::memcpy(at, high, 2);
    }
  }
  return bytes;
}

[[nodiscard]] inline double number_of(const std::byte* at, BlasType type) {
  if (type == type_f64) {
    double number = 0;
    std::memcpy(&number, at, 8);
    return number;
  }
  if (type == type_f16) {
    std::uint16_t half = 0;
    std::memcpy(&half, at, 2);
    return f16_number(half);
  }
  float number = 0;
  std::byte* const to = reinterpret_cast<std::byte*>(&number);
  if (type == type_f32) std::memcpy(to, at, 4);
  if (type == type_bf16) std::memcpy(to + 2, at, 2);
  return static_cast<double>(number);
}

class Blas : public SharedLibraries {
 protected:
  void SetUp() override {
    SharedLibraries::SetUp();
    ::setenv("DEMARC_WATCHED_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_LIBCUDA", (test::build_dir() / "libdemarc_watched_libcuda.so").c_str(), 1);
    driver = SYMBOL(library("libdemarc_watched_libcuda.so"), watched_driver)();
    *driver = {};
    test::configure(fake::small_gpu());
    blas = library("libdemarc_blas.so");
    ASSERT_EQ(symbol<BlasCode(BlasHandle*)>(blas, "cublasCreate_v2")(&handle), blas_success);
  }
  void TearDown() override {
    EXPECT_EQ(symbol<BlasCode(BlasHandle)>(blas, "cublasDestroy_v2")(handle), blas_success);
  }
  // A function by its name, with the types of what it is given.
  template <class... Arguments>
  BlasCode call(const char* name, Arguments... arguments) {
    auto* const function = symbol<BlasCode(Arguments...)>(blas, name);
    if (function == nullptr) {
      ADD_FAILURE() << name << " is missing";
      return -1;
    }
    return function(arguments...);
  }
  // On the card, `ahead` bytes behind the beginning of an allocation.
  unsigned long long on_card(const std::vector<std::byte>& bytes, std::size_t ahead = 0) {
    unsigned long long at = 0;
    EXPECT_EQ(test::fake_symbol<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(
                  &at, bytes.size() + ahead + 1),
              0);
    EXPECT_EQ(test::fake_symbol<int(unsigned long long, const void*, std::size_t)>(
                  "cuMemcpyHtoD_v2")(at + ahead, bytes.data(), bytes.size()),
              0);
    return at + ahead;
  }
  std::vector<std::byte> from_card(unsigned long long at, std::size_t bytes) {
    std::vector<std::byte> read(bytes);
    EXPECT_EQ(test::fake_symbol<int(void*, unsigned long long, std::size_t)>("cuMemcpyDtoH_v2")(
                  read.data(), at, bytes),
              0);
    return read;
  }

  static std::int64_t objects_alive() {
    return test::fake_symbol<std::int64_t()>("fake_live_objects")();
  }

  fake::WatchedDriver* driver = nullptr;
  void* blas = nullptr;
  BlasHandle handle = nullptr;
};

}  // namespace demarc::cuda
