// Who decides, request by request, that an L2-TLB miss skips the GMMU and goes to the IOMMU at
// once. The designs are ours; the paper's outlook asks for one (section 5). A policy sees one GPU.
#pragma once

#include <cstdint>
#include <memory>

#include "demarc/sim/translation/places.hpp"
#include "demarc/sim/translation/settings.hpp"

namespace demarc::sim::translation {

class BypassDecision {
 public:
  virtual ~BypassDecision() = default;
  // Called for each miss of the GPU's L2 TLB. `resident`: the exact answer, for the oracle alone.
  [[nodiscard]] virtual bool skip_gmmu(PageNumber page, bool resident) = 0;
  virtual void on_table_insert(PageNumber page) = 0;
  virtual void on_table_remove(PageNumber page) = 0;
  virtual void on_walk(bool hit) = 0;
};

[[nodiscard]] std::unique_ptr<BypassDecision> make_bypass_decision(const Settings& settings);

}  // namespace demarc::sim::translation
