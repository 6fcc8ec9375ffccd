// What both grammars of SimTBS configurations have in common: lines, comments, sections, fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/text.hpp"
#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim {

using ConfigFields = std::vector<std::string_view>;

// A whole field as a 32-bit number; "-5" wraps around.
[[nodiscard]] bool parse_wrapping(std::string_view field, std::uint32_t& value);
[[nodiscard]] bool parse_single(std::string_view field, float& value);
[[nodiscard]] bool parse_range(std::string_view field, IntRange& range);
// The numbers a line starts with; what follows the first field that is none is ignored.
[[nodiscard]] std::vector<std::uint32_t> leading_numbers(const ConfigFields& fields);
[[nodiscard]] std::vector<float> leading_singles(const ConfigFields& fields);

enum class ConfigSection { none, general, workload, sm, mem, overhead_sm, overhead_mem, kernel };

class ConfigReader {
 public:
  explicit ConfigReader(std::string source) { config_.source = std::move(source); }
  ConfigReader(const ConfigReader&) = delete;
  ConfigReader& operator=(const ConfigReader&) = delete;
  virtual ~ConfigReader() = default;

  Result<TbConfig> read(std::string_view text);

 protected:
  // A section has begun, it has ended, the text has.
  virtual Result<void> open() = 0;
  virtual Result<void> close() = 0;
  virtual Result<void> end() = 0;

  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
    return invalid_input("{}:{}: {}", config_.source, line_,
                         fmt::format(format, std::forward<Args>(args)...));
  }

  // A line of a section.
  virtual Result<void> take_workload(const ConfigFields& fields) = 0;
  virtual Result<void> take_sm(const ConfigFields& fields) = 0;
  virtual Result<void> take_mem(const ConfigFields& fields) = 0;
  virtual Result<void> take_overhead_sm(const ConfigFields& fields) = 0;
  virtual Result<void> take_overhead_mem(const ConfigFields& fields) = 0;
  // For a line of the section kernel are only the numbers, numbers_.
  virtual Result<void> take_kernel() = 0;

  Result<std::vector<std::uint32_t>> choices(std::string_view field);
  // Adds a row; its ratio and costs must be above those of the one before.
  Result<void> add_row(OverheadTable& table, OverheadTable::Row row);
  Result<void> add_kernel(TbKernel kernel, std::span<const std::uint32_t> fields);
  // Whether one of `count` numbers_ from `first` on was written as a number below zero.
  [[nodiscard]] bool any_negative(std::size_t first, std::size_t count) const {
    return (negative_ >> first & ((std::uint64_t{1} << count) - 1)) != 0;
  }

  static constexpr std::uint32_t max_sms = 1U
                                           << 20;  // keeps a mistyped number from taking all memory

  TbConfig config_;
  ConfigSection section_ = ConfigSection::none;
  std::uint32_t line_ = 0;
  std::uint32_t data_lines_ = 0;        // in the open section
  std::vector<std::uint32_t> numbers_;  // that a kernel's line starts with

 private:
  Result<void> take(const ConfigFields& fields);
  // Fills numbers_ and negative_; says whether the line holds more than blanks.
  bool read_numbers(std::string_view line);
  Result<void> take_general(const ConfigFields& fields);
  Result<void> take_line(std::string_view line);
  Result<void> open_section(std::string_view name);

  ConfigFields fields_;         // per line
  std::uint64_t negative_ = 0;  // bits of the first 64 numbers_: it was written as one below zero
};

[[nodiscard]] Result<TbConfig> read_config_of_2021(std::string_view text, std::string source);
[[nodiscard]] Result<TbConfig> read_config_of_2020(std::string_view text, std::string source);
[[nodiscard]] std::string print_config_of_2020(const TbConfig& config);

}  // namespace demarc::sim
