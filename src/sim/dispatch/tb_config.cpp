// Names the models, evaluates overhead tables, and prints SimTBS configurations.
#include "demarc/sim/dispatch/tb_config.hpp"

#include "demarc/base/text.hpp"
#include "dispatch/tb_config_reader.hpp"

namespace demarc::sim {

std::string_view to_string(TbModel model) {
  switch (model) {
    case TbModel::simtbs:
      return "simtbs";
    case TbModel::simtbs_2020:
      return "simtbs-2020";
    case TbModel::corrected:
      return "corrected";
  }
  return "";
}

Result<TbModel> parse_tb_model(std::string_view name) {
  for (const TbModel model : {TbModel::simtbs, TbModel::simtbs_2020, TbModel::corrected}) {
    if (name == to_string(model)) return model;
  }
  return invalid_input("unknown model '{}': use simtbs, simtbs-2020 or corrected", name);
}

float OverheadTable::cost(std::size_t column, float ratio) const {
  if (rows.empty()) return 0.0F;
  std::size_t row = 0;
  while (row + 1 < rows.size() && !(ratio <= rows[row].ratio)) ++row;
  const float x0 = row == 0 ? 0.0F : rows[row - 1].ratio;
  const float y0 = row == 0 ? 0.0F : rows[row - 1].cost[column];
  const float slope = (rows[row].cost[column] - y0) / (rows[row].ratio - x0);
  return slope * (ratio - x0) + y0;
}

void TbConfig::add_kernel(const TbKernel& kernel, std::span<const std::uint32_t> kernel_fields) {
  kernels.push_back(kernel);
  fields.insert(fields.end(), kernel_fields.begin(), kernel_fields.end());
}

Result<std::vector<std::uint32_t>> memory_fields(const TbConfig& config, TbModel model) {
  const auto n = static_cast<std::uint32_t>(config.resources());
  const auto memories = static_cast<std::uint32_t>(config.memory.size());
  std::vector<std::uint32_t> map(memories);
  for (std::uint32_t m = 0; m < memories; ++m) map[m] = n + m;
  if (model == TbModel::corrected || n == 12 || memories == 0) return map;
  if (memories == 1) {
    if (n >= 2) map[0] = 1;
    return map;
  }
  if (n == 1 && !config.kernels.empty()) {
    return invalid_input(
        "{}:{}: with one SM resource and two memories the published program uses a memory request "
        "it never read; use --model corrected",
        config.source, config.kernels.begin()->line);
  }
  if (n == 11) {
    map[0] = 1;
  } else if (n <= 10) {
    map[0] = 2;
    map[1] = 3;
  }
  return map;
}

std::string print_tb_config(const TbConfig& config) {
  if (config.grammar == TbGrammar::of_2020) return print_config_of_2020(config);
  std::string out;
  append(out, "*general\n{}\n*sm\n{} {} {}", config.max_simtime, config.sm.n_sms, config.sm.n_sched,
         config.sm.n_boundary);
  for (const std::uint32_t max : config.sm.max) append(out, " {}", max);
  out += "\n*mem\n";
  for (std::size_t m = 0; m < config.memory.size(); ++m) {
    append(out, "{}{}", m == 0 ? "" : " ", config.memory[m]);
  }
  out += "\n";
  const auto table = [&](std::string_view name, const OverheadTable& overhead) {
    if (overhead.rows.empty()) return;
    append(out, "*{}\n", name);
    for (const OverheadTable::Row& row : overhead.rows) {
      append(out, "{:.6f}", row.ratio);
      for (const float cost : row.cost) append(out, " {:.6f}", cost);
      out += "\n";
    }
  };
  table("overhead_mem", config.memory_overhead);
  table("overhead_sm", config.sm_overhead);
  out += "*kernel\n";
  for (const KernelIndex k : config.kernels.keys()) {
    const TbKernel& kernel = config.kernels[k];
    append(out, "{} {} {} {}", kernel.type, kernel.start, kernel.n_tb, kernel.duration);
    for (const std::uint32_t field : config.kernel_fields(k)) append(out, " {}", field);
    out += "\n";
  }
  return out;
}

}  // namespace demarc::sim
