// The line grammar of SimTBS configurations. Every rule here is one the published program enforces,
// so that a file it refuses is refused here too, with the line.
#include <charconv>
#include <cmath>

#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim {
namespace {

constexpr std::size_t longest_line = 1023;
constexpr std::size_t most_resources = 12;
constexpr std::size_t most_memories = 2;
constexpr std::size_t most_choices = 1024;  // the published program overruns a buffer above this

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  constexpr std::string_view blanks = " \t\r";
  std::size_t at = line.find_first_not_of(blanks);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return fields;
}

// A whole field as a 32-bit number; "-5" wraps around.
bool parse_wrapping(std::string_view field, std::uint32_t& value) {
  const bool negative = field.starts_with('-');
  if (negative || field.starts_with('+')) field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size()) return false;
  if (negative) value = 0U - value;
  return true;
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

class ConfigParser {
 public:
  explicit ConfigParser(std::string source) { config_.source = std::move(source); }

  Result<TbConfig> parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line_;
      if (line.size() > longest_line) {
        return fail("longer than {} characters", longest_line);
      }
      DEMARC_CHECK(take_line(line));
    }
    DEMARC_CHECK(close_section());
    ++line_;
    if (config_.sm.max.empty()) return fail("no *sm section: exactly one is needed");
    return std::move(config_);
  }

 private:
  enum class Section { none, general, workload, sm, mem, overhead_sm, overhead_mem, kernel };

  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
    return invalid_input("{}:{}: {}", config_.source, line_,
                         fmt::format(format, std::forward<Args>(args)...));
  }

  Result<void> take_line(std::string_view line) {
    if (line.starts_with('#')) return {};
    if (line.starts_with('*')) {
      DEMARC_CHECK(close_section());
      return open_section(line.substr(1));
    }
    if (line.empty()) {
      DEMARC_CHECK(close_section());
      section_ = Section::none;
      return {};
    }
    const std::vector<std::string_view> fields = split_fields(line);
    if (fields.empty()) return fail("blanks only: end a section with an empty line");
    ++data_lines_;
    switch (section_) {
      case Section::none:
        return fail("unknown section: data must follow a '*section' line");
      case Section::general:
        return take_general(fields);
      case Section::workload:
        return take_workload(fields);
      case Section::sm:
        return take_sm(fields);
      case Section::mem:
        return take_mem(fields);
      case Section::overhead_sm:
        return take_overhead(fields, config_.sm_overhead, config_.resources(), false);
      case Section::overhead_mem:
        return take_overhead(fields, config_.memory_overhead, config_.memory.size(), true);
      case Section::kernel:
        return take_kernel(fields);
    }
    return {};
  }

  Result<void> open_section(std::string_view name) {
    struct Named {
      std::string_view prefix;
      Section section;
    };
    static constexpr Named sections[] = {{"general", Section::general},
                                         {"workload", Section::workload},
                                         {"sm", Section::sm},
                                         {"mem", Section::mem},
                                         {"overhead_sm", Section::overhead_sm},
                                         {"overhead_mem", Section::overhead_mem},
                                         {"kernel", Section::kernel}};
    data_lines_ = 0;
    for (const Named& named : sections) {
      if (!name.starts_with(named.prefix)) continue;
      section_ = named.section;
      return check_order();
    }
    return fail(
        "unknown section '*{}': use general, workload, sm, mem, overhead_sm, overhead_mem or "
        "kernel",
        split_fields(name).empty() ? name : split_fields(name).front());
  }

  Result<void> check_order() {
    const bool after_sm = section_ == Section::overhead_sm || section_ == Section::overhead_mem ||
                          section_ == Section::kernel;
    const bool after_mem = section_ == Section::overhead_mem || section_ == Section::kernel;
    if (after_sm && config_.sm.max.empty()) return fail("*sm must come before this section");
    if (after_mem && config_.memory.empty()) return fail("*mem must come before this section");
    if (section_ == Section::sm && !config_.sm.max.empty()) return fail("a second *sm section");
    if (section_ == Section::mem && !config_.memory.empty()) return fail("a second *mem section");
    const bool again =
        (section_ == Section::overhead_sm && !config_.sm_overhead.rows.empty()) ||
        (section_ == Section::overhead_mem && !config_.memory_overhead.rows.empty()) ||
        (section_ == Section::workload && config_.workload.present);
    if (again) return fail("this section was given before");
    if (section_ == Section::workload) config_.workload.line = line_;
    return {};
  }

  Result<void> close_section() {
    const bool table = section_ == Section::overhead_sm || section_ == Section::overhead_mem;
    if (table && data_lines_ == 0) return fail("an overhead section needs at least one line");
    if (section_ == Section::sm && config_.sm.max.empty()) return fail("*sm needs a line");
    if (section_ == Section::mem && config_.memory.empty()) return fail("*mem needs a line");
    if (section_ == Section::workload && config_.workload.present &&
        !config_.workload.from_kernels && config_.workload.memory.empty()) {
      return fail("*workload needs a second line with the memory ranges");
    }
    return {};
  }

  // The numbers a line starts with; what follows the first field that is none is ignored.
  static std::vector<std::uint32_t> leading_numbers(const std::vector<std::string_view>& fields) {
    std::vector<std::uint32_t> numbers;
    std::uint32_t value = 0;
    for (const std::string_view field : fields) {
      if (!parse_wrapping(field, value)) break;
      numbers.push_back(value);
    }
    return numbers;
  }

  Result<void> take_general(const std::vector<std::string_view>& fields) {
    if (data_lines_ > 1) return fail("*general holds one line");
    const auto numbers = leading_numbers(fields);
    if (numbers.empty()) return fail("expected max_simtime, a number of ticks");
    config_.max_simtime = TbTicks(numbers[0]);
    return {};
  }

  Result<void> take_workload(const std::vector<std::string_view>& fields) {
    TbWorkload& workload = config_.workload;
    if (data_lines_ == 1) {
      workload.present = true;
      if (!parse_wrapping(fields[0], workload.level)) return fail("expected a level in per cent");
      workload.from_kernels = fields.size() == 1;
      if (workload.from_kernels) return {};
      if (fields.size() < 4) return fail("expected: level ntb_range dur_range req_1 .. req_n");
      if (!parse_range(fields[1], workload.n_tb) || !parse_range(fields[2], workload.duration)) {
        return fail("expected ranges a-b of the thread blocks and of the duration");
      }
      for (std::size_t i = 3; i < fields.size(); ++i) {
        std::vector<std::uint32_t> choices;
        DEMARC_CHECK(take_choices(fields[i], choices));
        workload.requests.push_back(std::move(choices));
      }
      if (workload.requests.size() > most_resources) {
        return fail("at most {} SM resources", most_resources);
      }
      return {};
    }
    if (workload.from_kernels || data_lines_ > 2) return fail("too many lines in *workload");
    for (const std::string_view field : fields) {
      IntRange range;
      if (!parse_range(field, range)) break;
      workload.memory.push_back(range);
    }
    if (workload.memory.empty() || workload.memory.size() > most_memories) {
      return fail("expected one or two memory ranges a-b");
    }
    return {};
  }

  Result<void> take_choices(std::string_view field, std::vector<std::uint32_t>& choices) {
    IntRange range;
    if (parse_range(field, range)) {
      if (range.low > range.high || range.high - range.low >= most_choices) {
        return fail("request range '{}': expected a-b with a <= b and at most {} values", field,
                    most_choices);
      }
      for (std::uint32_t v = range.low; v != range.high; ++v) choices.push_back(v);
      choices.push_back(range.high);
      return {};
    }
    while (true) {
      const std::size_t comma = std::min(field.find(','), field.size());
      std::uint32_t value = 0;
      if (!parse_wrapping(field.substr(0, comma), value)) {
        return fail("request '{}': expected a-b or a,b,c", field);
      }
      choices.push_back(value);
      if (comma == field.size()) return {};
      field.remove_prefix(comma + 1);
    }
  }

  Result<void> take_sm(const std::vector<std::string_view>& fields) {
    if (data_lines_ > 1) return fail("*sm holds one line");
    const auto numbers = leading_numbers(fields);
    if (numbers.size() < 4 || numbers.size() > 3 + most_resources) {
      return fail("expected: n_sms n_sched n_boundary max_1 .. max_n with n = 1..{}",
                  most_resources);
    }
    SmSpec sm{numbers[0], numbers[1], numbers[2], {numbers.begin() + 3, numbers.end()}};
    if (sm.n_sms == 0 || sm.n_sched == 0) return fail("n_sms and n_sched must be above 0");
    if (sm.n_sms > most_sms) return fail("n_sms is {}: at most {}", sm.n_sms, most_sms);
    if (sm.n_sched > sm.max.size() || sm.n_boundary > sm.max.size()) {
      return fail("n_sched and n_boundary may be at most the number of resources, {}",
                  sm.max.size());
    }
    for (const std::uint32_t max : sm.max) {
      if (max == 0) return fail("every capacity must be above 0");
    }
    if (config_.workload.present && !config_.workload.from_kernels &&
        config_.workload.requests.size() != sm.max.size()) {
      return fail("{} SM resources here, {} requests in *workload", sm.max.size(),
                  config_.workload.requests.size());
    }
    config_.sm = std::move(sm);
    return {};
  }

  Result<void> take_mem(const std::vector<std::string_view>& fields) {
    if (data_lines_ > 1) return fail("*mem holds one line");
    config_.memory = leading_numbers(fields);
    if (config_.memory.empty() || config_.memory.size() > most_memories) {
      return fail("expected the capacity of one or two memories");
    }
    for (const std::uint32_t max : config_.memory) {
      if (max == 0) return fail("every capacity must be above 0");
    }
    return {};
  }

  Result<void> take_overhead(const std::vector<std::string_view>& fields, OverheadTable& table,
                             std::size_t columns, bool at_most_one) {
    OverheadTable::Row row;
    row.line = line_;
    std::vector<float> numbers;
    float value = 0;
    for (const std::string_view field : fields) {
      if (!parse_single(field, value)) break;
      numbers.push_back(value);
    }
    if (numbers.size() != columns + 1) {
      return fail("expected a ratio and {} overheads, found {} numbers", columns, numbers.size());
    }
    row.ratio = numbers[0];
    row.cost.assign(numbers.begin() + 1, numbers.end());
    if (!(row.ratio >= 0) || (at_most_one && row.ratio > 1.0F)) {
      return fail("ratio {} must be at least 0{}", row.ratio, at_most_one ? " and at most 1" : "");
    }
    if (!table.rows.empty()) {
      const OverheadTable::Row& last = table.rows.back();
      bool rising = row.ratio > last.ratio;
      for (std::size_t c = 0; c < columns; ++c) rising = rising && row.cost[c] > last.cost[c];
      if (!rising) return fail("ratio and overheads must rise from line to line");
    }
    table.rows.push_back(std::move(row));
    return {};
  }

  Result<void> take_kernel(const std::vector<std::string_view>& fields) {
    const auto numbers = leading_numbers(fields);
    const std::size_t expected = 4 + config_.fields_per_kernel();
    if (numbers.size() != expected) {
      return fail(
          "expected {} numbers (type start n_tb duration, {} requests, {} of memory), "
          "found {}",
          expected, config_.resources(), config_.memory.size(), numbers.size());
    }
    const TbKernel kernel{.type = numbers[0],
                          .start = TbTicks(numbers[1]),
                          .n_tb = numbers[2],
                          .duration = TbTicks(numbers[3]),
                          .line = line_};
    if (kernel.start == 0_ticks || kernel.n_tb == 0 || kernel.duration == 0_ticks) {
      return fail("start, n_tb and duration must be above 0");
    }
    config_.add_kernel(kernel, std::span(numbers).subspan(4));
    return {};
  }

  static constexpr std::uint32_t most_sms =
      1U << 20;  // keeps a mistyped number from taking all memory

  TbConfig config_;
  Section section_ = Section::none;
  std::uint32_t line_ = 0;
  std::uint32_t data_lines_ = 0;  // in the open section
};

}  // namespace

Result<TbConfig> parse_tb_config(std::string_view text, std::string source) {
  return ConfigParser(std::move(source)).parse(text);
}

}  // namespace demarc::sim
