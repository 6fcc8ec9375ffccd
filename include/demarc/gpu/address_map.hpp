// How addresses are spread over the memory system: which module, bank and cache set a byte lies in.
#pragma once

#include <cstdint>
#include <vector>

namespace demarc::gpu {

// Each index bit is the parity of (address & mask), bit 0 of the index first; the published
// functions of Fractional GPUs (RTAS 2019, section 5) have this form.
struct AddressMap {
  std::vector<std::uint64_t> module_masks;
  std::vector<std::uint64_t> bank_masks;
  std::vector<std::uint64_t> set_masks;

  friend bool operator==(const AddressMap&, const AddressMap&) = default;
};

}  // namespace demarc::gpu
