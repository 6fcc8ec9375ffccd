// Runs blocks that share data together on one SM (the idea of PAVER, Tripathy et al. 2021). With a
// locality map, an SM runs a stretch of the map's order of blocks, as many as fit on it, then the
// next stretch that no SM has. If there is none, it takes half of the longest stretch that another
// SM has left. The emptiest SM comes first. Without a map, block i belongs to group i /
// blocks_per_group. A group starts on the emptiest SM and stays there while its blocks fit. If one
// does not fit, the group moves to the emptiest SM.
#include <algorithm>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/dispatch/machine.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "dispatch/policies/fullest_share.hpp"
#include "dispatch/policies/scored.hpp"

namespace demarc::sim {
namespace {

class Locality final : public ScoredPolicy {
 public:
  explicit Locality(const PolicySettings& settings)
      : blocks_per_group_(settings.blocks_per_group), sharing_(settings.sharing) {}

  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override {
    if (const BlockSharing* sharing = sharing_of(block.kernel)) {
      const SmIndex sm = ScoredPolicy::choose(machine, block);
      give_blocks(machine, block, *sharing, std::span(&sm, sm == no_sm ? 0 : 1));
      return sm;
    }
    given_.clear();
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
    if (const BlockSharing* sharing = sharing_of(block.kernel)) {
      const std::size_t placed = ScoredPolicy::choose_many(machine, block, out);
      give_blocks(machine, block, *sharing, out.first(placed));
      return placed;
    }
    // One by one, past what ScoredPolicy does with a run of equal blocks.
    // NOLINTNEXTLINE(bugprone-parent-virtual-call)
    return DispatchPolicy::choose_many(machine, block, out);
  }

  [[nodiscard]] std::span<const BlockNumber> given() const override { return given_; }

 protected:
  float score(const Occupancy& machine, SmIndex sm, const BlockRequest& block) const override {
    return fullest_share(machine, sm, block);
  }

 private:
  // Of order_.
  struct Stretch {
    std::size_t first = 0;
    std::size_t end = 0;
    [[nodiscard]] std::size_t size() const { return end - first; }
  };

  [[nodiscard]] const BlockSharing* sharing_of(KernelIndex kernel) const {
    return kernel < sharing_.next_key() ? sharing_[kernel] : nullptr;
  }

  // A block of the kernel for each of `sms`.
  void give_blocks(const Occupancy& machine, const BlockRequest& block, const BlockSharing& sharing,
                   std::span<const SmIndex> sms) {
    given_.clear();
    if (!sms.empty() && block.block == BlockNumber()) begin(machine, block, sharing);
    for (const SmIndex sm : sms) {
      Stretch& own = stretch_[sm];
      if (own.size() == 0) own = another();
      given_.push_back(order_[own.first++]);
    }
  }

  // A kernel begins. Blocks that the map does not know come last.
  void begin(const Occupancy& machine, const BlockRequest& block, const BlockSharing& sharing) {
    const BlockNumber end(block.blocks);
    order_.clear();
    for (const BlockNumber known : sharing.order()) {
      if (known < end) order_.push_back(known);
    }
    for (BlockNumber more(sharing.blocks()); more < end; ++more) order_.push_back(more);
    stretch_.assign(machine.sms(), {});
    taken_ = 0;
    const std::uint32_t each = ceil_div(block.blocks, machine.sms());
    length_ = std::min(each, group_size(machine, block));
  }

  Stretch another() {
    if (taken_ < order_.size()) {
      const std::size_t first = taken_;
      taken_ = std::min(first + length_, order_.size());
      return {first, taken_};
    }
    Stretch& longest =
        *std::max_element(stretch_.begin(), stretch_.end(),
                          [](const Stretch& a, const Stretch& b) { return a.size() < b.size(); });
    const std::size_t end = longest.end;
    longest.end = longest.first + longest.size() / 2;
    return {longest.end, end};
  }

  [[nodiscard]] std::uint32_t group_size(const Occupancy& machine,
                                         const BlockRequest& block) const {
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
  std::vector<BlockNumber> order_;      // order of the blocks of the kernel that is placed
  std::size_t taken_ = 0;               // those before are in stretches
  std::size_t length_ = 0;              // length of a stretch
  PerIndex<SmIndex, Stretch> stretch_;  // what each SM has yet to run
  std::vector<BlockNumber> given_;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_locality(const PolicySettings& settings) {
  return std::make_unique<Locality>(settings);
}

}  // namespace demarc::sim
