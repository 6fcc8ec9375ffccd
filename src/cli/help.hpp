// The look of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>
#include <string>

namespace demarc::cli {

// For the program's App; its verbs take it over.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

// Puts options that were declared under a heading of their own.
void group_options(CLI::App& app, const std::string& heading,
                   std::initializer_list<const char*> options);

}  // namespace demarc::cli
