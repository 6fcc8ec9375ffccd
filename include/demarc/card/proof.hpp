// Proof, before anybody relies on it, that a mask of some TPCs confines launches to these TPCs.
#pragma once

#include "demarc/card/card.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::cuda {

// Launches probes under the process mask `tpcs` and tells which TPCs they ran on.
//
// The probe must use all SMs of the TPCs and no other, by the numbers that the card's kernels give
// them. A second probe must stay outside, under the mask of all other TPCs; in a client of MPS,
// where programs may fill these, it must use the last TPC of the partition alone.
//
// check_failed if the partition does not hold. missing_capability if masks are refused here, or if
// no number names an SM.
[[nodiscard]] Result<void> prove_partition(const CardPointer& card, const gpu::TpcSet& tpcs);

// For a process that cannot tell where its launches run, and a mask that another process has
// proved. It checks that a probe under `mask`, as the process mask, uses exactly so many SMs. What
// runs on other SMs does not matter. check_failed if the probe uses more or fewer;
// missing_capability if masks are refused.
[[nodiscard]] Result<void> prove_mask(const GpuPointer& gpu, const HardwareMask& mask,
                                      std::uint32_t sms);

// Checks that launches show their memory synchronisation domain where descriptors are known to keep
// it, so a domain that is written there takes effect. missing_capability if they do not, and if the
// driver has no launch callback.
[[nodiscard]] Result<void> prove_sync_domains(const GpuPointer& gpu);

}  // namespace demarc::cuda
