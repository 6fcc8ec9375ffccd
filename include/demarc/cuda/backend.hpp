// The ways to divide a card, behind one interface. A back end opens lanes; work launched into a
// lane runs in the lane's partition until the lane goes.
//
// To add one: a class in src/cuda/backends/, its enumerator and name here, one line in
// make_backend(). The conformance suite then runs against it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "demarc/cuda/card.hpp"
#include "demarc/partition/partition.hpp"

namespace demarc::cuda {

enum class Mode {
  none,       // streams only: nothing is confined
  timeslice,  // a process for each lane, without MPS: the hardware switches between them
  mps,        // a process for each lane, clients of MPS with a share of the threads
  green,      // green contexts: documented, any set of TPCs, fixed at creation
  mask,       // stream masks: undocumented, any set of TPCs, changed at run time
  affinity,   // persistent blocks that leave the SMs they may not use: no driver feature at all
};
[[nodiscard]] std::string_view to_string(Mode mode);
[[nodiscard]] Result<Mode> parse_mode(std::string_view text);
[[nodiscard]] std::vector<Mode> all_modes();

struct Traits {
  bool confines = false;      // blocks stay on the partition's SMs
  bool exact = false;         // any set of TPCs, not only a number of them
  bool own_process = false;   // each lane needs a process of its own
  bool changes = false;       // a lane's TPCs can be changed while it lives
  bool foreign_code = false;  // launches by code that knows nothing of lanes are confined too
};

// Work of one partition.
class Lane {
 public:
  virtual ~Lane() = default;
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  [[nodiscard]] virtual const Stream& stream() const = 0;
  // The TPCs that blocks may use; with a mode that does not confine, all.
  [[nodiscard]] virtual partition::TpcSet tpcs() const = 0;
  // Needs Traits::changes; missing_capability otherwise.
  [[nodiscard]] virtual Result<void> change(const partition::TpcSet& enabled);
  // Runs `blocks` probe blocks as the lane's work would run, and tells where they ran.
  [[nodiscard]] virtual Result<Placement> probe(std::uint32_t blocks,
                                                std::uint64_t spin_cycles) const = 0;
  // Whether a kernel with clusters of that many blocks, one an SM, can start here. A refusal says
  // how large a cluster the lane can host.
  [[nodiscard]] Result<void> check_cluster(std::uint32_t cluster_blocks,
                                           std::uint32_t blocks_per_sm = 1) const;

 protected:
  explicit Lane(CardPointer card) : card_(std::move(card)) {}
  CardPointer card_;
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual Mode mode() const = 0;
  [[nodiscard]] virtual Traits traits() const = 0;
  // A lane is handed out only after its probe has shown that it holds: check_failed otherwise.
  [[nodiscard]] Result<std::unique_ptr<Lane>> open(const partition::Partition& partition);
  // Variables that a process must be started with to be this partition's lane (own_process).
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> environment(
      const partition::Partition& partition) const;

 protected:
  [[nodiscard]] virtual Result<std::unique_ptr<Lane>> make_lane(
      const partition::Partition& partition) = 0;
  [[nodiscard]] virtual const Card& card() const = 0;
};

// missing_capability when the card, the driver or the process does not allow the mode.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(const CardPointer& card, Mode mode);

// Blocks outside the partition, SMs used: what a lane's probe says.
struct LaneProof {
  std::uint64_t blocks = 0;
  std::uint64_t outside = 0;
  std::uint32_t sms_used = 0;
  std::uint32_t sms_allowed = 0;
  [[nodiscard]] bool holds() const { return outside == 0 && sms_used <= sms_allowed; }
};
[[nodiscard]] Result<LaneProof> prove(const Card& card, const Lane& lane, std::uint32_t blocks);

}  // namespace demarc::cuda
