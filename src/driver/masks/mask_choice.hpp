// The mask that a launch gets, of those that are wanted for it: the rules, without a GPU.
#pragma once

#include "demarc/driver/descriptor.hpp"

namespace demarc::cuda {

// What is known when a descriptor passes; nullptr: no such mask.
struct WantedMasks {
  const HardwareMask* own = nullptr;     // of the next launch, else of the stream, else the process
  bool own_of_process = false;           // `own` is the process's
  const HardwareMask* driver = nullptr;  // the driver's own, of the stream: in the descriptor
  const HardwareMask* ceiling = nullptr;  // no launch may leave it
};

struct MaskChoice {
  enum class Kind {
    none,   // no mask is wanted
    keep,   // the driver's, as it stands in the descriptor
    write,  // `mask`
    empty,  // what is wanted leaves nothing of the ceiling: refuse; `mask` is the ceiling alone
  };
  Kind kind = Kind::none;
  HardwareMask mask;
};

// The finest mask wins: next launch, stream (ours or the driver's), process. Under a ceiling the
// launch gets what both the winner and the ceiling leave.
[[nodiscard]] MaskChoice choose_mask(const WantedMasks& wanted);

}  // namespace demarc::cuda
