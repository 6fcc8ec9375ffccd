// Tables of AES (FIPS 197), computed from their definitions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace demarc::gpu {

[[nodiscard]] std::array<std::uint8_t, 256> aes_sbox();
[[nodiscard]] std::array<std::uint8_t, 240> aes256_round_keys(
    std::span<const std::uint8_t, 32> key);

}  // namespace demarc::gpu
