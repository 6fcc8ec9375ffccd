// Computes what a block takes of an SM, and sets up the room that SMs have.
#include "pipeline/sm_room.hpp"
#include "demarc/base/rounding.hpp"

namespace demarc::sim {

BlockNeed block_need(const PipelineKernel& kernel, const gpu::SmLimits& limits) {
  constexpr std::uint32_t warp = 32;
  const std::uint32_t threads = round_up(std::max(kernel.threads, 1U), warp);
  return {threads, threads * kernel.registers_per_thread,
          kernel.shared_bytes + (kernel.shared_bytes > 0 ? limits.shared_reserved_bytes : 0)};
}

SmRoom::SmRoom(const PipelineSpec& spec)
    : limits_(spec.sm),
      shared_(spec.sm.shared_bytes),
      tpc_threads_(spec.topology.tpcs.size()),
      tpc_of_(spec.topology.sm_count()),
      use_(spec.topology.sm_count()) {
  for (const gpu::Tpc& tpc : spec.topology.tpcs) {
    for (const SmIndex sm : tpc.sms) tpc_of_[sm] = tpcs_.next_key();
    tpcs_.push_back(tpc.sms);
  }
}

}  // namespace demarc::sim
