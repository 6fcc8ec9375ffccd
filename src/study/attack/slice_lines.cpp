// Finds which lines of a page lie in one L2 slice: those with the first line's hash.
#include "attack/slice_lines.hpp"

namespace demarc::study {

Result<std::vector<std::uint32_t>> one_slice_lines(const gpu::Device& card) {
  constexpr std::uint32_t whole_page = 1U << 21U;
  constexpr std::uint32_t line = 128;
  if (!card.address_map) {
    return missing_capability("the description of {} has no address map, so no slice is known",
                              card.name);
  }
  const gpu::AddressMap& map = *card.address_map;
  if (map.module.empty() && !map.stack) {
    return missing_capability("the address map of {} does not say which slice an address has",
                              card.name);
  }
  if (map.stack && map.page_bytes == 0) {
    return missing_capability(
        "slices of {} are remainders of physical addresses, whose bits above a page are not known",
        card.name);
  }
  std::vector<std::uint32_t> lines;
  const std::uint32_t stack = map.stack ? (*map.stack)(0) : 0;
  for (std::uint32_t offset = 0; offset < whole_page; offset += line) {
    if (map.module(offset) != map.module(0)) continue;
    if (map.stack && (*map.stack)(offset) != stack) continue;
    lines.push_back(offset);
  }
  return lines;
}

}  // namespace demarc::study
