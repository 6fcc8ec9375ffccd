// Reads the lines, sections and fields that both SimTBS grammars have in common.
#include "dispatch/tb_config_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace demarc::sim {
namespace {

constexpr std::size_t longest_line = 1023;
constexpr std::size_t max_choices = 1024;  // the published program overruns a buffer above this

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

void split_fields(std::string_view line, ConfigFields& fields) {
  fields.clear();
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (is_blank(line[at])) continue;
    const std::size_t first = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    fields.push_back(line.substr(first, at - first));
  }
}

ConfigFields split_fields(std::string_view line) {
  ConfigFields fields;
  split_fields(line, fields);
  return fields;
}

// Reads the number at `at`, of 32 bits, where "-5" wraps around. Returns its end; null: there is
// none.
const char* number_at(const char* at, const char* end, std::uint32_t& value, bool& negative) {
  constexpr std::uint64_t most = ~std::uint32_t{0};
  negative = at != end && *at == '-';
  if (negative || (at != end && *at == '+')) ++at;
  const char* const first = at;
  std::uint64_t number = 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) {
    number = number * 10 + static_cast<std::uint64_t>(*at - '0');
    if (number > most) return nullptr;
  }
  value = static_cast<std::uint32_t>(negative ? 0 - number : number);
  return at == first ? nullptr : at;
}

// The next line of `text`, which loses it.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool is_of_2020(std::string_view text) {
  bool in_sm = false;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.starts_with('#')) continue;
    if (in_sm && !line.starts_with('*')) return leading_numbers(split_fields(line)).size() == 2;
    in_sm = line.starts_with("*sm");
  }
  return false;
}

}  // namespace

bool parse_wrapping(std::string_view field, std::uint32_t& value) {
  const char* const end = field.data() + field.size();
  bool negative = false;
  return number_at(field.data(), end, value, negative) == end;
}

bool parse_single(std::string_view field, float& value) {
  if (field.starts_with('+')) field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  return error == std::errc{} && end == field.data() + field.size() && std::isfinite(value);
}

bool parse_range(std::string_view field, IntRange& range) {
  const std::size_t dash = field.find('-');
  return dash != std::string_view::npos && dash > 0 &&
         parse_wrapping(field.substr(0, dash), range.low) && dash + 1 < field.size() &&
         field[dash + 1] != '-' && parse_wrapping(field.substr(dash + 1), range.high);
}

std::vector<std::uint32_t> leading_numbers(const ConfigFields& fields) {
  std::vector<std::uint32_t> numbers;
  std::uint32_t value = 0;
  for (const std::string_view field : fields) {
    if (!parse_wrapping(field, value)) break;
    numbers.push_back(value);
  }
  return numbers;
}

std::vector<float> leading_singles(const ConfigFields& fields) {
  std::vector<float> numbers;
  float value = 0;
  for (const std::string_view field : fields) {
    if (!parse_single(field, value)) break;
    numbers.push_back(value);
  }
  return numbers;
}

Result<TbConfig> ConfigReader::read(std::string_view text) {
  constexpr std::string_view shortest_kernel = "1 1 1 1 1\n";
  const std::size_t max_kernels = text.size() / shortest_kernel.size();
  config_.kernels.reserve(max_kernels);
  config_.fields.reserve(2 * max_kernels);
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    ++line_;
    if (line.size() > longest_line) return fail("longer than {} characters", longest_line);
    DEMARC_CHECK(take_line(line));
  }
  DEMARC_CHECK(close());
  ++line_;
  if (config_.sm.max.empty()) return fail("no *sm section: exactly one is needed");
  DEMARC_CHECK(end());
  return std::move(config_);
}

Result<void> ConfigReader::take_line(std::string_view line) {
  if (line.starts_with('#')) return {};
  if (line.starts_with('*')) {
    DEMARC_CHECK(close());
    return open_section(line.substr(1));
  }
  if (line.empty()) {
    DEMARC_CHECK(close());
    section_ = ConfigSection::none;
    return {};
  }
  const bool of_kernel = section_ == ConfigSection::kernel;
  if (!of_kernel) split_fields(line, fields_);
  if (of_kernel ? !read_numbers(line) : fields_.empty()) {
    return fail("blanks only: end a section with an empty line");
  }
  ++data_lines_;
  return take(fields_);
}

