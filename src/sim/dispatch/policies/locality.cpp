// Blocks that share data go to one SM (the idea of PAVER, Tripathy et al. 2021): block i belongs to
// group i / blocks_per_group, a group starts on the emptiest SM and stays there while its blocks
// fit; when one does not, the group moves to the emptiest SM.
#include <algorithm>

#include "dispatch/policies/scored.hpp"
#include "dispatch/policies/usage_levels.hpp"

namespace demarc::sim {
namespace {

class Locality final : public ScoredPolicy {
 public:
  explicit Locality(std::uint32_t blocks_per_group) : blocks_per_group_(blocks_per_group) {}

  std::uint32_t choose(const Machine& machine, const BlockRequest& block) override {
    const std::uint32_t group = block.block / group_size(machine, block);
    const bool same = block.kernel == kernel_ && group == group_ && home_ != no_sm;
    if (same && machine.fits(home_, block)) return home_;
    const std::uint32_t sm = ScoredPolicy::choose(machine, block);
    if (sm == no_sm) return no_sm;
    kernel_ = block.kernel;
    group_ = group;
    home_ = sm;
    return sm;
  }

  std::size_t choose_many(Machine& machine, BlockRequest block,
                          std::span<std::uint32_t> out) override {
    // One by one, past what ScoredPolicy does with a run of equal blocks.
    return DispatchPolicy::choose_many(machine, block,
                                       out);  // NOLINT(bugprone-parent-virtual-call)
  }

 protected:
  float score(const Machine& machine, std::uint32_t sm, const BlockRequest& block) const override {
    return fullest_share(machine, sm, block);
  }

 private:
  [[nodiscard]] std::uint32_t group_size(const Machine& machine, const BlockRequest& block) const {
    if (blocks_per_group_ != 0) return blocks_per_group_;
    std::uint32_t fit = ~std::uint32_t{0};
    for (std::size_t r = 0; r < machine.spec().n_sched; ++r) {
      if (block.sm[r] != 0) fit = std::min(fit, machine.max(r) / block.sm[r]);
    }
    return std::max(fit, 1U);
  }

  std::uint32_t blocks_per_group_;
  std::uint32_t kernel_ = ~std::uint32_t{0};
  std::uint32_t group_ = 0;
  std::uint32_t home_ = no_sm;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_locality(const PolicySettings& settings) {
  return std::make_unique<Locality>(settings.blocks_per_group);
}

}  // namespace demarc::sim
