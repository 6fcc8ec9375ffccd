// The intermediate representation of a PTX module: flat vectors, indices instead of pointers, and
// string_views into the text, which the module keeps. One million instructions take about 100 MB.
//
//   add.s32 %r3, %r1, 7;   ->  Instruction{mnemonic: "add.s32", opcode: add, operands:
//                                [reg 3] [reg 1] [immediate 7]}
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/ptx/pool.hpp"
#include "demarc/ptx/vocabulary.hpp"

namespace demarc::ptx {

inline constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();

// ---- mnemonics --------------------------------------------------------------------------------

struct ModifierUse {
  Modifier id = Modifier::unknown;
  std::string_view text;  // without the dot
};

// An opcode with its modifiers, decoded once for all instructions that share it.
struct Mnemonic {
  std::string_view text;  // "ld.global.nc.v2.f64"
  Opcode opcode = Opcode::unknown;
  std::vector<ModifierUse> modifiers;   // in order, types included
  std::vector<Type> types;              // the types among them, in order: cvt.f32.s32 -> f32, s32
  StateSpace space = StateSpace::none;  // the first one named
  std::uint8_t vector_width = 1;        // v2, v4, v8
  bool understood = true;               // every modifier is in the table

  [[nodiscard]] bool has(Modifier modifier) const {
    for (const ModifierUse& use : modifiers) {
      if (use.id == modifier) return true;
    }
    return false;
  }
  [[nodiscard]] Type type(std::size_t i = 0) const {
    return i < types.size() ? types[i] : Type::none;
  }
  // The first modifier of that class; Modifier::unknown when there is none.
  [[nodiscard]] Modifier first(ModifierClass modifier_class) const {
    for (const ModifierUse& use : modifiers) {
      if (use.id != Modifier::unknown && info(use.id).modifier_class == modifier_class) {
        return use.id;
      }
    }
    return Modifier::unknown;
  }
};

// ---- operands ---------------------------------------------------------------------------------

enum class OperandKind : std::uint8_t {
  reg,        // index: register of the body; selector where one is written (%v.x, %r1.b0)
  special,    // index: SpecialRegister; selector for the vector ones (%tid.x)
  immediate,  // value, read as `immediate` says
  symbol,     // the address of a thing or a label: base, index; value: byte offset (name+4)
  address,    // [base+value]: base, index (of a register, a parameter, a variable ...)
  vector,     // {a, b, ...}: children
  list,       // (a, b, ...): children; arguments and results of a call
  pair,       // p|q: two children
  tuple,      // [a, {x, y}]: children; textures, surfaces, tensors
  element,    // name[i]: two children, a symbol and a register or immediate
  sink,       // _
  verbatim    // all operands of an instruction that is not understood: value: offset in the text,
              // index: length
};

// What `index` of a symbol or an address counts.
enum class Base : std::uint8_t {
  none,       // address: [immediate], the value alone
  reg,        // register of the body
  parameter,  // Function::parameters
  result,     // Function::results
  variable,   // Body::variables (shared, local, param ... declared in the function)
  global,     // Module::variables
  function,   // Module::functions
  label,      // Body::labels
  targets,    // Body::targets: call prototype, branch or call targets
  unresolved  // Module::names; an error has been reported
};

enum class ImmediateKind : std::uint8_t {
  s64,  // an integer that PTX types .s64
  u64,  // an integer that PTX types .u64: with suffix U, or too large for .s64
  f32,  // 0f........: the bits are in the low half
  f64   // 0d........ or a decimal number: the bits
};

enum class Selector : std::uint8_t {
  none,
  x,
  y,
  z,
  w,
  b0,
  b1,
  b2,
  b3,
  h0,
  h1,
  unified,  // [a].unified
  other     // of SIMD video instructions (.h10, .b3210): its letters in `value`, first one lowest
};

struct Operand {
  OperandKind kind = OperandKind::sink;
  Base base = Base::none;                        // of symbol and address
  ImmediateKind immediate = ImmediateKind::s64;  // of immediate
  Selector selector : 5 = Selector::none;        // of reg and special
  bool negated : 1 = false;                      // !p
  bool minus : 1 = false;                        // -a (video instructions)
  // of symbol and address: [p+0] rather than [p] (with -g, ptxas tells them apart)
  bool has_offset : 1 = false;
  std::uint32_t index = 0;  // see OperandKind; number of children
  std::uint64_t value = 0;  // immediate bits; byte offset (two's complement); index of first child

