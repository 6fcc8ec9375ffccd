// Parses whole texts as numbers and as lists of indices, and names what is wrong with them.
#include "demarc/base/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace demarc {
namespace {

template <class Integer>
Result<Integer> parse_integer(std::string_view text, std::string_view what) {
  std::string_view digits = text;
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  Integer value{};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error == std::errc::result_out_of_range)
    return invalid_input("{}: '{}' is out of range", what, text);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return invalid_input("{}: '{}' is not a whole number", what, text);
  }
  return value;
}

}  // namespace

Result<std::uint64_t> parse_u64(std::string_view text, std::string_view what) {
  return parse_integer<std::uint64_t>(text, what);
}

Result<std::int64_t> parse_i64(std::string_view text, std::string_view what) {
  return parse_integer<std::int64_t>(text, what);
}

Result<double> parse_double(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return invalid_input("{}: '{}' is not a finite number", what, text);
  }
  return value;
}

Result<double> parse_percent(std::string_view text, std::string_view what) {
  std::string_view number = text;
  if (number.ends_with('%')) {
    number.remove_suffix(1);
    if (number.ends_with(' ')) number.remove_suffix(1);
  }
  const auto percent = parse_double(number, what);
  if (percent && *percent >= 0) return *percent;
  return invalid_input("{}: '{}' is not a percentage; write it as 50% or 2.5%", what, text);
}

Result<std::uint64_t> parse_bytes(std::string_view text, std::string_view what) {
  constexpr std::string_view prefixes = "KMGT";
  std::string_view number = text;
  std::uint32_t shift = 0;
  if (number.ends_with("iB")) number.remove_suffix(2);
  const bool named = number.size() < text.size();
  const auto prefix = number.empty() ? std::string_view::npos : prefixes.find(number.back());
  if (prefix != std::string_view::npos) {
    shift = 10 * (static_cast<std::uint32_t>(prefix) + 1);
    number.remove_suffix(1);
    if (number.ends_with(' ')) number.remove_suffix(1);
  }
  const auto value = parse_u64(number, what);
  if (!value || (named && shift == 0) || *value > (UINT64_MAX >> 1U >> shift)) {
    return invalid_input(
        "{}: '{}' is not a number of bytes; write it as 4096, 64K, 512 MiB or 16GiB", what, text);
  }
  return *value << shift;
}

Result<std::vector<std::uint32_t>> parse_index_list(std::string_view text, std::uint32_t limit,
                                                    std::string_view what) {
  std::vector<std::uint32_t> indices;
  std::string_view rest = text;
  while (true) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const auto dash = item.find('-');
    DEMARC_TRY(const std::uint64_t first, parse_u64(item.substr(0, dash), what));
    std::uint64_t last = first;
    if (dash != std::string_view::npos) {
      DEMARC_TRY(last, parse_u64(item.substr(dash + 1), what));
    }
    if (last < first) return invalid_input("{}: '{}' runs backwards", what, item);
    if (last > limit)
      return invalid_input("{}: {} is above the highest index, {}", what, last, limit);
    for (auto i = first; i <= last; ++i) indices.push_back(static_cast<std::uint32_t>(i));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

}  // namespace demarc
