// Decides how an instruction reaches memory, by a list of known instructions. Everything else is
// refused.
#include "rewrite/colored/access.hpp"

#include <algorithm>

namespace demarc::ptx {
namespace {

constexpr std::string_view other_way =
    "addresses memory in a way that cannot be coloured; plain loads, stores, atomics and cp.async "
    "can";
constexpr std::string_view not_known = "is unknown, and so is the memory that it reaches";
constexpr std::string_view no_range =
    "names a range of addresses, which coloured memory does not have; use createpolicy.fractional, "
    "which names no addresses";
constexpr std::string_view tensor_map =
    "works on a tensor map, whose addresses cannot be translated";
constexpr std::string_view stack =
    "takes local memory of a size that is not known; variables of a fixed size can be coloured";

// discard and applypriority take lines of this size.
constexpr std::uint32_t line_bytes = 128;

Access refused(std::string_view why) {
  return {MemoryReach::refused, 0, 0, why};
}

bool stays_on_chip(StateSpace space) {
  return space == StateSpace::shared || space == StateSpace::param ||
         space == StateSpace::constant || space == StateSpace::reg;
}

Access plain(const Mnemonic& mnemonic, std::uint32_t bytes) {
  switch (mnemonic.space) {
    case StateSpace::none:
      return {MemoryReach::generic, 0, bytes, {}};
    case StateSpace::global:
      return {MemoryReach::global, 0, bytes, {}};
    case StateSpace::local:
      return {MemoryReach::local, 0, bytes, {}};
    default:
      return stays_on_chip(mnemonic.space) ? Access{} : refused(other_way);
  }
}

std::uint32_t bytes_of(const Mnemonic& mnemonic) {
  const Type type = mnemonic.types.empty() ? Type::none : mnemonic.types.back();
  return type == Type::none ? 0 : byte_size(type) * mnemonic.vector_width;
}

bool has_address(const Body& body, const Instruction& instruction) {
  const auto operands = body.operands_of(instruction);
  return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
    return operand.kind == OperandKind::address || operand.kind == OperandKind::tuple;
  });
}

bool names_tensor_map(const Mnemonic& mnemonic) {
  return mnemonic.text.find("tensormap") != std::string_view::npos;
}

Access of_group(const Mnemonic& mnemonic, bool addresses) {
  const std::string_view name = info(mnemonic.opcode).name;
  switch (info(mnemonic.opcode).group) {
    case OpcodeGroup::mbarrier:  // objects in shared memory, whichever way they are addressed
      return {};
    case OpcodeGroup::async:
      // Waits and commits; clusterlaunchcontrol and mbarriers write shared memory only.
      return name.ends_with("_group") || name.ends_with("wait_all") ||
                     name.ends_with("mbarrier.arrive") || name.starts_with("clusterlaunchcontrol")
                 ? Access{}
                 : refused(other_way);
    case OpcodeGroup::matrix:  // ldmatrix, stmatrix, wgmma, tcgen05: shared and tensor memory
      return {};
    case OpcodeGroup::texture:
      return refused(other_way);
    case OpcodeGroup::load:
    case OpcodeGroup::store:
    case OpcodeGroup::atomic:
      return mnemonic.space == StateSpace::shared ? Access{} : refused(other_way);
    default:
      return addresses ? refused(other_way) : Access{};
  }
}

}  // namespace

Access access_of(const Module& module, const Body& body, const Instruction& instruction) {
  const Mnemonic& mnemonic = module.mnemonic(instruction);
  const auto operands = body.operands_of(instruction);
  if (!operands.empty() && operands[0].kind == OperandKind::verbatim) return refused(not_known);
  switch (mnemonic.opcode) {
    case Opcode::unknown:
      return refused(not_known);
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
    case Opcode::atom:
    case Opcode::red:
      return plain(mnemonic, bytes_of(mnemonic));
    case Opcode::prefetch:
      return names_tensor_map(mnemonic) ? refused(tensor_map) : plain(mnemonic, 0);
    case Opcode::discard:
    case Opcode::applypriority:
      return plain(mnemonic, line_bytes);
    case Opcode::cp_async:
      return {MemoryReach::global, 1, 16, {}};  // [shared], [global]
    case Opcode::createpolicy:
      return has_address(body, instruction) ? refused(no_range) : Access{};
    case Opcode::wmma_load:
    case Opcode::wmma_store:
      if (mnemonic.space == StateSpace::none) return {MemoryReach::tile, 0, 0, other_way};
      return stays_on_chip(mnemonic.space) ? Access{} : refused(other_way);
    case Opcode::alloca:
    case Opcode::stacksave:
    case Opcode::stackrestore:
      return refused(stack);
    case Opcode::call:
      return {};
    default:
      break;
  }
  const bool addresses = has_address(body, instruction);
  if (addresses && names_tensor_map(mnemonic)) return refused(tensor_map);
  return of_group(mnemonic, addresses);
}

const Operand* address_of(const Body& body, const Instruction& instruction, const Access& access) {
  int left = access.bracket;
  for (const Operand& operand : body.operands_of(instruction)) {
    if (operand.kind == OperandKind::address && left-- == 0) return &operand;
  }
  return nullptr;
}

bool is_concerned(Opcode opcode, ColoredAccesses accesses) {
  if (accesses == ColoredAccesses::all) return true;
  const bool loads = opcode == Opcode::ld || opcode == Opcode::ldu || opcode == Opcode::cp_async ||
                     opcode == Opcode::prefetch;
  return loads == (accesses == ColoredAccesses::loads);
}

}  // namespace demarc::ptx
