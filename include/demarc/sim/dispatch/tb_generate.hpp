// Workloads for the SimTBS model: kernels that arrive over time up to a nominal load. Seeded: the
// same seed gives the same kernels everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim {

// The rules by which kernels are drawn. A kernel is in nominal use from its acceptance to its
// nominal end. The nominal use of a resource is the units that such kernels ask for, divided by the
// capacity. At most one kernel is accepted per tick.
//
//   published_2021  The level bounds the time average of nominal use. A range a-b gives 1 to b-a-1:
//                   the lower bound is not added. The nominal end counts overhead. The memory's
//                   overhead comes from the SM table.
//   published_2020  The rules of the paper. There is one resource and one memory. The level bounds
//                   the nominal use at the moment, with the candidate in it. The nominal end counts
//                   no overhead. Memory requests are 1 to 100.
//   corrected       As published_2021, but a range a-b gives a to b, and the memory's overhead
//                   comes from the memory table.
enum class TbGeneration { published_2021, published_2020, corrected };

[[nodiscard]] Result<TbGeneration> parse_tb_generation(std::string_view name);

// The paper's machine, scaled: overhead tables of the reference configuration, one SM resource,
// memory of 15000 units for 16 SMs of 8 units.
struct TbMachine {
  std::uint32_t sms = 16;
  std::uint32_t units = 8;
};

// What kernels ask for. Every mix has 12-128 blocks, durations of 5-20 ticks and 20-30 units of
// memory, as in the reference configuration.
//
//   uniform  requests of 1 to `units` units
//   extreme  requests of 1 unit or of all units
//   multi    three scheduling resources of `units`, 2 and 2 units, requests up to half of each
//   given    workloads of a file, which no generator makes
enum class TbMix { uniform, extreme, multi, given };
inline constexpr std::array<TbMix, 4> tb_mixes = {TbMix::uniform, TbMix::extreme, TbMix::multi,
                                                  TbMix::given};

[[nodiscard]] Result<TbMix> parse_tb_mix(std::string_view name);
[[nodiscard]] TbConfig paper_config(const TbMachine& machine, TbMix mix, std::uint32_t level,
                                    std::uint32_t ticks);

// The machine and the tables that the paper's figures were made with, in the grammar of 2020:
// memory requests of 1-100 units. That program has neither `multi` nor SMs of a single unit: both
// are errors.
[[nodiscard]] Result<TbConfig> paper_config_of_2020(const TbMachine& machine, TbMix mix,
                                                    std::uint32_t level, std::uint32_t ticks);

// Replaces the kernels of `config` by generated ones. The workload section of `config` says how and
// must be present. Its short form picks from the kernels that `config` holds. Errors name the line
// of a range that is too narrow to draw from.
[[nodiscard]] Result<TbConfig> generate_workload(TbConfig config, TbGeneration generation,
                                                 std::uint64_t seed);

}  // namespace demarc::sim
