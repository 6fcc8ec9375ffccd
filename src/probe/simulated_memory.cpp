// Answers the probe from a simulated memory system, with the jitter of a clock.
#include "simulated_memory.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "demarc/base/hash.hpp"
#include "demarc/sim/memory/synthetic.hpp"

namespace demarc::probe {
namespace {

using sim::Cycles;
using sim::SmIndex;
using sim::memory::LineNumber;
using sim::memory::PhysicalAddress;
using sim::memory::Request;

constexpr std::uint64_t hidden_pages = 4096;

Request uncached_read(Cycles at, SmIndex sm, std::uint64_t address, std::uint64_t repeats) {
  return {
      .at = at, .sm = sm, .address = PhysicalAddress(address), .cached = false, .repeats = repeats};
}

sim::memory::Walk walk_of(const Stream& stream, std::size_t sms) {
  sim::memory::Walk walk;
  walk.chunks = std::make_shared<const std::vector<std::uint32_t>>(stream.chunks);
  walk.chunk_shift = stream.chunk_shift;
  walk.kind = stream.writes ? sim::memory::StepKind::store : sim::memory::StepKind::load;
  walk.blocks = stream.latency ? 1 : static_cast<std::uint32_t>(4 * sms);
  walk.threads = stream.latency ? 32 : 512;
  walk.ahead = stream.latency ? 1 : 4;
  return walk;
}

// What the L2 holds when streams have run for long. Lines are put in from the last on, as far as
// their set has a way left, and then touched in the order in which they came.
class L2Filling {
 public:
  explicit L2Filling(const sim::memory::Spec& spec)
      : spec_(spec), decoder_(spec.address), left_(std::size_t{spec.slices} * spec.l2.sets) {
    std::fill(left_.begin(), left_.end(), spec.l2.ways);
  }

  // The last `lines` of a stream, or all, as if it had ended before what was put in up to now.
  void put_before(const Stream& stream, std::uint64_t lines) {
    const std::uint32_t shift = stream.chunk_shift - sim::memory::line_shift;
    const std::uint64_t chunks = std::min<std::uint64_t>(stream.chunks.size(), lines >> shift);
    for (std::uint64_t i = 0; i < chunks << shift; ++i) {
      const std::uint32_t chunk = stream.chunks[stream.chunks.size() - 1 - (i >> shift)];
      const LineNumber line((std::uint64_t{chunk} << shift) +
                            ((1U << shift) - 1 - (i & ((1U << shift) - 1))));
      const sim::memory::Place place = decoder_(line);
      std::uint32_t& left = left_[std::size_t{place.slice.raw()} * spec_.l2.sets + place.set.raw()];
      if (left == 0) continue;
      --left;
      kept_.push_back({line, stream.writes});
    }
  }

  void touch(sim::memory::Simulation& gpu) const {
    for (std::size_t i = kept_.size(); i-- > 0;) {
      gpu.touch(address_of(kept_[i].line), kept_[i].written);
    }
  }

