// What a user is told whose command line cannot be read.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace demarc::cli {

// A line in the form of all errors, and where the line as a whole is wrong a second one with the
// usage. `app` is the program, whose parse() threw `error`.
[[nodiscard]] std::string refusal_of(const CLI::App& app, const CLI::ParseError& error);

// "there is no verb 'islate'; did you mean isolate? …"
[[nodiscard]] std::string unknown_verb_text(std::string_view verb);

}  // namespace demarc::cli
