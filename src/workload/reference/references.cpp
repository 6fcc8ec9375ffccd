// Finds the reference of a bundled kernel by name, and the buffers of its call.
#include "references.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace demarc::workload {
namespace {

constexpr std::pair<std::string_view, Reference> reference_table[] = {
#define DEMARC_REFERENCE(name) {#name, name##_reference},
#include "reference_list.inc"
#undef DEMARC_REFERENCE
};

}  // namespace

Reference find_reference(std::string_view name) {
  for (const auto& [known, reference] : reference_table) {
    if (known == name) return reference;
  }
  return nullptr;
}

std::size_t ReferenceCall::parameter(std::string_view name) const {
  return static_cast<std::size_t>(launch_.parameters.at(std::string(name)));
}

std::span<std::byte> ReferenceCall::bytes_of(std::string_view name) const {
  const auto& buffers = launch_.buffers;
  const auto it = std::find_if(buffers.begin(), buffers.end(),
                               [&](const gpu::Buffer& buffer) { return buffer.name == name; });
  if (it == buffers.end()) throw std::out_of_range("no buffer " + std::string(name));
  return memory_.at(static_cast<std::size_t>(it - buffers.begin()));
}

}  // namespace demarc::workload
