// Follows bits that were not written before they were read, from registers to registers and back
// to memory, until a value that depends on them is used: it decides a branch, is part of an
// address, goes into an atomic, leaves for global memory. Only then are they a finding. A warp
// whose load gets such bits runs its micro-ops through run() for as long as registers hold any.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "machine.hpp"

namespace demarc::emulate {

class Unwritten {
 public:
  explicit Unwritten(Block& block);

  // Null when the warp stops for now; else no register has unwritten bits any more, and the warp
  // goes on there.
  const MicroOp* run(Warp& w, const MicroOp* op);
  // What a load gets, and what a store leaves. `shadows` are those of the lanes of the access.
  void load(Warp& w, const MicroOp* op, const Access& access, const LaneShadows& shadows,
            const LaneSpaces& spaces);
  void store(Warp& w, const MicroOp* op, const Access& access, const LaneShadows& shadows);

 private:
  // Which load the unwritten bits of a lane come from.
  struct Origin {
    const MicroOp* op = nullptr;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    MemorySpace space = MemorySpace::none;
    bool is_padding = false;  // they lie behind bytes that were written, and nothing computed them
  };
  using Origins = std::array<Origin, warp_size>;
  // A bit for each bit of a frame, set where it is not written.
  struct Shadow {
    std::vector<std::byte> storage;
    std::byte* bits = nullptr;
    std::size_t bytes = 0;
    std::unordered_map<std::uint32_t, Origins> origins;  // by the place of the register
  };
  struct Operands {
    std::span<const TrackedOperand> written, read, addresses;
  };

  [[nodiscard]] Operands operands_of(const TrackedInstruction& in) const;
  Shadow& shadow_of(Warp& w);
  void renew(Shadow& shadow, std::uint32_t function) const;
  void begin(const Warp& w);
  void use(Warp& w, const MicroOp* op, Shadow& shadow, const TrackedOperand& operand,
           unsigned lane) const;
  void use_all(Warp& w, const MicroOp* op, Shadow& shadow,
               std::span<const TrackedOperand> operands) const;
  void use_predicate(Warp& w, const MicroOp* op, Shadow& shadow) const;

  const MicroOp* step(Warp& w, const MicroOp* op);
  const MicroOp* access(Warp& w, const MicroOp* op, Shadow& shadow, const Operands& operands);
  void load_variable(Warp& w, const MicroOp* op, Shadow& shadow, const Operands& operands) const;
  void store_variable(Warp& w, const MicroOp* op, Shadow& shadow) const;
  static const MicroOp* hand_over(Warp& w, const MicroOp* op, Shadow& shadow);
  const MicroOp* call(Warp& w, const MicroOp* op, Shadow& shadow);
  const MicroOp* come_back(Warp& w, const MicroOp* op, const Shadow& shadow);
  void forget(const Warp& w, const std::byte* frame);
  bool route(Warp& w, const MicroOp* op, Shadow& shadow, const TrackedInstruction& in,
             const Operands& operands) const;
  const MicroOp* compute(Warp& w, const MicroOp* op, Shadow& shadow, const TrackedInstruction& in,
                         const Operands& operands) const;

  Block& block_;
  const Program& program_;
  std::unordered_set<Handler> lane_wise_;
  std::unordered_map<const std::byte*, Shadow> shadows_;  // by frame
};

}  // namespace demarc::emulate
