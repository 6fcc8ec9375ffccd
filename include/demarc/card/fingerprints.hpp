// Tells on which TPC a block ran, by how far its SM is from every slice of the L2. This is needed
// if %smid does not say it: in an MPS client the number counts the SMs of one launch.
//
// The card's address hash names slices. So fingerprints that were taken in two processes, on
// different physical pages, can be compared. A page adds a constant to the names; few constants are
// possible, and all are tried.
//
// It cannot tell the two SMs of a TPC apart, because they are equally far from everything. It
// cannot measure while others keep the L2 busy; it then says so.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "demarc/card/memory_timer.hpp"
#include "demarc/device/address_map.hpp"
#include "demarc/device/topology.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::cuda {

struct Fingerprints {
  std::uint32_t modulus = 1;                // slice = parities * modulus + remainder
  std::vector<gpu::SmIndex> sms;            // number that the launch gave the SM of each row
  std::vector<std::vector<float>> latency;  // [row][slice], cycles of an L2 hit
  double noise = 0;  // cycles, standard error of a latency; of those just measured only

  // Whether both say the same about the SMs, however noisy they are.
  friend bool operator==(const Fingerprints& a, const Fingerprints& b) {
    return a.modulus == b.modulus && a.sms == b.sms && a.latency == b.latency;
  }
};

// The address hash of the cards of this name, from the descriptions that the program carries.
[[nodiscard]] Result<gpu::AddressMap> known_address_map(const std::string& card_name);

// Row i of `latencies` was measured at offsets[i] of one page, its columns from `sms`. check_failed
// if chunks of a slice do not have the same latency: then another program is using the card, or the
// card has another hash.
[[nodiscard]] Result<Fingerprints> make_fingerprints(const gpu::AddressMap& map,
                                                     std::span<const std::uint64_t> offsets,
                                                     const gpu::LatencyMatrix& latencies,
                                                     std::vector<gpu::SmIndex> sms);

// Measures all SMs that one launch gets. `rounds` launches are averaged by their SM numbers; more
// than one only if those numbers are real.
[[nodiscard]] Result<Fingerprints> measure_fingerprints(const MemoryTimer& timer,
                                                        const gpu::AddressMap& map,
                                                        std::uint32_t rounds = 1);

// The TPC that an SM looks most like, and the next one; distances are root-mean-square cycles.
struct SmIdentity {
  gpu::SmIndex sm;  // as the launch called it
  gpu::TpcIndex tpc;
  gpu::TpcIndex other_tpc;
  double distance = 0;
  double other_distance = 0;
  // True if the TPC is at most half as far as the next one, which noise cannot explain, if it is
  // near enough to be believed, and if no TPC gets more SMs than it can have. Otherwise `tpc` is
  // only a guess.
  bool certain = false;
  // All TPCs that it may be. If it is certain, only this one. Else those that are less than twice
  // as far as the nearest, or that noise can explain. Empty: it may be any.
  gpu::TpcSet candidates;
};

// `reference` has one row for each SM of `topology`, in order. invalid_input when the two were not
// taken with the same hash.
[[nodiscard]] Result<std::vector<SmIdentity>> match_fingerprints(const gpu::Topology& topology,
                                                                 const Fingerprints& reference,
                                                                 const Fingerprints& observed);

}  // namespace demarc::cuda
