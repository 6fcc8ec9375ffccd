// Describes where everything waits when nothing can happen any more.
#include "system.hpp"

namespace demarc::sim::translation {

std::string System::describe_queues() const {
  const Cycles now = common_.events.now();
  const TranslationPath::State& translation = translation_.state;
  const Migration::State& migration = migration_.state;
  const Migration::Move& move = migration.move;
  std::string text = fmt::format(
      "IOMMU: {} queued, {} walking; links busy for {} more cycles, {} messages on the way\n",
      translation.iommu.queued(), translation.iommu.busy(), links_.network.backlog(now),
      links_.messages.taken());
  text += fmt::format("page moves: {} queued, {}\n", migration.queue.size(),
                      move.active ? fmt::format("page {} from GPU {} to GPU {}: {} ({} GPUs not "
                                                "drained, {} pieces not here)",
                                                move.page, move.from, move.to, move.phase,
                                                move.undrained, move.pieces)
                                  : std::string("none under way"));
  for (const auto& [page, gpus] : translation.waiting_for_move)
    text += fmt::format("page {}: {} GPUs wait for it to arrive\n", page, gpus.size());
  for (const GpuIndex g : translation.gpus.keys()) {
    const TranslationPath::Gpu& gpu = translation.gpus[g];
    const DataPath::Gpu& data = data_.state.gpus[g];
    const Compute::Dispatcher& dispatcher = compute_.state.dispatchers[g];
    text += fmt::format("GPU[{}].L2TLB: {} queued, {} pages pending, blocked {}\n", g,
                        gpu.queue.size(), gpu.tlb.pending(), gpu.tlb_blocked);
    text +=
        fmt::format("GPU[{}].GMMU: {} queued, {} walking\n", g, gpu.gmmu.queued(), gpu.gmmu.busy());
    text += fmt::format("GPU[{}].L2: {} misses under way\n", g, data.memory.misses_under_way(now));
    text += fmt::format("GPU[{}].RDMA: {} remote accesses in flight, {} held back\n", g,
                        data.remote_in_flight, data.held.size());
    text += fmt::format("GPU[{}].dispatcher: group {}, stalled {}, paused {}, {} events deferred\n",
                        g, dispatcher.next_group, dispatcher.stalled, migration.gpus[g].paused,
                        migration.gpus[g].deferred.size());
  }
  return text + describe_waves();
}

std::string System::describe_waves() const {
  std::string text;
  for (const CuIndex c : compute_.state.cus.keys()) {
    const Compute::Cu& cu = compute_.state.cus[c];
    const TranslationPath::Cu& translation = translation_.state.cus[c];
    if (cu.waves == 0 && translation.queue.empty()) continue;
    text += fmt::format(
        "GPU[{}].CU[{}]: {} waves, {} lines in flight, {} accesses before the TLB, {} pages "
        "pending, {} waves waiting to issue, {} lines waiting for a miss register\n",
        cu.gpu, c.raw() % common_.settings.cus, cu.waves, cu.lines_in_flight,
        translation.queue.size(), translation.tlb.pending(), cu.waiting_waves.size(),
        data_.state.cus[c].l1_waiting.size());
  }
  for (const Compute::Group& group : compute_.state.groups) {
    if (group.at_barrier.empty()) continue;
    const Compute::Wave& wave = compute_.state.waves[group.at_barrier.front()];
    text += fmt::format("work-group {} of kernel {}: {} of {} waves stand at a barrier\n",
                        wave.at.group, wave.at.kernel, group.at_barrier.size(), group.waves);
  }
  return text;
}

}  // namespace demarc::sim::translation
