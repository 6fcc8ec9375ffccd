// A kernel whose blocks hold their SM and note when, and its launches.
#pragma once

#include <optional>

#include "demarc/card/card.hpp"
#include "demarc/partition/partition.hpp"
#include "demarc/study/block_runs.hpp"

namespace demarc::study {

// What RunKernel says, with the mask it is launched with.
struct PlannedKernel {
  RunKernel kernel;
  std::optional<gpu::TpcSet> tpcs;  // nothing: no mask
};

class BlockTimer {
 public:
  static Result<BlockTimer> make(const cuda::CardPointer& card);

  // Launches the kernels in order, each with its mask, into the streams they name (made here),
  // behind a gate that opens once all are enqueued, and waits.
  [[nodiscard]] Result<BlockRun> run(std::string name, std::vector<PlannedKernel> kernels) const;

  [[nodiscard]] const cuda::CardPointer& card() const { return card_; }

 private:
  BlockTimer(cuda::CardPointer card, cuda::Module module, cuda::Function hold)
      : card_(std::move(card)), module_(std::move(module)), hold_(std::move(hold)) {}
  cuda::CardPointer card_;
  cuda::Module module_;
  cuda::Function hold_;
};

}  // namespace demarc::study
