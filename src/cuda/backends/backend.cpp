#include "demarc/cuda/backend.hpp"

#include "backends.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t proof_spin_cycles = 2000;

}  // namespace

std::string_view to_string(Mode mode) {
  switch (mode) {
    case Mode::none:
      return "none";
    case Mode::timeslice:
      return "timeslice";
    case Mode::mps:
      return "mps";
    case Mode::green:
      return "green";
    case Mode::mask:
      return "mask";
    case Mode::affinity:
      return "affinity";
  }
  return "unknown";
}

std::vector<Mode> all_modes() {
  return {Mode::none, Mode::timeslice, Mode::mps, Mode::green, Mode::mask, Mode::affinity};
}

Result<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : all_modes()) {
    if (to_string(mode) == text) return mode;
  }
  return invalid_input("mode '{}': the modes are none, timeslice, mps, green, mask and affinity",
                       text);
}

Result<void> Lane::change(const partition::TpcSet&) {
  return missing_capability("the TPCs of this lane are fixed; --mode mask can change them");
}

Result<void> Lane::check_cluster(std::uint32_t cluster_blocks, std::uint32_t blocks_per_sm) const {
  return partition::check_cluster(card_->topology(), tpcs(), cluster_blocks, blocks_per_sm);
}

std::vector<std::pair<std::string, std::string>> Backend::environment(
    const partition::Partition&) const {
  return {};
}

Result<std::unique_ptr<Lane>> Backend::open(const partition::Partition& partition) {
  if (partition.tpcs.empty()) {
    return invalid_input("partition '{}' has no TPC", partition.name);
  }
  DEMARC_TRY(std::unique_ptr<Lane> lane, make_lane(partition));
  if (!traits().confines) return lane;
  DEMARC_TRY(const LaneProof proof, prove(card(), *lane, 4 * card().gpu()->sm_count()));
  if (!proof.holds()) {
    return check_failed(
        "partition '{}' does not hold: {} of {} probe blocks ran outside its TPCs {} ({} SMs used, "
        "{} allowed)",
        partition.name, proof.outside, proof.blocks, to_string(lane->tpcs()), proof.sms_used,
        proof.sms_allowed);
  }
  return lane;
}

Result<LaneProof> prove(const Card& card, const Lane& lane, std::uint32_t blocks) {
  DEMARC_TRY(const Placement placement, lane.probe(blocks, proof_spin_cycles));
  const auto allowed = partition::sms_of(card.topology(), lane.tpcs());
  LaneProof proof;
  proof.blocks = placement.total();
  proof.sms_used = static_cast<std::uint32_t>(placement.used_sms().size());
  proof.sms_allowed = static_cast<std::uint32_t>(allowed.size());
  // Renumbered SMs only tell how many there are.
  proof.outside = card.virtual_sms() ? 0 : placement.outside(allowed);
  return proof;
}

Result<std::unique_ptr<Backend>> make_backend(const CardPointer& card, Mode mode) {
  switch (mode) {
    case Mode::none:
    case Mode::timeslice:
    case Mode::mps:
      return make_plain_backend(card, mode);
    case Mode::green:
      return make_green_backend(card);
    case Mode::mask:
      return make_mask_backend(card);
    case Mode::affinity:
      return make_affinity_backend(card);
  }
  return invalid_input("no such mode");
}

}  // namespace demarc::cuda
