// Carries unwritten bits along with the micro-ops of a warp.
#include "unwritten.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "groups.hpp"
#include "lanes/functions.hpp"
#include "ops/control.hpp"
#include "ops/memory.hpp"
#include "tracked_values.hpp"

namespace demarc::emulate {

namespace {

constexpr std::size_t tracked_alignment = 64;
static_assert(std::has_single_bit(tracked_alignment));

// Those that move bits as their operands say, and touch nothing but the frame.
std::unordered_set<Handler> lane_wise_handlers(const Program& program) {
  std::unordered_set<Handler> handlers{run_lanes, memory_ops::move_wide, memory_ops::join_wide,
                                       memory_ops::split_wide};
  for (std::size_t i = 0; i < static_cast<std::size_t>(Alu::count); ++i) {
    // Uniform slots have constants and parameters alone: they are written.
    handlers.insert(program.tables.alu[i].vector.begin(), program.tables.alu[i].vector.end());
  }
  return handlers;
}

bool is_memory(const Program& program, Handler handler) {
  const MemoryHandlers& plain = *program.tables.memory;
  const auto has = [&](const auto& handlers) {
    return std::find(std::begin(handlers), std::end(handlers), handler) != std::end(handlers);
  };
  return has(plain.load) || has(plain.store) || handler == memory_ops::load_wide ||
         handler == memory_ops::store_wide;
}

bool is_flow(const Program& program, Handler handler) {
  return handler == program.tables.header || handler == control::unguard ||
         handler == control::join || handler == control::jump || handler == control::nothing;
}

}  // namespace

Unwritten::Unwritten(Block& block)
    : block_(block), program_(*block.program), lane_wise_(lane_wise_handlers(program_)) {}

Unwritten::Operands Unwritten::operands_of(const TrackedInstruction& in) const {
  const auto all = std::span(program_.tracked_operands).subspan(in.first);
  return {.written = all.first(in.written),
          .read = all.subspan(in.written, in.read),
          .addresses = all.subspan(std::size_t{in.written} + in.read, in.addresses)};
}

void Unwritten::renew(Shadow& shadow, std::uint32_t function) const {
  const std::uint32_t bytes = program_.functions[function].frame_bytes;
  shadow.storage.assign(bytes + tracked_alignment, std::byte{0});
  auto address = reinterpret_cast<std::uintptr_t>(shadow.storage.data());
  address = round_up(address, tracked_alignment);
  shadow.bits = reinterpret_cast<std::byte*>(address);
  shadow.bytes = bytes;
  shadow.origins.clear();
}

Unwritten::Shadow& Unwritten::shadow_of(Warp& w) {
  Shadow& shadow = shadows_[w.frame];
  if (shadow.bytes != program_.functions[w.function].frame_bytes) renew(shadow, w.function);
  return shadow;
}

// Whatever had the frames before, nothing in them is unwritten.
void Unwritten::begin(const Warp& w) {
  const auto renew_frame = [&](const std::byte* frame, std::uint32_t function) {
    renew(shadows_[frame], function);
  };
  for_each_frame(w, renew_frame);
  for (const Group& group : w.groups) for_each_frame(group, renew_frame);
}

// The finding is the load's: there the kernel has to change.
void Unwritten::use(Warp& w, const MicroOp* op, Shadow& shadow, const TrackedOperand& operand,
                    unsigned lane) const {
  const auto known = shadow.origins.find(operand.slot);
  const Origin origin = known != shadow.origins.end() ? known->second[lane] : Origin{};
  set_bits(shadow.bits, operand, lane, 0);
  if (origin.op == nullptr) return;
  const TraceInstruction& user = program_.instructions[op->instruction].trace;
  block_.report(
      w, origin.op, lane, FindingKind::uninitialised_read,
      fmt::format("{} bytes at 0x{:x} in {} memory were not written before; line {} uses "
                  "them: {}",
                  origin.bytes, origin.address, to_string(origin.space), user.line, user.text));
}

void Unwritten::use_all(Warp& w, const MicroOp* op, Shadow& shadow,
                        std::span<const TrackedOperand> operands) const {
  for (const TrackedOperand& operand : operands) {
    for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (bits_of(shadow.bits, operand, lane) != 0) use(w, op, shadow, operand, lane);
    }
  }
}

