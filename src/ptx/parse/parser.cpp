// Parses PTX text or files into modules, and refuses programs and archives with an error that says
// what they are.
#include "demarc/ptx/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "demarc/base/files.hpp"
#include "parse/module_reader.hpp"

namespace demarc::ptx {
namespace {

// What is given for PTX and may hold some, by its first bytes; and what takes it out.
struct Container {
  std::string_view magic;
  std::string_view what;
  std::string_view command;
};
// clang-format off
constexpr Container containers[] = {
    {"\x7f" "ELF", "a program or a library", "demarc ptx --extract DIR"},
    {"\x50\xed\x55\xba", "a fat binary", "demarc ptx --extract DIR"},
    {"!<arch>\n", "an archive", "ar x"},
};
// clang-format on

// An ELF file names its machine in these bytes; of a cubin it is EM_CUDA.
bool is_cubin(std::string_view text) {
  constexpr std::size_t machine = 18;
  return text.starts_with(
             "\x7f"
             "ELF") &&
         text.substr(0, machine + 2).ends_with(std::string_view("\xbe\0", 2));
}

// From the first character that belongs to no comment.
std::string_view after_comments(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    std::string_view end;
    if (text.starts_with("//")) end = "\n";
    if (text.starts_with("/*")) end = "*/";
    if (end.empty()) return text;
    text.remove_prefix(std::min(text.find(end, 2), text.size() - end.size()) + end.size());
  }
}

// A module begins with a directive; a C++ file without kernels goes by its name.
bool is_source(std::string_view text, std::string_view name) {
  if (after_comments(text).starts_with('.')) return false;
  return name.ends_with(".cu") || text.find("__global__") != std::string_view::npos;
}

}  // namespace

Result<void> check_is_text(std::string_view text, std::string_view source_name) {
  if (text.size() >= std::numeric_limits<std::uint32_t>::max())
    return invalid_input("the text is larger than 4 GiB");
  if (is_cubin(text)) {
    return invalid_input(
        "this is a cubin, which holds machine code and not PTX; 'nvcc -ptx -o KERNEL.ptx "
        "KERNEL.cu' "
        "makes PTX from the source");
  }
  if (is_source(text, source_name)) {
    std::filesystem::path made(source_name);
    made.replace_extension(".ptx");
    return invalid_input("this is CUDA source, not PTX; 'nvcc -ptx -o {} {}' makes PTX from it",
                         made.string(), source_name);
  }
  for (const Container& container : containers) {
    if (text.starts_with(container.magic)) {
      return invalid_input("this is {}, not PTX text; '{} {}' extracts what it holds",
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
  Reading reading(module, *module.text, options);
  ModuleReader(reading).parse_module();
  result.diagnostics = reading.reporter.take();
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
