// A memory system small enough to follow by hand: 4 SMs, one slice, two L2 sets of two ways, two
// banks. An L2 hit takes 29 cycles (SM link 1, way 10, port 1, L2 5, port 1, way back 10, SM link
// 1), a miss 72 (controller 20, activate 9, column 11, burst 2, port into the L2 1 more).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/memory/simulation.hpp"

namespace demarc::sim::memory::test {

// Bare numbers: tests compute by hand.
inline constexpr std::uint64_t hit = 29;
inline constexpr std::uint64_t miss = 72;
inline constexpr std::uint64_t other_set = 0x80;
inline constexpr std::uint64_t other_bank = 0x1000;
inline constexpr std::uint64_t other_row = 0x10000;

inline Spec small_memory() {
  Spec spec;
  spec.name = "small";
  spec.gpc_of_sm = PerIndex<SmIndex, std::uint32_t>{0, 0, 1, 1};
  spec.gpcs = 2;
  spec.threads = 128;
  spec.blocks = 4;
  spec.issue_ticks = Ticks(256);
  spec.instruction_cycles = 4_cycles;
  spec.l1 = {2, 2};
  spec.l1_hit_cycles = 6_cycles;
  spec.l1_miss_registers = 8;
  spec.store_registers = 8;
  spec.request_cycles = 10_cycles;
  spec.reply_cycles = 10_cycles;
  spec.l2_cycles = 5_cycles;
  spec.address.set.rows = {0x80};
  spec.address.bank.rows = {other_bank};
  spec.address.row_shift = 16;
  spec.port_of_slice = PerIndex<SliceIndex, std::uint32_t>{0};
  spec.l2 = {2, 2};
  spec.banks = 2;
  spec.burst_ticks = Ticks(512);
  spec.dram_cycles = 20_cycles;
  spec.precharge_cycles = 7_cycles;
  spec.activate_cycles = 9_cycles;
  spec.column_cycles = 11_cycles;
  spec.row_cycles = 40_cycles;
  spec.row_idle_cycles = 1000_cycles;
  spec.turnaround_cycles = 6_cycles;
  spec.write_high = 4;
  spec.write_low = 1;
  spec.launch_cycles = 3_cycles;
  return spec;
}

inline std::vector<SmIndex> sms(std::initializer_list<std::uint32_t> numbers) {
  std::vector<SmIndex> list;
  for (const std::uint32_t number : numbers) list.emplace_back(number);
  return list;
}

// A launch of one kernel whose warp w of block b runs steps[b][w].
inline std::unique_ptr<Source> launch_of(const std::vector<std::vector<std::vector<Step>>>& steps) {
  auto launch = std::make_shared<PackedLaunch>();
  PackedKernel kernel;
  kernel.shape.blocks = static_cast<std::uint32_t>(steps.size());
  kernel.shape.threads = static_cast<std::uint32_t>(steps.at(0).size() * 32);
  for (const auto& warps : steps) {
    auto block = std::make_shared<PackedBlock>();
    for (const auto& warp : warps) {
      PackedSteps packed;
      for (const Step& step : warp) packed.add(step);
      block->warps.push_back(std::move(packed));
    }
    kernel.blocks.push_back(std::move(block));
  }
  launch->kernels.push_back(std::move(kernel));
  return replay_launch(launch);
}

// `words` of LineEntry.
inline Step access(StepKind kind, std::initializer_list<std::uint64_t> words, bool wait = false) {
  Step step;
  step.kind = kind;
  step.wait = wait;
  for (const std::uint64_t word : words)
    step.lines[step.count++] = LineEntry::from_word(word).value();
  return step;
}

// Cycles at which the requests arrive, each alone in its list position.
struct Asked {
  std::uint64_t at = 0;
  std::uint32_t sm = 0;
  std::uint64_t address = 0;
  StepKind kind = StepKind::load;
};
using Times = std::vector<std::uint64_t>;
inline Times arrivals(Simulation& gpu, const std::vector<Asked>& asked) {
  std::vector<Request> requests;
  for (const Asked& one : asked)
    requests.push_back({.at = Cycles(one.at),
                        .sm = SmIndex(one.sm),
                        .address = PhysicalAddress(one.address),
                        .kind = one.kind});
  const auto completions = gpu.timed(requests);
  EXPECT_TRUE(completions) << completions.error().message;
  Times cycles;
  for (const Completion& completion : *completions) cycles.push_back(completion.first.raw());
  return cycles;
}

inline Times arrivals(const Spec& spec, const std::vector<Asked>& asked) {
  Simulation gpu(spec);
  return arrivals(gpu, asked);
}

// For launches of an access stream on SM 0.
inline ClientStatistics statistics_of(const Spec& spec, const std::string& text,
                                      std::uint32_t launches = 1) {
  Simulation gpu(spec);
  const auto client = gpu.add_client(
      {"test", sms({0}), replay_launch(parse_access_text(text, "x.txt").value()), {}});
  const auto ran = gpu.run_launches(client, launches);
  EXPECT_TRUE(ran) << ran.error().message;
  return gpu.statistics(client);
}

}  // namespace demarc::sim::memory::test
