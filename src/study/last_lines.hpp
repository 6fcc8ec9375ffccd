// What a program said last, for messages.
#pragma once

#include <string>
#include <string_view>

namespace demarc::study {

// The last lines of what a program wrote, on one line; "nothing" when it wrote nothing.
[[nodiscard]] std::string last_lines(std::string_view text);

}  // namespace demarc::study
