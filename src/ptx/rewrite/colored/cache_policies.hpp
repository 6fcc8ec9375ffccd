// Cache policies of a rewritten module: those that say which lines go first (eviction.hpp).
#pragma once

#include <cstdint>
#include <optional>

#include "demarc/ptx/ir.hpp"
#include "rewrite/splice.hpp"

namespace demarc::ptx {

// Whether the module can have them: from PTX 7.4 and sm_80 on. One for sm_70 to sm_79 can, too,
// where it is known to run on a newer card (`card`: 90 for compute capability 9.0, 0: not known).
[[nodiscard]] bool has_cache_policies(const Module& module, std::uint32_t card);

// What names such a module for sm_80; nothing where its target stays.
[[nodiscard]] std::optional<Splice> target_with_policies(const Module& module, std::uint32_t card);

}  // namespace demarc::ptx
