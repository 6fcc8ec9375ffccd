// Tables: built once, shown as plain text in a terminal, as Markdown, or sortable on a Page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace demarc::report {

enum class Tone { plain, good, warning, bad };  // colours a cell on a page; plain text ignores it

// One cell: the text, and the number to sort by if there is one.
struct Cell {
  std::string text = {};
  std::optional<double> number = {};
  Tone tone = Tone::plain;
  std::string meaning = {};  // in small letters below the text; only on a page
  std::string opens = {};    // key of the Runs that a click shows; only on a page

  Cell() = default;
  Cell(std::string shown) : text(std::move(shown)) {}  // NOLINT(google-explicit-constructor)
  Cell(const char* shown) : text(shown) {}             // NOLINT(google-explicit-constructor)

  friend bool operator==(const Cell&, const Cell&) = default;
};

// A measured number with three digits, or with all of its whole part: 0.123, 1.23, 12.3, 1 234.
[[nodiscard]] std::string three_digits(double value);
// "1.23x"
[[nodiscard]] std::string times_text(double value);
[[nodiscard]] Cell digits_cell(double value, Tone tone = Tone::plain);

[[nodiscard]] Cell number_cell(double value, int decimals = 2, Tone tone = Tone::plain);
[[nodiscard]] Cell count_cell(std::int64_t value, Tone tone = Tone::plain);  // 473 344
[[nodiscard]] Cell percent_cell(double share, Tone tone = Tone::plain);      // 0.5 -> 50.0 %

// A count with its digits grouped by three: 1234567 -> "1 234 567".
[[nodiscard]] std::string grouped(std::int64_t value);

enum class Align { left, right };

struct Column {
  std::string name = {};
  Align align = Align::left;
};

struct Table {
  std::string caption = {};
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};  // a short row is padded with empty cells
};

// Lines of equal width, columns padded with spaces, a rule under the names. Ends with a newline.
[[nodiscard]] std::string plain_text(const Table& table);
// GitHub-flavoured Markdown; a '|' in a cell is escaped.
[[nodiscard]] std::string markdown(const Table& table);

}  // namespace demarc::report
