// The ways to divide a card, behind one interface. Only this code divides a real card. A back end
// opens streams. Work that is launched into a stream runs in the stream's partition until the
// stream is destroyed.
//
// To add one: see partition/mode.hpp. The conformance suite then runs against it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "demarc/card/card.hpp"
#include "demarc/partition/mode.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::cuda {

using partition::Mode;

// What the probe of a stream showed.
struct StreamProof {
  std::uint64_t blocks = 0;
  std::uint64_t outside = 0;  // blocks outside of the partition, counted where SM numbers name SMs
  std::vector<gpu::SmIndex> sms;  // ascending, each SM that ran a block
  std::uint32_t sms_allowed = 0;
  [[nodiscard]] bool holds() const { return outside == 0 && sms.size() <= sms_allowed; }
};

// Work of one partition.
class PartitionStream {
 public:
  virtual ~PartitionStream() = default;
  PartitionStream() = default;
  PartitionStream(const PartitionStream&) = delete;
  PartitionStream& operator=(const PartitionStream&) = delete;

  [[nodiscard]] virtual const Stream& stream() const = 0;
  // The TPCs that blocks may use; all TPCs if the mode does not confine.
  [[nodiscard]] virtual gpu::TpcSet tpcs() const = 0;
  // Needs ModeTraits::changes; missing_capability otherwise.
  [[nodiscard]] virtual Result<void> change(const gpu::TpcSet& enabled);
  // Runs `blocks` probe blocks as the stream's work would run, and tells where they ran.
  [[nodiscard]] virtual Result<Placement> probe(std::uint32_t blocks,
                                                std::uint64_t spin_cycles) const = 0;
  // Checks that a kernel with clusters of that many blocks, one per SM, can start here. A refusal
  // says how large a cluster the stream can host.
  [[nodiscard]] Result<void> check_cluster(std::uint32_t cluster_blocks,
                                           std::uint32_t blocks_per_sm = 1) const;
  // The memory synchronisation domain of the stream's launches; nothing if the card has one for
  // all, or if the partition asks for none.
  [[nodiscard]] std::optional<std::uint32_t> sync_domain() const { return sync_domain_; }
  // What the probe showed when the stream was opened; nothing if each part is a process.
  [[nodiscard]] const std::optional<StreamProof>& proof() const { return proof_; }

 protected:
  explicit PartitionStream(CardPointer card) : card_(std::move(card)) {}
  CardPointer card_;

 private:
  friend class Backend;
  std::optional<StreamProof> proof_;
  std::optional<std::uint32_t> sync_domain_;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual Mode mode() const = 0;
  [[nodiscard]] const partition::ModeTraits& traits() const { return partition::traits_of(mode()); }
  // `stream_priority`: lower numbers come first. A stream is returned only
  // after its probe has shown that it holds, or, if nothing confines it, that it reaches every SM;
  // else check_failed. missing_capability if the card has memory synchronisation domains and the
  // partition's is none of them.
  [[nodiscard]] Result<std::unique_ptr<PartitionStream>> open(const partition::Partition& partition,
                                                              int stream_priority = 0);

 protected:
  [[nodiscard]] virtual Result<std::unique_ptr<PartitionStream>> make_stream(
      const partition::Partition& partition, int stream_priority) = 0;
  [[nodiscard]] virtual const Card& card() const = 0;
};

// missing_capability if the card, the driver or the process does not allow the mode.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(const CardPointer& card, Mode mode);

[[nodiscard]] Result<StreamProof> prove(const Card& card, const PartitionStream& stream,
                                        std::uint32_t blocks);

// Environment variables with which a process must be started to run in this partition. Under mps
// this is its share of the threads, in whole per cent, rounded down so that shares never add up to
// more than the card.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> process_environment(
    Mode mode, const gpu::Topology& topology, const partition::Partition& partition);

}  // namespace demarc::cuda
