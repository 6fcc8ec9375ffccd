// Results that were not measured, in which every number differs.
#pragma once

#include "demarc/report/locality_page.hpp"
#include "demarc/study/study.hpp"

namespace demarc::report {

inline study::Variation judged_by(std::size_t victim, double mean, std::optional<double> p99) {
  study::Variation row;
  row.victim = victim;
  row.mean_percent.value = mean;
  if (p99) row.tail.p99 = study::P99Row{{*p99, *p99, *p99}, 0};
  row.tail.worst = {mean + 1, p99 ? std::size_t{1000} : std::size_t{3}, 0};
  row.overhead = 1.01 + 0.1 * mean;
  return row;
}

inline study::WorkloadForecast forecast_of(const char* name, double n) {
  study::WorkloadForecast row;
  row.name = row.spec = name;
  row.half_memory_slowdown = 1 + n;
  row.l2_hit_rate = 0.9 - n;
  row.half_l2_hit_rate = 0.8 - n;
  row.dram_demand_share = 0.2 + n;
  row.l2_demand_share = 0.1 + n;
  return row;
}

// Under none everything ran, under mps nothing; under mask one output was wrong.
inline study::StudyResult made_up_study() {
  study::StudyResult result;
  result.plan.parts = 3;
  result.plan.seed = 77;
  result.plan.modes = {
      {partition::Mode::none, false}, {partition::Mode::mps, false}, {partition::Mode::mask, true}};
  result.plan.victims = {{"va", "va"}, {"mm", "mm"}};
  result.plan.aggressors = {{"fwt", "fwt"}, {"sp", "sp"}};
  result.device = {"cuda:0", "card", "580.1", 16, true, {"first note", "second note"}, {}};
  result.recommendation = "what is recommended";
  result.errors = {"mask: mm next to sp: wrong output"};
  result.forecast.device = "described";
  result.forecast.victims = {forecast_of("va", 0.05), forecast_of("mm", 0.051)};
  result.forecast.aggressors = {forecast_of("va", 0.05), forecast_of("fwt", 0.04),
                                forecast_of("sp", 0)};
  result.forecast.aggressors[1].complete = false;
  result.forecast.aggressors[2].missing = "no PTX";
  result.modes.resize(3);
  for (std::size_t i = 0; i < 3; ++i) result.modes[i].mode = i;
  result.modes[0].victims = {judged_by(0, 3, 30), judged_by(1, 5, {})};
  result.modes[0].mean = {2, 4, 5};
  result.modes[0].tail = {{1, 30, 30}, {1, 6, 6}, 3, 3};
  result.modes[0].account = "both everywhere";
  result.modes[1].unavailable = "no daemon";
  result.modes[2].victims = {judged_by(0, 21, 2)};
  result.modes[2].mean = {1, 21, 21};
  result.modes[2].tail = {{1, 2, 2}, {}, 0, 0};
  double ns = 1000;
  for (const std::size_t mode : {0U, 2U}) {
    for (std::size_t victim = 0; victim < 2; ++victim) {
      for (int beside = -1; beside < 2; ++beside) {
        study::Cell cell;
        cell.mode = mode;
        cell.victim = victim;
        if (beside >= 0) cell.aggressor = static_cast<std::size_t>(beside);
        cell.aggressor_rate = beside + 1;
        if (mode == 2 && victim == 1 && beside == 1) {
          cell.error = "wrong output";
        } else {
          cell.samples_ns = {ns, ns + 100, ns + 300};
          cell.times = study::describe(cell.samples_ns);
        }
        if (beside == 0 && mode == 0) cell.remarks = {"a lane's remark"};
        ns += 500;
        result.cells.push_back(cell);
      }
    }
  }
  return result;
}

inline locality::Access access_of(std::uint32_t line, locality::AccessKind kind) {
  locality::Access access;
  access.instruction = "ld.global.u32 %r1, [%rd1]";
  access.index = line - 1;
  access.line = line;
  access.kind = kind;
  access.expression = "p0 + 4*tid.x";
  access.executed = 1000 + line;
  access.requests = 40;
  access.sectors_per_request = 4.125;
  return access;
}

inline locality::PageSplit split_of(std::uint64_t page_bytes) {
  locality::PageSplit split;
  split.page_bytes = page_bytes;
  split.gpus = 2;
  split.pages = 3;
  split.pages_by_sharers = {2, 1};
  split.shared_access_share = 0.25;
  split.remote_access_share = 0.125;
  split.first_touches = 4;
  split.returns = 20;
  split.local_returns = 12;
  split.first_pages = {0, page_bytes, 2 * page_bytes};
  split.accesses = {{5, 0, 1}, {0, 6, 2}};
  return split;
}

inline LocalityStudy made_up_locality() {
  LocalityStudy study;
  study.name = "launch";
  study.device = "described";
  locality::Analysis& a = study.analysis;
  a.kernel = "k";
  a.grid = {3, 2, 1};
  a.block = {32, 4, 2};
  a.instance = 1;
  a.all.grid = {3, 2, 1};
  a.all.block = {32, 4, 2};
  a.all.accesses = {access_of(7, locality::AccessKind::load),
                    access_of(9, locality::AccessKind::store)};
  a.inter.map = {6, 1, {{0, 1, 12}, {2, 5, 3}}};
  a.inter.sharing_blocks = 4;
  a.inter.degree_of_sharing = 0.12345678;
  a.inter.appearance_frequency = 0.75;
  a.inter.spscore = 0.9;
  a.inter.paver_degree_of_sharing = 2.5;
  a.intra.map = {8, 1, {{3, 4, 9}}};
  a.intra.map_block = 5;
  a.intra.distinct_blocks = 2;
  a.intra.degree_of_sharing = 0.5;
  a.intra.appearance_frequency = 0.25;
  a.notes = {"a note"};
  a.trees_json = R"({"loads": [{"instruction": "ld.global.u32", "line": 7, "tree": [)"
                 R"({"reg": "%rd1", "opcode": "add", "parent": -1}, {"reg": "[p0]", "parent": 0},)"
                 R"({"reg": "%tid.x", "parent": 0}, {"reg": "4", "parent": 0}]}]})";
  locality::Sensitivity& s = study.sensitivity;
  s.whole.sms = 6;
  s.whole.blocks_per_sm = 1;
  s.whole.l1_hit_rate = 0.11;
  s.whole.l2_hit_rate = 0.22;
  s.whole.l2_read_hit_rate = 0.33;
  s.whole.l1_sectors = 1234;
  s.whole.l2_sectors = 1000;
  s.whole.l2_read_sectors = 900;
  s.whole.dram_bytes = 12345;
  s.whole.dram_read_bytes = 12000;
  s.half = s.whole;
  s.half.l2_hit_rate = 0.15;
  s.half.dram_bytes = 23456;
  s.time_s = 3.5e-6;
  s.half_l2_slowdown = 1.25;
  s.half_memory_slowdown = 1.5;
  s.dram_demand_bytes_s = 1e11;
  s.dram_demand_share = 0.125;
  study.pages = {split_of(4096), split_of(65536)};
  return study;
}

}  // namespace demarc::report
