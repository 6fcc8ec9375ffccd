// Tells which TPC an SM belongs to by its distances from the slices of the L2.
#include "demarc/card/fingerprints.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "demarc/device/device.hpp"

namespace demarc::cuda {
namespace {

// Of the right constant the latencies of a slice differ by noise, of a wrong one by the size of the
// chip: 0.4 and 11 cycles on an H100.
constexpr double max_spread = 0.25;  // as a part of the spread of all chunks together
constexpr std::size_t judging_sms = 8;
// Two TPCs are at least 0.45 cycles apart on an H100; the noise of a launch is 0.05 to 0.25.
constexpr double max_distance = 0.8;
constexpr double max_ratio = 0.5;
// Standard errors that the next TPC has to be away. Without it one in some thousand SMs was taken
// for its neighbour at a noise of 1.2 cycles a reading and more (planted, 10 slices).
constexpr double least_errors = 2;
constexpr double median_error = 1.25;  // of a median over that of a mean, for normal noise

// Names of the slices of a page; bit i of `constant` is what the page adds to row i of the number.
std::vector<std::uint32_t> slice_names(const gpu::AddressMap& map,
                                       std::span<const std::uint64_t> offsets,
                                       std::uint32_t constant) {
  std::vector<std::uint32_t> names;
  names.reserve(offsets.size());
  for (const std::uint64_t offset : offsets) {
    const std::uint32_t parities = map.module(offset);
    names.push_back(map.stack ? parities * map.stack->modulus +
                                    (map.stack->number(offset) ^ constant) % map.stack->modulus
                              : parities);
  }
  return names;
}

// Bits of the number that a page may complement: parities, not address bits as they are.
std::uint32_t page_bits(const gpu::AddressMap& map) {
  std::uint32_t bits = 0;
  if (!map.stack) return bits;
  for (std::size_t i = 0; i < map.stack->number.rows.size(); ++i) {
    if (std::popcount(map.stack->number.rows[i]) > 1) bits |= std::uint32_t{1} << i;
  }
  return bits;
}

// Standard deviation of latencies about the mean of their slice, over some of the SMs.
double spread_within(const gpu::LatencyMatrix& latencies, std::span<const std::uint32_t> names,
                     std::uint32_t slices) {
  const std::size_t step = std::max<std::size_t>(latencies.dimensions / judging_sms, 1);
  double squares = 0;
  double values = 0;
  for (std::size_t column = 0; column < latencies.dimensions; column += step) {
    std::vector<double> sum(slices, 0);
    std::vector<double> count(slices, 0);
    for (std::size_t i = 0; i < names.size(); ++i) {
      sum[names[i]] += latencies.row(i)[column];
      count[names[i]] += 1;
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double away = latencies.row(i)[column] - sum[names[i]] / count[names[i]];
      squares += away * away;
      values += 1;
    }
  }
  return std::sqrt(squares / std::max(values, 1.0));
}

// The median keeps out what interrupts single readings.
float median_of(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A choice of what pages add: slice (p, r) of one fingerprint is (p ^ flip, r + shift) of another.
struct Alignment {
  std::uint32_t flip, shift;
};

std::vector<float> aligned(const std::vector<float>& row, std::uint32_t modulus,
                           const Alignment& alignment) {
  std::vector<float> moved(row.size());
  for (std::uint32_t slice = 0; slice < row.size(); ++slice) {
    const std::uint32_t parities = slice / modulus ^ alignment.flip;
    moved[parities * modulus + (slice + alignment.shift) % modulus] = row[slice];
  }
  return moved;
}

double distance_between(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double away = a[i] - b[i];
    sum += away * away;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// How badly some of the observed rows fit under an alignment.
double misfit(const Fingerprints& reference, const Fingerprints& observed,
              const Alignment& alignment) {
  const std::size_t step = std::max<std::size_t>(observed.latency.size() / judging_sms, 1);
  double sum = 0;
  for (std::size_t row = 0; row < observed.latency.size(); row += step) {
    const auto moved = aligned(observed.latency[row], observed.modulus, alignment);
    double best = std::numeric_limits<double>::max();
    for (const auto& candidate : reference.latency) {
      best = std::min(best, distance_between(moved, candidate));
    }
    sum += best * best;
  }
  return std::sqrt(sum);
}

struct AlignmentChoice {
  Alignment best;
  bool clear;  // no other one fits half as well
};

AlignmentChoice align(const Fingerprints& reference, const Fingerprints& observed) {
  const auto slices = static_cast<std::uint32_t>(observed.latency.front().size());
  Alignment best{};
  double least = std::numeric_limits<double>::max();
  double next = least;
  for (std::uint32_t name = 0; name < slices; ++name) {
    const Alignment candidate{name / observed.modulus, name % observed.modulus};
    const double fit = misfit(reference, observed, candidate);
    if (fit < least) {
      next = least;
      least = fit;
      best = candidate;
    } else {
      next = std::min(next, fit);
    }
  }
  return {best, least <= max_ratio * next};
}

SmIdentity nearest_tpc(const gpu::Topology& topology, const Fingerprints& reference,
                       const std::vector<float>& row, double noise) {
  constexpr double far = std::numeric_limits<double>::max();
  SmIdentity found;
  PerIndex<gpu::TpcIndex, double> distances;
  found.distance = found.other_distance = far;
  for (const gpu::TpcIndex tpc : topology.tpcs.keys()) {
    double nearest = far;
    for (const gpu::SmIndex sm : topology.tpcs[tpc].sms) {
      nearest = std::min(nearest, distance_between(row, reference.latency[sm.raw()]));
    }
    distances.push_back(nearest);
    if (nearest < found.distance) {
      found.other_tpc = found.tpc;
      found.other_distance = found.distance;
      found.tpc = tpc;
      found.distance = nearest;
    } else if (nearest < found.other_distance) {
      found.other_tpc = tpc;
      found.other_distance = nearest;
    }
  }
  if (found.distance > max_distance) return found;
  found.candidates.insert(found.tpc);
  for (const gpu::TpcIndex tpc : distances.keys()) {
    const bool apart =
        found.distance <= max_ratio * distances[tpc] && distances[tpc] >= least_errors * noise;
    if (!apart) found.candidates.insert(tpc);
  }
  return found;
}

}  // namespace

Result<gpu::AddressMap> known_address_map(const std::string& card_name) {
  const auto device = gpu::describe_card(card_name);
  if (device && device->address_map && device->address_map->page_bytes != 0) {
    return *device->address_map;
  }
  return missing_capability("{}: no description of its address hash is built in", card_name);
}

Result<Fingerprints> make_fingerprints(const gpu::AddressMap& map,
                                       std::span<const std::uint64_t> offsets,
                                       const gpu::LatencyMatrix& latencies,
                                       std::vector<gpu::SmIndex> sms) {
  Fingerprints made;
  made.modulus = map.stack ? map.stack->modulus : 1;
  const std::uint32_t slices = map.module.count() * made.modulus;
  const double whole =
      spread_within(latencies, std::vector<std::uint32_t>(offsets.size(), 0), slices);
  const std::uint32_t bits = page_bits(map);
  double least = std::numeric_limits<double>::max();
  std::vector<std::uint32_t> names;
  // Every subset of `bits`, in descending order; 0 is the last.
  for (std::uint32_t constant = bits;; constant = (constant - 1) & bits) {
    auto tried = slice_names(map, offsets, constant);
    const double spread = spread_within(latencies, tried, slices);
    if (spread < least) {
      least = spread;
      names = std::move(tried);
    }
    if (constant == 0) break;
  }
  if (sms.empty() || least > max_spread * whole) {
    return check_failed(
        "fingerprints: the latencies of one L2 slice differ by {:.2f} cycles, and those of all "
        "slices by {:.2f}: another program uses the card, or the card has another address hash",
        least, whole);
  }
  const double readings = static_cast<double>(offsets.size()) / slices;  // of a slice
  made.noise = median_error * least / std::sqrt(readings);
  for (std::uint32_t column = 0; column < sms.size(); ++column) {
    std::vector<std::vector<float>> of_slice(slices);
    for (std::size_t i = 0; i < names.size(); ++i) {
      of_slice[names[i]].push_back(latencies.row(i)[column]);
    }
    std::vector<float> row;
    for (auto& values : of_slice) {
      if (values.empty()) return invalid_input("fingerprints: {} chunks are too few", names.size());
      row.push_back(median_of(values));
    }
    made.latency.push_back(std::move(row));
  }
  made.sms = std::move(sms);
  return made;
}

Result<std::vector<SmIdentity>> match_fingerprints(const gpu::Topology& topology,
                                                   const Fingerprints& reference,
                                                   const Fingerprints& observed) {
  std::vector<SmIdentity> found;
  if (observed.latency.empty()) return found;
  if (reference.latency.size() != topology.sm_count() || reference.modulus != observed.modulus ||
      reference.latency.front().size() != observed.latency.front().size()) {
    return invalid_input(
        "the remembered fingerprints have {} SMs and {} slices, but this card has {} SMs and {} "
        "slices: run demarc topo --refresh",
        reference.latency.size(), reference.latency.empty() ? 0 : reference.latency.front().size(),
        topology.sm_count(), observed.latency.front().size());
  }
  const AlignmentChoice alignment = align(reference, observed);
  std::map<gpu::TpcIndex, std::size_t> sms_seen;
  for (std::size_t i = 0; i < observed.latency.size(); ++i) {
    found.push_back(nearest_tpc(topology, reference,
                                aligned(observed.latency[i], observed.modulus, alignment.best),
                                observed.noise));
    found.back().sm = observed.sms[i];
    ++sms_seen[found.back().tpc];
  }
  for (SmIdentity& sm : found) {
    const bool crowded = sms_seen[sm.tpc] > topology.tpcs[sm.tpc].sms.size();
    if (!alignment.clear || (crowded && sm.candidates.size() == 1)) sm.candidates = {};
    sm.certain = sm.candidates.size() == 1;
  }
  return found;
}

}  // namespace demarc::cuda
