// Makes the back end of a mode, opens its streams, and proves each stream before it is used.
#include "demarc/card/backend.hpp"

#include <algorithm>

#include "backends/backends.hpp"
#include "demarc/driver/sync_domain.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t proof_spin_cycles = 2000;

Result<void> check_proof(const StreamProof& proof, const partition::Partition& partition, Mode mode,
                         const PartitionStream& stream) {
  if (partition::traits_of(mode).confines) {
    if (proof.holds()) return {};
    return check_failed(
        "partition '{}' does not hold: {} of {} probe blocks ran outside its TPCs {} ({} SMs used, "
        "{} allowed)",
        partition.name, proof.outside, proof.blocks, to_string(stream.tpcs()), proof.sms.size(),
        proof.sms_allowed);
  }
  if (proof.sms.size() == proof.sms_allowed) return {};
  return check_failed("mode {}: a stream that nothing confines ran on {} of {} SMs only",
                      partition::to_string(mode), proof.sms.size(), proof.sms_allowed);
}

}  // namespace

Result<void> PartitionStream::change(const gpu::TpcSet&) {
  return missing_capability(
      "the TPCs of this stream are fixed; --mode {} can change them",
      partition::mode_names([](const partition::ModeTraits& traits) { return traits.changes; },
                            " or "));
}

Result<void> PartitionStream::check_cluster(std::uint32_t cluster_blocks,
                                            std::uint32_t blocks_per_sm) const {
  return partition::check_cluster(card_->topology(), tpcs(), cluster_blocks, blocks_per_sm);
}

Result<std::unique_ptr<PartitionStream>> Backend::open(const partition::Partition& partition,
                                                       int stream_priority) {
  if (partition.tpcs.empty()) {
    return invalid_input("partition '{}' has no TPC", partition.name);
  }
  DEMARC_TRY(std::unique_ptr<PartitionStream> stream, make_stream(partition, stream_priority));
  if (partition.sync_domain && sync_domain_count(*card().gpu()) > 1) {
    DEMARC_CHECK(set_sync_domain(*card().gpu(), stream->stream().handle(), *partition.sync_domain));
    stream->sync_domain_ = partition.sync_domain;
  }
  if (traits().across_processes) return stream;
  DEMARC_TRY(StreamProof proof, prove(card(), *stream, 4 * card().gpu()->sm_count()));
  DEMARC_CHECK(check_proof(proof, partition, mode(), *stream));
  stream->proof_ = std::move(proof);
  return stream;
}

Result<StreamProof> prove(const Card& card, const PartitionStream& stream, std::uint32_t blocks) {
  DEMARC_TRY(const Placement placement, stream.probe(blocks, proof_spin_cycles));
  const auto allowed = gpu::sms_of(card.topology(), stream.tpcs());
  StreamProof proof;
  proof.blocks = placement.total();
  proof.sms = placement.used_sms();
  proof.sms_allowed = static_cast<std::uint32_t>(allowed.size());
  // Numbers that name no SM only tell how many there are.
  proof.outside = card.names_sms() ? placement.outside(allowed) : 0;
  return proof;
}

Result<std::unique_ptr<Backend>> make_backend(const CardPointer& card, Mode mode) {
  switch (mode) {
#define DEMARC_MODE(name, ...) \
  case Mode::name:             \
    return make_##name##_backend(card);
#include "demarc/partition/modes.def"
#undef DEMARC_MODE
  }
  return invalid_input("no such mode");
}

std::vector<std::pair<std::string, std::string>> process_environment(
    Mode mode, const gpu::Topology& topology, const partition::Partition& partition) {
  if (!partition::traits_of(mode).shares) return {};
  const std::uint32_t sms = std::max(topology.sm_count(), 1U);
  const std::uint32_t percent = 100 * gpu::sm_count(topology, partition.tpcs) / sms;
  return {{mps_share_variable, std::to_string(std::max(percent, 1U))}};
}

}  // namespace demarc::cuda
