// The look of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace demarc::cli {

// For the program's App; its verbs take it over.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace demarc::cli