 private:
  struct Line {
    LineNumber line;
    bool written;
  };
  const sim::memory::Spec& spec_;
  sim::memory::AddressDecoder decoder_;
  std::vector<std::uint32_t> left_;  // ways, by set
  std::vector<Line> kept_;
};

// The ends of both streams, and a victim that fits whole.
void fill_l2(sim::memory::Simulation& gpu, const Stream& victim, const Stream& aggressor,
             std::uint64_t l2_bytes) {
  const std::uint64_t lines = l2_bytes / sim::memory::line_bytes;
  const std::uint64_t victim_bytes = std::uint64_t{victim.chunks.size()} << victim.chunk_shift;
  L2Filling filling(gpu.spec());
  filling.put_before(victim, victim_bytes <= l2_bytes / 2 ? lines : lines / 2);
  filling.put_before(aggressor, lines);
  filling.touch(gpu);
}

std::uint64_t key_of(const Stream& victim, const Stream& aggressor) {
  std::uint64_t h = 0;
  for (const Stream* stream : {&victim, &aggressor}) {
    const auto kind = (stream->writes ? 2U : 0U) + (stream->latency ? 1U : 0U);
    h = hash_of(h, stream->chunk_shift, kind, hash_of(std::as_bytes(std::span(stream->chunks))));
  }
  return h;
}

}  // namespace

SimulatedMemory::SimulatedMemory(const sim::memory::Spec& spec, std::uint64_t seed,
                                 const ClockNoise& noise)
    : spec_(spec), gpu_(spec), noise_(noise), random_(seed) {}

Result<std::unique_ptr<SimulatedMemory>> SimulatedMemory::open(const gpu::Device& device,
                                                               std::uint64_t seed,
                                                               const ClockNoise& noise) {
  DEMARC_TRY(sim::memory::Spec spec, sim::memory::make_spec(device, seed));
  spec.l1 = {};  // the probe reads past the L1
  std::unique_ptr<SimulatedMemory> memory(new SimulatedMemory(spec, seed, noise));
  MemoryFacts& facts = memory->facts_;
  facts.name = device.name + " (simulated)";
  facts.physical_addresses = spec.address.page_bytes == 0;
  constexpr auto max_bits = std::uint32_t{std::bit_width(sim::memory::max_bytes - 1)};
  facts.address_bits = std::min(device.address_map->address_bits, max_bits);
  facts.page_bytes = spec.address.page_bytes;
  facts.pages = facts.physical_addresses ? 0 : hidden_pages;
  facts.sms = spec.sms();
  facts.l2_bytes = device.l2.size_bytes;
  facts.line_bytes = sim::memory::line_bytes;
  const auto& tpcs = device.topology.tpcs;
  for (const gpu::TpcIndex t : tpcs.keys()) {
    auto& side = t.raw() % 2 == 0 ? memory->victim_sms_ : memory->aggressor_sms_;
    side.insert(side.end(), tpcs[t].sms.begin(), tpcs[t].sms.end());
  }
  return memory;
}

float SimulatedMemory::with_jitter(double cycles) {
  cycles += noise_.jitter_cycles * random_.normal();
  if (random_.uniform() < noise_.spikes) cycles += noise_.spike_cycles * random_.uniform();
  return static_cast<float>(cycles);
}

Result<std::vector<float>> SimulatedMemory::uncached_pairs(
    std::uint64_t primary, std::span<const std::uint64_t> secondaries) {
  const Cycles rest = spec_.row_idle_cycles + Cycles(100);  // rows of the pair before close
  const SmIndex other(spec_.sms() > 1 ? 1 : 0);
  std::vector<float> cycles;
  cycles.reserve(secondaries.size());
  for (const std::uint64_t secondary : secondaries) {
    const std::array<Request, 2> pair{uncached_read(rest, SmIndex(0), primary, 1),
                                      uncached_read(rest, other, secondary, 1)};
    DEMARC_TRY(const auto done, gpu_.timed(pair));
    cycles.push_back(
        with_jitter(static_cast<double>((std::max(done[0].first, done[1].first) - rest).raw())));
  }
  return cycles;
}

Result<std::vector<float>> SimulatedMemory::reread(std::uint64_t first,
                                                   std::span<const std::uint64_t> then,
                                                   std::span<const std::uint64_t> candidates) {
  std::vector<float> cycles;
  cycles.reserve(candidates.size());
  for (const std::uint64_t candidate : candidates) {
    gpu_.touch(PhysicalAddress(first));
    for (const std::uint64_t address : then) gpu_.touch(PhysicalAddress(address));
    gpu_.touch(PhysicalAddress(candidate));
    const std::array<Request, 1> again{
        Request{.sm = SmIndex(0), .address = PhysicalAddress(first)}};
    DEMARC_TRY(const auto done, gpu_.timed(again));
    cycles.push_back(with_jitter(static_cast<double>(done[0].first.raw())));
  }
  return cycles;
}

Result<float> SimulatedMemory::crowded_read(std::uint64_t primary,
                                            std::span<const std::uint64_t> secondaries) {
  constexpr Cycles settle(6000);  // until the others have found their rhythm
  constexpr std::uint64_t reads = 6;
  // Each of the others keeps one miss register busy: its next read arrives when the last, which had
  // to close a row, has been served.
  const Cycles held = spec_.dram_latency() - spec_.l2_hit_latency() + spec_.precharge_cycles;
  std::vector<Request> requests{uncached_read(settle, SmIndex(0), primary, reads)};
  for (std::size_t i = 0; i < secondaries.size(); ++i) {
    const SmIndex sm((i % std::max(spec_.sms() - 1, 1U) + 1) % spec_.sms());
    requests.push_back(uncached_read(Cycles(i), sm, secondaries[i], 0));
    requests.back().interval = held;
  }
  DEMARC_TRY(const auto done, gpu_.timed(requests));
  return with_jitter(static_cast<double>((done[0].last - settle).raw()) /
                     static_cast<double>(reads));
}

Result<gpu::LatencyMatrix> SimulatedMemory::hit_latencies(std::span<const std::uint64_t> addresses,
                                                          std::span<const gpu::SmIndex> sms,
                                                          std::uint32_t together,
                                                          std::uint32_t repeats) {
  gpu::LatencyMatrix matrix;
  matrix.dimensions = static_cast<std::uint32_t>(sms.size());
  matrix.values.reserve(addresses.size() * sms.size());
  const double noise = noise_.hit_jitter * (together > 16 ? 4 : 1);
  for (const std::uint64_t address : addresses) {
    gpu_.touch(PhysicalAddress(address));
    for (const SmIndex sm : sms) {
      const std::array<Request, 1> read{Request{.sm = sm, .address = PhysicalAddress(address)}};
      DEMARC_TRY(const auto done, gpu_.timed(read));
      double least = noise * random_.normal();
      for (std::uint32_t r = 1; r < repeats; ++r) least = std::min(least, noise * random_.normal());
      if (random_.uniform() < noise_.spikes / 10) least += 40 * random_.uniform();
      matrix.values.push_back(static_cast<float>(static_cast<double>(done[0].first.raw()) + least));
    }
  }
  return matrix;
}

Result<double> SimulatedMemory::stream_seconds(const Stream& victim, const Stream& aggressor) {
  constexpr Cycles longest(96'000);
  constexpr std::uint64_t enough = 100'000;  // sectors that say how fast a stream is
  const double noise = 1 + 0.003 * random_.normal();
  const std::uint64_t key = key_of(victim, aggressor);
  if (const auto known = known_streams_.find(key); known != known_streams_.end()) {
    return known->second * noise;
  }
  sim::memory::Simulation gpu(spec_);
  const std::uint64_t bytes = std::uint64_t{victim.chunks.size()} << victim.chunk_shift;
  fill_l2(gpu, victim, aggressor, facts_.l2_bytes);
  const auto client = gpu.add_client({"victim",
                                      victim_sms_,
                                      sim::memory::walk_source(walk_of(victim, victim_sms_.size())),
                                      {},
                                      0});
  if (!aggressor.chunks.empty()) {
    gpu.add_client({"aggressor",
                    aggressor_sms_,
                    sim::memory::walk_source(walk_of(aggressor, aggressor_sms_.size())),
                    {},
                    0});
  }
  const sim::memory::ClientStatistics& statistics = gpu.statistics(client);
  double cycles = 0;
  if (bytes != 0 && bytes <= facts_.l2_bytes / 2) {
    // A stream that stays in the L2 ends soon: whole launches are timed, without the gaps between
    // them, but for the first, in which nothing has found its rhythm.
    const std::size_t launches = 2 + enough * sim::memory::sector_bytes / bytes;
    while (statistics.run_cycles.size() < launches && gpu.now() < longest) {
      DEMARC_CHECK(gpu.run_for(Cycles(2'000)));
    }
    const auto& ended = statistics.run_cycles;
    for (std::size_t i = 1; i < ended.size(); ++i) {
      cycles += static_cast<double>(ended[i].raw()) / static_cast<double>(ended.size() - 1);
    }
  }
  if (cycles == 0) {
    // Sectors count when they are asked for, and a stream in one module asks for some 8000 cycles
    // of work at once.
    constexpr Cycles settle(16'000);
    constexpr Cycles step(8'000);
    DEMARC_CHECK(gpu.run_for(settle));
    const std::uint64_t before = statistics.sectors();
    std::uint64_t sectors = 0;
    Cycles window;
    do {
      DEMARC_CHECK(gpu.run_for(step));
      window += step;
      sectors = statistics.sectors() - before;
    } while (sectors < enough && window < longest);
    if (sectors == 0) {
      return check_failed("{}: a stream stands still\n{}", facts_.name, gpu.waiting());
    }
    cycles = static_cast<double>(bytes) / static_cast<double>(sectors * sim::memory::sector_bytes) *
             static_cast<double>(window.raw());
  }
  const double seconds = cycles / spec_.clock_hz;
  known_streams_.emplace(key, seconds);
  return seconds * noise;
}

}  // namespace demarc::probe
