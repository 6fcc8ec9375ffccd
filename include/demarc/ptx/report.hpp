// What `demarc ptx` says about a module, as text and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/diagnostic.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Every diagnostic, then a line that counts them. JSON schema: demarc.ptx.check/1.
[[nodiscard]] std::string check_report(const Module& module, const Diagnostics& diagnostics,
                                       bool as_json);

struct MnemonicCount {
  std::string_view text;  // "ld.global.f32"
  Opcode opcode = Opcode::unknown;
  bool understood = true;
  std::uint64_t count = 0;
};

// Counts all instructions inside a body: most frequent first, then by name.
[[nodiscard]] std::vector<MnemonicCount> count_mnemonics(const Module& module);

// Functions, registers, instructions, and counts by opcode and by mnemonic. JSON schema:
// demarc.ptx.stats/1.
[[nodiscard]] std::string statistics_report(const Module& module, bool as_json);

// The graph as DOT, or as JSON (schema demarc.ptx.cfg/1) with blocks, edges, dominators and loops.
[[nodiscard]] std::string cfg_report(const Module& module, const Function& function, bool as_json);

// A kernel or function with a body; the error lists what there is.
[[nodiscard]] Result<const Function*> require_function(const Module& module, std::string_view name);

}  // namespace demarc::ptx
