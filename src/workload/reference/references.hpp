// CPU references of the bundled kernels, written for being right and readable, not for speed. A new
// one: a function in a file of this folder, a declaration in reference_list.inc, and its name in a
// launch file's "check".
#pragma once

#include <span>
#include <string_view>

#include "demarc/launch/launch.hpp"

namespace demarc::workload {

// The launch and its buffers by name. A name that the launch file lacks is a bug of ours:
// std::out_of_range.
class ReferenceCall {
 public:
  ReferenceCall(const gpu::Launch& launch, gpu::Memory& memory)
      : launch_(launch), memory_(memory) {}

  [[nodiscard]] std::size_t parameter(std::string_view name) const;

  // The whole elements of a buffer.
  template <class T>
  [[nodiscard]] std::span<T> buffer(std::string_view name) const {
    const std::span<std::byte> bytes = bytes_of(name);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  [[nodiscard]] std::span<float> floats(std::string_view name) const { return buffer<float>(name); }
  [[nodiscard]] std::span<std::uint32_t> words(std::string_view name) const {
    return buffer<std::uint32_t>(name);
  }

 private:
  [[nodiscard]] std::span<std::byte> bytes_of(std::string_view name) const;

  const gpu::Launch& launch_;
  gpu::Memory& memory_;
};

using Reference = void (*)(const ReferenceCall&);

// nullptr for an unknown name.
[[nodiscard]] Reference find_reference(std::string_view name);

#define DEMARC_REFERENCE(name) void name##_reference(const ReferenceCall& call);
#include "reference_list.inc"
#undef DEMARC_REFERENCE

}  // namespace demarc::workload
