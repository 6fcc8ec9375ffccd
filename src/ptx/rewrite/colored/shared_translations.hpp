// Which accesses of a function have the address of one before them, whose translation the compiler
// takes again. The others take the full translation.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/def_use.hpp"

namespace demarc::ptx {

class SharedTranslations {
 public:
  explicit SharedTranslations(const Body& body) : cfg_(body), def_use_(body, cfg_) {}
  SharedTranslations(const SharedTranslations&) = delete;
  SharedTranslations& operator=(const SharedTranslations&) = delete;

  // Accesses come in the order of the text. True: on every way to `instruction` an earlier access
  // has translated the same address.
  [[nodiscard]] bool is_shared(std::uint32_t instruction, const Operand& address);

 private:
  // What an address is made of, and the definitions of its register that may reach the access.
  using Key = std::tuple<Base, std::uint32_t, std::int64_t, std::vector<std::uint32_t>>;

  [[nodiscard]] bool dominates(std::uint32_t block, std::uint32_t other) const;
  [[nodiscard]] bool keeps_its_value(const Operand& address, std::uint32_t from,
                                     std::uint32_t to) const;

  Cfg cfg_;
  DefUse def_use_;                                     // of cfg_
  std::map<Key, std::vector<std::uint32_t>> earlier_;  // instructions
};

}  // namespace demarc::ptx
