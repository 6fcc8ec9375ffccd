// Finds the PTX of an image that a card can compile, as the driver would choose it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/entry.hpp"
#include "demarc/fatbin/image.hpp"

namespace demarc::fatbin {

struct PtxCode {
  Target target;
  std::string options;  // for ptxas, as nvcc was given them: " -maxrregcount=32 "; mostly empty
  std::string text;
};

// Takes the entries with PTX that a card of compute capability `sm` (90: 9.0) can run, and returns
// the one with the highest target. If there is none, the error missing_capability says what there
// is. Other errors say that two have the same target, or that the text is for another target than
// its entry.
[[nodiscard]] Result<PtxCode> best_ptx(std::span<const Entry> entries, std::uint32_t sm,
                                       std::string_view name);

// The same for a whole image. A PTX text is its only entry; a cubin has none. If an image was
// linked from one other (Image::prelinked), the PTX is that one's. If it was linked from several,
// the error is missing_capability, because each has only a part of the PTX.
[[nodiscard]] Result<PtxCode> best_ptx(const Image& image, std::uint32_t sm, std::string_view name);

}  // namespace demarc::fatbin
