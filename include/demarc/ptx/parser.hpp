// PTX text -> IR. Recovers at the next statement: one run reports every error.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/ptx/diagnostic.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct ParseOptions {
  std::size_t most_diagnostics = 10'000;  // listed; all are counted
  std::size_t deepest_scope = 1'000;      // nested { }; more is an error
};

struct ParseResult {
  Module module;  // what could be read; complete when diagnostics.ok()
  Diagnostics diagnostics;
};

// An error where `text` is no text, but a file that holds PTX at best (a program, a fat binary, an
// archive); it says which command takes that out of `source_name`. Also for 4 GiB and more.
[[nodiscard]] Result<void> check_is_text(std::string_view text, std::string_view source_name);

// `source_name` stands in the messages. What check_is_text() refuses is one diagnostic.
[[nodiscard]] ParseResult parse(std::string text, std::string source_name,
                                const ParseOptions& options = {});

// For who needs the whole module: malformed text is an error that lists all that is wrong with it.
[[nodiscard]] Result<Module> parse_whole(std::string text, std::string source_name);

// The same of a file.
[[nodiscard]] Result<Module> load_module(const std::filesystem::path& path);

}  // namespace demarc::ptx
