// Mnemonics of a module, each decoded once. Those that are followed by a blank, as nearly all are,
// are found again by their first bytes alone, without looking for their end by its characters.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "demarc/ptx/ir.hpp"
#include "parse/name_table.hpp"

namespace demarc::ptx {

[[nodiscard]] Mnemonic decode_mnemonic(std::string_view text);

// What stands before the next white space or control character, in words of 8 bytes of which the
// last one read is filled up with zeros.
struct Word {
  static constexpr std::size_t longest = 32;
  std::array<std::uint64_t, longest / 8> bytes{};
  std::uint32_t length = 0;

  // False when it is longer; reads up to 32 bytes from `p`.
  bool read(const char* p) {
    static_assert(std::endian::native == std::endian::little);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::uint64_t eight = load_bytes(p + 8 * i, 8);
      // The lowest set bit is the top bit of the first byte below '!'.
      const std::uint64_t blanks = (eight - 0x2121212121212121ULL) & ~eight & 0x8080808080808080ULL;
      if (blanks == 0) {
        bytes[i] = eight;
        continue;
      }
      const auto count = static_cast<std::uint32_t>(std::countr_zero(blanks)) / 8;
      bytes[i] = eight & ((1ULL << (8 * count)) - 1);
      length = static_cast<std::uint32_t>(8 * i) + count;
      return true;
    }
    return false;
  }
};

// A mnemonic met before, with what reading its operands needs.
struct KnownMnemonic {
  Word word;
  std::uint32_t number = no_index;  // in Module::mnemonics
  Opcode opcode = Opcode::unknown;
  std::uint8_t fewest_operands = 0;
  std::uint8_t max_operands = 0;
  bool is_plain = false;  // understood, and no call
};

class MnemonicTable {
 public:
  explicit MnemonicTable(std::vector<Mnemonic>& mnemonics)
      : mnemonics_(&mnemonics), known_(known_size) {}

  std::uint32_t find(std::string_view text) {
    const std::uint32_t number = numbers_.intern(text);
    if (number == mnemonics_->size()) mnemonics_->push_back(decode_mnemonic(text));
    return number;
  }

  // The mnemonic at `at`, when it was remembered; nullptr says nothing.
  [[nodiscard]] const KnownMnemonic* recall(const char* at, const char* end) const {
    Word word;
    if (static_cast<std::size_t>(end - at) < Word::longest || !word.read(at) || word.length == 0) {
      return nullptr;
    }
    const KnownMnemonic& known = known_[slot_of(word)];
    return known.word.bytes == word.bytes ? &known : nullptr;
  }
  // `number` is find(text), and `text` stands in the module's text, which goes on to `end`.
  void remember(std::string_view text, std::uint32_t number, const char* end);

 private:
  static constexpr std::size_t known_size = 1024;
  static std::size_t slot_of(const Word& word) {
    return hash_of(std::as_bytes(std::span(word.bytes))) % known_size;
  }

  std::vector<Mnemonic>* mnemonics_;
  InternTable numbers_;
  std::vector<KnownMnemonic> known_;  // by hash; a newer one takes the place of an older one
};

}  // namespace demarc::ptx
