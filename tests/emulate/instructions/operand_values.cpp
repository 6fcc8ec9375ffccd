// Operands worth trying: the ends of every format, what lies beside them, and random bits.
#include <map>
#include <random>

#include "reference.hpp"

namespace demarc::emulate::test {

namespace {

std::vector<std::uint64_t> list_special_values(Value value) {
  switch (value) {
    case Value::pred:
      return {0, 1};
    case Value::i16:
      return {0, 1, 2, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff, 0x1234};
    case Value::i32:
      return {0,          1,          2,          7,          0x7f,       0x80,       0xff,
              0x7fff,     0x8000,     0xffff,     0x10000,    0x7fffff,   0x800000,   0xffffff,
              0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x80808080, 0x7f7f7f7f};
    case Value::i64:
      return {0,
              1,
              0xff,
              0x7fffffff,
              0x80000000,
              0xffffffff,
              0x100000000,
              0x1fffffffffffff,
              0x20000000000001,
              0x7fffffffffffffff,
              0x8000000000000000,
              0x8000000000000001,
              0xfffffffffffffbff,
              0xfffffffffffffffe,
              0xffffffffffffffff,
              0x0123456789abcdef};
    case Value::shift:
      return {0,  1,  7,  15,  16,  17,         31,         32,        33,
              63, 64, 65, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff};
    case Value::f16:
    case Value::f16x2:
      // Zeros, denormals, ones, the largest, infinities, NaNs.
      return {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x8400,
              0x3bff, 0x3c00, 0xbc00, 0x3c01, 0x4000, 0x7bff, 0xfbff,
              0x7c00, 0xfc00, 0x7e00, 0x7fff, 0xfe01, 0x5640, 0x3800};
    case Value::bf16:
    case Value::bf16x2:
      return {0,      0x8000, 1,      0x8001, 0x7f,   0x80,   0x8080,
              0x3f7f, 0x3f80, 0xbf80, 0x3f81, 0x4000, 0x7f7f, 0xff7f,
              0x7f80, 0xff80, 0x7fc0, 0x7fff, 0xffc1, 0x42c8, 0x3f00};
    case Value::f32:
    case Value::f32x2:
      return {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
              0x80800000, 0x3f7fffff, 0x3f800000, 0xbf800000, 0x3f800001, 0x40000000, 0xc0000000,
              0x3f000000, 0x3fc00000, 0x4b000000, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000,
              0x5f000000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff,
              0xffc00001, 0x7f800001, 0x40490fdb, 0x33800000, 0x42fe0000, 0xc3150000};
    case Value::f64:
      return {0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800fffffffffffff,
              0x0010000000000000, 0x3fefffffffffffff, 0x3ff0000000000000, 0xbff0000000000000,
              0x3ff0000000000001, 0x4000000000000000, 0x3fe0000000000000, 0x41dfffffffc00000,
              0x41e0000000000000, 0xc1e0000000000000, 0x41efffffffe00000, 0x43e0000000000000,
              0xc3e0000000000000, 0x43f0000000000000, 0x47efffffe0000000, 0x47f0000000000000,
              0x36a0000000000000, 0x3690000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
              0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001,
              0x40f0000000000000, 0x40effc0000000000, 0x3e60000000000000};
  }
  return {};
}

const std::vector<std::uint64_t>& special_values(Value value) {
  static std::map<Value, std::vector<std::uint64_t>> known;
  std::vector<std::uint64_t>& values = known[value];
  if (values.empty()) values = list_special_values(value);
  return values;
}

std::uint64_t random_value(Value value, std::mt19937_64& engine) {
  const std::uint64_t raw = engine();
  const std::uint64_t width = bits_of(value);
  const std::uint64_t low = width == 64 ? raw : raw & ((std::uint64_t{1} << width) - 1);
  switch (value) {
    case Value::pred:
      return raw & 1U;
    case Value::shift:
      return raw % 72;
    case Value::i16:
    case Value::i32:
    case Value::i64:
      // Every length of number is as likely as every other.
      return low >> (engine() % width);
    case Value::f16:
    case Value::f16x2:
    case Value::bf16:
    case Value::bf16x2:
      return low;
    case Value::f32: {
      // Half of them of moderate size, where functions are interesting.
      if ((engine() & 1U) != 0) return low;
      return (low & 0x807fffffU) | ((0x70U + engine() % 0x20U) << 23U);
    }
    case Value::f32x2:
      return random_value(Value::f32, engine) | (random_value(Value::f32, engine) << 32U);
    case Value::f64:
      if ((engine() & 1U) != 0) return low;
      return (low & 0x800fffffffffffffU) | ((0x3e0U + engine() % 0x40U) << 52U);
  }
  return low;
}

std::uint64_t mixed_value(Value value, std::mt19937_64& engine) {
  const auto& special = special_values(value);
  const auto pick = [&] { return special[engine() % special.size()]; };
  switch (value) {
    case Value::f16x2:
    case Value::bf16x2: {
      const std::uint64_t low =
          (engine() & 1U) != 0 ? pick() : random_value(value, engine) & 0xffff;
      const std::uint64_t high =
          (engine() & 1U) != 0 ? pick() : random_value(value, engine) & 0xffff;
      return low | (high << 16U);
    }
    case Value::f32x2: {
      const std::uint64_t low = (engine() & 1U) != 0 ? pick() : random_value(Value::f32, engine);
      const std::uint64_t high = (engine() & 1U) != 0 ? pick() : random_value(Value::f32, engine);
      return low | (high << 32U);
    }
    default:
      return engine() % 4 == 0 ? pick() : random_value(value, engine);
  }
}

}  // namespace

std::vector<Inputs> inputs_for(const InstructionCase& entry, std::size_t count,
                               std::uint64_t seed) {
  std::mt19937_64 engine(seed * 0x9e3779b97f4a7c15U + 1);
  std::vector<Inputs> out(count);
  // The special values of the first two operands against each other; the rest is mixed.
  const auto first =
      entry.sources.empty() ? std::vector<std::uint64_t>{0} : special_values(entry.sources[0]);
  const auto second =
      entry.sources.size() < 2 ? std::vector<std::uint64_t>{0} : special_values(entry.sources[1]);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t s = 0; s < entry.sources.size(); ++s)
      out[i].in[s] = mixed_value(entry.sources[s], engine);
    if (i < first.size() * second.size() && i < count / 2) {
      if (!entry.sources.empty()) out[i].in[0] = first[i % first.size()];
      if (entry.sources.size() > 1) out[i].in[1] = second[i / first.size()];
    }
  }
  return out;
}

}  // namespace demarc::emulate::test
