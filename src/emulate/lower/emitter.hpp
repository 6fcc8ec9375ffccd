// Appends micro-ops to a program, for one instruction after the other.
//
// Instructions that always run together form a run: its header counts them at once. A micro-op that
// changes which lanes execute, or which micro-op is next, stands at the end of a run. An exchange
// seldom does: lanes that wait there go on behind it by a header of their own, and those that need
// not wait pass over that header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "lanes/functions.hpp"
#include "lower/slots.hpp"
#include "machine.hpp"

namespace demarc::emulate {

// Index in Program::code.
enum class OpIndex : std::uint32_t {};

// What an instruction does to memory, for the trace and for race checks.
struct AccessNote {
  AccessKind kind = AccessKind::load;
  std::uint32_t bytes = 0;  // per lane
  AddressKind place = AddressKind::global;
};

class Emitter {
 public:
  // Instructions are numbered from `first` in Program::instructions.
  Emitter(Program& program, std::uint32_t first)
      : program_(program), first_(first), instruction_(first) {}

  // What is emitted from now on belongs to that instruction of the function.
  void begin(std::uint32_t index);
  // The instruction is not covered. What it has become so far does not run: its kernel is refused.
  void fail() { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }

  // Its index in Program::instructions, which a micro-op within the details of another needs.
  [[nodiscard]] std::uint32_t instruction() const { return instruction_; }

  // Puts the instruction into the open run, or into a new one.
  void count_in_run();
  // The micro-op last emitted is an exchange at which lanes of the run may wait.
  void part_run() { parted_ = true; }
  void close_run();

  [[nodiscard]] OpIndex next() const {
    return static_cast<OpIndex>(static_cast<std::uint32_t>(program_.code.size()));
  }
  [[nodiscard]] MicroOp& operator[](OpIndex index) {
    return program_.code[static_cast<std::uint32_t>(index)];
  }

  // References to micro-ops are valid until the next one; those to details stay valid.
  MicroOp& emit(Handler handler);
  void emit(const MicroOp& op);  // its instruction is set
  // A row of lanes/alu_ops.def. Fails where it has no loop for operands of such kinds.
  void alu(Alu alu, const Register& d, std::span<const Source> sources);
  void alu(Alu alu, const Register& d, std::initializer_list<Source> sources);
  // A function of one lane.
  LaneDetails& lanes(LaneFunction function, const Register& d, std::span<const Source> sources);
  LaneDetails& lanes(LaneFunction function, const Register& d,
                     std::initializer_list<Source> sources);
  // The payload of a micro-op; the program owns it.
  template <class Details>
  Details& details() {
    auto made = std::make_shared<Details>();
    Details& reference = *made;
    program_.details.push_back(std::move(made));
    return reference;
  }
  void note(const AccessNote& access);
  // The blocks of the kernel run one after the other: side by side they could give other results.
  void order_blocks() { program_.ordered = true; }

 private:
  Program& program_;
  std::uint32_t first_;
  std::uint32_t instruction_;
  bool failed_ = false;
  std::vector<OpIndex> headers_;  // of the open run
  bool parted_ = false;           // the run needs another header if it goes on
};

}  // namespace demarc::emulate
