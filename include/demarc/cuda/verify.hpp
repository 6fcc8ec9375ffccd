// Proof from inside the GPU that the partition this process runs in holds, whoever set it up:
// demarc exec, MPS, or nobody. Blocks are launched over every path and counted where they ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/cuda/backend.hpp"
#include "demarc/cuda/confine.hpp"

namespace demarc::cuda {

struct VerifyPath {
  std::string name;  // "stream", "default stream", "graph"
  Placement placement;
  std::uint64_t outside = 0;
};

struct VerifyReport {
  std::string card;
  std::uint32_t sms = 0;  // of the card, as this process sees it
  partition::TpcSet expected;
  std::uint32_t expected_sms = 0;
  std::vector<VerifyPath> paths;
  // The SMs used are numbered from 0 without a gap although others were expected: inside MPS the
  // numbers are relative, so only their count could be checked.
  bool relative = false;
  bool holds = false;
};

// What is verified: the process as it is, or a lane of `mode` made for the purpose.
struct VerifyPlan {
  std::uint32_t device = 0;
  TpcChoice choice;
  Mode mode = Mode::none;
  std::uint32_t blocks_per_sm = 64;
};

// An error only when the probe could not run; a partition that does not hold is a report.
[[nodiscard]] Result<VerifyReport> verify(const VerifyPlan& plan);

[[nodiscard]] std::string report_to_text(const VerifyReport& report);
[[nodiscard]] std::string report_to_json(const VerifyReport& report);  // schema demarc.verify/1

}  // namespace demarc::cuda