void Unwritten::use_predicate(Warp& w, const MicroOp* op, Shadow& shadow) const {
  const TrackedOperand predicate{.slot = op->a};
  use_all(w, op, shadow, {&predicate, 1});
}

const MicroOp* Unwritten::run(Warp& w, const MicroOp* op) {
  constexpr unsigned steps_between_looks = 2048;
  for (unsigned steps = 1; op != nullptr; ++steps) {
    const std::byte* const frame = w.frame;
    op = step(w, op);
    if (w.frame != frame) forget(w, frame);
    if (steps % steps_between_looks != 0 || op == nullptr) continue;
    // The shadows of other warps count, too: they are not told apart.
    const bool clear = std::all_of(shadows_.begin(), shadows_.end(), [](const auto& one) {
      const Shadow& shadow = one.second;
      return std::all_of(shadow.bits, shadow.bits + shadow.bytes,
                         [](std::byte byte) { return byte == std::byte{0}; });
    });
    if (!clear) continue;
    w.tracked = false;
    return op;
  }
  return nullptr;
}

const MicroOp* Unwritten::step(Warp& w, const MicroOp* op) {
  if (is_flow(program_, op->run)) return op->run(w, op);
  Shadow& shadow = shadow_of(w);
  if (op->run == memory_ops::copy_lanes) return hand_over(w, op, shadow);
  const bool leaves = op->run == control::exit_lanes || op->run == control::return_lanes;
  if (op->run == control::guard || op->run == control::branch ||
      (leaves && (op->flags & control::flag_conditional) != 0))
    use_predicate(w, op, shadow);
  if (op->run == control::return_lanes) return come_back(w, op, shadow);
  if (leaves || op->run == control::guard || op->run == control::branch) return op->run(w, op);
  const TrackedInstruction& in = program_.tracked[op->instruction];
  const Operands operands = operands_of(in);
  if (in.rule == TrackRule::access) {
    // Micro-ops that find the address come before it, one that looks what it found comes behind.
    if (!is_memory(program_, op->run)) return op->run(w, op);
    return access(w, op, shadow, operands);
  }
  if (in.rule == TrackRule::call) return call(w, op, shadow);
  if (in.rule == TrackRule::route) {
    if (!lane_wise_.contains(op->run)) return op->run(w, op);
    if (route(w, op, shadow, in, operands)) return op->run(w, op);
  }
  if (operands.written.empty()) {
    use_all(w, op, shadow, operands.addresses);
    use_all(w, op, shadow, operands.read);
    return op->run(w, op);
  }
  return compute(w, op, shadow, in, operands);
}

// Results of everything but memory and calls.
const MicroOp* Unwritten::compute(Warp& w, const MicroOp* op, Shadow& shadow,
                                  const TrackedInstruction& in, const Operands& operands) const {
  use_all(w, op, shadow, operands.addresses);
  // An atomic uses what it is given.
  if (program_.instructions[op->instruction].trace.kind == AccessKind::atomic)
    use_all(w, op, shadow, operands.read);
  std::array<std::uint64_t, warp_size> bits{};
  std::array<Origin, warp_size> origins{};
  const Mask mask = w.mask;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const unsigned from = source_lane(w, in, operands.read, lane);
    for (const TrackedOperand& operand : operands.read) {
      if (bits_of(shadow.bits, operand, from) == 0) continue;
      const auto known = shadow.origins.find(operand.slot);
      if (known != shadow.origins.end()) origins[lane] = known->second[from];
      bits[lane] = ~std::uint64_t{0};
      break;
    }
    if (bits[lane] == 0) continue;
    bits[lane] = result_bits(w, shadow.bits, in, operands.read, from);
    const bool moves = in.rule == TrackRule::bitwise || from != lane;
    origins[lane].is_padding = origins[lane].is_padding && moves;
  }
  op = op->run(w, op);
  const bool all_lanes =
      in.rule == TrackRule::lanes &&
      std::any_of(bits.begin(), bits.end(), [](std::uint64_t of_lane) { return of_lane != 0; });
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    if (all_lanes && bits[lane] == 0) {
      origins[lane] = *std::find_if(origins.begin(), origins.end(),
                                    [](const Origin& origin) { return origin.op != nullptr; });
    }
    for (const TrackedOperand& operand : operands.written) {
      set_bits(shadow.bits, operand, lane, all_lanes ? ~std::uint64_t{0} : bits[lane]);
      if (all_lanes || bits[lane] != 0) shadow.origins[operand.slot][lane] = origins[lane];
    }
  }
  return op;
}

