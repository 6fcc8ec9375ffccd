// Breadth-first allocation: the SM whose fullest scheduling resource stays emptiest.
#include "dispatch/policies/scored.hpp"
#include "dispatch/policies/usage_levels.hpp"

namespace demarc::sim {
namespace {

class BreadthFirst final : public ScoredPolicy {
 public:
  std::size_t choose_many(Machine& machine, BlockRequest block,
                          std::span<std::uint32_t> out) override {
    const std::uint32_t request = block.sm[0];
    if (!UsageLevels::apply_to(machine) || request > machine.max(0) || request == 0) {
      return ScoredPolicy::choose_many(machine, block, out);
    }
    const std::uint32_t highest = machine.max(0) - request;
    levels_.build(machine, highest);
    std::size_t count = 0;
    for (std::uint32_t level = 0; level <= highest && count < out.size(); ++level) {
      for (std::uint32_t sm = levels_.first(level); sm != no_sm && count < out.size();
           sm = levels_.first(level)) {
        levels_.remove(level, sm);
        levels_.add(level + request, sm);
        machine.occupy(sm, block);
        out[count++] = sm;
      }
    }
    machine.count_placed(block, count);
    return count;
  }

 protected:
  float score(const Machine& machine, std::uint32_t sm, const BlockRequest& block) const override {
    return fullest_share(machine, sm, block);
  }

 private:
  UsageLevels levels_;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_bfa(const PolicySettings& /*settings*/) {
  return std::make_unique<BreadthFirst>();
}

}  // namespace demarc::sim
