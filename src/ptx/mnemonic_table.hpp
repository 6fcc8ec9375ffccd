// Mnemonics of a module, each decoded once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "demarc/ptx/ir.hpp"
#include "name_table.hpp"

namespace demarc::ptx {

[[nodiscard]] Mnemonic decode_mnemonic(std::string_view text);

class MnemonicTable {
 public:
  explicit MnemonicTable(std::vector<Mnemonic>& mnemonics) : mnemonics_(&mnemonics) {}

  std::uint32_t find(std::string_view text) {
    const std::uint32_t number = numbers_.intern(text);
    if (number == mnemonics_->size()) mnemonics_->push_back(decode_mnemonic(text));
    return number;
  }

 private:
  std::vector<Mnemonic>* mnemonics_;
  InternTable numbers_;
};

}  // namespace demarc::ptx
