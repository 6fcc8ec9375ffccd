// Prints tables as plain text and as Markdown, and formats the numbers in them.
#include "demarc/report/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace demarc::report {
namespace {

// Terminal columns of UTF-8 text, one a code point.
std::size_t shown_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

void append_padded(std::string& out, const std::string& text, std::size_t width, Align align) {
  const std::size_t padding = width - std::min(width, shown_width(text));
  if (align == Align::right) out.append(padding, ' ');
  out += text;
  if (align == Align::left) out.append(padding, ' ');
}

const std::string& cell_text(const std::vector<Cell>& row, std::size_t column) {
  static const std::string empty;
  return column < row.size() ? row[column].text : empty;
}

std::string escaped_for_markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string grouped(std::int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string out;
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) out += ' ';
    out += digits[i];
  }
  return out;
}

std::string three_digits(double value) {
  if (!std::isfinite(value)) return "–";
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e15)) return fmt::format("{:.2e}", value);
  // The digits after the point: three in all, of a number below 1 three after its zeros.
  const int whole = size == 0 ? 1 : static_cast<int>(std::floor(std::log10(size))) + 1;
  const int decimals = std::max(0, 3 - whole);
  if (decimals == 0) return grouped(std::llround(value));
  std::string text = fmt::format("{:.{}f}", value, decimals);
  // 9.996 has become 10.00.
  const double shown = std::abs(std::stod(text));
  if (shown != 0 && static_cast<int>(std::floor(std::log10(shown))) + 1 > whole)
    text = fmt::format("{:.{}f}", value, decimals - 1);
  return text;
}

std::string times_text(double value) {
  return three_digits(value) + "x";
}

Cell digits_cell(double value, Tone tone) {
  Cell cell(three_digits(value));
  cell.number = value;
  cell.tone = tone;
  return cell;
}

Cell number_cell(double value, int decimals, Tone tone) {
  Cell cell(fmt::format("{:.{}f}", value, decimals));
  cell.number = value;
  cell.tone = tone;
  return cell;
}

Cell count_cell(std::int64_t value, Tone tone) {
  Cell cell(grouped(value));
  cell.number = static_cast<double>(value);
  cell.tone = tone;
  return cell;
}

Cell percent_cell(double share, Tone tone) {
  Cell cell(three_digits(share * 100.0) + " %");
  cell.number = share;
  cell.tone = tone;
  return cell;
}

std::string plain_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = shown_width(table.columns[c].name);
    for (const auto& row : table.rows) width = std::max(width, shown_width(cell_text(row, c)));
    widths.push_back(width);
  }
  std::string out;
  const auto finish_line = [&out] {
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  };
  if (!table.caption.empty()) out += table.caption + "\n";
  for (std::size_t c = 0; c < widths.size(); ++c) {
    if (c > 0) out += "  ";
    append_padded(out, table.columns[c].name, widths[c], table.columns[c].align);
  }
  finish_line();
  for (std::size_t c = 0; c < widths.size(); ++c) {
    if (c > 0) out += "  ";
    out.append(widths[c], '-');
  }
  finish_line();
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < widths.size(); ++c) {
      if (c > 0) out += "  ";
      append_padded(out, cell_text(row, c), widths[c], table.columns[c].align);
    }
    finish_line();
  }
  return out;
}

std::string markdown(const Table& table) {
  std::string out = "|";
  for (const Column& column : table.columns) out += " " + escaped_for_markdown(column.name) + " |";
  out += "\n|";
  for (const Column& column : table.columns) out += column.align == Align::right ? "---:|" : "---|";
  out += "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      out += " " + escaped_for_markdown(cell_text(row, c)) + " |";
    out += "\n";
  }
  return out;
}

}  // namespace demarc::report
