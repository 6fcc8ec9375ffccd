// Turns the trace of one kernel after the other into runs.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "demarc/emulate/trace.hpp"
#include "follow/emulated.hpp"

namespace demarc::locality {

// Instructions whose places are texels, where the launch has textures or surfaces that a card keeps
// in an order of its own: line and text.
using TexelAccesses = std::set<std::pair<std::uint32_t, std::string>>;
[[nodiscard]] TexelAccesses texel_accesses(const ptx::Module& module, const gpu::Launch& launch);

class RunCollector final : public emulate::TraceSink {
 public:
  // What counts in `effort`: trace_words and max_runs_of_block.
  RunCollector(const std::vector<std::size_t>& wanted, const std::vector<Access>& accesses,
               const Effort& effort, TexelAccesses texels)
      : wanted_(wanted),
        known_(accesses),
        words_left_(effort.trace_words),
        max_runs_of_block_(effort.max_runs_of_block),
        texels_(std::move(texels)) {}

  [[nodiscard]] bool wants_instructions() const override { return false; }
  Result<void> begin_kernel(const emulate::TraceHeader& header) override;
  Result<void> consume(const emulate::TraceChunk& chunk) override;
  Result<void> end_kernel() override;

  // Events of a chunk; consume() calls them.
  void run(const emulate::RunEvent&) {}
  void access(const emulate::AccessEvent& event);

  // A block has made more runs than may be kept, and nothing is kept from then on.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  [[nodiscard]] std::size_t kept_runs() const { return current_.runs.runs.size(); }
  [[nodiscard]] EmulatedRuns take() { return std::move(best_); }

 private:
  // The access of a traced instruction; one not met before (in a called function) is added.
  std::uint16_t number_of(std::uint32_t instruction);
  // Runs that continue each other over warps become one.
  void join();

  const std::vector<std::size_t>& wanted_;
  const std::vector<Access>& known_;
  std::uint64_t words_left_;
  std::uint64_t max_runs_of_block_;
  TexelAccesses texels_;
  std::vector<emulate::TraceInstruction> header_instructions_;
  std::vector<std::uint16_t> access_of_;
  std::size_t next_kernel_ = 0;
  bool collecting_ = false;
  bool open_block_ = false;
  bool too_many_ = false;
  bool any_ = false;
  bool gave_up_ = false;
  std::uint32_t block_ = 0;
  std::uint32_t warp_ = 0;
  std::uint32_t warps_ = 0;
  std::size_t first_run_ = 0;
  std::vector<std::uint32_t> steps_;
  std::vector<std::uint32_t> requests_;
  std::uint64_t loads_ = 0;
  std::uint64_t best_loads_ = 0;
  EmulatedRuns current_;
  EmulatedRuns best_;
};

}  // namespace demarc::locality
