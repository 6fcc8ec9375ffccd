// Reads the line grammar of SimTBS configurations as of 2021. The published program enforces every
// rule here. So a file that it refuses is refused here too, and the error names the line.
#include "dispatch/tb_config_reader.hpp"

namespace demarc::sim {
namespace {

constexpr std::size_t max_resources = 12;
constexpr std::size_t max_memories = 2;

using Section = ConfigSection;

class ReaderOf2021 final : public ConfigReader {
  using ConfigReader::ConfigReader;

 protected:
  Result<void> open() override {
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

  Result<void> close() override {
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

  Result<void> end() override { return {}; }

 private:
  Result<void> take_workload(const ConfigFields& fields) override {
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
        DEMARC_TRY(auto of_resource, choices(fields[i]));
        workload.requests.push_back(std::move(of_resource));
      }
      if (workload.requests.size() > max_resources) {
        return fail("at most {} SM resources", max_resources);
      }
      return {};
    }
    if (workload.from_kernels || data_lines_ > 2) return fail("too many lines in *workload");
    for (const std::string_view field : fields) {
      IntRange range;
      if (!parse_range(field, range)) break;
      workload.memory.push_back(range);
    }
    if (workload.memory.empty() || workload.memory.size() > max_memories) {
      return fail("expected one or two memory ranges a-b");
    }
    return {};
  }

  Result<void> take_sm(const ConfigFields& fields) override {
    if (data_lines_ > 1) return fail("*sm holds one line");
    const auto numbers = leading_numbers(fields);
    if (numbers.size() < 4 || numbers.size() > 3 + max_resources) {
      return fail("expected: n_sms n_sched n_boundary max_1 .. max_n with n = 1..{}",
                  max_resources);
    }
    SmSpec sm{numbers[0], numbers[1], numbers[2], {numbers.begin() + 3, numbers.end()}};
    if (sm.n_sms == 0 || sm.n_sched == 0) return fail("n_sms and n_sched must be above 0");
    if (sm.n_sms > max_sms) return fail("n_sms is {}: at most {}", sm.n_sms, max_sms);
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

  Result<void> take_mem(const ConfigFields& fields) override {
    if (data_lines_ > 1) return fail("*mem holds one line");
    config_.memory = leading_numbers(fields);
    if (config_.memory.empty() || config_.memory.size() > max_memories) {
      return fail("expected the capacity of one or two memories");
    }
    for (const std::uint32_t max : config_.memory) {
      if (max == 0) return fail("every capacity must be above 0");
    }
    return {};
  }

  Result<void> take_overhead(const ConfigFields& fields, OverheadTable& table, std::size_t columns,
                             bool at_most_one) {
    const std::vector<float> numbers = leading_singles(fields);
    if (numbers.size() != columns + 1) {
      return fail("expected a ratio and {} overheads, found {} numbers", columns, numbers.size());
    }
    const float ratio = numbers[0];
    if (!(ratio >= 0) || (at_most_one && ratio > 1.0F)) {
      return fail("ratio {} must be at least 0{}", ratio, at_most_one ? " and at most 1" : "");
    }
    return add_row(table, {ratio, {numbers.begin() + 1, numbers.end()}, line_});
  }

  Result<void> take_overhead_sm(const ConfigFields& fields) override {
    return take_overhead(fields, config_.sm_overhead, config_.resources(), false);
  }
  Result<void> take_overhead_mem(const ConfigFields& fields) override {
    return take_overhead(fields, config_.memory_overhead, config_.memory.size(), true);
  }

  Result<void> take_kernel() override {
    const std::size_t expected = 4 + config_.fields_per_kernel();
    if (numbers_.size() != expected) {
      return fail(
          "expected {} numbers (type start n_tb duration, {} requests, {} of memory), "
          "found {}",
          expected, config_.resources(), config_.memory.size(), numbers_.size());
    }
    return add_kernel(
        {.type = numbers_[0],
         .start = TbTicks(numbers_[1]),
         .n_tb = numbers_[2],
         .duration = TbTicks(numbers_[3]),
         .negative_memory = any_negative(4 + config_.resources(), config_.memory.size())},
        std::span(numbers_).subspan(4));
  }
};

}  // namespace

Result<TbConfig> read_config_of_2021(std::string_view text, std::string source) {
  return ReaderOf2021(std::move(source)).read(text);
}

}  // namespace demarc::sim
