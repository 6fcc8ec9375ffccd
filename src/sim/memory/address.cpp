// Makes the tables of a decoder, and the constants of pages.
#include "demarc/sim/memory/address.hpp"

#include <bit>

#include "demarc/base/hash.hpp"

namespace demarc::sim::memory {

AddressDecoder::AddressDecoder(const AddressSpec& spec)
    : row_shift_(spec.row_shift - line_shift),
      module_mask_(spec.module.count() - 1),
      modulus_(spec.stack.modulus),
      seed_(spec.seed) {
  if (spec.page_bytes != 0) {
    page_shift_ = static_cast<std::uint32_t>(std::countr_zero(spec.page_bytes)) - line_shift;
  }
  for (std::size_t table = 0; table < tables_.size(); ++table) {
    for (std::uint64_t i = 0; i < tables_[table].size(); ++i) {
      const std::uint64_t address = (i << (8 * table)) << line_shift;
      tables_[table][i] = std::uint64_t{spec.module(address)} |
                          (std::uint64_t{spec.set(address)} << 16U) |
                          (std::uint64_t{spec.bank(address)} << 32U) |
                          (std::uint64_t{spec.stack.number(address)} << 40U);
    }
  }
}

std::uint64_t AddressDecoder::constant_of(PageNumber page) const {
  const std::uint64_t x = stirred(page.raw() + seed_ * 0x9e3779b97f4a7c15ULL);
  // The upper half becomes the shift of the modulo stage: small, so that sums do not wrap.
  return (x & 0xffffffffU) | (((x >> 32U) % 1021U) << 32U);
}

std::uint32_t AddressDecoder::page_constant(PageNumber page) const {
  if (page_shift_ == 0) return 0;
  return static_cast<std::uint32_t>(constant_of(page)) & module_mask_;
}

}  // namespace demarc::sim::memory
