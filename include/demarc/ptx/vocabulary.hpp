// The words of PTX as enumerations, made from the tables types.def, modifiers.def, opcodes.def and
// special_registers.def: the one place that knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace demarc::ptx {

enum class TypeKind : std::uint8_t {
  none,
  predicate,
  bits,
  unsigned_,
  signed_,
  floating,
  packed,
  opaque
};

enum class Type : std::uint8_t {
  none,
#define DEMARC_PTX_TYPE(enumerator, text, section, bits, kind) enumerator,
#include "demarc/ptx/types.def"
#undef DEMARC_PTX_TYPE
};

enum class ModifierClass : std::uint8_t {
  none,
  type,
  space,
  rounding,
  compare,
  combine,
  arithmetic,
  vector,
  memory,
  cache,
  async,
  fence,
  warp,
  texture,
  matrix
};

// The first enumerators are those of Type, with the same values.
enum class Modifier : std::uint16_t {
  unknown,
#define DEMARC_PTX_TYPE(enumerator, text, section, bits, kind) enumerator,
#include "demarc/ptx/types.def"
#undef DEMARC_PTX_TYPE
#define DEMARC_PTX_MODIFIER(enumerator, text, section, modifier_class) enumerator,
#include "demarc/ptx/modifiers.def"
#undef DEMARC_PTX_MODIFIER
  shape_mnk  // m<M>n<N>k<K>; the numbers are in the text
};

enum class OpcodeGroup : std::uint8_t {
  unknown,
  arithmetic,
  compare,
  logic,
  move,
  convert,
  load,
  store,
  atomic,
  cache,
  async,
  texture,
  branch,
  call,
  exit,
  barrier,
  fence,
  warp,
  mbarrier,
  matrix,
  video,
  misc
};

// unknown: an instruction the table does not list; it is kept and printed verbatim.
enum class Opcode : std::uint16_t {
  unknown,
#define DEMARC_PTX_OPCODE(enumerator, name, section, fewest, most, written, group) enumerator,
#include "demarc/ptx/opcodes.def"
#undef DEMARC_PTX_OPCODE
};

enum class SpecialRegister : std::uint16_t {
#define DEMARC_PTX_SPECIAL(enumerator, name, section, type, is_vector) enumerator,
#include "demarc/ptx/special_registers.def"
#undef DEMARC_PTX_SPECIAL
};

enum class StateSpace : std::uint8_t {
  none,  // generic addressing, where an instruction names no space
  reg,
  global,
  shared,
  local,
  param,
  constant,
  texture
};

struct OpcodeInfo {
  std::string_view name;
  std::string_view section;
  std::uint8_t fewest_operands;
  std::uint8_t max_operands;
  std::uint8_t written;  // leading operands the instruction writes
  OpcodeGroup group;
};

struct ModifierInfo {
  std::string_view text;
  std::string_view section;
  ModifierClass modifier_class;
};

struct TypeInfo {
  std::string_view text;
  std::uint16_t bits;
  TypeKind kind;
};

struct SpecialRegisterInfo {
  std::string_view name;
  std::string_view section;
  Type type;
  bool is_vector;
};

[[nodiscard]] const OpcodeInfo& info(Opcode opcode);
[[nodiscard]] const ModifierInfo& info(Modifier modifier);
[[nodiscard]] const TypeInfo& info(Type type);
[[nodiscard]] const SpecialRegisterInfo& info(SpecialRegister name);

// How many enumerators there are, Opcode::unknown and Modifier::unknown included.
[[nodiscard]] std::size_t opcode_count();
[[nodiscard]] std::size_t modifier_count();
[[nodiscard]] std::size_t special_register_count();

// The opcode whose dotted name is the longest prefix of `mnemonic`, and the length of that prefix.
// If there is none, Opcode::unknown and the length up to the first dot.
struct OpcodeMatch {
  Opcode opcode;
  std::size_t length;
};
[[nodiscard]] OpcodeMatch find_opcode(std::string_view mnemonic);

// `text` is without its leading dot. The result is Modifier::unknown, Type::none or nothing if no
// table has it.
[[nodiscard]] Modifier find_modifier(std::string_view text);
[[nodiscard]] Type find_type(std::string_view text);
[[nodiscard]] std::optional<SpecialRegister> find_special_register(std::string_view name);

// "global" (without the dot) -> StateSpace::global. none if it is not a state space.
[[nodiscard]] StateSpace find_state_space(std::string_view text);
[[nodiscard]] std::string_view name(StateSpace space);

// The type of a modifier of class type, else Type::none.
[[nodiscard]] Type type_of(Modifier modifier);

// Size in bytes as a variable of that type occupies memory (sub-byte types: 1; opaque handles: 8).
[[nodiscard]] std::uint32_t byte_size(Type type);

}  // namespace demarc::ptx
