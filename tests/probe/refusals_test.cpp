// What the probe refuses to conclude, on memories that answer as they are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "demarc/base/gf2.hpp"
#include "demarc/probe/probe.hpp"
#include "hash_pairs.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A cache that evicts the first line once `capacity` others came after it, or in which only lines
// that are asked for out of order evict anything.
class ToldCache final : public TimedMemory {
 public:
  std::size_t capacity = 300;
  bool in_order_stays = false;
  float hit = 100;
  float miss = 200;

  ToldCache() {
    facts_.name = "told cache";
    facts_.physical_addresses = true;
    facts_.address_bits = 24;
    facts_.l2_bytes = 128 * 128;
  }
  [[nodiscard]] const MemoryFacts& facts() const override { return facts_; }
  Result<std::vector<float>> reread(std::uint64_t, std::span<const std::uint64_t> then,
                                    std::span<const std::uint64_t> candidates) override {
    std::vector<float> cycles;
    for (const std::uint64_t candidate : candidates) {
      bool in_order = true;
      for (std::size_t i = 0; i < then.size(); ++i) {
        const std::uint64_t next = i + 1 < then.size() ? then[i + 1] : candidate;
        in_order = in_order && (next == then[i] || next == (then[i] + 128) % (1U << 24U));
      }
      const bool gone = then.size() + 1 > capacity && !(in_order_stays && in_order);
      cycles.push_back(gone ? miss : hit);
    }
    return cycles;
  }
  Result<std::vector<float>> uncached_pairs(std::uint64_t,
                                            std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }
  Result<float> crowded_read(std::uint64_t, std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }
  Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t>,
                                           std::span<const gpu::SmIndex>, std::uint32_t,
                                           std::uint32_t) override {
    return missing_capability("not asked for");
  }
  Result<double> stream_seconds(const Stream&, const Stream&) override {
    return missing_capability("not asked for");
  }

 private:
  MemoryFacts facts_;
};

HashFinding set_found(ToldCache& memory) {
  Random random(1);
  return find_set_hash(memory, {}, random, {}).value();
}

TEST(SetHash, of_a_cache_without_sets_is_not_decided) {
  ToldCache memory;
  const HashFinding found = set_found(memory);
  EXPECT_FALSE(found.decided);
  EXPECT_EQ(found.reason, "256 lines that seemed to evict the start do not evict it together");
  memory.in_order_stays = true;
  EXPECT_EQ(set_found(memory).reason,
            "0 lines that seemed to evict the start do not evict it together");
}

TEST(SetHash, needs_misses_that_take_a_seventh_longer_than_hits) {
  ToldCache memory;
  memory.miss = 114;
  EXPECT_EQ(set_found(memory).reason, "a cache hit (100 cycles) cannot be told from a miss (114)");
  memory.miss = 116;
  EXPECT_THAT(set_found(memory).reason, HasSubstr("do not evict it together"));
}

// Every line of two parities conflicts: `pairs` of them are asked for.
HashFinding solved_from(std::uint32_t pairs) {
  MemoryFacts facts;
  facts.address_bits = 20;
  facts.line_bytes = 128;
  Random random(4);
  HashFinding finding;
  const TimeAgainst time = [&](std::span<const std::uint64_t> candidates) {
    std::vector<float> times;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      // As few in a batch as make the wanted number stop the search.
      const bool same = parity(candidates[i], 0x11100) == 0 && parity(candidates[i], 0x2200) == 0;
      const bool slow = same && (i < 4 || candidates.size() < 8192);
      times.push_back(slow ? 900 : 500);
    }
    return Result<std::vector<float>>(times);
  };
  HashOptions options;
  options.pairs = pairs;
  EXPECT_TRUE(collect_and_solve(facts, 0, time, options, 4'000'000, random, {}, finding));
  return finding;
}

TEST(CollectAndSolve, a_function_is_confirmed_by_a_dozen_pairs_more_than_it_takes) {
  const HashFinding few = solved_from(20);
  EXPECT_GE(few.pairs, 20U);
  EXPECT_LT(few.pairs, 23U);
  EXPECT_THAT(few.reason, HasSubstr("pairs are too few to confirm a function of 20 address bits"));
  EXPECT_TRUE(few.hash.empty());
  const HashFinding enough = solved_from(23);
  EXPECT_EQ(enough.reason, "");
  EXPECT_EQ(enough.hash.rows, (std::vector<std::uint64_t>{0x11100, 0x2200}));
}

