// What the parts of a study have of coloured memory: one pool for all modes, a colour for each
// part, and for the victim the stream whose launches feel the other colours least.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/card/backend.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

inline constexpr std::uint64_t arena_page_bytes = std::uint64_t{2} << 20U;

class ColoredParts {
 public:
  // `options` outlive this object.
  explicit ColoredParts(const GpuExecutorOptions& options) : options_(options) {}

  [[nodiscard]] bool filled() const { return pool_ != nullptr; }
  // What a part will have: of the pages taken nearly all where colours are remainders, of others
  // about half, those of one constant.
  [[nodiscard]] Result<std::uint64_t> bytes_of_part(const cuda::Gpu& gpu,
                                                    std::uint32_t parts) const;
  // Takes the memory and finds its colours, once a study.
  [[nodiscard]] Result<void> fill(const cuda::CardPointer& card, std::uint32_t parts);

  // The rest is of a pool that is filled.
  struct Victim {
    std::unique_ptr<cuda::PartitionStream> lane;
    std::string account;  // what its launches feel
  };
  // Of several lanes of the first partition the one whose launches feel the others' memory least.
  // The first call chooses the victim's colour too, unless the options name one.
  [[nodiscard]] Result<Victim> open_victim(const cuda::CardPointer& card, cuda::Backend& back_end,
                                           const std::vector<partition::Partition>& partitions);
  [[nodiscard]] Result<std::shared_ptr<MemorySource>> memory_of(std::uint32_t part,
                                                                std::uint32_t parts) const;
  [[nodiscard]] std::string account() const { return pool_->colors().account(); }

 private:
  [[nodiscard]] Result<color::ColorScheme> scheme_for(const cuda::Gpu& gpu,
                                                      std::uint32_t parts) const;
  // For all parts together.
  [[nodiscard]] std::uint64_t pages_to_take(const color::ColorScheme& scheme,
                                            std::uint32_t parts) const;
  [[nodiscard]] Result<std::vector<std::uint32_t>> colors_of(std::uint32_t parts) const;

  const GpuExecutorOptions& options_;
  std::shared_ptr<cuda::ColoredPool> pool_;
  std::optional<std::uint32_t> quiet_color_;  // colour of the victim
};

}  // namespace demarc::study
