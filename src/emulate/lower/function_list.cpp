// Numbers the functions of a program, and lays out their parameters.
#include "lower/function_list.hpp"

#include <algorithm>

#include "demarc/base/rounding.hpp"
#include "lower/slots.hpp"

namespace demarc::emulate {

const ptx::Function* definition_of(const ptx::Module& module, std::uint32_t index) {
  const ptx::Function& named = module.functions[index];
  if (named.has_body) return &named;
  return named.definition == ptx::no_index ? nullptr : &module.functions[named.definition];
}

std::uint32_t FunctionList::index_of(const ptx::Function& function) {
  const auto at = std::find(list_.begin(), list_.end(), &function);
  if (at != list_.end()) return static_cast<std::uint32_t>(at - list_.begin());
  list_.push_back(&function);
  program_.functions.push_back(begin(function));
  return size() - 1;
}

CodeFunction FunctionList::begin(const ptx::Function& function) {
  CodeFunction code;
  code.name = std::string(function.name);
  if (function.is_entry) return code;
  const auto place = [&](const ptx::Variable& variable) {
    const std::uint64_t before = code.frame_bytes / warp_size;
    const bool fits = refusals_.fits(variable, {.bytes = before + variable.byte_size(),
                                                .most = max_parameter_bytes,
                                                .memory = "parameter"});
    const auto bytes = static_cast<std::uint32_t>(fits ? variable.byte_size() : 0);
    const FrameVariable placed{code.frame_bytes, round_up(bytes, call_pitch), bytes,
                               variable.alignment()};
    code.frame_bytes += placed.bytes * warp_size;
    return placed;
  };
  for (const ptx::Variable& variable : function.parameters)
    code.parameters.push_back(place(variable));
  for (const ptx::Variable& variable : function.results) code.results.push_back(place(variable));
  return code;
}

}  // namespace demarc::emulate