// Planted, but for pages whose latencies are noise, and for writes that are felt as told.
class Disturbed final : public TimedMemory {
 public:
  std::set<std::uint64_t> noisy_pages;
  bool interleaved = false;  // in the last part of the probe: even remainders feel even ones

  Disturbed(const PlantedTruth& truth, std::uint64_t seed) : memory_(truth, seed) {}
  [[nodiscard]] const MemoryFacts& facts() const override { return memory_.facts(); }
  Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t> addresses,
                                           std::span<const gpu::SmIndex> sms,
                                           std::uint32_t together, std::uint32_t repeats) override {
    by_remainders_ = interleaved && addresses.size() == facts().pages * 32;
    auto matrix = memory_.hit_latencies(addresses, sms, together, repeats);
    for (std::size_t i = 0; matrix && i < addresses.size(); ++i) {
      if (!noisy_pages.contains(addresses[i] / facts().page_bytes)) continue;
      for (std::size_t k = 0; k < sms.size(); ++k) {
        matrix->values[i * sms.size() + k] = static_cast<float>(200 + 100 * random_.uniform());
      }
    }
    return matrix;
  }
  Result<double> stream_seconds(const Stream& victim, const Stream& aggressor) override {
    if (!by_remainders_) return memory_.stream_seconds(victim, aggressor);
    if (aggressor.chunks.empty()) {
      ++reader_;
      writer_ = 0;
      return 1.0;
    }
    return reader_ % 2 == writer_++ % 2 ? 2.0 : 1.0;
  }
  Result<std::vector<float>> uncached_pairs(std::uint64_t,
                                            std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }
  Result<std::vector<float>> reread(std::uint64_t, std::span<const std::uint64_t>,
                                    std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }
  Result<float> crowded_read(std::uint64_t, std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }

 private:
  PlantedMemory memory_;
  Random random_{1};
  bool by_remainders_ = false;
  int reader_ = -1;
  int writer_ = 0;
};

PlantedTruth four_modules() {
  PlantedTruth truth;
  truth.facts.name = "small";
  truth.facts.page_bytes = 1U << 17U;
  truth.facts.pages = 100;
  truth.facts.sms = 24;
  truth.facts.l2_bytes = 1U << 20U;
  truth.module.rows = {0x05400, 0x0b800};
  truth.cache_module.rows = {0x05400 ^ 0x0b800};
  truth.stack.modulus = 3;
  truth.stack.number.rows = {0x11100, 0x12200, 0x04800, 0x10000};
  return truth;
}

TEST(ProbeMemory, one_page_in_a_hundred_may_be_uncertain_and_no_more) {
  ProbeOptions options;
  options.slices.sms = 12;
  options.conflicts.dram_bytes = 2U << 20U;
  for (const std::uint64_t noisy : {1U, 2U}) {
    Disturbed memory(four_modules(), 7);
    for (std::uint64_t page = 0; page < noisy; ++page) memory.noisy_pages.insert(95 + page);
    const MemoryReport report = probe_memory(memory, options, {}).value();
    ASSERT_EQ(report.pages->uncertain, noisy);
    EXPECT_EQ(report.decided, noisy == 1);
    const auto said = Contains(HasSubstr("too many page constants are uncertain"));
    if (noisy == 1) {
      EXPECT_THAT(report.verdict, Not(said));
    } else {
      EXPECT_THAT(report.verdict, said);
    }
    EXPECT_THAT(report.verdict, Contains(HasSubstr(fmt::format("s, {} uncertain", noisy))));
  }
}

TEST(ProbeMemory, remainders_whose_groups_are_no_runs_make_no_colours) {
  PlantedTruth truth = planted_truth("h200").value();
  truth.facts.pages = 100;
  truth.facts.l2_bytes = 4U << 20U;
  Disturbed memory(truth, 5);
  memory.interleaved = true;
  ProbeOptions options;
  options.conflicts.dram_bytes = 8U << 20U;
  options.slices.sms = 16;
  const MemoryReport report = probe_memory(memory, options, {}).value();
  ASSERT_TRUE(report.remainder_conflicts);
  EXPECT_EQ(report.remainder_conflicts->groups, 2U);
  EXPECT_TRUE(report.map.remainder_runs.empty());
  EXPECT_THAT(report.verdict, Contains("colours by remainders: none, since those of a group do "
                                       "not follow each other"));
}

}  // namespace
}  // namespace demarc::probe
