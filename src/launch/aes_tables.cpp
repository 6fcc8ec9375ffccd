// Computes the S-box and the round keys of AES from their definitions.
#include "aes_tables.hpp"

#include <algorithm>
#include <bit>

namespace demarc::gpu {
namespace {

// Product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4.2).
std::uint8_t field_product(std::uint8_t left, std::uint8_t right) {
  unsigned product = 0;
  unsigned shifted = left;
  for (unsigned factor = right; factor != 0; factor >>= 1) {
    if ((factor & 1U) != 0) product ^= shifted;
    shifted = (shifted << 1) ^ ((shifted & 0x80U) != 0 ? 0x11bU : 0U);
  }
  return static_cast<std::uint8_t>(product);
}

std::uint8_t field_inverse(std::uint8_t value) {
  std::uint8_t power = 1;  // value^254; 0 stays 0
  for (int i = 0; i < 254; ++i) power = field_product(power, value);
  return power;
}

}  // namespace

std::array<std::uint8_t, 256> aes_sbox() {
  std::array<std::uint8_t, 256> box{};
  for (unsigned i = 0; i < 256; ++i) {
    const std::uint8_t inverse = field_inverse(static_cast<std::uint8_t>(i));
    unsigned sum = 0x63;  // the affine transformation of 5.1.1
    for (int turn = 0; turn < 5; ++turn) sum ^= std::rotl(inverse, turn);
    box[i] = static_cast<std::uint8_t>(sum);
  }
  return box;
}

std::array<std::uint8_t, 240> aes256_round_keys(std::span<const std::uint8_t, 32> key) {
  const auto box = aes_sbox();
  std::array<std::uint8_t, 240> keys{};
  std::copy(key.begin(), key.end(), keys.begin());
  std::uint8_t constant = 1;
  for (std::size_t word = 8; word < 60; ++word) {
    std::array<std::uint8_t, 4> last{};
    std::copy_n(keys.begin() + static_cast<std::ptrdiff_t>(4 * word - 4), 4, last.begin());
    if (word % 8 == 0) std::rotate(last.begin(), last.begin() + 1, last.end());
    if (word % 4 == 0) {
      for (auto& byte : last) byte = box[byte];
    }
    if (word % 8 == 0) {
      last[0] = static_cast<std::uint8_t>(last[0] ^ constant);
      constant = field_product(constant, 2);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      keys[4 * word + i] = static_cast<std::uint8_t>(keys[4 * word - 32 + i] ^ last[i]);
    }
  }
  return keys;
}

}  // namespace demarc::gpu
