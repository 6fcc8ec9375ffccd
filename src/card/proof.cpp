// Proves a partition by where probe blocks ran.
#include "demarc/card/proof.hpp"

#include <algorithm>
#include <set>

#include "demarc/card/identify.hpp"
#include "demarc/card/masks.hpp"
#include "demarc/driver/launch_hook.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t blocks_per_sm = 4;  // of the whole card
constexpr std::uint64_t spin_cycles = 20000;
constexpr int max_crowded = 12;  // launches that other programs left too little room for

// SMs that other programs fill get no blocks, so each further launch has more of them, which stay
// longer.
Result<Placement> probe_once_more(const Stream& stream, const ProbeKernels& kernels, int launch) {
  const std::uint32_t blocks = (blocks_per_sm << std::min(launch, 3)) * stream.gpu()->sm_count();
  return probe_placement(stream, kernels, LaunchShape::line(blocks, 64),
                         spin_cycles << std::min(launch, 8));
}

// The most SMs that a launch ran on; launches end when one has `expected` SMs, or more.
Result<std::size_t> sms_that_probes_reach(const Stream& stream, const ProbeKernels& kernels,
                                          std::size_t expected) {
  std::size_t most = 0;
  for (int launch = 0; launch < max_crowded && most < expected; ++launch) {
    DEMARC_TRY(const Placement placement, probe_once_more(stream, kernels, launch));
    most = std::max(most, placement.used_sms().size());
  }
  return most;
}

Result<Placement> probe_under(const CardPointer& card, const gpu::TpcSet& tpcs, int launch = 0) {
  DEMARC_TRY(const ProcessMask mask, ProcessMask::set(card, tpcs));
  return probe_once_more(card->stream(), card->kernels(), launch);
}

Result<void> prove_inside(const CardPointer& card, const gpu::TpcSet& tpcs) {
  const auto sms = gpu::sms_of(card->topology(), tpcs);
  std::set<gpu::SmIndex> reached;
  for (int launch = 0; launch < max_crowded; ++launch) {
    DEMARC_TRY(const Placement inside, probe_under(card, tpcs, launch));
    DEMARC_CHECK(tpcs_with(card->topology(), inside.used_sms()));
    if (inside.outside(sms) != 0) {
      return check_failed(
          "the partition does not hold on this card: {} of {} probe blocks ran outside the TPCs {}",
          inside.outside(sms), inside.total(), gpu::to_string(tpcs));
    }
    for (const gpu::SmIndex sm : inside.used_sms()) reached.insert(sm);
    if (reached.size() == sms.size()) return {};
  }
  return check_failed(
      "the partition does not use all of its SMs: probe blocks ran on {} of the {} SMs of the TPCs "
      "{}, in {} tries; is it full of other programs? Start this program when there is room",
      reached.size(), sms.size(), gpu::to_string(tpcs), max_crowded);
}

Result<void> prove_outside(const CardPointer& card, const gpu::TpcSet& tpcs) {
  const auto sms = gpu::sms_of(card->topology(), tpcs);
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
  const auto used = sms_that_probes_reach(stream, kernels, sms);
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
  DEMARC_CHECK(card->names_sms());
  DEMARC_CHECK(prove_inside(card, wanted));
  // Inside MPS other programs may fill the other TPCs. Numbers of a launch, which would look right
  // for the first TPCs, look wrong for the last one alone.
  return card->virtual_sms() ? prove_inside(card, {*std::max_element(wanted.begin(), wanted.end())})
                             : prove_outside(card, wanted);
}

}  // namespace demarc::cuda
