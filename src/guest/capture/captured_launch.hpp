// A launch of a running program as it is taken out of it: what its memory held before and after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/launch/launch.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::cuda {

// An allocation that the launch has an address in.
struct CapturedMemory {
  std::uint64_t address = 0;
  bool host = false;  // host memory that the card maps
  std::vector<std::byte> before;
  std::vector<std::byte> after;
};

// A variable of the module, by its name there.
struct CapturedVariable {
  std::string name;
  std::vector<std::byte> before;
};

struct CapturedLaunch {
  std::shared_ptr<const ptx::Module> module;
  std::string kernel;
  gpu::Dim3 grid;
  gpu::Dim3 block;
  std::optional<gpu::Dim3> cluster;  // where the launch says it
  std::uint32_t shared_bytes = 0;
  std::vector<std::vector<std::byte>> arguments;  // bytes of each parameter
  std::vector<CapturedMemory> memory;             // ascending, no two overlap
  std::vector<CapturedVariable> variables;
};

// Words of `bytes` at multiples of eight: where an address would lie.
template <class Take>
void for_each_word(const std::vector<std::byte>& bytes, Take take);

// missing_capability that names the first instruction of the kernel, or of functions where it calls
// any, that takes the handle of a texture or a surface, or a tensor map: what these stand for the
// driver alone knows.
[[nodiscard]] Result<void> refuse_opaque_arguments(const ptx::Module& module,
                                                   const ptx::Function& kernel);

// Writes launch.json, module.ptx and the contents of the buffers into `folder`, which is there and
// empty. Memory that the launch changed is an output, checked against what it became: exactly, or
// where the kernel stores numbers of one floating type alone and calls nothing within 1e-3 (f16),
// 1e-5 (f32) or 1e-12 (f64) of each.
[[nodiscard]] Result<void> write_captured(const CapturedLaunch& captured,
                                          const std::filesystem::path& folder);

template <class Take>
void for_each_word(const std::vector<std::byte>& bytes, Take take) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size();
       at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    take(word);
  }
}

}  // namespace demarc::cuda
