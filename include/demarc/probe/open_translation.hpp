// The address translation that --device and --peer name.
#pragma once

#include <memory>
#include <string_view>

#include "demarc/probe/timed_pages.hpp"

namespace demarc::probe {

struct TranslationNames {
  std::string_view device = {};  // "cuda:N" or "planted:NAME"
  std::string_view peer = {};    // "cuda:N"; empty: none
  double card_gib = 100;         // GiB of memory to take from each card at most
  double host_gib = 4;           // GiB of pinned host memory
  std::uint64_t seed = 1;        // of what is planted
};

// invalid_input for a simulated device, which has no TLBs to find, for a peer of a planted device,
// and for a peer that is the card itself. missing_capability if the machine has no such cards or
// they do not reach each other.
[[nodiscard]] Result<std::unique_ptr<TimedTranslation>> open_translation(
    const TranslationNames& names);

}  // namespace demarc::probe
