// Computes what the AES kernels must give, by the steps of FIPS 197.
#include <array>

#include "references.hpp"

namespace demarc::workload {
namespace {

using AesState = std::array<std::uint8_t, 16>;  // byte 4*c + r: row r of column c (FIPS 197, 3.4)

std::uint8_t times_x(std::uint8_t value) {
  return static_cast<std::uint8_t>((value << 1) ^ ((value & 0x80) != 0 ? 0x1b : 0));
}

AesState mix_columns(const AesState& state) {
  AesState mixed{};
  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t column = i / 4 * 4;
    const auto row = [&](std::size_t distance) { return state[column + (i + distance) % 4]; };
    const unsigned sum = times_x(row(0)) ^ times_x(row(1)) ^ row(1) ^ row(2) ^ row(3);
    mixed[i] = static_cast<std::uint8_t>(sum);
  }
  return mixed;
}

AesState substitute_and_shift(const AesState& state, std::span<const std::uint8_t> box) {
  AesState shifted{};
  for (std::size_t i = 0; i < 16; ++i) shifted[i] = box[state[(i + i % 4 * 4) % 16]];
  return shifted;
}

void add_key(AesState& state, std::span<const std::uint8_t> key) {
  for (std::size_t i = 0; i < 16; ++i) state[i] = static_cast<std::uint8_t>(state[i] ^ key[i]);
}

}  // namespace

void aes_reference(const ReferenceCall& call) {
  constexpr std::size_t rounds = 14;
  const auto data = call.buffer<std::uint8_t>("data");
  const auto box = call.buffer<std::uint8_t>("box");
  const auto keys = call.buffer<std::uint8_t>("keys");
  for (std::size_t begin = 0; begin + 16 <= data.size(); begin += 16) {
    AesState state{};
    for (std::size_t i = 0; i < 16; ++i) state[i] = data[begin + i];
    add_key(state, keys.first(16));
    for (std::size_t round = 1; round <= rounds; ++round) {
      state = substitute_and_shift(state, box);
      if (round < rounds) state = mix_columns(state);
      add_key(state, keys.subspan(16 * round, 16));
    }
    for (std::size_t i = 0; i < 16; ++i) data[begin + i] = state[i];
  }
}

}  // namespace demarc::workload
