// The modes are the ways to divide a GPU's SMs. Each has a row in modes.def. Everything else about
// a mode is read from its row; no other place compares its name.
//
// To add one, write its row in modes.def, src/card/backends/NAME.cpp with make_NAME_backend(), and
// the tests of conformance_test.cpp that it alone needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::partition {

enum class Mode : std::uint8_t {
#define DEMARC_MODE(name, ...) name,
#include "demarc/partition/modes.def"
#undef DEMARC_MODE
};

// What a mode has to do with the driver's launch callback.
enum class HookUse : std::uint8_t {
  unused,
  needed,        // masks go through it
  comes_before,  // the driver makes no partition of this kind any more once the callback is used
};

struct ModeTraits {
  std::string_view help = {};     // what it is, in a line
  bool confines = false;          // blocks stay on the SMs of their part
  bool exact = false;             // any set of TPCs, not only a number of them
  bool shares = false;            // a part has a share of the threads, on any SM
  bool across_processes = false;  // each part is a process of its own
  bool takes_turns = false;       // one part at a time has the whole GPU
  bool changes = false;           // a part's TPCs can be changed while it is used
  bool foreign_code = false;      // launches by code that knows nothing of parts are confined too
  bool rewrites = false;          // kernels are changed
  bool throttles = false;         // parts are those of throttled_split()
  bool slices = false;            // the victim's stream has priority, and neighbours' launches are
                                  // cut into slices that give way to it
  bool leased = false;            // parts are those of `demarc exec --part`, which also divides the
                                  // memory; back ends have none of them
  HookUse hook = HookUse::unused;
  bool colors = false;              // each part's memory can have colours of its own
  bool simulated = false;           // simulated GPUs have this mode; real ones have all modes
  std::uint32_t forecast_rank = 0;  // a forecast names the mode with the lowest rank; 0: it never
                                    // names this one
  std::string_view without_commands = {};  // why a command would run outside of its part; empty:
                                           // it does not
};

[[nodiscard]] std::span<const Mode> all_modes();  // in the order of the table
[[nodiscard]] const ModeTraits& traits_of(Mode mode);
[[nodiscard]] std::string_view to_string(Mode mode);
// An error lists the modes.
[[nodiscard]] Result<Mode> parse_mode(std::string_view text);
// "none, mask": the names of the modes whose traits `holds` accepts.
[[nodiscard]] std::string mode_names(bool (*holds)(const ModeTraits&), std::string_view separator);
// One line per mode, for --help and the docs: "mask: TPC masks: ...".
[[nodiscard]] std::string modes_help();

}  // namespace demarc::partition
