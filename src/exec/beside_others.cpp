// Reads who has claimed parts of a card.
#include "demarc/exec/beside_others.hpp"

#include <cstdlib>
#include <vector>

#include "demarc/base/text.hpp"
#include "demarc/device/tpc_set.hpp"
#include "demarc/driver/driver.hpp"
#include "demarc/driver/gpu.hpp"
#include "demarc/guest/control.hpp"
#include "demarc/lease/card_claim.hpp"

namespace demarc::cuda {

using lease::ClaimRole;
using lease::PartOwner;

Result<std::string> what_others_have(std::uint32_t index) {
  if (std::getenv(control_variable) != nullptr) return std::string();
  DEMARC_TRY(const auto driver, Driver::load());
  DEMARC_TRY(const auto gpu, Gpu::find(driver, index));
  DEMARC_TRY(const auto files, Driver::files());
  DEMARC_TRY(const auto claim, lease::CardClaim::open_all(files));
  DEMARC_TRY(const lease::ClaimedCard claimed, claim.others(gpu->uuid()));
  std::vector<std::string> found;
  if (claimed.server || claimed.lent) {
    const bool serves = !claim.claimers(gpu->uuid(), ClaimRole::server).empty();
    found.push_back(
        fmt::format("demarc serve ({}) divides it",
                    claim.names(gpu->uuid(), serves ? ClaimRole::server : ClaimRole::tenant)));
  }
  gpu::TpcSet tpcs;
  for (const PartOwner owner : {PartOwner::program, PartOwner::sharing}) {
    const auto& words = claimed.of(owner).tpcs;
    tpcs = tpcs | gpu::TpcSet::from_words(words[0], words[1]);
  }
  if (!tpcs.empty()) {
    found.push_back(fmt::format("demarc exec ({}) has its TPCs {}",
                                claim.names(gpu->uuid(), ClaimRole::program), to_string(tpcs)));
  }
  if (found.empty()) return std::string();
  return fmt::format(
      "{} is shared: {}; this measurement uses all of it, so both disturb each other", gpu->uuid(),
      joined(found, ", and "));
}

}  // namespace demarc::cuda