// The micro-op does to the unwritten bits what it does to the bits: it runs on the shadow, where
// the operands that choose are put for the time. False: these have unwritten bits themselves.
bool Unwritten::route(Warp& w, const MicroOp* op, Shadow& shadow, const TrackedInstruction& in,
                      const Operands& operands) const {
  const auto choosing = operands.read.subspan(in.routed);
  for (const TrackedOperand& operand : choosing) {
    bool overlaps = false;
    for (const TrackedOperand& d : operands.written) overlaps = overlaps || d.slot == operand.slot;
    if (overlaps) return false;
    for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
      if (bits_of(shadow.bits, operand, static_cast<unsigned>(std::countr_zero(rest))) != 0)
        return false;
    }
  }
  std::array<std::array<std::byte, 8 * warp_size>, 4> kept;
  for (std::size_t i = 0; i < choosing.size(); ++i) {
    const TrackedOperand& operand = choosing[i];
    if (operand.slot == TrackedOperand::unknown) continue;
    std::memcpy(kept[i].data(), shadow.bits + operand.slot, place_bytes(operand));
    std::memcpy(shadow.bits + operand.slot, w.frame + operand.slot, place_bytes(operand));
  }
  std::byte* const frame = w.frame;
  w.frame = shadow.bits;
  op->run(w, op);
  w.frame = frame;
  // Two may be one constant.
  for (std::size_t i = choosing.size(); i-- > 0;) {
    const TrackedOperand& operand = choosing[i];
    if (operand.slot == TrackedOperand::unknown) continue;
    std::memcpy(shadow.bits + operand.slot, kept[i].data(), place_bytes(operand));
  }
  for (const TrackedOperand& d : operands.written) {
    for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      if (bits_of(shadow.bits, d, lane) == 0) continue;
      for (const TrackedOperand& operand : operands.read) {
        const auto known = shadow.origins.find(operand.slot);
        if (known == shadow.origins.end() || known->second[lane].op == nullptr) continue;
        const Origin origin = known->second[lane];
        shadow.origins[d.slot][lane] = origin;
        break;
      }
    }
  }
  return true;
}

const MicroOp* Unwritten::access(Warp& w, const MicroOp* op, Shadow& shadow,
                                 const Operands& operands) {
  use_all(w, op, shadow, operands.addresses);
  const bool in_frame = op->kind == static_cast<std::uint8_t>(AddressKind::frame);
  const bool loads = !operands.written.empty();
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    for (const TrackedOperand& operand : operands.written)
      set_bits(shadow.bits, operand, static_cast<unsigned>(std::countr_zero(rest)), 0);
  }
  if (in_frame && loads) load_variable(w, op, shadow, operands);
  if (in_frame && !loads) store_variable(w, op, shadow);
  return op->run(w, op);
}

namespace {

// The elements of a load or a store: their places in the frame.
template <class Take>
void for_each_element(const MicroOp* op, bool loads, Take take) {
  const auto* details = static_cast<const VectorDetails*>(op->aux);
  for (unsigned i = 0; i < op->count; ++i) {
    TrackedOperand operand{.slot = loads ? op->d : op->b, .width = op->width};
    operand.uniform = (op->uniform & (loads ? uniform_d : uniform_b)) != 0;
    if (details != nullptr) {
      operand.slot = details->slots[i];
      operand.uniform = details->uniform[i] != 0;
    }
    if (operand.slot != VectorDetails::sink) take(operand, i * op->bytes);
  }
}

}  // namespace

