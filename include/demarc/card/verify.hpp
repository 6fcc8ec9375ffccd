// Proves from inside the GPU that the partition in which this process runs holds, whoever set it
// up: demarc exec, MPS, or nothing. Blocks are launched over every path, and it is counted where
// they ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/card/backend.hpp"
#include "demarc/partition/tpc_choice.hpp"

namespace demarc::cuda {

struct VerifyPath {
  std::string name;  // "stream", "default stream", "graph"
  Placement placement;
  std::uint64_t outside = 0;  // 0 where only SMs are counted
};

struct VerifyReport {
  std::string card;
  std::optional<Mode> mode;  // as in the plan
  std::uint32_t sms = 0;     // of the card, as far as it is known
  gpu::TpcSet expected;
  std::uint32_t expected_sms = 0;
  std::vector<VerifyPath> paths;
  // Only the number of SMs is checked: no TPCs were listed, and MPS chooses the SMs of its clients.
  bool by_count = false;
  gpu::Topology topology;
  bool holds = false;

  // "this process as it is", "a partition of mode green, made for this"
  [[nodiscard]] std::string subject() const;
  // The process as it is has every SM and should not.
  [[nodiscard]] bool unconfined() const;
};

// What is verified: a stream of `mode`, made for this purpose; the mode must confine. Without a
// mode, the process as it is.
struct VerifyPlan {
  std::uint32_t device = 0;
  partition::TpcChoice choice;
  std::optional<Mode> mode;
  std::uint32_t blocks_per_sm = 64;
};

// It is an error only if the probe could not run. If a partition does not hold, the report says so.
// missing_capability if TPCs are listed and no number names an SM.
[[nodiscard]] Result<VerifyReport> verify(const VerifyPlan& plan);

[[nodiscard]] std::string report_to_text(const VerifyReport& report);
[[nodiscard]] std::string report_to_json(const VerifyReport& report);  // schema demarc.verify/2

}  // namespace demarc::cuda
