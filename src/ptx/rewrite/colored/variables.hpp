// Where the variables of a module lie in the block of coloured memory that is made for them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/initialiser.hpp"

namespace demarc::ptx {

class BlockLayout {
 public:
  explicit BlockLayout(const Module& module);

  // Offset in the block of a variable of global memory, by index in Module::variables.
  [[nodiscard]] std::optional<std::uint64_t> offset(std::uint32_t variable) const;
  // Why a kernel that names the variable cannot be coloured; empty: it can.
  [[nodiscard]] std::string refusal(std::uint32_t variable) const;
  [[nodiscard]] const ColoredBlock& block() const { return block_; }

 private:
  struct Placed {
    std::uint32_t variable = 0;
    InitialImage image;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> offset = {};
    std::string refusal = {};  // its own
  };
  void collect();
  void place();
  void point();
  [[nodiscard]] std::string reason_of(const Variable& variable, const Placed& placed) const;

  const Module& module_;
  std::map<std::string_view, Placed> placed_;  // by name: a declaration means its definition
  ColoredBlock block_;
};

}  // namespace demarc::ptx
