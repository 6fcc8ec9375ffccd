// Writes micro-ops, and notes for each instruction what it does to memory.
#include "lower/emitter.hpp"

#include <algorithm>

#include "ops/warp.hpp"

namespace demarc::emulate {

namespace {

MemorySpace memory_space_of(AddressKind kind) {
  switch (kind) {
    case AddressKind::shared:
      return MemorySpace::shared;
    case AddressKind::local:
      return MemorySpace::local;
    case AddressKind::constant:
      return MemorySpace::constant;
    case AddressKind::param:
    case AddressKind::frame:
      return MemorySpace::param;
    default:
      return MemorySpace::global;
  }
}

}  // namespace

void Emitter::begin(std::uint32_t index) {
  instruction_ = first_ + index;
  failed_ = false;
}

void Emitter::count_in_run() {
  if (headers_.empty() || parted_) {
    if (parted_) program_.code.back().flags |= warp_ops::within_run;
    parted_ = false;
    headers_.push_back(next());
    emit(program_.tables.header);
  }
  ++(*this)[headers_.back()].c;
}

void Emitter::close_run() {
  std::uint32_t length = 0;
  for (auto header = headers_.rbegin(); header != headers_.rend(); ++header) {
    length += (*this)[*header].c;
    (*this)[*header].imm = length;
  }
  program_.longest_run = std::max(program_.longest_run, length);
  headers_.clear();
  parted_ = false;
}

MicroOp& Emitter::emit(Handler handler) {
  MicroOp op;
  op.run = handler;
  emit(op);
  return program_.code.back();
}

void Emitter::emit(const MicroOp& op) {
  program_.code.push_back(op);
  program_.code.back().instruction = instruction_;
}

void Emitter::alu(Alu alu, const Register& d, std::initializer_list<Source> sources) {
  this->alu(alu, d, std::span(sources.begin(), sources.size()));
}

void Emitter::alu(Alu alu, const Register& d, std::span<const Source> sources) {
  std::uint32_t slots[3] = {};
  std::uint8_t bits = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    slots[i] = sources[i].slot.offset;
    if (sources[i].uniform) bits = static_cast<std::uint8_t>(bits | (1U << i));
  }
  const AluHandlers& handlers = program_.tables.alu[static_cast<std::size_t>(alu)];
  MicroOp& op = emit(d.uniform ? handlers.uniform : handlers.vector[bits]);
  op.d = d.slot.offset;
  op.a = slots[0];
  op.b = slots[1];
  op.c = slots[2];
  op.uniform = static_cast<std::uint8_t>(bits | (d.uniform ? uniform_d : 0));
  if (op.run == nullptr) fail();
}

LaneDetails& Emitter::lanes(LaneFunction function, const Register& d,
                            std::initializer_list<Source> sources) {
  return lanes(function, d, std::span(sources.begin(), sources.size()));
}

LaneDetails& Emitter::lanes(LaneFunction function, const Register& d,
                            std::span<const Source> sources) {
  auto& made = details<LaneDetails>();
  made.function = function;
  for (const Source& source : sources) {
    made.slot[made.sources] = source.slot.offset;
    made.width[made.sources] = source.width;
    made.uniform[made.sources] = source.uniform ? 1 : 0;
    made.negated[made.sources] = source.negated;
    ++made.sources;
  }
  made.result_width = d.width;
  MicroOp& op = emit(run_lanes);
  op.d = d.slot.offset;
  op.aux = &made;
  if (d.uniform) op.uniform = uniform_d;
  return made;
}

void Emitter::note(const AccessNote& access) {
  TraceInstruction& trace = program_.instructions[instruction_].trace;
  trace.kind = access.kind;
  trace.bytes = access.bytes;
  trace.space = memory_space_of(access.place);
  if (access.place == AddressKind::shared || access.place == AddressKind::generic)
    program_.shared_granule = std::min(program_.shared_granule, access.bytes);
}

}  // namespace demarc::emulate
