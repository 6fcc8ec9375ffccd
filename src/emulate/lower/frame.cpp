// Hands out the places of a frame.
#include "lower/frame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "demarc/base/rounding.hpp"
#include "lower/uniform.hpp"

namespace demarc::emulate {

namespace {

constexpr std::uint32_t uniform_bytes = 8;
constexpr std::uint32_t vector_alignment = 64;  // vector loops load whole cache lines

std::uint32_t bytes_in_frame(const Register& reg) {
  if (reg.width == 0) return sizeof(Mask);
  return reg.uniform ? uniform_bytes : reg.width * warp_size;
}

}  // namespace

Frame::Frame(const ptx::Module& module, const ptx::Function& function, const ptx::Cfg& cfg,
             const CodeFunction& code, Refusals& refusals)
    : function_(function), used_(code.frame_bytes) {
  place_registers(module, cfg);
  place_variables(refusals);
}

void Frame::place_registers(const ptx::Module& module, const ptx::Cfg& cfg) {
  const UniformRegisters facts = find_uniform_registers(module, function_, cfg);
  registers_.reserve(function_.body.register_count);
  for (const ptx::RegisterRange& range : function_.body.registers) {
    const std::uint8_t width = width_of(range.type);
    for (std::uint32_t number = range.first; number < range.first + range.count; ++number) {
      const bool is_uniform = width <= uniform_bytes && facts.uniform[number];
      registers_.push_back(width == 0 ? predicate() : is_uniform ? uniform(width) : vector(width));
      if (registers_.back().uniform) uniforms_.push_back(registers_.back().slot.offset);
      if (facts.zeroed[number])
        zeroed_.push_back({registers_.back().slot.offset, bytes_in_frame(registers_.back())});
    }
  }
}

void Frame::place_local(const ptx::Variable& variable, Refusals& refusals) {
  const std::uint64_t bytes = variable.byte_size();
  if (local_offset(variable) ||
      !refusals.fits(variable,
                     {.bytes = local_bytes_ + bytes, .most = max_local_bytes, .memory = "local"}))
    return;
  local_bytes_ = round_up(local_bytes_, std::max(variable.alignment(), 1U));
  local_offset_[&variable] = local_bytes_;
  local_bytes_ += static_cast<std::uint32_t>(bytes);
}

void Frame::place_variables(Refusals& refusals) {
  // Parameters and results of a function whose addresses it takes lie in local memory.
  for (const ptx::Operand& operand : function_.body.operands) {
    if (operand.kind != ptx::OperandKind::symbol || function_.is_entry) continue;
    if (operand.base == ptx::Base::parameter)
      place_local(function_.parameters[operand.index], refusals);
    if (operand.base == ptx::Base::result) place_local(function_.results[operand.index], refusals);
  }
  for (const ptx::Variable& variable : function_.body.variables) {
    const std::uint64_t bytes = variable.byte_size();
    if (variable.space == ptx::StateSpace::local) {
      place_local(variable, refusals);
    } else if (variable.space == ptx::StateSpace::param) {
      if (!refusals.fits(variable,
                         {.bytes = bytes, .most = max_parameter_bytes, .memory = "parameter"}))
        continue;
      const std::uint32_t of_lane =
          round_up(static_cast<std::uint32_t>(std::max<std::uint64_t>(bytes, 1)), call_pitch);
      parameter_variables_[&variable] = {lanes(of_lane).offset, of_lane,
                                         static_cast<std::uint32_t>(bytes), variable.alignment()};
    }
  }
}

std::optional<FrameVariable> Frame::parameter_variable(const ptx::Variable& variable) const {
  const auto at = parameter_variables_.find(&variable);
  if (at == parameter_variables_.end()) return std::nullopt;
  return at->second;
}

std::optional<std::uint32_t> Frame::local_offset(const ptx::Variable& variable) const {
  const auto at = local_offset_.find(&variable);
  if (at == local_offset_.end()) return std::nullopt;
  return at->second;
}

Register Frame::predicate() {
  return {.slot = take(sizeof(Mask), alignof(Mask))};
}

Register Frame::uniform(std::uint8_t width) {
  return {.slot = take(uniform_bytes, uniform_bytes), .width = width, .uniform = true};
}

Register Frame::vector(std::uint8_t width) {
  return {.slot = lanes(width), .width = width};
}

Slot Frame::lanes(std::uint32_t bytes) {
  return take(bytes * warp_size, vector_alignment);
}

Source Frame::constant(ptx::Type type, std::uint64_t bits) {
  const bool is_predicate = type == ptx::Type::pred;
  if (is_predicate) bits = bits != 0 ? full_mask : 0;
  auto at = constants_.find(bits);
  if (at == constants_.end())
    at = constants_.emplace(bits, take(uniform_bytes, uniform_bytes)).first;
  if (is_predicate) return {.slot = at->second};
  const std::uint8_t width = std::max<std::uint8_t>(width_of(type), 1);
  return {.slot = at->second, .width = width, .uniform = true};
}

Slot Frame::take(std::uint32_t bytes, std::uint32_t alignment) {
  if (used_ > max_frame_bytes || bytes > max_frame_bytes) {
    full_ = true;
    return {};
  }
  const Slot slot{round_up(used_, alignment)};
  used_ = slot.offset + bytes;
  return slot;
}

void Frame::finish(CodeFunction& code, Refusals& refusals) const {
  code.frame_bytes = round_up(used_, vector_alignment);
  code.local_bytes = local_bytes_;
  code.zeroed = zeroed_;
  code.uniforms = uniforms_;
  for (const auto& [value, slot] : constants_) code.constants.push_back({slot.offset, value});
  if (!full_) return;
  refusals.add(function_, fmt::format("registers and parameters of more than {} bytes per warp",
                                      max_frame_bytes));
}

}  // namespace demarc::emulate
