// PTX text -> IR. After an error the parser goes on at the next statement, so one run reports every
// error.
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
  std::size_t max_diagnostics = 10'000;  // listed; all are counted
  std::size_t deepest_scope = 1'000;     // nested { }; more is an error
};

struct ParseResult {
  Module module;  // what could be read; complete when diagnostics.ok()
  Diagnostics diagnostics;
};

// An error if `text` is not text but a file that may contain PTX (a program, a fat binary, an
// archive). The error says which command takes the PTX out of `source_name`. Text of 4 GiB and more
// is also an error.
[[nodiscard]] Result<void> check_is_text(std::string_view text, std::string_view source_name);

// `source_name` stands in the messages. What check_is_text() refuses is one diagnostic.
[[nodiscard]] ParseResult parse(std::string text, std::string source_name,
                                const ParseOptions& options = {});

// For callers that need the whole module: malformed text is an error that lists everything that is
// wrong with it.
[[nodiscard]] Result<Module> parse_whole(std::string text, std::string source_name);

// The same for a file.
[[nodiscard]] Result<Module> load_module(const std::filesystem::path& path);

}  // namespace demarc::ptx