  [[nodiscard]] std::int64_t offset() const { return static_cast<std::int64_t>(value); }
  [[nodiscard]] bool has_children() const {
    return kind == OperandKind::vector || kind == OperandKind::list || kind == OperandKind::pair ||
           kind == OperandKind::tuple || kind == OperandKind::element;
  }
};
static_assert(sizeof(Operand) == 16);

// ---- instructions -----------------------------------------------------------------------------

struct Instruction {
  std::uint32_t mnemonic = 0;          // Module::mnemonics
  Opcode opcode = Opcode::unknown;     // that mnemonic's
  std::uint16_t operand_count = 0;     // at the top level
  std::uint32_t first_operand = 0;     // Body::operands
  std::uint32_t predicate = no_index;  // register of the body
  bool predicate_negated = false;      // @!p
  std::uint32_t line = 0;              // line of the PTX text, from 1
  std::uint32_t text_offset = 0;       // where it starts in the text
  std::uint32_t location = no_index;   // Body::locations: the last .loc before it
};
static_assert(sizeof(Instruction) == 32 || sizeof(Instruction) == 36);

// `.reg .b32 %r<100>;` declares registers first .. first+99 of the body; `.reg .f32 a;` one.
// Two registers of different scopes may share a name; their numbers differ.
struct RegisterRange {
  std::string_view name;    // without the number when is_range
  std::uint32_t first = 0;  // number within the body
  std::uint32_t count = 1;
  Type type = Type::none;
  std::uint8_t vector_width = 1;
  bool is_range = false;
};

struct Label {
  std::string_view name;          // unique only within its scope
  std::uint32_t instruction = 0;  // the one that follows; Body::instructions.size() at the end
  std::uint32_t line = 0;
};

// .loc file line column [, function_name label [+offset], inlined_at file line column]
struct Location {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string_view tail;  // what follows the column, verbatim
};

// Labelled directives that a brx.idx or an indirect call names.
struct TargetSet {
  enum class Kind : std::uint8_t { branch_targets, call_targets, call_prototype };
  Kind kind = Kind::branch_targets;
  std::string_view name;
  std::vector<std::uint32_t> targets;  // Body::labels, or Module::functions
  std::string_view text;               // of a prototype: all from the directive to the semicolon
};

// ---- variables --------------------------------------------------------------------------------

enum class Linkage : std::uint8_t { none, visible, external, weak, common };

struct Variable {
  StateSpace space = StateSpace::none;
  std::string_view name;
  Type type = Type::none;
  std::uint8_t vector_width = 1;
  Linkage linkage = Linkage::none;
  bool is_pointer = false;  // kernel parameter with .ptr
  bool is_array = false;
  StateSpace pointee = StateSpace::none;  // .ptr .global
  std::uint32_t pointee_align = 0;        // .ptr ... .align N; 0: not given
  std::uint32_t align = 0;                // bytes; 0: not given (then that of the type)
  std::vector<std::uint64_t> dimensions;  // 0: not given ([]), as in extern arrays
  std::string_view attributes;            // all `.attribute(...)` of it, verbatim
  std::string_view initialiser;           // verbatim, braces included; see initialiser.hpp
  bool is_repeated = false;  // names what another declaration of the module defines or sizes
  std::uint32_t line = 0;
  std::uint32_t text_offset = 0;

  // Elements in all, 0 for an array without size. One vector is one element.
  [[nodiscard]] std::uint64_t element_count() const;
  // Bytes in all, 0 for an array without size.
  [[nodiscard]] std::uint64_t byte_size() const;
  // Bytes: what is given, else the natural alignment of an element.
  [[nodiscard]] std::uint32_t alignment() const;
};

// ---- functions --------------------------------------------------------------------------------

enum class StatementKind : std::uint8_t {
  instruction,  // Body::instructions
  label,        // Body::labels
  registers,    // Body::registers
  variable,     // Body::variables
  location,     // Body::locations
  targets,      // Body::targets
  scope_begin,  // {
  scope_end,    // }
  verbatim      // Body::verbatim: a directive printed as it was (.pragma "nounroll"; ...)
};

struct Statement {
  StatementKind kind = StatementKind::instruction;
  std::uint32_t index = 0;
};
static_assert(sizeof(Statement) == 8);

// All instructions of a function in program order, and in `statements` everything in the order of
// the text. Code that inserts instructions keeps both in step (labels, too).
struct Body {
  PooledVector<Statement> statements;
  PooledVector<Instruction> instructions;
  PooledVector<Operand> operands;  // top-level operands of an instruction stand side by side
  PooledVector<Label> labels;
  std::vector<RegisterRange> registers;  // ascending `first`, without gaps
  std::vector<Variable> variables;
  PooledVector<Location> locations;
  std::vector<TargetSet> targets;
  std::vector<std::string_view> verbatim;
  std::uint32_t register_count = 0;

