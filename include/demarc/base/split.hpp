// Text cut at a character.
#pragma once

#include <string_view>
#include <vector>

namespace demarc {

// The pieces of `text` between `separator`s, one more than there are of these. They refer to it.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char separator);

}  // namespace demarc
