// Opens a card: proves its masks, and reads or measures its facts.
#include "demarc/card/card.hpp"

#include <filesystem>

#include "demarc/base/files.hpp"
#include "demarc/driver/driver_version.hpp"
#include "topology_probe.hpp"

namespace demarc::cuda {
namespace {

// Lines far enough apart to fall on all slices, and odd in units of 256 bytes so that no power of
// two of the address hash is favoured.
constexpr std::uint64_t latency_stride = 256 * 17;
constexpr std::uint32_t latency_lines = 96;
constexpr std::uint32_t latency_repeats = 6;
constexpr std::uint64_t renumbering_spin = 20000;

// Bits a GPC takes in the descriptor: 9 on Hopper, measured on H100 and H200.
std::uint32_t bits_per_gpc(gpu::ComputeCapability capability) {
  return capability == gpu::ComputeCapability{9, 0} ? 9 : 0;
}

std::string bit_text(const gpu::Tpc& tpc) {
  return tpc.bit ? fmt::format("{}", *tpc.bit) : "none";
}

}  // namespace

Result<std::shared_ptr<Card>> Card::open(const GpuPointer& gpu, const CardOptions& options) {
  DEMARC_CHECK(gpu->check_whole());
  std::shared_ptr<Card> card(new Card);
  card->gpu_ = gpu;
  card->virtual_sms_ = gpu->under_mps();
  DEMARC_TRY(card->kernels_, ProbeKernels::load(gpu));
  DEMARC_TRY(card->stream_, Stream::create(gpu));
  const std::string path = facts_path(*gpu, options.cache_folder);
  if (!options.refresh) {
    DEMARC_TRY(auto known, remembered_facts(*gpu, options.cache_folder));
    if (known) card->facts_ = std::move(*known);
  }
  if (options.stream_field) card->facts_.stream_field = options.stream_field;
  if (options.use_masks) {
    if (const auto ready = card->prepare_masks(); !ready) card->mask_refusal_ = ready.error();
    if (gpu->stuck()) return tl::unexpected(card->mask_refusal_);
  } else {
    card->mask_refusal_ = {ErrorKind::missing_capability,
                           "this card was opened without support for masks"};
  }
  if (!card->facts_.from_cache) {
    DEMARC_CHECK(card->find_facts());
    auto& notes = card->facts_.notes;
    notes.insert(notes.end(), options.notes.begin(), options.notes.end());
    // Inside an MPS partition the card shows less than it is: nothing to remember.
    if (options.remember && options.use_masks && !card->virtual_sms_) {
      std::error_code ignored;
      std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
      if (const auto written = write_file(path, facts_to_json(card->facts_)); !written) {
        card->facts_.notes.push_back("not remembered: " + written.error().message);
      }
    }
  } else if (card->stream_masks_) {
    DEMARC_CHECK(card->compare_bits());
    DEMARC_CHECK(card->look_for_renumbering());
  }
  if (card->stream_masks_) card->stream_masks_->use_hook(*card->hook_, card->topology());
  if (!card->stream_masks_ && card->virtual_sms_) card->nameless_ = card->mask_refusal_;
  return card;
}

Result<void> Card::prepare_masks() {
  DEMARC_TRY(LaunchHook * hook, LaunchHook::install(gpu_->driver()));
  hook->begin_probe(gpu_->compute_capability());
  DEMARC_CHECK(launch(*stream_, kernels_->idle(), LaunchShape::line(1, 1)));
  DEMARC_CHECK(stream_->wait());
  DEMARC_CHECK(hook->end_probe());
  DEMARC_TRY(stream_masks_, StreamMasks::open(gpu_, *hook, kernels_->idle(), facts_.stream_field));
  hook_ = hook;
  return {};
}

// Only TPC 1 is enabled: its SMs are not called 0 and 1 unless the numbers are those of a launch.
Result<bool> Card::counts_sms_of_a_launch() const {
  DEMARC_CHECK(stream_masks_->set(stream_->handle(), gpu::TpcSet{1}));
  const auto placement =
      probe_placement(*stream_, kernels(), LaunchShape::line(32, 32), renumbering_spin);
  DEMARC_CHECK(stream_masks_->clear(stream_->handle()));
  if (!placement) return tl::unexpected(placement.error());
  const auto used = placement->used_sms();
  const auto capability = gpu_->compute_capability();
  return used.back().raw() + 1 == used.size() &&
         used.size() <= gpu::sms_per_tpc(capability.major, capability.minor);
}

Result<void> Card::look_for_renumbering() {
  if (!virtual_sms_) {
    DEMARC_TRY(virtual_sms_, counts_sms_of_a_launch());
  }
  if (!virtual_sms_) return {};
  auto named = ProbeKernels::load(gpu_, SmNumbers::of_card);
  if (!named) {
    nameless_ = named.error();
    return {};
  }
  naming_ = std::move(*named);
  DEMARC_TRY(const bool of_launch, counts_sms_of_a_launch());
  if (of_launch) {
    nameless_ = {ErrorKind::missing_capability,
                 "the register that names SMs on other cards counts those of a launch here"};
  }
  return {};
}

Result<void> Card::names_sms() const {
  if (!nameless_) return {};
  return tl::unexpected(
      Error{nameless_->kind,
            fmt::format("{}: %smid does not name SMs here (MPS), and no other way does: {}",
                        gpu_->name(), nameless_->message)});
}

Result<void> Card::compare_bits() const {
  if (virtual_sms_) return {};  // a client of MPS may be shown fewer TPCs than there are
  const auto& tpcs = topology().tpcs;
  const EdgeBits& now = stream_masks_->edge_bits();
  const std::uint32_t count = stream_masks_->tpc_count();
  if (tpcs.size() == count && tpcs.front().bit == now.first && tpcs.back().bit == now.last) {
    return {};
  }
  return check_failed(
      "{} differs from what is remembered of it: it has {} TPCs, with hardware bit {} for the "
      "first and {} for the last; remembered are {} TPCs with {} and {}. Run demarc topo --refresh",
      gpu_->name(), count, now.first, now.last, tpcs.size(), bit_text(tpcs.front()),
      bit_text(tpcs.back()));
}

Result<void> Card::find_facts() {
  TopologyEvidence evidence;
  const auto capability = gpu_->compute_capability();
  evidence.sms = gpu_->sm_count();
  evidence.sms_per_tpc = gpu::sms_per_tpc(capability.major, capability.minor);
  evidence.bits_per_gpc = bits_per_gpc(capability);
  if (stream_masks_) {
    for (const auto tpc : indices<gpu::TpcIndex>(stream_masks_->tpc_count())) {
      DEMARC_TRY(const std::uint32_t bit,
                 hardware_bit_of(*stream_, stream_masks_->field(), *hook_, kernels_->idle(), tpc));
      evidence.bits.push_back(bit);
    }
    DEMARC_CHECK(look_for_renumbering());
  }
  // Renumbered SMs cannot be compared from launch to launch.
  if (!virtual_sms_) {
    DEMARC_TRY(evidence.clusters, probe_clusters(*stream_, *kernels_));
    DEMARC_TRY(const DeviceBuffer buffer,
               DeviceBuffer::allocate(gpu_, latency_stride * latency_lines));
    DEMARC_TRY(evidence.latency, probe_latencies(*stream_, *kernels_, buffer, latency_stride,
                                                 latency_lines, latency_repeats));
  }
  DEMARC_TRY(TopologyFinding finding, conclude_topology(evidence));
  DEMARC_TRY(facts_.device, describe(*gpu_));
  facts_.device.topology = std::move(finding.topology);
  facts_.by_descriptor = finding.by_descriptor;
  facts_.by_cluster = finding.by_cluster;
  facts_.unconfirmed = std::move(finding.unconfirmed);
  facts_.notes = std::move(finding.notes);
  if (virtual_sms_) {
    facts_.notes.emplace_back("MPS renumbers SMs here, so clusters and L2 sides were not measured");
  }
  if (stream_masks_) {
    facts_.stream_field = stream_masks_->field();
  } else {
    facts_.notes.push_back("masks: " + mask_refusal_.message);
  }
  return {};
}

Result<LaunchHook*> Card::hook() const {
  if (hook_ == nullptr) return tl::unexpected(mask_refusal_);
  return hook_;
}

Result<const StreamMasks*> Card::stream_masks() const {
  if (!stream_masks_) return tl::unexpected(mask_refusal_);
  return &*stream_masks_;
}

Result<HardwareMask> Card::hardware_mask(const gpu::TpcSet& enabled) const {
  DEMARC_TRY(LaunchHook * ready, hook());
  DEMARC_TRY(HardwareMask mask, to_hardware(topology(), enabled));
  if (!fits(*ready->layout(), topology())) {
    return missing_capability("descriptors of version {} cannot name all TPCs of this GPU",
                              ready->layout()->name);
  }
  return mask;
}

Result<CardPointer> open_card(std::uint32_t index, const CardOptions& options) {
  CardOptions own = options;
  if (own.refresh && own.use_masks && !own.stream_field) {
    DEMARC_TRY(const int version, Driver::peek_version());
    if (!known_stream_field(version)) {
      const auto found = calibrate_isolated(index);
      if (found) own.stream_field = *found;
      own.notes.push_back(found ? fmt::format("CUDA {} is not in the table of drivers; the mask of "
                                              "a stream was found at offset {:#x} and proved",
                                              cuda_version_text(version), found->offset)
                                : "a stream's mask was looked for: " + found.error().message);
    }
  }
  DEMARC_TRY(const auto driver, Driver::load());
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, index));
  return Card::open(gpu, own);
}

}  // namespace demarc::cuda
