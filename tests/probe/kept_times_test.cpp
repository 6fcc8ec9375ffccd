// Every kind of time that the planted and the simulated memories tell, as they tell it today. A
// difference is read before it is kept: what the probe finds is made of these.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kept.hpp"
#include "planted_memory.hpp"
#include "simulated_memory.hpp"
#include "sms.hpp"

namespace demarc::probe {
namespace {

Stream chunks_from(std::uint32_t first, std::uint32_t count, std::uint32_t step = 1) {
  Stream stream;
  stream.chunk_shift = 11;
  for (std::uint32_t i = 0; i < count; ++i) stream.chunks.push_back(first + i * step);
  return stream;
}

// A few of each, with the noise that the seed gives.
class Times {
 public:
  explicit Times(TimedMemory& memory) : memory_(memory) {}

  void pairs_and_rereads(std::span<const std::uint64_t> others,
                         std::span<const std::uint64_t> evictors) {
    add("pairs", memory_.uncached_pairs(0, others).value());
    add("reread", memory_.reread(0, evictors, others).value());
    add("crowd of none", {memory_.crowded_read(0, {}).value()});
    add("crowd", {memory_.crowded_read(0, others).value()});
  }
  void hits(std::span<const std::uint64_t> addresses, std::span<const gpu::SmIndex> sms) {
    add("hits, alone", memory_.hit_latencies(addresses, sms, 1, 4).value().values);
    add("hits, all together", memory_.hit_latencies(addresses, sms, 24, 1).value().values);
  }
  void streams(Stream victim, Stream aggressor) {
    std::vector<double> us;
    const auto time = [&](const Stream& other) {
      us.push_back(memory_.stream_seconds(victim, other).value() * 1e6);
    };
    time({});
    time(aggressor);
    aggressor.writes = true;
    time(aggressor);
    victim.latency = true;
    time({});
    json_["streams of " + std::to_string(victim.chunks.size()) + " chunks, us"] = us;
  }
  void expect_kept(const std::string& name) const {
    std::string text;
    for (const auto& [what, times] : json_.items()) {
      text += what + ": " + json_text(test::rounded(times)) + "\n";
    }
    test::expect_kept("probe/golden/" + name + ".txt", text);
  }

 private:
  void add(const std::string& what, const std::vector<float>& cycles) { json_[what] = cycles; }

  TimedMemory& memory_;
  Json json_ = Json::object();
};

constexpr std::uint64_t mebibyte = 1U << 20U;

// Lines of the first line's bank and set among them, and enough to evict it.
TEST(KeptTimes, of_a_planted_card_with_physical_addresses) {
  auto truth = planted_truth("gtx1080").value();
  truth.ways = 4;
  PlantedMemory memory(truth, 3);
  std::vector<std::uint64_t> others;
  std::vector<std::uint64_t> evictors;
  for (std::uint64_t line = 1; others.size() < 12; line += 4099) {
    const std::uint64_t address = line * 128;
    if (others.size() < 6 || truth.bank(address) == truth.bank(0)) others.push_back(address);
  }
  for (std::uint64_t line = 1; others.size() < 20; ++line) {
    const std::uint64_t address = line * 128;
    if (truth.set(address) == truth.set(0)) others.push_back(address);
  }
  // Three lines of the set, one of them twice, and a line of another one.
  for (const std::size_t i : {19U, 17U, 18U, 19U, 0U}) evictors.push_back(others[i]);
  others.push_back(0);
  Times times(memory);
  times.pairs_and_rereads(others, evictors);
  times.hits(others, test::sm_list({0, 7, 19}));
  times.streams(chunks_from(0, 64), chunks_from(10'000, 64));
  times.expect_kept("planted_physical_times");
}

TEST(KeptTimes, of_a_planted_card_that_hides_them) {
  for (const char* card : {"h100", "h200"}) {
    PlantedMemory memory(planted_truth(card).value(), 3);
    Times times(memory);
    times.hits(std::vector<std::uint64_t>{0, 256, 4096, mebibyte, 5 * mebibyte, 8000 * mebibyte},
               test::sm_list({0, 1, 131}));
    times.streams(chunks_from(0, 1024), chunks_from(1'000'000, 4096));
    times.streams(chunks_from(0, 32'768, 3), chunks_from(1'000'000, 4096));
    times.expect_kept(std::string("planted_") + card + "_times");
  }
}

TEST(KeptTimes, of_a_simulated_card) {
  const gpu::Device device = gpu::find_device("gtx1080").value();
  const gpu::AddressMap& map = *device.address_map;
  auto memory = SimulatedMemory::open(device, 1).value();
  // One line of the first one's bank, many of its module, and all of its set but one.
  std::vector<std::uint64_t> others;
  std::vector<std::uint64_t> evictors;
  for (std::uint64_t line = 200'000; others.size() < 40; line += 101) {  // other rows
    const std::uint64_t address = line * 128;
    const bool bank = map.bank(address) == map.bank(0);
    if (others.empty() ? bank : !bank && map.module(address) == map.module(0)) {
      others.push_back(address);
    }
  }
  for (std::uint64_t line = 1; evictors.size() < map.cache_ways; ++line) {
    if (map.set(line * 128) == map.set(0)) evictors.push_back(line * 128);
  }
  others.push_back(evictors.back());
  evictors.pop_back();
  Times times(*memory);
  times.pairs_and_rereads(others, evictors);
  times.hits(std::span(others).first(4), test::sm_list({0, 7, 19}));
  times.streams(chunks_from(0, 256), chunks_from(100'000, 256));
  times.streams(chunks_from(0, 1024, 3), chunks_from(100'000, 1024));
  times.expect_kept("simulated_times");
}

// Noise is what is told and nothing else.
TEST(KeptTimes, without_noise_are_those_of_the_memory_alone) {
  const ClockNoise none{.jitter_cycles = 0, .spikes = 0, .spike_cycles = 0, .hit_jitter = 0};
  auto memory = SimulatedMemory::open(gpu::find_device("gtx1080").value(), 1, none).value();
  const std::uint64_t others[] = {0x23480, 0x46900};
  const auto sms = test::sm_list({0, 19});
  const auto first = memory->uncached_pairs(0, others).value();
  EXPECT_EQ(first, memory->uncached_pairs(0, others).value());
  for (const float cycles : first) EXPECT_EQ(cycles, std::floor(cycles));
  const auto hits = memory->hit_latencies(others, sms, 8, 4).value().values;
  EXPECT_EQ(hits, memory->hit_latencies(others, sms, 24, 1).value().values);
  EXPECT_EQ(hits[0], std::floor(hits[0]));
}

}  // namespace
}  // namespace demarc::probe
