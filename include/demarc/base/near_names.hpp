// Names that the user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace demarc {

// The number of changes that turn one name into the other: letters changed, added or left out, and
// pairs swapped. Only the first 64 letters of each are compared.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// At most three of `names` that differ by at most a third of their letters, or by one letter. The
// nearest comes first. Capital letters make no difference.
[[nodiscard]] std::vector<std::string> near_names(std::string_view name,
                                                  std::span<const std::string> names);

// "; did you mean isolate?", or nothing if no name is near.
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> names);
// The same, followed by the command that shows all names: "; did you mean isolate? demarc --help
// shows all".
[[nodiscard]] std::string did_you_mean(std::string_view name, std::span<const std::string> names,
                                       std::string_view command);

}  // namespace demarc
