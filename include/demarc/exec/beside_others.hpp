// What others have of a card, for a program that uses all of it.
#pragma once

#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

// A sentence on demarc serve, and on each demarc exec with TPCs of its own, that have parts of card
// `index`, by what they claim (lease::CardClaim). Empty where there are none, and in a program that
// itself runs under demarc exec. missing_capability without a driver or such a card.
[[nodiscard]] Result<std::string> what_others_have(std::uint32_t index);

}  // namespace demarc::cuda
