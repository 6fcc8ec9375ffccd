// Finds the TPCs that a command line asks for.
#include "demarc/partition/tpc_choice.hpp"

#include "demarc/partition/partition.hpp"

namespace demarc::partition {

Result<gpu::TpcSet> choose_tpcs(const gpu::Topology& topology, const TpcChoice& choice) {
  const int given = (choice.tpcs.empty() ? 0 : 1) + (choice.gpcs.empty() ? 0 : 1) +
                    (choice.sms == 0 ? 0 : 1) + (choice.share_percent == 0 ? 0 : 1);
  if (given != 1) return invalid_input("give exactly one of --tpcs, --gpcs, --sms and --share");
  if (!choice.tpcs.empty()) {
    return gpu::parse_tpc_set(choice.tpcs, topology.tpc_count(), "--tpcs");
  }
  if (!choice.gpcs.empty()) return gpu::tpcs_of_gpcs(topology, choice.gpcs, "--gpcs");
  if (choice.sms != 0) return take_sms(topology, choice.sms);
  return take_share(topology, choice.share_percent);
}

}  // namespace demarc::partition
