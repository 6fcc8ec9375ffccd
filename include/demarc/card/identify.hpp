// Finds out on which SMs of the card this process runs, by whatever means they were chosen.
#pragma once

#include <string>
#include <vector>

#include "demarc/card/card.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::cuda {

struct Identification {
  // Ascending numbers on the card. One list per launch: in a client of MPS the next launch may get
  // other SMs.
  std::vector<std::vector<gpu::SmIndex>> launches;
  gpu::TpcSet tpcs;         // in all launches
  bool as_numbered = true;  // %smid names the SMs here
};

// An error of Card::names_sms() if no number names an SM. check_failed if one names an SM that the
// card does not have.
[[nodiscard]] Result<Identification> identify_sms(const Card& card, std::uint32_t launches);

// The TPCs that have these SMs. check_failed for an SM that the topology does not have.
[[nodiscard]] Result<gpu::TpcSet> tpcs_with(const gpu::Topology& topology,
                                            const std::vector<gpu::SmIndex>& sms);

// One line for each launch, and what the numbers of SMs mean here.
[[nodiscard]] std::string identification_to_text(const gpu::Topology& topology,
                                                 const Identification& found);
// Schema demarc.topo.identity/2.
[[nodiscard]] std::string identification_to_json(const gpu::Topology& topology,
                                                 const Identification& found);

}  // namespace demarc::cuda
