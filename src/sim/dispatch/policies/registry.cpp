// The list of dispatch policies. To add one: a file beside this one that defines the factory, and a
// line below.
#include "demarc/base/near_names.hpp"
#include "demarc/base/text.hpp"
#include "demarc/sim/dispatch/policy.hpp"

#define DEMARC_POLICIES(X)                                                                  \
  X(rr, "rr", "round robin as published: only the next SM, a full one is never skipped")    \
  X(rr_skip, "rr-skip", "round robin that moves past full SMs")                             \
  X(rrf, "rrf", "fill one SM, then move on")                                                \
  X(bfa, "bfa", "breadth first: the SM that stays emptiest")                                \
  X(dfa, "dfa", "depth first: the SM that becomes fullest")                                 \
  X(smk, "smk", "as rr, and maxima of use and request over the units together at most 1.5") \
  X(fua, "fua", "as rr, and use with the request at most 1.5 times any capacity")           \
  X(least_loaded, "least-loaded", "the SM with the least mean use over all resources")      \
  X(best_fit, "best-fit", "the SM whose free resources match the request best")             \
  X(locality, "locality", "blocks that share data run on one SM together")                  \
  X(hw, "hw", "as the hardware's work distribution unit: emptiest TPC of the next GPC with room")

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
  return invalid_input("unknown policy '{}': known are {}{}", name, joined(known, ", "),
                       did_you_mean(name, known));
}

}  // namespace demarc::sim
