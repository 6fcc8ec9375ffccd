// Physical address -> slice, set, bank, row: linear hashes by table, then the modulo stage and the
// constants of pages.
#pragma once

#include <array>
#include <cstdint>

#include "demarc/sim/memory/spec.hpp"

namespace demarc::sim::memory {

struct Place {
  std::uint32_t slice = 0;
  std::uint32_t set = 0;
  std::uint32_t bank = 0;
  std::uint32_t row = 0;
};

// Takes line numbers (byte address >> line_shift), below 2^32.
class AddressDecoder {
 public:
  explicit AddressDecoder(const AddressSpec& spec);

  [[nodiscard]] Place operator()(std::uint32_t line) const {
    const std::uint64_t all = tables_[0][line & 255U] ^ tables_[1][(line >> 8U) & 255U] ^
                              tables_[2][(line >> 16U) & 255U] ^ tables_[3][line >> 24U];
    auto module = static_cast<std::uint32_t>(all & 0xffffU);
    Place place;
    place.set = static_cast<std::uint32_t>((all >> 16U) & 0xffffU);
    place.bank = static_cast<std::uint32_t>((all >> 32U) & 0xffU);
    place.row = line >> row_shift_;
    if (page_shift_ == 0) {
      place.slice = modulus_ == 1
                        ? module
                        : module * modulus_ + static_cast<std::uint32_t>(all >> 40U) % modulus_;
      return place;
    }
    const std::uint64_t constant = constant_of(line >> page_shift_);
    module ^= static_cast<std::uint32_t>(constant) & module_mask_;
    const auto shift = static_cast<std::uint32_t>(constant >> 32U);
    place.slice = module * modulus_ + (static_cast<std::uint32_t>(all >> 40U) + shift) % modulus_;
    return place;
  }

  // What page `page` adds to the module index; 0 where addresses are physical throughout.
  [[nodiscard]] std::uint32_t page_constant(std::uint64_t page) const;

 private:
  [[nodiscard]] std::uint64_t constant_of(std::uint64_t page) const;

  std::array<std::array<std::uint64_t, 256>, 4> tables_{};  // small: they stay in a core's cache
  std::uint32_t row_shift_;
  std::uint32_t page_shift_ = 0;  // of lines
  std::uint32_t module_mask_ = 0;
  std::uint32_t modulus_ = 1;
  std::uint64_t seed_;
};

}  // namespace demarc::sim::memory
