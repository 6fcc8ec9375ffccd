// Proof, before anybody relies on it, that a mask of some TPCs confines launches to these TPCs.
#pragma once

#include "demarc/cuda/card.hpp"
#include "demarc/partition/tpc_set.hpp"

namespace demarc::cuda {

// Launches probes under the process mask `tpcs` and tells which TPCs they ran on.
//
// Where SM numbers name SMs: the probe uses all SMs of the TPCs and no other, and a second one
// under the mask of all other TPCs stays outside of them. Where numbers are those of a launch, as
// in a client of MPS: by latency (identify.hpp); every SM used has to be of these TPCs, none in
// doubt.
//
// check_failed when the partition does not hold or doubts remain; missing_capability when masks are
// refused here, or when latencies are needed and none are remembered.
[[nodiscard]] Result<void> prove_partition(const CardPointer& card, const partition::TpcSet& tpcs);

// In a process that cannot tell where its launches run, of a mask that another one has proved: a
// probe under `mask`, as the process mask, uses exactly so many SMs. What runs on other SMs does
// not matter. check_failed when it uses more or fewer; missing_capability when masks are refused.
[[nodiscard]] Result<void> prove_mask(const GpuPointer& gpu, const HardwareMask& mask,
                                      std::uint32_t sms);

// Whether launches show their memory synchronisation domain where descriptors are known to keep it,
// so that one written there is theirs. missing_capability when they do not, and when the driver has
// no launch callback.
[[nodiscard]] Result<void> prove_sync_domains(const GpuPointer& gpu);

}  // namespace demarc::cuda
