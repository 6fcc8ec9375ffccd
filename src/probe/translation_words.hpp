// What is said of a probed translation.
#pragma once

#include "demarc/probe/translation.hpp"

namespace demarc::probe {

[[nodiscard]] std::vector<std::string> verdict_of(const TranslationReport& report);

// "2 MiB", "1.5 GiB", "96 B"
[[nodiscard]] std::string size_text(std::uint64_t bytes);
// "local memory in pieces of 2 MiB, read every 2 MiB"
[[nodiscard]] std::string mapping_text(const Mapping& mapping);
[[nodiscard]] std::string_view name_of(Traffic::Kind kind);

}  // namespace demarc::probe
