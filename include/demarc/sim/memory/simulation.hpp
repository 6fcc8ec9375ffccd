// The simulated GPU at work: clients run launches on sets of SMs through L1s, crossbar, L2 slices
// and DRAM channels. A run is a pure function of spec, clients and the calls made.
//
//   Simulation gpu(spec);
//   const auto a = gpu.add_client({.name = "victim", .sms = …, .source = replay_launch(launch)});
//   const auto b = gpu.add_client({.name = "aggressor", …});
//   DEMARC_CHECK(gpu.run_launches(a, 3));
//   gpu.statistics(a).run_cycles   // how long each of the three took beside the aggressor
//
// Each block goes to the SM that the client's dispatch policy picks, so contention for L1s, links,
// slices and DRAM follows from placement.
//
// Clients without an end run as long as anything else is waited for.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/memory/address.hpp"
#include "demarc/sim/memory/spec.hpp"
#include "demarc/sim/memory/work.hpp"

namespace demarc::sim::memory {

// How the page table maps a client's memory, for TLBs and page walks. No tables: accesses are not
// translated.
struct Paging {
  std::uint32_t page_shift = 0;         // a page maps 1 << page_shift bytes of the client
  std::vector<PhysicalAddress> tables;  // the entries of the pages, in order, in pieces of 2 MiB
  // With such pages the latencies of the description were measured, which so include misses of all
  // levels but the last.
  bool usual = false;
};

// Where a client's addresses lie: chunk i, of 1 << chunk_shift bytes from `base` on, at
// chunks[i]. No chunks: its addresses are those of the card's memory.
struct Translation {
  Address base;
  std::uint32_t chunk_shift = 0;
  std::vector<PhysicalAddress> chunks;
  Paging paging = {};
};

using ClientIndex = Index<struct ClientIndexTag>;

struct ClientSpec {
  std::string name;
  std::vector<SmIndex> sms;  // where its blocks may run
  std::shared_ptr<Source> source;
  Translation translation;
  std::uint32_t threads_per_sm = 0;  // the most it may have on one SM; 0: what the SM has
  // Who picks the SM of each block (find_policy()); null: the SM with the fewest threads.
  const PolicyInfo* dispatch = nullptr;
  // What the blocks of its kernels share, for the `locality` policy; null: not known.
  std::shared_ptr<const BlockSharing> sharing = nullptr;
};

struct ClientStatistics {
  std::uint64_t instructions = 0;  // instructions of warps
  std::uint64_t blocks = 0;
  std::uint64_t load_sectors = 0;
  std::uint64_t store_sectors = 0;
  std::uint64_t atomic_sectors = 0;
  // Counted as hardware counters do: a sector that is already on its way is a hit.
  std::uint64_t l1_hit_sectors = 0;
  std::uint64_t l2_hit_sectors = 0;  // sectors of loads and atomics
  std::uint64_t l2_miss_sectors = 0;
  std::uint64_t page_walks = 0;
  std::vector<Cycles> run_cycles;     // per finished launch
  std::vector<Cycles> kernel_cycles;  // the same without the pauses between its kernels
  [[nodiscard]] std::uint64_t sectors() const {
    return load_sectors + store_sectors + atomic_sectors;
  }
};

struct DramStatistics {
  std::uint64_t read_sectors = 0;
  std::uint64_t write_sectors = 0;
  std::uint64_t row_hits = 0;
  std::uint64_t activations = 0;
  std::uint64_t turnarounds = 0;
};

// A single access that bypasses the L1, for probes and tests.
struct Request {
  Cycles at = {};  // from the call on
  SmIndex sm = {};
  PhysicalAddress address = {};
  StepKind kind = StepKind::load;
  bool cached = true;         // false: a load that misses the L2 and leaves nothing in it
  std::uint64_t repeats = 1;  // the next leaves when the one before has arrived; 0: without end
  // For requests without end. If not 0, the next leaves so long after the one before, and at most
  // two are under way.
  Cycles interval = {};
};
struct Completion {
  Cycles first;  // arrival of the first, from the call on
  Cycles last;
  std::uint64_t count = 0;
};

// Checks what was counted within `cycles`. check_failed names what cannot be: more hits than
// accesses, or more bytes than the buses of the DRAM carry.
[[nodiscard]] Result<void> check_counts(const Spec& spec, Cycles cycles,
                                        std::span<const ClientStatistics> clients,
                                        const DramStatistics& dram);

class Engine;

class Simulation {
 public:
  // `spec` has passed check_spec().
  explicit Simulation(const Spec& spec);
  ~Simulation();
  Simulation(Simulation&&) noexcept;
  Simulation& operator=(Simulation&&) = delete;

  [[nodiscard]] const Spec& spec() const;
  [[nodiscard]] const AddressDecoder& decoder() const;
  [[nodiscard]] Cycles now() const;

  // The client starts at once. Among clients that wait for the same SM, the one whose kernel was
  // launched first is served first.
  ClientIndex add_client(ClientSpec client);

  // Runs until `client` has finished `launches` launches in all. Errors: those of a source, an
  // address outside a translation, a simulation that is stuck or takes more than `limit` cycles,
  // with all that is waiting, and those of check_counts().
  [[nodiscard]] Result<void> run_launches(ClientIndex client, std::uint64_t launches,
                                          Cycles limit = Cycles(std::uint64_t{1} << 40U));
  // Runs for `cycles` cycles, or until nothing is left to do.
  [[nodiscard]] Result<void> run_for(Cycles cycles);

  // Makes the requests and runs until those with an end have been answered. At least one must have
  // an end; repeats = 0 has none and stops with the others.
  [[nodiscard]] Result<std::vector<Completion>> timed(std::span<const Request> requests);

  // Reads a line into the L2 as an access would, but in no time: for long walks whose times do not
  // matter. If `written`, it writes the sectors; they go to DRAM when the line is evicted.
  void touch(PhysicalAddress address, bool written = false);

  [[nodiscard]] const ClientStatistics& statistics(ClientIndex client) const;
  [[nodiscard]] const DramStatistics& dram() const;
  // The same of all that was counted up to now.
  [[nodiscard]] Result<void> check_counts() const;
  // Every queue that is not empty and every register in use, one per line.
  [[nodiscard]] std::string waiting() const;

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace demarc::sim::memory
