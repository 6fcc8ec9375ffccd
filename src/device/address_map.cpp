// Computes hash bits of addresses, and the masks that are constant on blocks of a size.
#include "demarc/device/address_map.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "demarc/base/gf2.hpp"

namespace demarc::gpu {
namespace {

std::uint64_t reverse_bits(std::uint64_t word) {
  std::uint64_t reversed = 0;
  for (int bit = 0; bit < 64; ++bit) reversed |= ((word >> bit) & 1U) << (63 - bit);
  return reversed;
}

Result<void> check_rows(const LinearHash& hash, const AddressMap& map, const std::string& where,
                        const char* name) {
  if (hash.rows.size() > 31) {
    return invalid_input("{}: {} has {} rows; at most 31 are possible", where, name,
                         hash.rows.size());
  }
  const std::uint64_t allowed =
      map.address_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << map.address_bits) - 1;
  for (std::size_t i = 0; i < hash.rows.size(); ++i) {
    if ((hash.rows[i] & ~allowed) != 0) {
      return invalid_input("{}: {} row {} uses bits above address_bits = {}", where, name, i,
                           map.address_bits);
    }
  }
  if (gf2_rank(hash.rows) != hash.rows.size()) {
    return invalid_input("{}: the rows of {} depend on each other; every row must add a bit", where,
                         name);
  }
  return {};
}

}  // namespace

std::uint32_t LinearHash::operator()(std::uint64_t address) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) value |= parity(address, rows[i]) << i;
  return value;
}

std::uint32_t ModuloStage::operator()(std::uint64_t address, std::uint32_t page_constant) const {
  return (number(address) % modulus + page_constant % modulus) % modulus;
}

Result<void> check_address_map(const AddressMap& map, const std::string& where) {
  if (map.address_bits > 64) {
    return invalid_input("{}: address_bits is {}; at most 64", where, map.address_bits);
  }
  if (map.page_bytes != 0 &&
      (!std::has_single_bit(map.page_bytes) ||
       map.address_bits > static_cast<unsigned>(std::countr_zero(map.page_bytes)))) {
    return invalid_input(
        "{}: page_bytes must be 0 or a power of two of at least address_bits = {} bits, not {}",
        where, map.address_bits, map.page_bytes);
  }
  if (map.interleave_bytes != 0 && !std::has_single_bit(map.interleave_bytes)) {
    return invalid_input("{}: interleave_bytes must be a power of two, not {}", where,
                         map.interleave_bytes);
  }
  DEMARC_CHECK(check_rows(map.module, map, where, "module"));
  DEMARC_CHECK(check_rows(map.bank, map, where, "bank"));
  DEMARC_CHECK(check_rows(map.set, map, where, "set"));
  if (map.stack) {
    DEMARC_CHECK(check_rows(map.stack->number, map, where, "stack"));
    if (map.stack->modulus < 2) {
      return invalid_input("{}: the modulus of stack must be at least 2", where);
    }
  }
  const std::uint32_t modulus = map.stack ? map.stack->modulus : 0;
  if (!map.remainder_runs.empty() &&
      std::accumulate(map.remainder_runs.begin(), map.remainder_runs.end(), 0U) != modulus) {
    return invalid_input("{}: remainder_runs must add up to the modulus of stack, {}", where,
                         modulus);
  }
  if (map.table) {
    const auto& table = *map.table;
    if (table.chunk_bytes == 0 || map.page_bytes % table.chunk_bytes != 0) {
      return invalid_input("{}: table.chunk_bytes must divide page_bytes", where);
    }
    for (const auto& kind : table.page_kinds) {
      if (kind.size() != map.page_bytes / table.chunk_bytes) {
        return invalid_input("{}: a page kind of the table has {} chunks; a page has {}", where,
                             kind.size(), map.page_bytes / table.chunk_bytes);
      }
    }
  }
  return {};
}

std::vector<std::uint64_t> low_pivot_basis(std::span<const std::uint64_t> rows) {
  std::vector<std::uint64_t> reversed;
  reversed.reserve(rows.size());
  for (const auto row : rows) reversed.push_back(reverse_bits(row));
  auto basis = gf2_row_basis(reversed);
  for (auto& row : basis) row = reverse_bits(row);
  std::sort(basis.begin(), basis.end(), [](std::uint64_t a, std::uint64_t b) {
    return std::countr_zero(a) < std::countr_zero(b);
  });
  return basis;
}

std::vector<std::uint64_t> masks_at_granularity(std::span<const std::uint64_t> rows,
                                                std::uint64_t granularity) {
  auto basis = low_pivot_basis(rows);
  std::erase_if(basis, [&](std::uint64_t row) { return (row & (granularity - 1)) != 0; });
  return basis;
}

std::vector<std::uint64_t> common_masks(std::span<const std::uint64_t> a,
                                        std::span<const std::uint64_t> b) {
  // A mask is in both spans when it annihilates everything that either of them annihilates.
  std::uint64_t columns = 0;
  for (const auto row : a) columns |= row;
  for (const auto row : b) columns |= row;
  auto annihilated = gf2_null_space(a, columns);
  const auto more = gf2_null_space(b, columns);
  annihilated.insert(annihilated.end(), more.begin(), more.end());
  return low_pivot_basis(gf2_null_space(annihilated, columns));
}

}  // namespace demarc::gpu
