// Text cut at a character.
#pragma once

#include <string_view>
#include <vector>

namespace demarc {

// The pieces of `text` between `separator`s; there is one more piece than separators. The pieces
// refer to `text`.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char separator);

}  // namespace demarc
