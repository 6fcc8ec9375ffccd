// A partitioning mode of the study: how the SMs are divided, and whether the memory is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/partition/mode.hpp"

namespace demarc::study {

// "mask+color" is {Mode::mask, true}. With colours a mode is what the paper calls CMP (compute and
// memory partition), without them CP (compute partition) [Fractional GPUs, section VI].
//
// The five ways to give the GPU a victim that is a sequence of launches: one launch after the
// other; replayed as a CUDA graph; each launched while the one before still runs (programmatic
// dependent launch, compute capability 9.0); both, as a graph with programmatic edges; all fused
// into one persistent launch (ptx/fused.hpp).
enum class Launches { separate, graph, overlapped, overlapped_graph, fused };

struct Mode {
  partition::Mode division = partition::Mode::none;
  bool color = false;
  Launches launches = Launches::separate;  // the victim's
  // All parts are in one memory synchronisation domain, as without Demarc. Else each part has its
  // own (cuda/sync_domain.hpp).
  bool common_domain = false;
  // The colours are reached through windows, whose pages have 4 KiB (docs/windows.md), and not by
  // arithmetic on pages of 2 MiB. Simulated cards alone have such modes.
  bool windows = false;

  [[nodiscard]] const partition::ModeTraits& traits() const {
    return partition::traits_of(division);
  }
  // Parts have L2 slices and DRAM channels of their own.
  [[nodiscard]] bool divides_memory() const { return color || traits().leased; }
  // "mask", "mask+color", "mask+windows", "mask+color+fused", "mask+common-domain"
  [[nodiscard]] std::string name() const;
  friend bool operator==(const Mode&, const Mode&) = default;
};

// Reads a comma list. An unknown or repeated mode is an error that names the option and lists what
// exists.
[[nodiscard]] Result<std::vector<Mode>> parse_modes(std::string_view text,
                                                    std::string_view option = "--modes");

}  // namespace demarc::study
