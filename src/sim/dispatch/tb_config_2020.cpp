// Reads and prints the line grammar of SimTBS configurations as of May 2020. Sections may come in
// any order; the rows of the overhead tables count units.
#include <algorithm>
#include <cmath>

#include "dispatch/tb_config_reader.hpp"

namespace demarc::sim {
namespace {

using Section = ConfigSection;

constexpr std::uint32_t least_row = 2;  // units

class ReaderOf2020 final : public ConfigReader {
 public:
  explicit ReaderOf2020(std::string source) : ConfigReader(std::move(source)) {
    config_.grammar = TbGrammar::of_2020;
  }

 protected:
  Result<void> open() override {
    const bool again = (section_ == Section::sm && !config_.sm.max.empty()) ||
                       (section_ == Section::mem && !config_.memory.empty()) ||
                       (section_ == Section::workload && config_.workload.present);
    if (again) return fail("this section was given before");
    if (section_ == Section::workload) config_.workload.line = line_;
    return {};
  }

  Result<void> close() override { return {}; }

  Result<void> end() override {
    if (config_.memory.empty()) return fail("no *mem section: exactly one is needed");
    DEMARC_CHECK(make_table("overhead_sm", sm_rows_, config_.sm.max[0], config_.sm_overhead));
    return make_table("overhead_mem", memory_rows_, config_.memory[0], config_.memory_overhead);
  }

 private:
  struct Row {
    std::uint32_t units;
    float cost;
    std::uint32_t line;
  };

  Result<void> take_workload(const ConfigFields& fields) override {
    if (data_lines_ > 1) return fail("*workload holds one line");
    TbWorkload& workload = config_.workload;
    if (fields.size() < 4 || !parse_wrapping(fields[0], workload.level) ||
        !parse_range(fields[2], workload.n_tb) || !parse_range(fields[3], workload.duration)) {
      return fail("expected: level requests ntb_range dur_range");
    }
    DEMARC_TRY(auto requests, choices(fields[1]));
    workload.present = true;
    workload.requests = {std::move(requests)};
    workload.memory = {{1, 100}};  // the program has no other
    return {};
  }

  Result<void> take_sm(const ConfigFields& fields) override {
    if (data_lines_ > 1) return fail("*sm holds one line");
    const auto numbers = leading_numbers(fields);
    if (numbers.size() != 2) return fail("expected the number of SMs and the units of one");
    if (numbers[0] == 0 || numbers[0] > max_sms) {
      return fail("{} SMs: 1 to {} are possible", numbers[0], max_sms);
    }
    DEMARC_CHECK(check_capacity(numbers[1]));
    config_.sm = {numbers[0], 1, 1, {numbers[1]}};
    return {};
  }

  Result<void> take_mem(const ConfigFields& fields) override {
    if (data_lines_ > 1) return fail("*mem holds one line");
    const auto numbers = leading_numbers(fields);
    if (numbers.size() != 1) return fail("expected the capacity of the memory");
    DEMARC_CHECK(check_capacity(numbers[0]));
    config_.memory = numbers;
    return {};
  }

  Result<void> check_capacity(std::uint32_t units) {
    if (units >= least_row && units < max_units_of_2020) return {};
    return fail("a capacity of {} units: {} to {} are possible", units, least_row,
                max_units_of_2020 - 1);
  }

  Result<void> take_row(const ConfigFields& fields, std::vector<Row>& rows) {
    const auto numbers = leading_numbers(fields);
    const auto singles = leading_singles(fields);
    if (numbers.empty() || singles.size() != 2) {
      return fail("expected the units in use and the overhead");
    }
    if (numbers[0] < least_row || !(singles[1] > 0)) {
      return fail("{} units with overhead {}: units are at least {}, overheads above 0", numbers[0],
                  singles[1], least_row);
    }
    rows.push_back({numbers[0], singles[1], line_});
    return {};
  }

  Result<void> take_overhead_sm(const ConfigFields& fields) override {
    return take_row(fields, sm_rows_);
  }
  Result<void> take_overhead_mem(const ConfigFields& fields) override {
    return take_row(fields, memory_rows_);
  }

  Result<void> take_kernel() override {
    if (numbers_.size() != 5) {
      return fail("expected start, blocks, units of a block, memory of a block, duration; found {}",
                  numbers_.size());
    }
    if (numbers_[2] == 0) return fail("a block asks for at least one unit");
    return add_kernel({.type = 1,
                       .start = TbTicks(numbers_[0]),
                       .n_tb = numbers_[1],
                       .duration = TbTicks(numbers_[4]),
                       .negative_memory = any_negative(3, 1)},
                      std::span(numbers_).subspan(2, 2));
  }

  Result<void> make_table(std::string_view name, const std::vector<Row>& rows,
                          std::uint32_t capacity, OverheadTable& table) {
    if (rows.empty()) return fail("no rows in *{}", name);
    for (const Row& row : rows) {
      DEMARC_CHECK(add_row(
          table,
          {static_cast<float>(row.units) / static_cast<float>(capacity), {row.cost}, row.line}));
    }
    if (rows.back().units == capacity) return {};
    return invalid_input("{}:{}: the last row of *{} is for {} units, and not for all {}",
                         config_.source, rows.back().line, name, rows.back().units, capacity);
  }

  std::vector<Row> sm_rows_, memory_rows_;
};

}  // namespace

std::uint32_t row_units(const OverheadTable::Row& row, std::uint32_t capacity) {
  return static_cast<std::uint32_t>(std::llround(double{row.ratio} * capacity));
}

Result<TbConfig> read_config_of_2020(std::string_view text, std::string source) {
  return ReaderOf2020(std::move(source)).read(text);
}

std::string print_config_of_2020(const TbConfig& config) {
  std::string out;
  append(out, "*general\n{}\n*sm\n{} {}\n*mem\n{}\n", config.max_simtime, config.sm.n_sms,
         config.sm.max[0], config.memory[0]);
  const auto table = [&](std::string_view name, const OverheadTable& overhead,
                         std::uint32_t capacity) {
    append(out, "*{}\n", name);
    for (const OverheadTable::Row& row : overhead.rows) {
      append(out, "{} {:.6f}\n", row_units(row, capacity), row.cost[0]);
    }
  };
  table("overhead_mem", config.memory_overhead, config.memory[0]);
  table("overhead_sm", config.sm_overhead, config.sm.max[0]);
  out += "*kernel\n";
  for (const KernelIndex k : config.kernels.keys()) {
    const TbKernel& kernel = config.kernels[k];
    const auto fields = config.kernel_fields(k);
    append(out, "{} {} {} {} {}\n", kernel.start, kernel.n_tb, fields[0], fields[1],
           kernel.duration);
  }
  return out;
}

}  // namespace demarc::sim
