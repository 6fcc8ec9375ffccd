// The syntax tree of an address (KNOM Review 2022, Figure 4). The address register of a memory
// instruction is traced back through the instructions that define it. The leaves are parameters,
// %tid, %ctaid, %ntid, %nctaid, other special registers, immediates, and what cannot be traced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/def_use.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

enum class NodeKind : std::uint8_t {
  operation,  // `instruction` computes it from the children: its source operands in order
  parameter,  // leaf: Function::parameters[index], `value` bytes into it; child of an ld.param
  special,    // leaf: index: SpecialRegister, and its selector
  immediate,  // leaf: value, read as `immediate` says
  variable,   // leaf: address of the variable that base and index name, plus `value` bytes
  loaded,     // `instruction` loads it; the only child is the address, to which `value` is added
  several,    // more than one definition reaches (a merge, a loop, a guarded write): one child each
  recurrence,  // leaf: the same definition as node number `value`, which is above this one
  unknown      // leaf: no definition, or an instruction that is not traced (a call, an atomic ...)
};

struct TreeNode {
  NodeKind kind = NodeKind::unknown;
  std::uint32_t parent = no_index;       // no_index for the root; parents stand before children
  std::uint32_t reg = no_index;          // the register it is the value of
  std::uint32_t instruction = no_index;  // the one that defines the register
  std::uint32_t index = 0;
  Base base = Base::none;
  Selector selector = Selector::none;
  ImmediateKind immediate = ImmediateKind::s64;
  std::uint64_t value = 0;
  std::vector<std::uint32_t> children;  // in operand order
};

struct AddressTree {
  std::uint32_t instruction = 0;  // the load, store or atomic
  std::int64_t offset = 0;        // [reg+offset]
  std::vector<TreeNode> nodes;    // nodes[0] is the address (without the offset)
  bool truncated = false;         // it grew beyond the limit; the cut nodes are `unknown`
};

struct TreeOptions {
  std::uint32_t max_nodes = 100'000;
};

// The tree of the address operand of a memory instruction (its first operand of kind address).
[[nodiscard]] AddressTree trace_address(const Function& function, const DefUse& def_use,
                                        std::uint32_t instruction, const TreeOptions& options = {});

// The global loads of a function, in order: ld.global of any form and ldu.global, and with
// `generic` also ld without a space.
[[nodiscard]] std::vector<std::uint32_t> global_loads(const Module& module,
                                                      const Function& function,
                                                      bool generic = false);

// The paper's Figure 4 for every ld.global of a kernel:
// {"schema": "demarc.ptx.tree/1", "kernel", "loads": [{"instruction", "line", "offset",
//  "truncated", "tree": [{"reg", "opcode", "parent"}, ...]}]}
// `parent` is an index in the array, -1 for the root; the opcode of a leaf is empty. A register
// with several definitions has the opcode "several"; one that depends on itself has "recurrence",
// and `of` is the index of its definition; one that nothing defines has "unknown". Instructions of
// the kernel that are not understood may define any register that they name. They are listed as
// "not_understood": [{"line", "text"}, ...] if there are any.
[[nodiscard]] std::string trees_to_json(const Module& module, const Function& function);

}  // namespace demarc::ptx
