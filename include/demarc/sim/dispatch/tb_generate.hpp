// Workloads for the SimTBS model: kernels that arrive over time up to a nominal load. Seeded: the
// same seed gives the same kernels everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim {

// Whose rules. Nominal use is the units that accepted, not yet nominally ended kernels ask for over
// the capacity; at most one kernel a tick.
//  published_2021: the level bounds the time average of nominal use; ranges a-b give 1..b-a-1 (the
//    lower bound is not added); the nominal end counts overhead, the memory's from the SM table.
//  published_2020 (the paper): one resource and one memory; the level bounds the instantaneous
//  nominal use with the candidate;
//    the nominal end counts no overhead; memory requests are 1..100.
//  corrected: as 2021, but ranges are inclusive and memory costs come from the memory table.
enum class TbGeneration { published_2021, published_2020, corrected };

[[nodiscard]] Result<TbGeneration> parse_tb_generation(std::string_view name);

// The paper's machine, scaled: overhead tables of the reference configuration, one SM resource,
// memory of 15000 units for 16 SMs of 8 units.
struct TbMachine {
  std::uint32_t sms = 16;
  std::uint32_t units = 8;
};

// `uniform`: requests 1..units; `extreme`: 1 or all units. 12-128 blocks, durations 5-20, memory
// 20-30, as in the reference configuration. `multi`: three scheduling resources of `units`, 2 units
// and 2 units, requests uniform up to half of each. `given`: somebody's own workloads, which no
// generator makes.
enum class TbMix { uniform, extreme, multi, given };
inline constexpr std::array<TbMix, 4> tb_mixes = {TbMix::uniform, TbMix::extreme, TbMix::multi,
                                                  TbMix::given};

[[nodiscard]] Result<TbMix> parse_tb_mix(std::string_view name);
[[nodiscard]] TbConfig paper_config(const TbMachine& machine, TbMix mix, std::uint32_t level,
                                    std::uint32_t ticks);

// The machine and the tables that the paper's figures were made with, in the grammar of 2020:
// memory requests 1-100. Errors: `multi`, and SMs of a single unit, which that program does not
// have.
[[nodiscard]] Result<TbConfig> paper_config_of_2020(const TbMachine& machine, TbMix mix,
                                                    std::uint32_t level, std::uint32_t ticks);

// Replaces the kernels of `config` by generated ones, as its workload section says (which must be
// present; its short form picks from the kernels that `config` holds). Errors name the line of a
// range that is too narrow to draw from.
[[nodiscard]] Result<TbConfig> generate_workload(TbConfig config, TbGeneration generation,
                                                 std::uint64_t seed);

}  // namespace demarc::sim
