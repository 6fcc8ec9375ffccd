// Proves a partition by where probe blocks ran.
#include "demarc/card/proof.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "demarc/card/identify.hpp"
#include "demarc/card/masks.hpp"
#include "demarc/driver/launch_hook.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t blocks_per_sm = 4;  // of the whole card
constexpr std::uint64_t spin_cycles = 20000;
constexpr int max_doubtful = 5;  // launches with doubts, before the proof is given up
// Before the second of them; each is twice the last.
constexpr std::chrono::milliseconds first_doubt_pause{50};

constexpr int max_crowded = 12;  // launches that other programs left too little room for

// The most SMs that a launch ran on. SMs that others hold get none of its blocks, so it is repeated
// with more blocks that stay longer, until one has `expected` SMs, or more.
Result<std::size_t> sms_that_probes_reach(const Stream& stream, const ProbeKernels& kernels,
                                          std::uint32_t card_sms, std::size_t expected) {
  std::size_t most = 0;
  for (int launch = 0; launch < max_crowded && most < expected; ++launch) {
    const std::uint32_t blocks = (blocks_per_sm << std::min(launch, 3)) * card_sms;
    DEMARC_TRY(const Placement placement,
               probe_placement(stream, kernels, LaunchShape::line(blocks, 64),
                               spin_cycles << std::min(launch, 8)));
    most = std::max(most, placement.used_sms().size());
  }
  return most;
}

Result<Placement> probe_under(const CardPointer& card, const gpu::TpcSet& tpcs) {
  DEMARC_TRY(const ProcessMask mask, ProcessMask::set(card, tpcs));
  return probe_placement(card->stream(), card->kernels(),
                         LaunchShape::line(blocks_per_sm * card->gpu()->sm_count(), 64),
                         spin_cycles);
}

Result<void> prove_by_number(const CardPointer& card, const gpu::TpcSet& tpcs) {
  const auto sms = gpu::sms_of(card->topology(), tpcs);
  DEMARC_TRY(const Placement inside, probe_under(card, tpcs));
  if (inside.outside(sms) != 0) {
    return check_failed(
        "the partition does not hold on this card: {} of {} probe blocks ran outside the TPCs {}",
        inside.outside(sms), inside.total(), gpu::to_string(tpcs));
  }
  if (inside.used_sms() != sms) {
    return check_failed(
        "the partition does not use all of its SMs: probe blocks ran on {} of the {} SMs of the "
        "TPCs {}",
        inside.used_sms().size(), sms.size(), gpu::to_string(tpcs));
  }
  const gpu::TpcSet others = gpu::all_tpcs(card->topology()) - tpcs;
  if (others.empty()) return {};
  DEMARC_TRY(const Placement outside, probe_under(card, others));
  const std::uint64_t strays = outside.total() - outside.outside(sms);
  if (strays == 0) return {};
  return check_failed(
      "the partition does not keep other work out: {} of {} probe blocks that must not use the "
      "TPCs {} ran there",
      strays, outside.total(), gpu::to_string(tpcs));
}

Result<void> prove_by_latency(const CardPointer& card, const gpu::TpcSet& tpcs) {
  if (!card->facts().fingerprints) {
    return missing_capability(
        "{}: SM numbers are those of a launch here (MPS), and no fingerprints of the SMs are "
        "remembered, so nobody can tell where a program runs; run demarc topo --refresh once, "
        "outside MPS and with nothing else on the card",
        card->gpu()->name());
  }
  DEMARC_TRY(const ProcessMask mask, ProcessMask::set(card, tpcs));
  for (int launch = 1;; ++launch) {
    DEMARC_TRY(const Identification found, identify_sms(card->gpu(), card->facts(), 1));
    const Confinement seen = confinement_of(found, tpcs);
    if (!seen.outside.empty()) {
      return check_failed(
          "the partition does not hold on this card: by latency, probe blocks ran on TPCs {}, "
          "outside the TPCs {}",
          gpu::to_string(seen.outside), gpu::to_string(tpcs));
    }
    if (seen.in_doubt == 0) return {};
    if (launch == max_doubtful) {
      return check_failed(
          "the partition could not be proved: {} SMs are in doubt by their latencies; is the card "
          "busy? Start the program when it is quiet",
          seen.in_doubt);
    }
    std::this_thread::sleep_for(first_doubt_pause * (1 << (launch - 1)));
  }
}

}  // namespace

Result<void> prove_sync_domains(const GpuPointer& gpu) {
  DEMARC_TRY(LaunchHook* const hook, LaunchHook::install(gpu->driver()));
  DEMARC_TRY(const ProbeKernels kernels, ProbeKernels::load(gpu));
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  for (std::uint32_t domain = 0; domain < sync_domain_count(*gpu); ++domain) {
    DEMARC_CHECK(set_sync_domain(*gpu, stream.handle(), domain));
    hook->clear_last();
    hook->begin_probe(gpu->compute_capability());
    DEMARC_CHECK(launch(stream, kernels.idle(), LaunchShape::line(1, 1)));
    DEMARC_CHECK(stream.wait());
    DEMARC_CHECK(hook->end_probe());
    const auto seen = hook->last();
    if (seen && seen->domain == domain) continue;
    return missing_capability(
        "{}: the task descriptors do not show where a launch has its memory synchronisation domain",
        gpu->name());
  }
  return {};
}

Result<void> prove_mask(const GpuPointer& gpu, const HardwareMask& mask, std::uint32_t sms) {
  DEMARC_TRY(LaunchHook* const hook, LaunchHook::install(gpu->driver()));
  DEMARC_TRY(const ProbeKernels kernels, ProbeKernels::load(gpu));
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  hook->begin_probe(gpu->compute_capability());
  DEMARC_CHECK(launch(stream, kernels.idle(), LaunchShape::line(1, 1)));
  DEMARC_CHECK(stream.wait());
  DEMARC_CHECK(hook->end_probe());
  const auto before = hook->process_mask();
  hook->set_process_mask(mask);
  const auto used = sms_that_probes_reach(stream, kernels, gpu->sm_count(), sms);
  hook->set_process_mask(before);
  if (!used) return tl::unexpected(used.error());
  if (*used == sms) return {};
  if (*used > sms) {
    return check_failed(
        "the partition does not hold here: its mask leaves {} SMs, but probe blocks ran on {}", sms,
        *used);
  }
  return check_failed(
      "the partition could not be proved: its mask leaves {} SMs, but probe blocks ran on {} at "
      "most, in {} tries; is it full of other programs? Start this program when there is room",
      sms, *used, max_crowded);
}

Result<void> prove_partition(const CardPointer& card, const gpu::TpcSet& tpcs) {
  const gpu::TpcSet wanted = tpcs & gpu::all_tpcs(card->topology());
  return card->virtual_sms() ? prove_by_latency(card, wanted) : prove_by_number(card, wanted);
}

}  // namespace demarc::cuda
