// Finds the end of a PTX text, and the target that it names.
#include "ptx_text.hpp"

#include <algorithm>

#include "bytes.hpp"

namespace demarc::fatbin {
namespace {

constexpr std::string_view blanks = " \t\n\v\f\r";

// Bytes that a PTX text may have; those from 0x80 on stand in comments and names of files.
constexpr bool is_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || blanks.find(c) != std::string_view::npos;
}

// Where the first directive begins, behind blanks and comments; the end where there is none.
std::size_t skip_comments(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (blanks.find(text[at]) != std::string_view::npos) {
      ++at;
    } else if (begins_with(text.substr(at), "//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (begins_with(text.substr(at), "/*")) {
      const auto end = text.find("*/", at + 2);
      if (end == std::string_view::npos) return text.size();
      at = end + 2;
    } else {
      break;
    }
  }
  return at;
}

}  // namespace

Result<std::string_view> ptx_text(std::string_view bytes, std::string_view name) {
  // What is not PTX at all is found out by its first byte, before all of it is looked at.
  const auto end = std::ranges::find_if_not(bytes, is_text) - bytes.begin();
  const std::string_view text = bytes.substr(0, static_cast<std::size_t>(end));
  if (text.size() < bytes.size() && bytes[text.size()] != '\0') {
    return invalid_input("{}: byte {} is {:#04x}: neither PTX text nor a cubin nor a fat binary",
                         name, text.size(), static_cast<unsigned char>(bytes[text.size()]));
  }
  if (!begins_with(text.substr(skip_comments(text)), ".version"))
    return invalid_input("{}: text that is not PTX: '.version' was expected first", name);
  return text;
}

// A head is `.version 9.0 .target sm_90, debug`, with blanks and comments between the words.
Result<Target> stated_target(std::string_view text, std::string_view name) {
  const auto next_word = [&] {
    text.remove_prefix(skip_comments(text));
    const auto word = text.substr(0, text.find_first_of(" \t\n\v\f\r,/"));
    text.remove_prefix(word.size());
    return word;
  };
  (void)next_word();  // .version
  (void)next_word();  // its number
  if (next_word() != ".target")
    return invalid_input("{}: PTX without '.target' behind its '.version'", name);
  auto target = parse_target(next_word());
  if (!target) return invalid_input("{}: {}", name, target.error().message);
  return *target;
}

}  // namespace demarc::fatbin