  [[nodiscard]] std::span<const Operand> operands_of(const Instruction& instruction) const {
    return std::span(operands).subspan(instruction.first_operand, instruction.operand_count);
  }
  [[nodiscard]] std::span<const Operand> children(const Operand& operand) const {
    return std::span(operands).subspan(static_cast<std::size_t>(operand.value), operand.index);
  }
  // The declaration of register number `reg`; reg < register_count.
  [[nodiscard]] const RegisterRange& range_of(std::uint32_t reg) const;
  [[nodiscard]] std::string register_name(std::uint32_t reg) const;
  [[nodiscard]] Type register_type(std::uint32_t reg) const { return range_of(reg).type; }
};

// `.maxntid 256, 1, 1`, `.minnctapersm 2`, `.noreturn` and the like, in order.
struct PerformanceDirective {
  std::string_view name;  // without the dot
  std::vector<std::uint64_t> values;
  std::string_view text;  // arguments verbatim, when they are not plain numbers
};

struct Function {
  std::string_view name;
  bool is_entry = false;  // a kernel
  bool has_body = false;  // else a declaration
  Linkage linkage = Linkage::none;
  std::vector<Variable> results;
  std::vector<Variable> parameters;
  std::vector<PerformanceDirective> directives;
  std::string_view attributes;  // `.attribute(...)`, verbatim
  Body body;
  std::uint32_t definition = no_index;  // index in Module::functions of the one with the body
  std::uint32_t line = 0;

  [[nodiscard]] const PerformanceDirective* directive(std::string_view name) const;
};

// ---- modules ----------------------------------------------------------------------------------

struct SourceFile {
  std::uint32_t number = 0;
  std::string_view path;  // without quotes
  std::string_view tail;  // timestamp and size, verbatim
};

enum class ItemKind : std::uint8_t {
  function,   // Module::functions
  variable,   // Module::variables
  registers,  // Module::registers
  file,       // Module::files
  section,    // Module::verbatim: `.section .debug_... { ... }`
  verbatim    // Module::verbatim: .pragma, .alias, @@DWARF ... as they were
};

struct Item {
  ItemKind kind = ItemKind::function;
  std::uint32_t index = 0;
};

struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

// 90 of "sm_90" and of "sm_90a"; nothing of "debug".
[[nodiscard]] std::optional<std::uint64_t> target_number(std::string_view target);

// Movable and copyable; copies share the text.
struct Module {
  std::string source_name;                             // name of the file, for messages
  std::shared_ptr<const std::string> text;             // all string_views of the IR point into it
  std::shared_ptr<std::deque<std::string>> made_text;  // ... or into these, made by passes

  Version version;
  std::vector<std::string_view> targets;  // "sm_90", "debug", "texmode_independent"
  std::uint32_t address_size = 32;        // bits; 32 if the module does not say
  bool states_address_size = false;

  std::vector<Item> items;  // in the order of the text
  std::vector<Function> functions;
  std::vector<Variable> variables;
  std::vector<RegisterRange> registers;  // at module scope; every body begins with them
  std::vector<SourceFile> files;
  std::vector<std::string_view> verbatim;
  std::vector<std::string_view> names;  // only those of Base::unresolved
  std::vector<Mnemonic> mnemonics;

  [[nodiscard]] const Mnemonic& mnemonic(const Instruction& instruction) const {
    return mnemonics[instruction.mnemonic];
  }
  // The definition of that kernel or function, else nullptr.
  [[nodiscard]] const Function* find_function(std::string_view name) const;
  [[nodiscard]] std::vector<const Function*> kernels() const;  // with a body, in order
  // The variable of that name in constant or global memory, else nullptr.
  [[nodiscard]] const Variable* find_memory(std::string_view name) const;
  // Whether one of its targets is below sm_<number>.
  [[nodiscard]] bool has_target_below(std::uint64_t number) const;
  // The text of an instruction from its predicate to its semicolon, as it was written.
  [[nodiscard]] std::string_view text_of(const Instruction& instruction) const;
  // "file:line" of the CUDA source if the text has .loc, else empty.
  [[nodiscard]] std::string source_position(const Body& body, const Instruction& instruction) const;
  // Keeps a string made by a pass alive as long as the module.
  std::string_view keep(std::string text);
};

}  // namespace demarc::ptx
