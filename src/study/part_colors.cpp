// Gives each part of a study its colour and refuses colours that the memory lacks.
#include "part_colors.hpp"

namespace demarc::study {

Result<std::vector<std::uint32_t>> colors_of_parts(std::uint32_t colors, std::uint32_t parts,
                                                   std::span<const std::uint32_t> chosen) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t part = 0; part < parts; ++part) {
    out.push_back(part < chosen.size() ? chosen[part] : part);
    if (out.back() >= colors) {
      return invalid_input("--colors: part {} has colour {}, but the memory has colours 0 to {}",
                           part, out.back(), colors - 1);
    }
  }
  return out;
}

}  // namespace demarc::study
