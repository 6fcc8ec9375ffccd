// The part of a kernel that decides which addresses it touches: the address computations of its
// global accesses, the conditions under which they execute, and nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/launch/launch.hpp"
#include "demarc/locality/runs.hpp"
#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/ir.hpp"
#include "follow/row_value.hpp"

namespace demarc::locality {

struct Source3 {
  enum class Kind : std::uint8_t { none, slot, constant, special };
  Kind kind = Kind::none;
  ptx::SpecialRegister special{};
  ptx::Selector selector = ptx::Selector::none;
  std::uint32_t slot = 0;
  std::uint64_t value = 0;  // constant; added to a slot's value in an address
};

inline constexpr std::uint32_t no_slot = ptx::no_index;

struct SliceOperation {
  OperationShape shape;
  Source3 sources[3];
  std::uint32_t target = no_slot;
  std::uint32_t predicate = no_slot;
  bool predicate_negated = false;
  std::uint32_t access = ptx::no_index;  // then sources[0] is the address
};

struct SliceBlock {
  enum class End : std::uint8_t { exit, jump, branch };
  std::vector<SliceOperation> operations;
  End end = End::exit;
  std::uint32_t next = 0;   // jump; branch: where the condition does not hold
  std::uint32_t taken = 0;  // branch: where it holds
  std::uint32_t predicate = no_slot;
  bool predicate_negated = false;
  // Where the paths of a branch meet again, and what lies between: lost when the condition depends
  // on data.
  std::uint32_t meeting = 0;
  std::vector<std::uint32_t> region_accesses;
  std::vector<std::uint32_t> region_slots;
};

struct Slice {
  std::vector<Access> accesses;  // expression and class not yet known
  std::vector<bool> closable;    // false: the address or its space cannot be followed
  std::vector<bool> guarded;     // not executed by every thread that enters
  std::vector<bool> in_loop;
  std::vector<SliceBlock> blocks;  // by Cfg block
  std::uint32_t slots = 0;
  bool calls_functions = false;  // whose accesses this slice does not hold
  // Instructions that may touch global memory and are no accesses: what is not understood, and
  // bulk copies, matrix fragments, textures. Only the emulator may know what they touch.
  std::vector<std::uint32_t> not_followed;
  std::vector<std::uint32_t> prefetches;  // of global memory; they are counted nowhere
  // The loops around every Cfg block, outermost first: indices of headers in loop_headers.
  std::vector<std::vector<std::uint32_t>> loops_of_block;
  std::vector<std::uint32_t> loop_headers;  // blocks
  // By access: where its block stands in the order of the loops around it, see RowExecutor.
  std::vector<std::vector<std::uint64_t>> order;
  std::vector<std::vector<std::uint32_t>> loops_of_access;
  bool reducible = true;  // false: there are loops that are not listed
};

// What the leaves of addresses are in a launch.
struct LeafValues {
  std::vector<std::vector<std::byte>> parameters;  // the bytes of every argument
  std::vector<std::uint64_t> variables;  // emulate::global_variable_addresses: 0 is not followed
};

[[nodiscard]] Slice slice_kernel(const ptx::Module& module, const ptx::Function& function,
                                 const ptx::Cfg& cfg, const LeafValues& leaves);

}  // namespace demarc::locality
