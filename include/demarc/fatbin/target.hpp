// The target of device code: an architecture, and which others can run PTX for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

// Ordered by how much a target may use of its architecture, the least first.
enum class TargetScope : std::uint8_t {
  any,           // sm_90: PTX of it runs on every later architecture
  family,        // sm_100f: on those of its family
  architecture,  // sm_90a: on its own alone
};

struct Target {
  std::uint32_t sm = 0;  // 10 times the compute capability: 90
  TargetScope scope = TargetScope::any;

  friend auto operator<=>(const Target&, const Target&) = default;
};

[[nodiscard]] std::string name(Target target);  // "sm_90a"
[[nodiscard]] Result<Target> parse_target(std::string_view text);

// Whether a card of compute capability `sm` (90: 9.0) can compile PTX for that target. An unknown
// family has one member.
[[nodiscard]] bool runs_ptx(std::uint32_t sm, Target target);

// Whether it runs machine code for that target as it is.
[[nodiscard]] bool runs_machine_code(std::uint32_t sm, Target target);

}  // namespace demarc::fatbin
