// libFuzzer: any text is read as a SimTBS configuration, a pipeline scenario, a task set and a
// sharing map; what a configuration parser accepts must print to a text that reads back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "demarc/sim/dispatch/block_sharing.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"
#include "demarc/sim/pipeline/scenario.hpp"
#include "demarc/sim/schedulability/schedulability.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    (void)demarc::sim::parse_scenario(text, "fuzz");
    (void)demarc::sim::parse_tasks(text, "fuzz");
    (void)demarc::sim::parse_block_sharing(text, "fuzz");
    return 0;
  }
  const auto config = demarc::sim::parse_tb_config(text, "fuzz");
  if (!config || config->sm.max.empty() || config->memory.empty()) return 0;
  const std::string printed = print_tb_config(*config);
  const auto again = demarc::sim::parse_tb_config(printed, "printed");
  // Six decimals may make two rows of a table equal; the rest must come back.
  if (again && again->fields != config->fields) std::abort();

  constexpr std::uint64_t max_work = 100'000;
  std::uint64_t work = config->max_simtime.raw();
  for (const auto& kernel : config->kernels)
    work += std::uint64_t{kernel.n_tb} * kernel.duration.raw();
  if (config->max_simtime == demarc::sim::TbTicks() || config->sm.n_sms > 64 || work > max_work)
    return 0;
  (void)demarc::sim::run_classic(text, "fuzz", "bfa", demarc::sim::TbModel::simtbs, false);
  return 0;
}
