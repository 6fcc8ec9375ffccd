// Follows what a kernel stores back to the instructions that made it.
#include "capture/stored_number.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "demarc/ptx/def_use.hpp"

namespace demarc::cuda {
namespace {

using ptx::Opcode;
using ptx::Type;

class StoredTypes {
 public:
  StoredTypes(const ptx::Module& module, const ptx::Body& body)
      : module_(module), body_(body), writers_(body.register_count) {
    for (const ptx::Instruction& one : body.instructions) {
      ptx::for_each_written(body, one, [&](std::uint32_t reg) { writers_[reg].push_back(&one); });
    }
  }

  // For all that goes to memory that others see.
  std::set<Type> find() {
    for (const ptx::Instruction& one : body_.instructions) {
      if (may_write(one)) add_stored(one);
    }
    return types_;
  }

 private:
  // Whether it writes to memory that others see, or leads to code that may.
  [[nodiscard]] bool may_write(const ptx::Instruction& instruction) const {
    const ptx::OpcodeInfo& known = ptx::info(instruction.opcode);
    const ptx::StateSpace space = module_.mnemonic(instruction).space;
    using Group = ptx::OpcodeGroup;
    if (known.group == Group::load || space == ptx::StateSpace::shared ||
        space == ptx::StateSpace::local || space == ptx::StateSpace::param) {
      return false;
    }
    return known.group == Group::store || known.group == Group::atomic ||
           known.group == Group::texture || known.group == Group::call ||
           // Waits for copies name no memory.
           (known.group == Group::async && space != ptx::StateSpace::none) ||
           instruction.opcode == Opcode::unknown || instruction.opcode == Opcode::wmma_store;
  }

  void add_stored(const ptx::Instruction& instruction) {
    const bool says = instruction.opcode == Opcode::st || instruction.opcode == Opcode::atom ||
                      instruction.opcode == Opcode::red;
    const Type type = says ? type_of(instruction) : Type::none;
    if (instruction.opcode != Opcode::st || !are_bits(type)) {
      types_.insert(type);
      return;
    }
    found_ = copied_ = false;
    seen_.clear();
    follow(body_.operands_of(instruction)[1]);
    while (!open_.empty()) {
      const std::uint32_t reg = open_.back();
      open_.pop_back();
      for (const ptx::Instruction* writer : writers_[reg]) add_made(*writer);
    }
    if (!found_ && !copied_) types_.insert(type);
  }

  void follow(const ptx::Operand& value) {
    if (value.kind == ptx::OperandKind::vector) {
      for (const ptx::Operand& child : body_.children(value)) follow(child);
    }
    if (value.kind == ptx::OperandKind::reg && seen_.insert(value.index).second) {
      open_.push_back(value.index);
    }
  }

  void add_made(const ptx::Instruction& writer) {
    const Type type = type_of(writer);
    const auto operands = body_.operands_of(writer);
    const bool shared = module_.mnemonic(writer).space == ptx::StateSpace::shared;
    if (writer.opcode == Opcode::ldmatrix || (writer.opcode == Opcode::ld && shared)) {
      follow_shared();
      return;
    }
    // Compilers move bits as words of any type.
    if (type != Type::none && !is_floating(type)) {
      switch (writer.opcode) {
        case Opcode::selp:
        case Opcode::prmt:
          follow(operands[2]);
          [[fallthrough]];
        case Opcode::mov:
        case Opcode::shfl:
          follow(operands[1]);
          return;
        case Opcode::ld:
          copied_ = true;  // stored as it was found, which is exact whatever it is
          return;
        default:
          break;
      }
    }
    types_.insert(type);
    found_ = true;
  }

  // What is loaded from shared memory may be anything that was stored there.
  void follow_shared() {
    for (const ptx::Instruction& one : body_.instructions) {
      const bool stores =
          one.opcode == Opcode::stmatrix ||
          (one.opcode == Opcode::st && module_.mnemonic(one).space == ptx::StateSpace::shared);
      if (!stores) continue;
      if (type_of(one) == Type::none) {
        types_.insert(Type::none);
      } else {
        follow(body_.operands_of(one)[1]);
      }
    }
  }

  static bool are_bits(Type type) {
    return type == Type::b8 || type == Type::b16 || type == Type::b32 || type == Type::b64 ||
           type == Type::b128;
  }
  // None where the instruction is not understood: then its operands may not be apart.
  [[nodiscard]] Type type_of(const ptx::Instruction& instruction) const {
    const ptx::Mnemonic& mnemonic = module_.mnemonic(instruction);
    return mnemonic.understood ? number_of(mnemonic.type()) : Type::none;
  }
  static bool is_floating(Type type) { return ptx::info(type).kind == ptx::TypeKind::floating; }
  static Type number_of(Type type) { return type == Type::f16x2 ? Type::f16 : type; }

  const ptx::Module& module_;
  const ptx::Body& body_;
  std::vector<std::vector<const ptx::Instruction*>> writers_;  // by register
  // Of the store that is looked at: registers that lead to it, those of them whose writers are to
  // be looked at, and whether one of these tells a type, or was loaded.
  std::set<std::uint32_t> seen_;
  std::vector<std::uint32_t> open_;
  bool found_ = false;
  bool copied_ = false;
  std::set<Type> types_;
};

}  // namespace

std::optional<gpu::ScalarType> stored_number(const ptx::Module& module, const std::string& kernel) {
  const auto types = StoredTypes(module, module.find_function(kernel)->body).find();
  if (types.size() != 1) return std::nullopt;
  switch (*types.begin()) {
    case Type::f16:
      return gpu::ScalarType::f16;
    case Type::f32:
      return gpu::ScalarType::f32;
    case Type::f64:
      return gpu::ScalarType::f64;
    default:
      return std::nullopt;
  }
}

}  // namespace demarc::cuda
