// libFuzzer: any text is parsed, what was understood is printed, and every pass is run over it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "analysis/divergence.hpp"
#include "demarc/ptx/address_tree.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/initialiser.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "demarc/ptx/report.hpp"
#include "rewritten_by_colors.hpp"

namespace {

void run_passes(const demarc::ptx::Module& module) {
  constexpr std::uint32_t max_registers = 100'000;
  for (const auto& function : module.functions) {
    if (!function.has_body || function.body.register_count > max_registers) continue;
    const demarc::ptx::Cfg cfg(function.body);
    const demarc::ptx::DefUse def_use(function.body, cfg);
    (void)find_divergence(module, function.body, cfg, def_use);
    for (const std::uint32_t load : global_loads(module, function, true)) {
      (void)trace_address(function, def_use, load, {.max_nodes = 1'000});
    }
    (void)cfg_report(module, function, false);
  }
  for (const auto& variable : module.variables) {
    constexpr std::uint64_t max_bytes = 1U << 20U;
    if (variable.byte_size() < max_bytes) (void)initial_image(module, variable);
  }
}

void color(const demarc::ptx::Module& module) {
  constexpr std::uint64_t max_bytes = 1U << 20U;
  for (const auto& variable : module.variables) {
    if (variable.byte_size() > max_bytes) return;
  }
  (void)demarc::ptx::find_colored_needs(module);
  (void)demarc::color::rewrite_parities(
      module, {{0xc4000}, 1},
      {.places = demarc::ptx::ColoredPlaces{0x1000, 0x2000, 64}, .counts_shared = true});
  (void)demarc::color::rewrite_remainders(module, demarc::color::RemainderShape{8, 13, 9});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto first = demarc::ptx::parse(text, "fuzz");
  run_passes(first.module);
  const std::string printed = print(first.module);
  if (!first.diagnostics.ok()) return 0;
  color(first.module);
  // What is accepted must be accepted again, and print to the same text.
  const auto second = demarc::ptx::parse(printed, "printed");
  if (!second.diagnostics.ok() || print(second.module) != printed) std::abort();
  return 0;
}
