// Basic steps of readers: errors, expected words, recovery at the next statement.
#include "parse/reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "parse/constant_expression.hpp"

namespace demarc::ptx {

bool TextReader::fail_at(std::uint32_t offset, std::string message) {
  reporter_.report(Severity::malformed, offset, std::move(message));
  return false;
}

bool TextReader::fail(std::string message) {
  return fail_at(cursor_.offset(), std::move(message));
}

void TextReader::unsupported(std::uint32_t offset, std::string message) {
  reporter_.report(Severity::unsupported, offset, std::move(message));
}

std::string TextReader::found() const {
  if (cursor_.done()) return "found the end of the text";
  const char* last = cursor_.at;
  while (Cursor::is(*last, char_name | char_start)) ++last;
  if (last == cursor_.at) ++last;
  return fmt::format("found '{}'",
                     excerpt({cursor_.at, static_cast<std::size_t>(last - cursor_.at)}, 40));
}

bool TextReader::expect(char c, std::string_view after) {
  if (cursor_.take(c)) return true;
  return fail(fmt::format("'{}' was expected after {}, {}", c, after, found()));
}

// Without white space at either end: what was read may have looked ahead over some.
std::string_view TextReader::text_since(const char* first) const {
  const char* last = cursor_.at;
  const auto is_space = [](char c) { return c == '\n' || Cursor::is(c, char_blank); };
  while (last > first && is_space(last[-1])) --last;
  while (first < last && is_space(*first)) ++first;
  return {first, static_cast<std::size_t>(last - first)};
}

std::string_view TextReader::word_after_dot() {
  if (!cursor_.is_next('.')) return {};
  const char* first = cursor_.at + 1;
  const char* last = first;
  while (Cursor::is(*last, char_name)) ++last;
  if (last == first) return {};
  cursor_.at = last;
  return {first, static_cast<std::size_t>(last - first)};
}

bool TextReader::read_uint(std::uint64_t most, std::string_view what, std::uint64_t& value) {
  cursor_.skip();
  const std::uint32_t offset = cursor_.offset();
  Constant constant;
  if (ConstantError error = read_number(cursor_, constant)) {
    return fail_at(offset, fmt::format("{}: {}, {}", what, error, found()));
  }
  if (is_float(constant) || constant.bits > most) {
    return fail_at(offset, fmt::format("{} must be an integer from 0 to {}", what, most));
  }
  value = constant.bits;
  return true;
}

bool TextReader::read_string(std::string_view& text) {
  cursor_.skip();
  if (!cursor_.is_next('"')) return fail("a string in quotes was expected, " + found());
  const char* first = cursor_.at + 1;
  const char* last = first;
  while (last < cursor_.end && *last != '"' && *last != '\n') ++last;
  if (last >= cursor_.end || *last != '"') return fail("a string is not closed on its line");
  text = {first, static_cast<std::size_t>(last - first)};
  cursor_.at = last + 1;
  return true;
}

bool TextReader::read_verbatim(const char* start, std::string_view& text) {
  while (true) {
    cursor_.skip();
    if (cursor_.done()) return fail("';' was expected at the end of a directive");
    const char c = cursor_.peek();
    if (c == '{' || c == '}') return fail("';' was expected at the end of a directive, " + found());
    if (c == '"') {
      std::string_view ignored;
      if (!read_string(ignored)) return false;
      continue;
    }
    ++cursor_.at;
    if (c == ';') break;
  }
  text = text_since(start);
  return true;
}

// Moves to where the next statement may begin: behind a semicolon, or before a brace, a line that
// begins with a directive, or the end. Braces of operands, `, {a, b};`, are passed over.
void TextReader::recover() {
  for (char before = ' '; true;) {
    cursor_.skip();
    if (cursor_.done()) return;
    const char c = cursor_.peek();
    if (c == ';') {
      ++cursor_.at;
      return;
    }
    if (c == '{' && before != ',') return;
    before = c;
    if (c == '}') {
      Cursor behind = cursor_;
      ++behind.at;
      behind.skip();
      if (!behind.is_next(',') && !behind.is_next(';')) return;
    }
    if (c == '"') {
      const char* close = cursor_.at + 1;
      while (close < cursor_.end && *close != '"' && *close != '\n') ++close;
      cursor_.at = close < cursor_.end && *close == '"' ? close + 1 : close;
      continue;
    }
    const std::uint32_t line = cursor_.line;
    const bool in_name = Cursor::is(c, char_name | char_start);
    ++cursor_.at;
    while (in_name && Cursor::is(*cursor_.at, char_name)) ++cursor_.at;
    cursor_.skip();
    if (cursor_.line != line && cursor_.is_next('.') && Cursor::is(cursor_.at[1], char_start)) {
      return;
    }
  }
}

void TextReader::skip_block() {
  for (std::size_t depth = 1; depth > 0;) {
    cursor_.skip();
    if (cursor_.done()) return;
    if (cursor_.is_next('{')) ++depth;
    if (cursor_.is_next('}')) --depth;
    ++cursor_.at;
  }
}

}  // namespace demarc::ptx
