// Physical address -> slice, set, bank, row: linear hashes by table, then the modulo stage and the
// constants of pages.
#pragma once

#include <array>
#include <cstdint>

#include "demarc/sim/memory/spec.hpp"

namespace demarc::sim::memory {

using SetInSlice = Index<struct SetInSliceTag>;
using BankInSlice = Index<struct BankInSliceTag>;  // of its channel
using RowNumber = Index<struct RowNumberTag>;
// Of AddressSpec::page_bytes.
using PageNumber = Index<struct PageNumberTag, std::uint64_t>;

struct Place {
  SliceIndex slice;
  SetInSlice set;
  BankInSlice bank;
  RowNumber row;
};

class AddressDecoder {
 public:
  explicit AddressDecoder(const AddressSpec& spec);

  [[nodiscard]] Place operator()(LineNumber number) const {
    const std::uint32_t line = number.raw();
    const std::uint64_t all = tables_[0][line & 255U] ^ tables_[1][(line >> 8U) & 255U] ^
                              tables_[2][(line >> 16U) & 255U] ^ tables_[3][line >> 24U];
    auto module = static_cast<std::uint32_t>(all & 0xffffU);
    Place place;
    place.set = SetInSlice((all >> 16U) & 0xffffU);
    place.bank = BankInSlice((all >> 32U) & 0xffU);
    place.row = RowNumber(line >> row_shift_);
    if (page_shift_ == 0) {
      place.slice = SliceIndex(
          modulus_ == 1 ? module
                        : module * modulus_ + static_cast<std::uint32_t>(all >> 40U) % modulus_);
      return place;
    }
    const std::uint64_t constant = constant_of(PageNumber(line >> page_shift_));
    module ^= static_cast<std::uint32_t>(constant) & module_mask_;
    const auto shift = static_cast<std::uint32_t>(constant >> 32U);
    place.slice =
        SliceIndex(module * modulus_ + (static_cast<std::uint32_t>(all >> 40U) + shift) % modulus_);
    return place;
  }

  // What a page adds to the module index; 0 where addresses are physical throughout.
  [[nodiscard]] std::uint32_t page_constant(PageNumber page) const;

 private:
  [[nodiscard]] std::uint64_t constant_of(PageNumber page) const;

  std::array<std::array<std::uint64_t, 256>, 4> tables_{};  // small: they stay in a core's cache
  std::uint32_t row_shift_;
  std::uint32_t page_shift_ = 0;  // of lines
  std::uint32_t module_mask_ = 0;
  std::uint32_t modulus_ = 1;
  std::uint64_t seed_;
};

}  // namespace demarc::sim::memory
