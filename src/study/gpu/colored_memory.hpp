// An arena whose chunks all have known colours, and the memory of one colour in it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "demarc/cuda/probe_kernels.hpp"
#include "demarc/gpu/address_map.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

// Pages of equal constants, one after the other in virtual addresses, so that position in the arena
// alone decides the colour. Shared by the lanes of a stage.
class ColoredArena {
 public:
  // Takes `pages` pages, finds their constants, keeps those that agree with the most common one.
  static Result<std::shared_ptr<ColoredArena>> make(const cuda::GpuPointer& gpu,
                                                    const cuda::ProbeKernels& kernels,
                                                    const std::vector<std::uint64_t>& masks,
                                                    std::uint32_t pages);

  [[nodiscard]] std::uint64_t address() const { return range_->address(); }
  // Bytes of one colour.
  [[nodiscard]] std::uint64_t color_bytes() const;
  [[nodiscard]] const gpu::Coloring& coloring() const { return *coloring_; }
  [[nodiscard]] std::uint32_t constant() const { return constant_; }
  [[nodiscard]] const cuda::GpuPointer& gpu() const { return gpu_; }
  [[nodiscard]] const std::string& account() const { return account_; }

 private:
  ColoredArena() = default;
  Result<void> map_pages(const std::vector<std::size_t>& chosen);
  Result<std::map<std::uint32_t, std::vector<std::size_t>>> pages_by_constant(
      const cuda::ProbeKernels& kernels, std::uint32_t pages) const;

  cuda::GpuPointer gpu_;
  std::vector<cuda::PhysicalMemory> pages_;
  std::unique_ptr<cuda::AddressRange> range_;
  std::unique_ptr<gpu::Coloring> coloring_;
  std::uint32_t constant_ = 0;
  std::string account_;
};

[[nodiscard]] Result<std::shared_ptr<MemorySource>> make_colored_memory(
    std::shared_ptr<ColoredArena> arena, std::uint32_t color);

}  // namespace demarc::study
