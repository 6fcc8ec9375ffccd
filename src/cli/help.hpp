// The look of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace demarc::cli {

// For the program's App; its verbs take it over.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_formatter();

// The long names of an option with their dashes, without second spellings ("--colour").
[[nodiscard]] std::vector<std::string> shown_names(const CLI::Option& option);

// "Usage: demarc topo [OPTIONS]", of the app that the user calls `name`.
[[nodiscard]] std::string usage_of(const CLI::App& app, const std::string& name);

// Puts options that were declared under a heading of their own.
void group_options(CLI::App& app, const std::string& heading,
                   std::initializer_list<const char*> options);

}  // namespace demarc::cli
