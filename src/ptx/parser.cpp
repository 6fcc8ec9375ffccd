// Parses PTX text or files into modules, and refuses programs and archives by name.
#include "demarc/ptx/parser.hpp"

#include <fmt/format.h>

#include <limits>

#include "demarc/base/files.hpp"
#include "parse_state.hpp"

namespace demarc::ptx {
namespace {

// What is given for PTX and holds PTX at best, by its first bytes; and what takes it out.
struct Container {
  std::string_view magic;
  std::string_view what;
  std::string_view command;
};
// clang-format off
constexpr Container containers[] = {
    {"\x7f" "ELF", "a program, a library or a cubin", "demarc ptx --extract DIR"},
    {"\x50\xed\x55\xba", "a fat binary", "demarc ptx --extract DIR"},
    {"!<arch>\n", "an archive", "ar x"},
};
// clang-format on

}  // namespace

Result<void> check_is_text(std::string_view text, std::string_view source_name) {
  if (text.size() >= std::numeric_limits<std::uint32_t>::max())
    return invalid_input("the text is larger than 4 GiB");
  for (const Container& container : containers) {
    if (text.starts_with(container.magic)) {
      return invalid_input("this is {}, and no PTX text; '{} {}' takes out what it holds",
                           container.what, container.command, source_name);
    }
  }
  return {};
}

ParseResult parse(std::string text, std::string source_name, const ParseOptions& options) {
  ParseResult result;
  Module& module = result.module;
  module.source_name = std::move(source_name);
  module.text = std::make_shared<const std::string>(std::move(text));
  module.made_text = std::make_shared<std::deque<std::string>>();
  if (auto checked = check_is_text(*module.text, module.source_name); !checked) {
    result.diagnostics.list.push_back(
        {Severity::malformed, 1, 1, std::move(checked.error().message), ""});
    result.diagnostics.malformed = 1;
    return result;
  }
  Parser parser(module, *module.text, options);
  parser.parse_module();
  result.diagnostics = parser.take_diagnostics();
  return result;
}

Result<Module> parse_whole(std::string text, std::string source_name) {
  ParseResult result = parse(std::move(text), std::move(source_name));
  if (result.diagnostics.ok()) return std::move(result.module);
  std::string message;
  std::uint64_t shown = 0;
  for (const Diagnostic& diagnostic : result.diagnostics.list) {
    if (diagnostic.severity != Severity::malformed) continue;
    if (shown++ > 0) message += "\n";
    message += format(diagnostic, result.module.source_name);
  }
  if (result.diagnostics.malformed > shown) {
    message += fmt::format("\n... and {} more", result.diagnostics.malformed - shown);
  }
  return invalid_input("{}", message);
}

Result<Module> load_module(const std::filesystem::path& path) {
  DEMARC_TRY(std::string text, read_file(path));
  return parse_whole(std::move(text), path.string());
}

}  // namespace demarc::ptx
