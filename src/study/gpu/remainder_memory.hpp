// Memory of a card whose colours are remainders (an H200): an arena whose pages have been measured,
// and the memory of one colour in it.
#pragma once

#include <memory>
#include <vector>

#include "demarc/cuda/page_arena.hpp"
#include "demarc/gpu/remainder_coloring.hpp"
#include "demarc/gpu/topology.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

// Pages in an order in which their numbers go on from one to the next. Shared by the lanes of a
// stage.
class RemainderArena {
 public:
  // Takes `pages` pages, finds what each adds to the numbers of its chunks, and cuts the remainders
  // into `parts` colours: the slices of one L2 side each, or of one memory stack. Needs the L2 side
  // of each TPC.
  static Result<std::shared_ptr<RemainderArena>> make(const cuda::GpuPointer& gpu,
                                                      const gpu::Topology& topology,
                                                      std::uint32_t pages, std::uint32_t parts);

  [[nodiscard]] std::uint64_t address() const { return arena_->address(); }
  [[nodiscard]] const gpu::RemainderColoring& coloring() const { return *coloring_; }
  [[nodiscard]] const cuda::GpuPointer& gpu() const { return gpu_; }
  // On the card: RemainderColoring::pages().
  [[nodiscard]] std::uint64_t pages_address() const { return pages_->address(); }
  [[nodiscard]] const std::string& account() const { return account_; }

 private:
  RemainderArena() = default;
  cuda::GpuPointer gpu_;
  std::unique_ptr<cuda::PageArena> arena_;
  std::unique_ptr<gpu::RemainderColoring> coloring_;
  std::unique_ptr<cuda::DeviceBuffer> pages_;
  std::string account_;
};

[[nodiscard]] Result<std::shared_ptr<MemorySource>> make_remainder_memory(
    std::shared_ptr<RemainderArena> arena, std::uint32_t color);

}  // namespace demarc::study
