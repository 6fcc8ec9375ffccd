// Lists of SMs, and their TPCs.
#pragma once

#include <initializer_list>
#include <vector>

#include "demarc/device/tpc_set.hpp"

namespace demarc::test {

inline std::vector<gpu::SmIndex> sm_list(std::initializer_list<std::uint32_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

// On a card with two SMs per TPC.
inline gpu::TpcSet tpcs_of(const std::vector<gpu::SmIndex>& sms) {
  gpu::TpcSet tpcs;
  for (const gpu::SmIndex sm : sms) tpcs.insert(gpu::TpcIndex(sm.raw() / 2));
  return tpcs;
}

}  // namespace demarc::test
