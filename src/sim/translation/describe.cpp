// Describes where everything waits when nothing can happen any more.
#include "system.hpp"

namespace demarc::sim::translation {

std::string System::describe_queues() const {
  std::string text = fmt::format(
      "IOMMU: {} queued, {} walking; links busy for {} more cycles, {} messages on the way\n",
      iommu_.queued(), iommu_.busy(), network_.backlog(now()), messages_.taken());
  text += fmt::format("page moves: {} queued, {}\n", move_queue_.size(),
                      move_.active ? fmt::format("page {} from GPU {} to GPU {}: {} ({} GPUs not "
                                                 "drained, {} pieces not here)",
                                                 move_.page, move_.from, move_.to, move_.phase,
                                                 move_.undrained, move_.pieces)
                                   : std::string("none under way"));
  for (const auto& [page, gpus] : waiting_for_move_)
    text += fmt::format("page {}: {} GPUs wait for it to arrive\n", page, gpus.size());
  for (const GpuIndex g : gpus_.keys()) {
    const Gpu& gpu = gpus_[g];
    text += fmt::format("GPU[{}].L2TLB: {} queued, {} pages pending, blocked {}\n", g,
                        gpu.queue.size(), gpu.tlb.pending(), gpu.tlb_blocked);
    text +=
        fmt::format("GPU[{}].GMMU: {} queued, {} walking\n", g, gpu.gmmu.queued(), gpu.gmmu.busy());
    text += fmt::format("GPU[{}].L2: {} misses under way\n", g, gpu.memory.misses_under_way(now()));
    text += fmt::format("GPU[{}].RDMA: {} remote accesses in flight, {} held back\n", g,
                        gpu.remote_in_flight, gpu.held.size());
    text += fmt::format("GPU[{}].dispatcher: group {}, stalled {}, paused {}, {} events deferred\n",
                        g, gpu.next_group, gpu.dispatch_stalled, gpu.paused, gpu.deferred.size());
  }
  return text + describe_waves();
}

std::string System::describe_waves() const {
  std::string text;
  for (const CuIndex c : cus_.keys()) {
    const Cu& cu = cus_[c];
    if (cu.waves == 0 && cu.queue.empty()) continue;
    text += fmt::format(
        "GPU[{}].CU[{}]: {} waves, {} lines in flight, {} accesses before the TLB, {} pages "
        "pending, {} waves waiting to issue, {} lines waiting for a miss register\n",
        cu.gpu, c.raw() % settings_.cus, cu.waves, cu.lines_in_flight, cu.queue.size(),
        cu.tlb.pending(), cu.waiting_waves.size(), cu.l1_waiting.size());
  }
  for (const Group& group : groups_) {
    if (group.at_barrier.empty()) continue;
    const Wave& wave = waves_[group.at_barrier.front()];
    text += fmt::format("work-group {} of kernel {}: {} of {} waves stand at a barrier\n",
                        wave.at.group, wave.at.kernel, group.at_barrier.size(), group.waves);
  }
  return text;
}

}  // namespace demarc::sim::translation
