// Experiments that show where and when blocks run.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "demarc/base/random.hpp"
#include "demarc/base/text.hpp"
#include "demarc/card/backend.hpp"
#include "demarc/driver/stream.hpp"
#include "gpu/block_timer.hpp"
#include "gpu/gpu_lane.hpp"
#include "gpu/growth.hpp"
#include "gpu/workload_reader.hpp"
#include "number_ranges.hpp"

namespace demarc::study {
namespace {

using gpu::TpcSet;
using Runs = std::vector<BlockRun>;

constexpr std::uint32_t blocks_of_an_sm = 2;  // of 1024 threads

TpcSet tpc_range(std::uint32_t first, std::uint32_t end) {
  return TpcSet::first(end) - TpcSet::first(first);
}

// When a kernel's blocks ran, in us since the first block of the run began.
struct Span {
  double begin = std::numeric_limits<double>::max();
  double end = std::numeric_limits<double>::lowest();
  [[nodiscard]] double length() const { return end - begin; }
};

Span span_of(const BlockRun& run, std::uint32_t kernel) {
  Span span;
  for (const BlockTime& b : run.blocks) {
    if (b.kernel != kernel) continue;
    span.begin = std::min(span.begin, b.begin_us);
    span.end = std::max(span.end, b.end_us);
  }
  return span;
}

PlannedKernel kernel_on(std::string name, std::uint32_t stream, std::uint32_t blocks,
                        double hold_us, std::optional<TpcSet> tpcs = std::nullopt,
                        int priority = 0) {
  PlannedKernel out;
  out.kernel.name = std::move(name);
  out.kernel.stream = stream;
  out.kernel.blocks = blocks;
  out.kernel.hold_us = hold_us;
  out.kernel.priority = priority;
  out.tpcs = tpcs;
  return out;
}

Result<Runs> two_kernels(const BlockTimer& timer, const std::vector<Workload>& /*growing*/) {
  const std::uint32_t tpcs = timer.card()->topology().tpc_count();
  const std::uint32_t slots = blocks_of_an_sm * timer.card()->gpu()->sm_count();
  Runs runs;
  for (const bool divided : {false, true}) {
    std::optional<TpcSet> first;
    TpcSet second = tpc_range(0, tpcs);
    if (divided) {
      first = tpc_range(0, tpcs / 2);
      second = tpc_range(tpcs / 2, tpcs);
    }
    // K2 comes 50 us after K1.
    const auto delay = kernel_on("delay", 1, 1, 50, tpc_range(tpcs - 1, tpcs));
    DEMARC_TRY(auto run, timer.run(divided ? "figure-3-partitioned" : "figure-3-unpartitioned",
                                   {kernel_on("K1", 0, 3 * slots, 200, first), delay,
                                    kernel_on("K2", 1, slots / 2, 100, second)}));
    run.finding = fmt::format("K2 begins at {:.0f} us and ends at {:.0f} us; K1 ends at {:.0f} us",
                              span_of(run, 2).begin, span_of(run, 2).end, span_of(run, 0).end);
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<Runs> alternating_mask(const BlockTimer& timer, const std::vector<Workload>& /*growing*/) {
  const std::uint32_t tpcs = timer.card()->topology().tpc_count();
  TpcSet even;
  for (std::uint32_t tpc = 0; tpc < tpcs; tpc += 2) even.insert(gpu::TpcIndex(tpc));
  const std::uint32_t slots = blocks_of_an_sm * timer.card()->gpu()->sm_count();
  DEMARC_TRY(auto run, timer.run("figure-4", {kernel_on("K1", 0, slots, 100, even)}));
  std::vector<gpu::SmIndex> used;
  for (const BlockTime& b : run.blocks) used.push_back(b.sm);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  run.finding = fmt::format("every second bit of the mask is set: SMs {}", number_ranges(used));
  return Runs{std::move(run)};
}

// 38 kernels, 17 partitions with holes and overlaps, two streams.
Result<Runs> many_partitions(const BlockTimer& timer, const std::vector<Workload>& /*growing*/) {
  constexpr std::uint32_t partitions = 17;
  constexpr std::uint32_t kernels = 38;
  const std::uint32_t tpcs = timer.card()->topology().tpc_count();
  Random random(38);
  std::vector<TpcSet> sets;
  while (sets.size() < partitions) {
    TpcSet set;
    for (const auto tpc : indices<gpu::TpcIndex>(tpcs)) {
      if (random.below(4) == 0) set.insert(tpc);
    }
    if (!set.empty()) sets.push_back(set);
  }
  std::vector<PlannedKernel> planned;
  for (std::uint32_t k = 0; k < kernels; ++k) {
    // Drawn one after the other: arguments of a call are evaluated in any order.
    const double microseconds = 20 + static_cast<double>(random.below(60));
    const std::uint32_t blocks = 8 + static_cast<std::uint32_t>(random.below(90));
    planned.push_back(
        kernel_on(fmt::format("K{}", k + 1), k % 2, blocks, microseconds, sets[k % partitions]));
  }
  DEMARC_TRY(auto run, timer.run("figure-10", std::move(planned)));
  const auto faults = faults_of(run);
  run.finding = fmt::format(
      "{} kernels in {} partitions and two streams: {}", kernels, partitions,
      faults.empty() ? "no block outside its partition, both streams in order" : faults.front());
  return Runs{std::move(run)};
}

// The kernel that comes first takes all of its part, the overlap included.
Result<Runs> overlapping(const BlockTimer& timer, const std::vector<Workload>& /*growing*/) {
  const std::uint32_t tpcs = timer.card()->topology().tpc_count();
  const TpcSet low = tpc_range(0, 2 * tpcs / 3);
  const TpcSet high = tpc_range(tpcs / 3, tpcs);
  const std::uint32_t blocks = 4 * blocks_of_an_sm * low.size();  // two rounds on two SMs per TPC
  Runs runs;
  for (const bool second_first : {false, true}) {
    const auto delay = kernel_on("delay", second_first ? 0 : 1, 1, 40, tpc_range(tpcs - 1, tpcs));
    DEMARC_TRY(auto run, timer.run(second_first ? "figure-11-K2-first" : "figure-11-K1-first",
                                   {delay, kernel_on("K1", 0, blocks, 100, low),
                                    kernel_on("K2", 1, blocks, 100, high)}));
    run.finding = fmt::format("K1 takes {:.0f} us, K2 {:.0f} us", span_of(run, 1).length(),
                              span_of(run, 2).length());
    runs.push_back(std::move(run));
  }
  return runs;
}

// The most kernels that are on the GPU at the same time: its task slots.
Result<BlockRun> concurrent_kernels(const BlockTimer& timer) {
  constexpr std::uint32_t kernels = 200;
  std::vector<PlannedKernel> planned;
  for (std::uint32_t k = 0; k < kernels; ++k) {
    planned.push_back(kernel_on(fmt::format("K{}", k + 1), k, 1, 4000));
  }
  DEMARC_TRY(auto run, timer.run("figure-12-slots", std::move(planned)));
  std::vector<std::pair<double, int>> edges;
  for (const BlockTime& b : run.blocks) {
    edges.emplace_back(b.begin_us, 1);
    edges.emplace_back(b.end_us, -1);
  }
  std::sort(edges.begin(), edges.end());
  int now = 0;
  int most = 0;
  for (const auto& edge : edges) most = std::max(most, now += edge.second);
  run.finding = fmt::format("{} kernels of one block in as many streams: at most {} at a time",
                            kernels, most);
  run.points.push_back({"at a time", kernels, static_cast<double>(most)});
  return run;
}

// A kernel of low priority in one half; more and more of high priority in the other half.
Result<Runs> priority_blocks(const BlockTimer& timer, const std::vector<Workload>& /*growing*/) {
  DEMARC_TRY(auto slots, concurrent_kernels(timer));
  const auto most = static_cast<std::uint32_t>(slots.points.front().y);
  const std::uint32_t tpcs = timer.card()->topology().tpc_count();
  const TpcSet first = tpc_range(0, tpcs / 2);
  const TpcSet second = tpc_range(tpcs / 2, tpcs);
  const std::uint32_t full = blocks_of_an_sm * timer.card()->gpu()->sm_count() / 2;
  std::vector<std::uint32_t> counts{0,        1,    most / 4, most / 2, most - 2,
                                    most - 1, most, most + 1, most + 2, most + 16};
  std::vector<RunPoint> points;
  BlockRun last;
  for (const std::uint32_t count : counts) {
    std::vector<PlannedKernel> planned{kernel_on("low", 0, 8 * full, 50, second)};
    for (std::uint32_t k = 0; k < count; ++k) {
      planned.push_back(kernel_on(fmt::format("high{}", k + 1), k + 1, full, 50, first,
                                  cuda::highest_stream_priority));
    }
    DEMARC_TRY(last, timer.run("figure-12", std::move(planned)));
    points.push_back({"low-priority kernel in its own half", static_cast<double>(count),
                      span_of(last, 0).length()});
  }
  last.points = std::move(points);
  last.x_name = "kernels of high priority in the other half";
  last.y_name = "run time, us";
  last.finding = fmt::format(
      "{:.0f} us next to none, {:.0f} us next to {:.0f} kernels of high priority, {:.0f} us next "
      "to "
      "{:.0f}",
      last.points.front().y, last.points[last.points.size() - 6].y,
      last.points[last.points.size() - 6].x, last.points.back().y, last.points.back().x);
  Runs runs;
  runs.push_back(std::move(slots));
  runs.push_back(std::move(last));
  return runs;
}

// Run time against the number of TPCs, taken GPC by GPC or from all GPCs in turn.
Result<Runs> packed_or_distributed(const BlockTimer& timer, const std::vector<Workload>& growing) {
  const cuda::CardPointer& card = timer.card();
  const auto capability = card->gpu()->compute_capability();
  const auto set =
      std::make_shared<ResidentSet>(card->gpu(), make_plain_memory(card->gpu()),
                                    make_workload_reader(capability.number()), LaunchForm{});
  DEMARC_TRY(const auto back_end, cuda::make_backend(card, partition::Mode::mask));
  Runs runs;
  for (const Workload& workload : growing) {
    BlockRun run;
    run.name = "figure-13-" + workload.name;
    run.x_name = "TPCs";
    run.y_name = "run time, us";
    double largest_difference = 0;
    for (const std::uint32_t count : growth_steps(card->topology().tpc_count())) {
      double times[2] = {};
      for (const bool packed : {true, false}) {
        const auto order = growth_order(card->topology(), packed);
        partition::Partition part;
        part.name = packed ? "packed" : "distributed";
        for (std::uint32_t i = 0; i < count; ++i) part.tpcs.insert(order[i]);
        DEMARC_TRY(const auto confined, back_end->open(part));
        const std::shared_ptr<const cuda::Stream> stream(std::shared_ptr<void>(),
                                                         &confined->stream());
        const auto lane = make_gpu_lane(set, stream, Clock::events);
        DEMARC_CHECK(lane->load(workload));
        DEMARC_TRY(auto samples, lane->sample(5, 0.3));
        std::sort(samples.begin(), samples.end());
        times[packed ? 0 : 1] = samples[samples.size() / 2] / 1e3;
        run.points.push_back({part.name, static_cast<double>(count), times[packed ? 0 : 1]});
      }
      largest_difference = std::max(largest_difference, std::abs(times[1] / times[0] - 1));
    }
    run.finding =
        fmt::format("packed and distributed differ by at most {:.0f} %", 100 * largest_difference);
    runs.push_back(std::move(run));
  }
  return runs;
}

struct Experiment {
  const char* name;
  Result<Runs> (*run)(const BlockTimer&, const std::vector<Workload>& growing);
};
constexpr Experiment experiments[] = {
    {"figure-3", two_kernels},      {"figure-4", alternating_mask},
    {"figure-10", many_partitions}, {"figure-11", overlapping},
    {"figure-12", priority_blocks}, {"figure-13", packed_or_distributed}};

}  // namespace

const std::vector<std::string>& block_experiments() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Experiment& experiment : experiments) out.emplace_back(experiment.name);
    return out;
  }();
  return names;
}

Result<void> prepare_block_experiments(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto& known = block_experiments();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return invalid_input("'{}' is not an experiment; the experiments are {}", name,
                         joined(known, ", "));
  }
  // More channels than the driver opens by itself: with few, streams wait for each other there.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  return {};
}

Result<Runs> run_block_experiments(std::uint32_t device, const std::vector<std::string>& names,
                                   const std::vector<Workload>& growing) {
  DEMARC_CHECK(prepare_block_experiments(names));
  DEMARC_TRY(const auto card, cuda::open_card(device));
  DEMARC_TRY(const auto timer, BlockTimer::make(card));
  Runs runs;
  for (const Experiment& experiment : experiments) {
    if (std::find(names.begin(), names.end(), experiment.name) == names.end()) continue;
    DEMARC_TRY(auto made, experiment.run(timer, growing));
    for (BlockRun& run : made) runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace demarc::study
