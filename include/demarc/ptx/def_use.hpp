// Which instruction writes a register that another one reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// These call f(register, selector) for every register that the instruction writes, or reads,
// including those in vectors, pairs, addresses and the guard. An instruction that is not understood
// (verbatim operands) shows no registers: look at Mnemonic::understood and the operand kind before
// you rely on it. A guarded write also keeps the old value: it counts as a definition that does not
// end earlier ones. A `call` writes the registers of its result list.
void for_each_written(const Body& body, const Instruction& instruction,
                      void (*f)(void*, std::uint32_t), void* context);
void for_each_read(const Body& body, const Instruction& instruction,
                   void (*f)(void*, std::uint32_t), void* context);

template <class F>
void for_each_written(const Body& body, const Instruction& instruction, F&& f) {
  for_each_written(
      body, instruction,
      [](void* context, std::uint32_t reg) {
        (*static_cast<std::remove_reference_t<F>*>(context))(reg);
      },
      &f);
}
template <class F>
void for_each_read(const Body& body, const Instruction& instruction, F&& f) {
  for_each_read(
      body, instruction,
      [](void* context, std::uint32_t reg) {
        (*static_cast<std::remove_reference_t<F>*>(context))(reg);
      },
      &f);
}

// Reaching definitions, per register (sparse: PTX registers mostly have one definition).
class DefUse {
 public:
  DefUse(const Body& body, const Cfg& cfg);

  // All instructions that write `reg`, ascending.
  [[nodiscard]] std::span<const std::uint32_t> definitions(std::uint32_t reg) const;
  // All instructions that read `reg`, ascending.
  [[nodiscard]] std::span<const std::uint32_t> uses(std::uint32_t reg) const;

  // The definitions of `reg` that may reach the point just before `instruction`, ascending, and
  // whether the register may still be unwritten there.
  struct Reaching {
    std::vector<std::uint32_t> definitions;
    bool may_be_unwritten = false;
  };
  [[nodiscard]] Reaching reaching(std::uint32_t reg, std::uint32_t instruction) const;

 private:
  const Body* body_;
  const Cfg* cfg_;
  std::vector<std::uint32_t> definition_start_;  // by register, into definitions_
  std::vector<std::uint32_t> definitions_;
  std::vector<std::uint32_t> use_start_;
  std::vector<std::uint32_t> uses_;
};

}  // namespace demarc::ptx
