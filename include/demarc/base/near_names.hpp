// Names that somebody may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace demarc {

// Letters to change, to add, to leave out and pairs to swap, until one is the other; only the first
// 64 letters of each are compared.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// At most three of `names` that differ by a third of their letters or by one, the nearest first;
// capital letters are no difference.
[[nodiscard]] std::vector<std::string> near_names(std::string_view name,
                                                  std::span<const std::string> names);

// "; did you mean isolate?", or nothing where no name is near.
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> names);

}  // namespace demarc