bool ConfigReader::read_numbers(std::string_view line) {
  numbers_.clear();
  negative_ = 0;
  const char* at = line.data();
  const char* const end = at + line.size();
  while (true) {
    while (at != end && is_blank(*at)) ++at;
    if (at == end) return !numbers_.empty();
    std::uint32_t value = 0;
    bool negative = false;
    at = number_at(at, end, value, negative);
    if (at == nullptr || (at != end && !is_blank(*at))) return true;
    if (negative && value != 0 && numbers_.size() < 64) {
      negative_ |= std::uint64_t{1} << numbers_.size();
    }
    numbers_.push_back(value);
  }
}

Result<void> ConfigReader::take(const ConfigFields& fields) {
  switch (section_) {
    case ConfigSection::none:
      break;
    case ConfigSection::general:
      return take_general(fields);
    case ConfigSection::workload:
      return take_workload(fields);
    case ConfigSection::sm:
      return take_sm(fields);
    case ConfigSection::mem:
      return take_mem(fields);
    case ConfigSection::overhead_sm:
      return take_overhead_sm(fields);
    case ConfigSection::overhead_mem:
      return take_overhead_mem(fields);
    case ConfigSection::kernel:
      return take_kernel();
  }
  return fail("unknown section: data must follow a '*section' line");
}

Result<void> ConfigReader::open_section(std::string_view name) {
  struct Named {
    std::string_view prefix;
    ConfigSection section;
  };
  static constexpr Named sections[] = {{"general", ConfigSection::general},
                                       {"workload", ConfigSection::workload},
                                       {"sm", ConfigSection::sm},
                                       {"mem", ConfigSection::mem},
                                       {"overhead_sm", ConfigSection::overhead_sm},
                                       {"overhead_mem", ConfigSection::overhead_mem},
                                       {"kernel", ConfigSection::kernel}};
  data_lines_ = 0;
  for (const Named& named : sections) {
    if (!name.starts_with(named.prefix)) continue;
    section_ = named.section;
    return open();
  }
  return fail(
      "unknown section '*{}': use general, workload, sm, mem, overhead_sm, overhead_mem or kernel",
      split_fields(name).empty() ? name : split_fields(name).front());
}

Result<void> ConfigReader::take_general(const ConfigFields& fields) {
  if (data_lines_ > 1) return fail("*general holds one line");
  const auto numbers = leading_numbers(fields);
  if (numbers.empty()) return fail("expected max_simtime, a number of ticks");
  config_.max_simtime = TbTicks(numbers[0]);
  return {};
}

Result<std::vector<std::uint32_t>> ConfigReader::choices(std::string_view field) {
  std::vector<std::uint32_t> all;
  IntRange range;
  if (parse_range(field, range)) {
    if (range.low > range.high || range.high - range.low >= max_choices) {
      return fail("request range '{}': expected a-b with a <= b and at most {} values", field,
                  max_choices);
    }
    for (std::uint32_t v = range.low; v != range.high; ++v) all.push_back(v);
    all.push_back(range.high);
    return all;
  }
  while (true) {
    const std::size_t comma = std::min(field.find(','), field.size());
    std::uint32_t value = 0;
    if (!parse_wrapping(field.substr(0, comma), value)) {
      return fail("request '{}': expected a-b or a,b,c", field);
    }
    all.push_back(value);
    if (comma == field.size()) return all;
    field.remove_prefix(comma + 1);
  }
}

Result<void> ConfigReader::add_row(OverheadTable& table, OverheadTable::Row row) {
  if (!table.rows.empty()) {
    const OverheadTable::Row& last = table.rows.back();
    bool rising = row.ratio > last.ratio;
    for (std::size_t c = 0; c < row.cost.size(); ++c) rising = rising && row.cost[c] > last.cost[c];
    if (!rising) {
      return invalid_input("{}:{}: the first column and the overheads must rise from line to line",
                           config_.source, row.line);
    }
  }
  table.rows.push_back(std::move(row));
  return {};
}

Result<void> ConfigReader::add_kernel(TbKernel kernel, std::span<const std::uint32_t> fields) {
  if (kernel.start == 0_ticks || kernel.n_tb == 0 || kernel.duration == 0_ticks) {
    return fail("start, n_tb and duration must be above 0");
  }
  kernel.line = line_;
  config_.add_kernel(kernel, fields);
  return {};
}

Result<TbConfig> parse_tb_config(std::string_view text, std::string source) {
  return is_of_2020(text) ? read_config_of_2020(text, std::move(source))
                          : read_config_of_2021(text, std::move(source));
}

}  // namespace demarc::sim
