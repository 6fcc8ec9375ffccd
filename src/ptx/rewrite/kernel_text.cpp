// Finds the places in a kernel's text that passes change.
#include "rewrite/kernel_text.hpp"

#include "demarc/ptx/parser.hpp"

namespace demarc::ptx {
namespace {

// Offset behind the comment or string at `at`, or `at` when there is none.
std::size_t behind_comment(std::string_view text, std::size_t at) {
  std::size_t end = at;
  if (text.substr(at, 2) == "//") {
    end = text.find('\n', at);
  } else if (text.substr(at, 2) == "/*") {
    end = text.find("*/", at + 2);
    if (end != std::string_view::npos) end += 2;
  } else if (text[at] == '"') {
    end = text.find('"', at + 1);
    if (end != std::string_view::npos) ++end;
  }
  return end == std::string_view::npos ? text.size() : end;
}

// First of `wanted` from `at` on, comments and strings left out.
std::size_t find_outside_comments(std::string_view text, std::string_view wanted, std::size_t at) {
  while (at < text.size()) {
    const std::size_t next = behind_comment(text, at);
    if (next != at) {
      at = next;
    } else if (wanted.find(text[at]) != std::string_view::npos) {
      return at;
    } else {
      ++at;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Result<KernelText> find_kernel_text(const Module& module, const Function& kernel) {
  const std::string_view text = *module.text;
  const bool bare = kernel.parameters.empty();
  const auto start =
      bare ? static_cast<std::size_t>(kernel.name.data() - text.data()) + kernel.name.size()
           : std::size_t{kernel.parameters.back().text_offset};
  KernelText found;
  found.parameters_end = find_outside_comments(text, bare ? "(.{" : ")", start);
  if (bare && found.parameters_end != std::string_view::npos) {
    found.has_list = text[found.parameters_end] == '(';
    found.parameters_end =
        found.has_list ? find_outside_comments(text, ")", found.parameters_end) : start;
  }
  const std::size_t open = find_outside_comments(text, "{", found.parameters_end);
  std::size_t depth = 0;
  for (std::size_t at = open; at != std::string_view::npos;
       at = find_outside_comments(text, "{}", at + 1)) {
    depth += text[at] == '{' ? 1U : std::size_t(-1);
    if (depth == 0) {
      found.body = open + 1;
      found.body_end = at;
      return found;
    }
  }
  return invalid_input("{}:{}: the body of kernel '{}' cannot be found", module.source_name,
                       kernel.line, kernel.name);
}

Splice added_parameters(const Function& kernel, const KernelText& places, std::string_view text) {
  if (!places.has_list) return {places.parameters_end, 0, fmt::format("({})", text)};
  return {places.parameters_end, 0,
          fmt::format("{}{}", kernel.parameters.empty() ? "" : ",", text)};
}

void replace_in(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

std::string leave_by_branch(std::string_view written, std::string_view label) {
  // The mnemonic is the last word: "@%p1 ret;", "ret.uni;".
  const std::size_t end = written.find_last_not_of("; \t\n");
  const std::size_t begin = written.find_last_of(" \t\n", end);
  const std::size_t word = begin == std::string_view::npos ? 0 : begin + 1;
  const bool uniform = written.substr(word, end + 1 - word).ends_with(".uni");
  return fmt::format("{}{} \t{};", written.substr(0, word), uniform ? "bra.uni" : "bra", label);
}

}  // namespace demarc::ptx