void Unwritten::load(Warp& w, const MicroOp* op, const Access& x, const LaneShadows& shadows,
                     const LaneSpaces& spaces) {
  if (!w.tracked) begin(w);
  Shadow& shadow = shadow_of(w);
  const TrackedInstruction& in = program_.tracked[op->instruction];
  const auto written = operands_of(in).written;
  for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint8_t* const at = shadows[lane];
    if (at == nullptr) continue;
    // Padding lies behind what it fills up, within one word or vector.
    constexpr std::uint64_t word = 4;
    const std::uint32_t bytes = std::uint32_t{op->bytes} * op->count;
    const std::uint64_t before = bytes < word ? x.addresses[lane] % word : 0;
    const Origin origin{.op = op,
                        .address = x.addresses[lane],
                        .bytes = bytes,
                        .space = spaces[lane],
                        .is_padding = std::any_of(at - before, at + bytes,
                                                  [](std::uint8_t byte) { return byte != 0; })};
    for_each_element(op, true, [&](TrackedOperand operand, std::uint32_t offset) {
      const auto reg = std::find_if(written.begin(), written.end(), [&](const TrackedOperand& d) {
        return d.slot == operand.slot;
      });
      if (reg == written.end()) return;
      operand.width = reg->width;
      const std::uint64_t bits = missing_bits(at + offset, op->bytes);
      set_bits(shadow.bits, operand, lane, in.is_signed ? extend_bits(bits, op->bytes) : bits);
      if (op->bytes > 8) set_high_bits(shadow.bits, operand, lane, missing_bits(at + 8, 8));
      if (bits_of(shadow.bits, operand, lane) != 0) shadow.origins[operand.slot][lane] = origin;
    });
  }
}

void Unwritten::store(Warp& w, const MicroOp* op, const Access& x, const LaneShadows& shadows) {
  Shadow& shadow = shadow_of(w);
  const bool leaves = x.space != MemorySpace::shared && x.space != MemorySpace::local;
  for_each_element(op, false, [&](const TrackedOperand& operand, std::uint32_t offset) {
    for (Mask rest = x.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      std::uint64_t halves[2] = {};
      std::memcpy(
          halves,
          shadow.bits + operand.slot + (operand.uniform ? 0 : std::size_t{lane} * operand.width),
          op->bytes);
      if ((halves[0] | halves[1]) == 0) continue;
      const bool all =
          halves[0] == low_bits(op->bytes) && (op->bytes <= 8 || halves[1] == halves[0]);
      const auto known = shadow.origins.find(operand.slot);
      const bool is_padding = known != shadow.origins.end() && known->second[lane].is_padding;
      if (leaves && all && !is_padding) {
        use(w, op, shadow, operand, lane);
      } else if (shadows[lane] != nullptr) {
        for (std::uint32_t i = 0; i < op->bytes; ++i)
          shadows[lane][offset + i] = static_cast<std::uint8_t>(~(halves[i / 8] >> (8 * (i % 8))));
      }
    }
  });
}

// A variable of a call lies in the frame.
void Unwritten::load_variable(Warp& w, const MicroOp* op, Shadow& shadow,
                              const Operands& operands) const {
  const TrackedInstruction& in = program_.tracked[op->instruction];
  for_each_element(op, true, [&](TrackedOperand operand, std::uint32_t offset) {
    const auto place = static_cast<std::uint32_t>(op->c + op->imm + offset);
    for (const TrackedOperand& d : operands.written) {
      if (d.slot == operand.slot) operand = d;
    }
    // What was stored there may have been wider, or narrower.
    constexpr std::uint32_t widest = 16;
    const auto origin_of = [&](unsigned lane) {
      for (std::uint32_t at = place + op->bytes; at-- > place - std::min(place, widest - 1);) {
        const auto known = shadow.origins.find(at);
        if (known != shadow.origins.end() && known->second[lane].op != nullptr)
          return known->second[lane];
      }
      return Origin{};
    };
    for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      std::uint64_t bits = 0;
      std::memcpy(&bits, shadow.bits + place + std::size_t{lane} * op->join,
                  std::min<std::size_t>(op->bytes, sizeof bits));
      if (in.is_signed) bits = extend_bits(bits, op->bytes);
      set_bits(shadow.bits, operand, lane, bits);
      if (bits != 0) {
        const Origin origin = origin_of(lane);
        shadow.origins[operand.slot][lane] = origin;
      }
    }
  });
}

