// What of an image a card can use: PTX that it compiles, or machine code alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/files.hpp"

namespace demarc::fatbin {

enum class CardCodeKind : std::uint8_t {
  none,          // no kernels
  ptx,           // PTX that the card can compile
  machine_code,  // machine code that the card runs as it is, and no such PTX
  other_cards,   // code for other cards alone
  for_linking,   // code that is to be linked while the program runs (LTO), and none of these
  unknown,       // code of a kind that is not known here, and no PTX or machine code for the card
};

struct CardCode {
  CardCodeKind kind = CardCodeKind::none;
  std::string ptx;                   // the text that best_ptx() chooses
  std::vector<std::string> kernels;  // names of machine code's, as machine_code_kernels() has them
};

// What one image has for a card of compute capability `sm` (90: 9.0). Only what the card can use is
// decompressed. What cannot be read is an error and never "none".
[[nodiscard]] Result<CardCode> card_code(const FileImage& image, std::uint32_t sm);

// The same for all images of one executable or library, in their order. A program that nvcc
// -rdc=true made has linked machine code, and beside it (section __nv_relfatbin) the images that it
// was linked from, which are not loaded themselves. If it was linked from one, it has that one's
// PTX.
[[nodiscard]] Result<std::vector<CardCode>> card_codes(const std::vector<FileImage>& images,
                                                       std::uint32_t sm);

}  // namespace demarc::fatbin
