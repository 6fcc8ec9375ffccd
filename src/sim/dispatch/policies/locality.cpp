// Blocks that share data go to one SM (the idea of PAVER, Tripathy et al. 2021). With a locality
// map: the SM on which the blocks placed so far share most with this one, the emptiest among
// equals. Without: block i belongs to group i / blocks_per_group, a group starts on the emptiest SM
// and stays there while its blocks fit; when one does not, the group moves to the emptiest SM.
#include <algorithm>
#include <map>

#include "dispatch/policies/fullest_share.hpp"
#include "dispatch/policies/scored.hpp"

namespace demarc::sim {
namespace {

class Locality final : public ScoredPolicy {
 public:
  explicit Locality(const PolicySettings& settings)
      : blocks_per_group_(settings.blocks_per_group), sharing_(settings.sharing) {}

  SmIndex choose(const Machine& machine, const BlockRequest& block) override {
    if (const BlockSharing* sharing = sharing_of(block.kernel)) {
      return beside_shares(machine, block, *sharing);
    }
    const std::uint32_t group = block.block.raw() / group_size(machine, block);
    const bool same = block.kernel == kernel_ && group == group_ && home_ != no_sm;
    if (same && machine.fits(home_, block)) return home_;
    const SmIndex sm = ScoredPolicy::choose(machine, block);
    if (sm == no_sm) return no_sm;
    kernel_ = block.kernel;
    group_ = group;
    home_ = sm;
    return sm;
  }

  std::size_t choose_many(Machine& machine, BlockRequest block, std::span<SmIndex> out) override {
    // One by one, past what ScoredPolicy does with a run of equal blocks.
    // NOLINTNEXTLINE(bugprone-parent-virtual-call)
    return DispatchPolicy::choose_many(machine, block, out);
  }

 protected:
  float score(const Machine& machine, SmIndex sm, const BlockRequest& block) const override {
    return fullest_share(machine, sm, block);
  }

 private:
  [[nodiscard]] const BlockSharing* sharing_of(KernelIndex kernel) const {
    return kernel < sharing_.next_key() ? sharing_[kernel] : nullptr;
  }

  SmIndex beside_shares(const Machine& machine, const BlockRequest& block,
                        const BlockSharing& sharing) {
    // Blocks of one kernel at a time are placed, in index order.
    if (kernel_ != block.kernel || block.block < homes_.next_key()) homes_.clear();
    kernel_ = block.kernel;
    shared_.clear();
    for (const BlockSharing::Earlier& earlier : sharing.earlier(block.block)) {
      if (earlier.block < homes_.next_key()) shared_[homes_[earlier.block]] += earlier.amount;
    }
    SmIndex best = no_sm;
    std::uint64_t most = 0;
    float lowest = 0;
    for (const auto& [sm, amount] : shared_) {
      if (amount < std::max<std::uint64_t>(most, 1) || !machine.fits(sm, block)) continue;
      const float share = fullest_share(machine, sm, block);
      if (amount == most && share >= lowest) continue;
      best = sm;
      most = amount;
      lowest = share;
    }
    if (best == no_sm) best = ScoredPolicy::choose(machine, block);
    if (best != no_sm) homes_.push_back(best);
    return best;
  }

  [[nodiscard]] std::uint32_t group_size(const Machine& machine, const BlockRequest& block) const {
    if (blocks_per_group_ != 0) return blocks_per_group_;
    std::uint32_t fit = ~std::uint32_t{0};
    for (std::size_t r = 0; r < machine.spec().n_sched; ++r) {
      if (block.sm[r] != 0) fit = std::min(fit, machine.max(r) / block.sm[r]);
    }
    return std::max(fit, 1U);
  }

  std::uint32_t blocks_per_group_;
  PerIndex<KernelIndex, const BlockSharing*> sharing_;
  KernelIndex kernel_ = no_kernel;
  std::uint32_t group_ = 0;
  SmIndex home_ = no_sm;
  PerIndex<BlockNumber, SmIndex> homes_;     // of the blocks of kernel_ so far
  std::map<SmIndex, std::uint64_t> shared_;  // with the block to place, by SM
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_locality(const PolicySettings& settings) {
  return std::make_unique<Locality>(settings);
}

}  // namespace demarc::sim
