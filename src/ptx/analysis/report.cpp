// Writes the reports of `demarc ptx`: diagnostics, counts of opcodes, control-flow graphs.
#include "demarc/ptx/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "parse/reporter.hpp"

namespace demarc::ptx {
namespace {

std::string dumped(const Json& document) {
  return json_text(document, 2) + "\n";
}

Json index_to_json(std::uint32_t index) {
  return index == no_index ? Json() : Json(index);
}

}  // namespace

std::string check_report(const Module& module, const Diagnostics& diagnostics, bool as_json) {
  if (as_json) {
    Json list = Json::array();
    for (const Diagnostic& diagnostic : diagnostics.list) {
      list.push_back({{"severity", name(diagnostic.severity)},
                      {"line", diagnostic.line},
                      {"column", diagnostic.column},
                      {"message", diagnostic.message},
                      {"text", diagnostic.text}});
    }
    return dumped({{"schema", "demarc.ptx.check/1"},
                   {"file", module.source_name},
                   {"malformed", diagnostics.malformed},
                   {"unsupported", diagnostics.unsupported},
                   {"approximated", diagnostics.approximated},
                   {"diagnostics", std::move(list)}});
  }
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics.list) {
    out += format(diagnostic, module.source_name) + "\n";
  }
  const std::uint64_t all =
      diagnostics.malformed + diagnostics.unsupported + diagnostics.approximated;
  if (all > diagnostics.list.size()) {
    out += fmt::format("... and {} more\n", all - diagnostics.list.size());
  }
  return out + fmt::format("{}: {} malformed, {} unsupported, {} function{}\n", module.source_name,
                           diagnostics.malformed, diagnostics.unsupported, module.functions.size(),
                           module.functions.size() == 1 ? "" : "s");
}

std::vector<MnemonicCount> count_mnemonics(const Module& module) {
  std::vector<MnemonicCount> counts(module.mnemonics.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Mnemonic& mnemonic = module.mnemonics[i];
    counts[i] = {mnemonic.text, mnemonic.opcode, mnemonic.understood, 0};
  }
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body.instructions) {
      ++counts[instruction.mnemonic].count;
    }
  }
  counts.erase(std::remove_if(counts.begin(), counts.end(),
                              [](const MnemonicCount& row) { return row.count == 0; }),
               counts.end());
  std::sort(counts.begin(), counts.end(), [](const MnemonicCount& a, const MnemonicCount& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  return counts;
}

std::string statistics_report(const Module& module, bool as_json) {
  const std::vector<MnemonicCount> mnemonics = count_mnemonics(module);
  std::map<std::string_view, std::uint64_t> opcodes;
  std::uint64_t instructions = 0;
  std::uint64_t not_understood = 0;
  for (const MnemonicCount& row : mnemonics) {
    instructions += row.count;
    if (!row.understood) not_understood += row.count;
    const std::string_view unknown = row.text.substr(0, row.text.find('.'));
    opcodes[row.opcode == Opcode::unknown ? unknown : info(row.opcode).name] += row.count;
  }
  if (as_json) {
    Json functions = Json::array();
    for (const Function& function : module.functions) {
      if (!function.has_body) continue;
      functions.push_back({{"name", function.name},
                           {"kernel", function.is_entry},
                           {"parameters", function.parameters.size()},
                           {"registers", function.body.register_count},
                           {"instructions", function.body.instructions.size()}});
    }
    Json by_mnemonic = Json::object();
    for (const MnemonicCount& row : mnemonics) by_mnemonic[std::string(row.text)] = row.count;
    return dumped({{"schema", "demarc.ptx.stats/1"},
                   {"file", module.source_name},
                   {"instructions", instructions},
                   {"not_understood", not_understood},
                   {"functions", std::move(functions)},
                   {"opcodes", opcodes},
                   {"mnemonics", std::move(by_mnemonic)}});
  }
  std::string out;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    append(out, "{} {}: {} instructions, {} registers\n", function.is_entry ? "kernel" : "function",
           function.name, function.body.instructions.size(), function.body.register_count);
  }
  append(out, "{} instructions, {} of them not understood\n", instructions, not_understood);
  for (const MnemonicCount& row : mnemonics) {
    append(out, "{:>9}  {}{}\n", row.count, row.text, row.understood ? "" : "  (not understood)");
  }
  return out;
}

std::string cfg_report(const Module& module, const Function& function, bool as_json) {
  const Cfg cfg(function.body);
  if (!as_json) return to_dot(module, function, cfg);
  Json blocks = Json::array();
  for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
    const BasicBlock& block = cfg.blocks()[b];
    const auto& instructions = function.body.instructions;
    blocks.push_back(
        {{"first_line", block.count > 0 ? Json(instructions[block.first].line) : Json()},
         {"instructions", block.count},
         {"successors", block.successors},
         {"immediate_dominator", index_to_json(cfg.immediate_dominator(b))},
         {"immediate_post_dominator", index_to_json(cfg.immediate_post_dominator(b))},
         {"loop", index_to_json(cfg.loop_of(b))}});
  }
  Json loops = Json::array();
  for (const Loop& loop : cfg.loops()) {
    loops.push_back({{"header", loop.header},
                     {"blocks", loop.blocks},
                     {"parent", index_to_json(loop.parent)},
                     {"depth", loop.depth}});
  }
  return dumped({{"schema", "demarc.ptx.cfg/1"},
                 {"function", function.name},
                 {"reducible", cfg.reducible()},
                 {"blocks", std::move(blocks)},
                 {"loops", std::move(loops)}});
}

Result<const Function*> require_function(const Module& module, std::string_view wanted) {
  if (const Function* found = module.find_function(wanted)) return found;
  std::string names;
  for (const Function& function : module.functions) {
    if (function.has_body) names += fmt::format("{}{}", names.empty() ? "" : ", ", function.name);
  }
  return invalid_input("{}: no kernel or function '{}'; there is: {}", module.source_name,
                       excerpt(wanted, 200), names.empty() ? "none" : names);
}

}  // namespace demarc::ptx
