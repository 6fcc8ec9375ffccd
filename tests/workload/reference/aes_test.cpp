// Tests the AES reference with the example of FIPS 197.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "demarc/workload/workload.hpp"

namespace demarc::workload {
namespace {

using Bytes = std::vector<std::byte>;

// FIPS 197, 5.2, for 256-bit keys; `box` is the S-box.
Bytes expanded_key(const Bytes& key, const Bytes& box) {
  Bytes words = key;
  std::uint8_t constant = 1;
  for (std::size_t word = 8; word < 60; ++word) {
    std::array<std::byte, 4> last{};
    std::copy(words.end() - 4, words.end(), last.begin());
    if (word % 8 == 0) std::rotate(last.begin(), last.begin() + 1, last.end());
    for (auto& byte : last) {
      if (word % 4 == 0) byte = box[std::to_integer<std::size_t>(byte)];
    }
    if (word % 8 == 0) {
      last[0] ^= std::byte{constant};
      constant = static_cast<std::uint8_t>(constant * 2);
    }
    for (std::size_t i = 0; i < 4; ++i) words.push_back(words[4 * word - 32 + i] ^ last[i]);
  }
  return words;
}

TEST(AesReference, encrypts_the_example_of_fips_197_c_3) {
  const auto launch = instance("aes", {.scale = "", .parameters = {{"blocks", 1}}});
  ASSERT_TRUE(launch) << launch.error().message;
  auto memory = gpu::initial_memory(*launch, gpu::default_addresses(*launch));
  ASSERT_TRUE(memory) << memory.error().message;
  Bytes key;
  for (unsigned i = 0; i < 32; ++i) key.push_back(static_cast<std::byte>(i));
  for (unsigned i = 0; i < 16; ++i) memory->at(0)[i] = static_cast<std::byte>(i * 0x11);
  memory->at(2) = expanded_key(key, memory->at(1));
  ASSERT_TRUE(run_reference(*launch, *memory));
  constexpr std::array<unsigned, 16> expected{0x8e, 0xa2, 0xb7, 0xca, 0x51, 0x67, 0x45, 0xbf,
                                              0xea, 0xfc, 0x49, 0x90, 0x4b, 0x49, 0x60, 0x89};
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(std::to_integer<unsigned>(memory->at(0)[i]), expected[i]) << i;
}

}  // namespace
}  // namespace demarc::workload
