// One instruction (or a short sequence that belongs together) with an evaluation that shares no
// code with the emulator. The same table drives the tests here and the comparison with a real GPU.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace demarc::emulate::test {

// What an operand holds: the width of its register, and which values are worth trying.
enum class Value : std::uint8_t {
  pred,
  i16,
  i32,
  i64,
  shift,  // 32 bits, mostly small: amounts, positions, lengths
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64,
  f32x2
};

[[nodiscard]] unsigned bits_of(Value value);

// Operands of one thread: in[0] is A, in[1] B, ... each zero-extended from its width.
struct Inputs {
  std::array<std::uint64_t, 5> in{};
  std::uint64_t operator[](std::size_t i) const { return in[i]; }
};
struct Results {
  std::uint64_t d = 0;
  std::uint64_t e = 0;  // of the second destination
};

// How far a result may lie from the exact one. All zero: bit by bit the same.
struct Bound {
  double ulp = 0;       // of the result's format
  double relative = 0;  // of the exact value
  double absolute = 0;
  [[nodiscard]] bool exact() const { return ulp == 0 && relative == 0 && absolute == 0; }
};

struct InstructionCase {
  // PTX in which D, E stand for the destinations and A, B, C, F, G for the sources. The first word
  // is the mnemonic that the case is about.
  std::string text;
  std::vector<Value> results;
  std::vector<Value> sources;
  std::function<Results(const Inputs&)> reference = {};
  unsigned target = 75;  // the first sm_ that has it
  Bound emulator = {};   // against the reference
  Bound card = {};       // a GPU against the emulator (documented in the PTX ISA)
  // False: the operands are outside of what the card promises anything for.
  std::function<bool(const Inputs&)> defined = {};
  std::string about = {};  // the mnemonic, where it is not that of the instruction that writes D
};

// "add.s32 D, A, B;" -> "add.s32"
[[nodiscard]] std::string mnemonic_of(const InstructionCase& entry);

using Cases = std::vector<InstructionCase>;
void add_integer_cases(Cases& out);
void add_carry_cases(Cases& out);
void add_bit_cases(Cases& out);
void add_float_cases(Cases& out);
void add_small_float_cases(Cases& out);
void add_approximate_cases(Cases& out);
void add_compare_cases(Cases& out);
void add_convert_cases(Cases& out);
void add_logic_cases(Cases& out);
void add_move_cases(Cases& out);
void add_video_cases(Cases& out);
void add_memory_cases(Cases& out);

[[nodiscard]] const Cases& all_cases();

// A module with one kernel `k` that gives every thread its operands and stores its results.
// `uniform`: bit i set: source i is a kernel parameter, the same in all threads. `masked`: only
// threads with an even number execute the instruction, the others keep all ones.
// Parameters: u64 in (8 bytes a source), u64 out (16 bytes a thread), then u64 for each source.
[[nodiscard]] std::string kernel_text(const InstructionCase& entry, unsigned uniform = 0,
                                      bool masked = false, std::string_view name = "k");
[[nodiscard]] std::string module_header(unsigned target);
// The kernel alone, without the module's header.
[[nodiscard]] std::string kernel_body(const InstructionCase& entry, unsigned uniform, bool masked,
                                      std::string_view name);

// Operands for `count` threads: special values against each other first, then random ones.
[[nodiscard]] std::vector<Inputs> inputs_for(const InstructionCase& entry, std::size_t count,
                                             std::uint64_t seed);

// Empty: `got` is near enough to `expected`. Else what is wrong.
[[nodiscard]] std::string difference(Value kind, std::uint64_t got, std::uint64_t expected,
                                     const Bound& bound);

}  // namespace demarc::emulate::test
