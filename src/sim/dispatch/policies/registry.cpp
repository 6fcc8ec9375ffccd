// The list of dispatch policies. To add one, write a file beside this one that defines the factory,
// and add a line below.
#include "demarc/base/near_names.hpp"
#include "demarc/sim/dispatch/policies.hpp"

#define DEMARC_POLICIES(X)                                                                    \
  X(rr, "rr", "round robin as published: takes only the next SM, and waits while it is full") \
  X(rr_skip, "rr-skip", "round robin that skips full SMs")                                    \
  X(rrf, "rrf", "fills one SM, then the next")                                                \
  X(bfa, "bfa", "breadth first: takes the SM that stays emptiest")                            \
  X(dfa, "dfa", "depth first: takes the SM that becomes fullest")                             \
  X(smk, "smk",                                                                               \
    "as rr, if the largest share in use plus the block's largest share is at most 1.5")       \
  X(fua, "fua", "as rr, if use plus request is at most 1.5 times the capacity of every unit") \
  X(least_loaded, "least-loaded", "takes the SM whose resources are used least on average")   \
  X(best_fit, "best-fit", "takes the SM whose free resources match the request best")         \
  X(locality, "locality", "runs blocks that share data together on one SM")                   \
  X(hw, "hw", "as the hardware does: takes the emptiest TPC of the next GPC that has room")

namespace demarc::sim {

#define DEMARC_DECLARE_POLICY(id, name, summary) \
  std::unique_ptr<DispatchPolicy> make_##id(const PolicySettings& settings);
DEMARC_POLICIES(DEMARC_DECLARE_POLICY)
#undef DEMARC_DECLARE_POLICY

std::span<const PolicyInfo> dispatch_policies() {
#define DEMARC_LIST_POLICY(id, name, summary) {name, summary, &make_##id},
  static constexpr PolicyInfo policies[] = {DEMARC_POLICIES(DEMARC_LIST_POLICY)};
#undef DEMARC_LIST_POLICY
  return policies;
}

Result<const PolicyInfo*> find_policy(std::string_view name) {
  std::vector<std::string> known;
  for (const PolicyInfo& info : dispatch_policies()) {
    if (info.name == name) return &info;
    known.emplace_back(info.name);
  }
  return invalid_input("unknown policy '{}'{}", name,
                       did_you_mean(name, known, "demarc list policies"));
}

}  // namespace demarc::sim
