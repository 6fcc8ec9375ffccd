// The PTX of an image that a card can compile, as the driver would choose it.
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

// Of the entries with PTX that a card of compute capability `sm` (90: 9.0) can run, the one with
// the highest target. An error, of kind missing_capability, where there is none says what there is;
// others say that two have the same target, or that the text is for another target than its entry.
[[nodiscard]] Result<PtxCode> best_ptx(std::span<const Entry> entries, std::uint32_t sm,
                                       std::string_view name);

// The same of a whole image: a PTX text is its only entry, a cubin has none. Of an image that was
// linked from one other (Image::prelinked) it is that one's; linked from several it is refused, of
// kind missing_capability: their PTX are parts.
[[nodiscard]] Result<PtxCode> best_ptx(const Image& image, std::uint32_t sm, std::string_view name);

}  // namespace demarc::fatbin
