// A partitioning mode of the study: how the SMs are divided, and whether the memory is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::study {

// "mask+color" is {mask, true}. With colours a mode is what the paper calls CMP (compute and memory
// partition), without them CP (compute partition) [Fractional GPUs, section VI].
struct Mode {
  std::string back_end;  // one of back_end_names()
  bool color = false;

  [[nodiscard]] std::string name() const { return color ? back_end + "+color" : back_end; }
  friend bool operator==(const Mode&, const Mode&) = default;
};

// none timeslice mps green mask affinity
[[nodiscard]] const std::vector<std::string>& back_end_names();

// A comma list; an unknown or repeated mode is an error that lists what exists.
[[nodiscard]] Result<std::vector<Mode>> parse_modes(std::string_view text);

}  // namespace demarc::study
