// Says which neighbours a lane can take, by default and from a card's description.
#include "demarc/study/neighbour_means.hpp"

#include "attack/slice_lines.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {
namespace {

// Compute capability, shared memory, rows and slices; an error in its place leaves them unknown.
NeighbourMeans described_means(const Result<gpu::Device>& description, const Mode& mode) {
  NeighbourMeans means;
  if (!description) {
    means.lacking[Need::one_slice] = description.error().message;
    return means;
  }
  const gpu::Device& card = *description;
  means.target = card.compute_capability.number();
  if (card.sm.shared_block_bytes != 0) means.shared_bytes = card.sm.shared_block_bytes;
  if (card.memory_system) means.row_bytes = std::uint64_t{1} << card.memory_system->row_shift;
  if (mode.color) {
    means.lacking[Need::one_slice] =
        "under colours a lane's addresses differ from the card's, so the lines of one L2 slice are "
        "unknown";
    return means;
  }
  auto lines = one_slice_lines(card);
  if (lines) {
    means.slice_lines = std::move(*lines);
  } else {
    means.lacking[Need::one_slice] = lines.error().message;
  }
  return means;
}

}  // namespace

Result<NeighbourMeans> Executor::neighbour_means(const Mode& mode, std::uint32_t /*parts*/) const {
  NeighbourMeans means = described_means(description(), mode);
  const std::string device = context().device;
  means.lacking[Need::host_memory] = fmt::format("{} gives neighbours no host memory", device);
  means.lacking[Need::copy_engines] =
      fmt::format("{} gives neighbours no copies by the copy engines", device);
  return means;
}

}  // namespace demarc::study
