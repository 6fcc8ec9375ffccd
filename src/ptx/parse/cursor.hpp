// Where the parser stands in the text. The text ends in a NUL that is not part of it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace demarc::ptx {

enum CharacterBits : std::uint8_t {
  char_blank = 1,  // white space but the newline
  char_name = 2,   // inside a name: letters, digits, _ $
  char_start = 4,  // begins a name: letters, _ $ %
  char_digit = 8,
  char_after_plain = 16  // what may follow a register at once: , ; ] + and a blank
};

constexpr std::array<std::uint8_t, 256> make_character_table() {
  std::array<std::uint8_t, 256> table{};
  for (const char c : {' ', '\t', '\r', '\v', '\f'})
    table[static_cast<unsigned char>(c)] = char_blank;
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = char_name | char_start;
  for (unsigned c = 'A'; c <= 'Z'; ++c) table[c] = char_name | char_start;
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = char_name | char_digit;
  table['_'] = table['$'] = char_name | char_start;
  table['%'] = char_start;
  for (const char c : {',', ';', ']', '+', ' '}) {
    std::uint8_t& bits = table[static_cast<unsigned char>(c)];
    bits = static_cast<std::uint8_t>(bits | char_after_plain);
  }
  return table;
}
inline constexpr std::array<std::uint8_t, 256> character_table = make_character_table();

// White space, a bit for each character up to ' '.
inline constexpr std::uint64_t white_space =
    1ULL << ' ' | 1ULL << '\t' | 1ULL << '\r' | 1ULL << '\v' | 1ULL << '\f' | 1ULL << '\n';

struct Cursor {
  const char* begin = nullptr;
  const char* at = nullptr;
  const char* end = nullptr;
  std::uint32_t line = 1;

  explicit Cursor(std::string_view text)
      : begin(text.data()), at(text.data()), end(text.data() + text.size()) {}

  static bool is(char c, std::uint8_t bits) {
    return (character_table[static_cast<unsigned char>(c)] & bits) != 0;
  }

  [[nodiscard]] bool done() const { return at == end; }
  [[nodiscard]] char peek() const { return *at; }
  [[nodiscard]] bool is_next(char c) const { return *at == c && at != end; }
  [[nodiscard]] std::uint32_t offset() const { return static_cast<std::uint32_t>(at - begin); }
  [[nodiscard]] std::uint32_t offset_of(const char* p) const {
    return static_cast<std::uint32_t>(p - begin);
  }

  // Over white space and comments. An unterminated comment runs to the end.
  void skip() {
    while (true) {
      const auto c = static_cast<unsigned char>(*at);
      if (c > ' ') {
        if (c != '/' || (at[1] != '/' && at[1] != '*')) return;
        skip_comment();
      } else {
        if ((white_space >> c & 1U) == 0) return;
        line += c == '\n' ? 1 : 0;
        ++at;
      }
    }
  }

  // Moves on to `to`, counting lines.
  void advance(const char* to) {
    while (at < to) {
      const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(to - at));
      if (newline == nullptr) break;
      ++line;
      at = static_cast<const char*>(newline) + 1;
    }
    at = to;
  }

  // A name ([%A-Za-z_$][A-Za-z0-9_$]*), empty when there is none here.
  std::string_view name() {
    if (!is(*at, char_start)) return {};
    const char* first = at++;
    while (is(*at, char_name)) ++at;
    return {first, static_cast<std::size_t>(at - first)};
  }

  // Takes `c`, after white space, when it stands here.
  bool take(char c) {
    skip();
    if (!is_next(c)) return false;
    ++at;
    return true;
  }

 private:
  void skip_comment() {
    if (at[1] == '/') {
      const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      at = newline != nullptr ? static_cast<const char*>(newline) : end;
      return;
    }
    const std::string_view rest(at + 2, static_cast<std::size_t>(end - at - 2));
    const std::size_t close = rest.find("*/");
    advance(close == std::string_view::npos ? end : rest.data() + close + 2);
  }
};

}  // namespace demarc::ptx
