// Where the blocks of a launch run.
#include <algorithm>

#include "fake_launch.hpp"

namespace demarc::fake {
namespace {

std::uint32_t blocks_of(const FakeLaunch& launch) {
  return launch.grid[0] * launch.grid[1] * launch.grid[2];
}

}  // namespace

Placed place(FakeGpu& gpu, const FakeLaunch& launch, const std::vector<std::uint32_t>& tpcs) {
  const FakeConfig& config = gpu.config;
  std::vector<std::vector<std::uint32_t>> pools;  // SMs that one cluster, or any block, may use
  std::vector<std::uint32_t> sms;
  std::map<std::uint32_t, std::vector<std::uint32_t>> of_gpc;
  for (const std::uint32_t t : tpcs) {
    for (std::uint32_t i = 0; i < config.sms_per_tpc; ++i) {
      const std::uint32_t sm = t * config.sms_per_tpc + i;
      sms.push_back(sm);
      of_gpc[config.gpc[t]].push_back(sm);
    }
  }
  Placed placed;
  std::vector<std::uint32_t>& where = placed.sm;
  if (launch.cluster == 0) {
    if (sms.empty()) return placed;
    for (std::uint32_t b = 0; b < blocks_of(launch); ++b) where.push_back(sms[b % sms.size()]);
  } else {
    for (const auto& [gpc, list] : of_gpc) {
      if (list.size() >= launch.cluster) pools.push_back(list);
    }
    if (pools.empty()) return placed;
    for (std::uint32_t c = 0; c < blocks_of(launch) / launch.cluster; ++c) {
      const auto& pool = pools[c % pools.size()];
      const std::size_t first = (c / pools.size()) * launch.cluster;
      for (std::uint32_t b = 0; b < launch.cluster; ++b) {
        where.push_back(pool[(first + b) % pool.size()]);
      }
    }
  }
  placed.number = where;
  if (config.virtual_sms) {
    for (std::uint32_t& sm : placed.number) {
      sm = static_cast<std::uint32_t>(std::find(sms.begin(), sms.end(), sm) - sms.begin());
    }
  }
  return placed;
}

void read_numbers(const FakeConfig& config, const FakeSmReading& reading, Placed& placed) {
  constexpr std::uint32_t other_bits = 0x200002a5;  // the number of the warp, and more
  for (std::size_t b = 0; b < placed.sm.size(); ++b) {
    std::uint32_t& number = placed.number[b];
    if (reading.of_card) {
      number = (config.register_of_launch ? number : placed.sm[b]) << 20U | other_bits;
    }
    if (reading.cut) number = number >> 20U & 0x1ffU;
  }
}

std::uint32_t largest_gpc(const FakeConfig& config) {
  std::map<std::uint32_t, std::uint32_t> sms;
  std::uint32_t most = 0;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    most = std::max(most, sms[config.gpc[t]] += config.sms_per_tpc);
  }
  return most;
}

}  // namespace demarc::fake