void Unwritten::store_variable(Warp& w, const MicroOp* op, Shadow& shadow) const {
  for_each_element(op, false, [&](const TrackedOperand& operand, std::uint32_t offset) {
    const auto place = static_cast<std::uint32_t>(op->c + op->imm + offset);
    for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(rest));
      const std::uint64_t bits = bits_of(shadow.bits, operand, lane);
      std::memcpy(shadow.bits + place + std::size_t{lane} * op->join, &bits,
                  std::min<std::size_t>(op->bytes, sizeof bits));
      if (bits == 0) continue;
      const Origin origin = shadow.origins[operand.slot][lane];
      shadow.origins[place][lane] = origin;
    }
  });
}

namespace {

// What a call copies between two frames, unwritten bits and where they come from.
template <class Shadow>
void copy_variable(const Shadow& from, const FrameVariable& source, Shadow& to,
                   const FrameVariable& target, Mask lanes) {
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    const std::size_t at = static_cast<std::size_t>(std::countr_zero(rest)) * target.bytes;
    std::memcpy(to.bits + target.offset + at, from.bits + source.offset + at, target.bytes);
  }
  for (std::uint32_t i = 0; i < target.bytes; ++i) {
    const auto known = from.origins.find(source.offset + i);
    if (known == from.origins.end()) continue;
    const auto origins = known->second;
    to.origins[target.offset + i] = origins;
  }
}

}  // namespace

// An argument, a parameter or a result in a register, before a call, in the function and behind it.
const MicroOp* Unwritten::hand_over(Warp& w, const MicroOp* op, Shadow& shadow) {
  std::byte* const frame = w.frame;
  w.frame = shadow.bits;
  op->run(w, op);
  w.frame = frame;
  const auto known = shadow.origins.find(op->a);
  if (known != shadow.origins.end()) {
    const Origins origins = known->second;
    Origins& to = shadow.origins[op->d];
    for (Mask rest = w.mask; rest != 0; rest &= rest - 1)
      to[static_cast<std::size_t>(std::countr_zero(rest))] =
          origins[static_cast<std::size_t>(std::countr_zero(rest))];
  }
  return op->run(w, op);
}

const MicroOp* Unwritten::call(Warp& w, const MicroOp* op, Shadow& shadow) {
  if (op->run == control::call_indirect) {
    const TrackedOperand target{
        .slot = op->a, .width = 8, .uniform = (op->uniform & uniform_a) != 0};
    use_all(w, op, shadow, {&target, 1});
  }
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  std::byte* const caller = w.frame;
  op = op->run(w, op);
  if (op == nullptr || w.frame == caller) return op;
  // References to shadows stay valid.
  Shadow& own = shadows_[w.frame];
  renew(own, w.function);
  const CodeFunction& callee = program_.functions[w.function];
  for (std::size_t i = 0; i < details.arguments.size(); ++i)
    copy_variable(shadow, details.arguments[i], own, callee.parameters[i], full_mask);
  return op;
}

// The lanes that return leave the results to the caller.
const MicroOp* Unwritten::come_back(Warp& w, const MicroOp* op, const Shadow& shadow) {
  const Meeting* call = w.meeting;
  while (call->callee_frame == nullptr) call = call->outer;
  const auto& details = *static_cast<const CallDetails*>(program_.code[call->pc - 1].aux);
  const CodeFunction& callee = program_.functions[w.function];
  Shadow& caller = shadows_[call->frame];
  const std::byte* const frame = w.frame;
  const Mask before = w.mask;
  op = op->run(w, op);
  const Mask gone = w.frame == frame ? before & ~w.mask : before;
  for (std::size_t i = 0; i < details.results.size(); ++i)
    copy_variable(shadow, callee.results[i], caller, details.results[i], gone);
  return op;
}

// Lanes of another frame run now. Where no lane is in this one any more, it has no registers.
void Unwritten::forget(const Warp& w, const std::byte* frame) {
  bool in_use = false;
  const auto look = [&](const std::byte* one, std::uint32_t) { in_use = in_use || one == frame; };
  for_each_frame(w, look);
  for (const Group& group : w.groups) for_each_frame(group, look);
  if (!in_use) shadows_.erase(frame);
}

}  // namespace demarc::emulate
