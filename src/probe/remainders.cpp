// Finds slices that are remainders of a hashed number.
#include "demarc/probe/remainders.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "chunk_moves.hpp"
#include "demarc/base/gf2.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint32_t nowhere = ~std::uint32_t{0};

// Kinds, with the values of the constants, numbered from 0 on.
Labels label_chunks(std::span<const std::uint32_t> kind_of,
                    std::span<const std::uint32_t> constants) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> names;
  Labels labels;
  for (std::uint32_t i = 0; i < kind_of.size(); ++i) {
    std::uint32_t values = 0;
    for (std::size_t c = 0; c < constants.size(); ++c) values |= parity(i, constants[c]) << c;
    const auto name = static_cast<std::uint32_t>(names.size());
    labels.push_back(names.try_emplace({kind_of[i], values}, name).first->second);
  }
  return labels;
}

// A label that only a handful of chunks have is noise. These chunks take the first label, which
// costs as many chunks of agreement.
Labels without_strays(const Labels& labels) {
  const std::uint32_t slices = label_count(labels);
  std::vector<std::uint32_t> sizes(slices);
  for (const std::uint32_t label : labels) ++sizes[label];
  const std::uint32_t least = static_cast<std::uint32_t>(labels.size()) / slices / 4;
  Labels renamed(slices, nowhere);
  std::uint32_t next = 0;
  for (std::uint32_t s = 0; s < slices; ++s) {
    if (sizes[s] >= least) renamed[s] = next++;
  }
  Labels kept;
  for (const std::uint32_t label : labels) {
    kept.push_back(renamed[label] == nowhere ? 0 : renamed[label]);
  }
  return kept;
}

// Where the chunks of each slice that `holds` accepts mostly go under a pattern.
template <class Holds>
Labels destination_of(const Labels& labels, std::uint32_t pattern, Holds holds) {
  const std::uint32_t slices = label_count(labels);
  std::vector<std::uint32_t> count(std::size_t{slices} * slices);
  for (std::uint32_t i = 0; i < labels.size(); ++i) {
    if (holds(i)) ++count[std::size_t{labels[i]} * slices + labels[i ^ pattern]];
  }
  Labels to;
  for (std::uint32_t s = 0; s < slices; ++s) {
    const auto begin = count.begin() + static_cast<std::ptrdiff_t>(std::size_t{s} * slices);
    to.push_back(static_cast<std::uint32_t>(std::max_element(begin, begin + slices) - begin));
  }
  return to;
}

// One step of `digit` from each slice.
Labels steps_of(const Labels& labels, const Digit& digit) {
  return destination_of(labels, digit.pattern,
                        [&](std::uint32_t i) { return parity(i, digit.mask) == 0; });
}

struct Ring {
  std::uint32_t modulus = 0;
  std::vector<std::uint32_t> place;  // per slice; the same in every half
};

// The places of all slices on the ring that the steps of the first digit make, where one pass of it
// visits all slices of a half.
std::optional<Ring> find_ring(const Labels& labels, const ChunkMoves& moves) {
  const std::uint32_t slices = label_count(labels);
  const std::uint32_t halves = 1U << moves.half_flips.size();
  if (slices % halves != 0) return std::nullopt;
  const Labels step = steps_of(labels, moves.digits.front());
  Ring ring{slices / halves, std::vector<std::uint32_t>(slices, nowhere)};
  std::uint32_t at = labels[0];
  for (std::uint32_t i = 0; i < ring.modulus; ++i, at = step[at]) {
    if (ring.place[at] != nowhere) return std::nullopt;
    ring.place[at] = i;
  }
  if (at != labels[0]) return std::nullopt;
  for (const std::uint32_t flip : moves.half_flips) {
    const Labels to = destination_of(labels, flip, [](std::uint32_t) { return true; });
    const std::vector<std::uint32_t> before = ring.place;
    for (std::uint32_t s = 0; s < slices; ++s) {
      if (before[s] != nowhere) ring.place[to[s]] = before[s];
    }
  }
  if (std::count(ring.place.begin(), ring.place.end(), nowhere) != 0) return std::nullopt;
  return ring;
}

// How far a step of the digit goes on the ring, from most slices.
std::uint32_t weight_of(const Labels& labels, const Ring& ring, const Digit& digit) {
  const Labels step = steps_of(labels, digit);
  std::vector<std::uint32_t> votes(ring.modulus);
  for (std::uint32_t s = 0; s < step.size(); ++s) {
    ++votes[(ring.place[step[s]] + ring.modulus - ring.place[s]) % ring.modulus];
  }
  return static_cast<std::uint32_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
}

// Share of the chunks whose place on the ring is the sum of their digits, from the best start.
double agreement_of(const Labels& labels, const Ring& ring, std::span<const Digit> digits,
                    std::span<const std::uint32_t> weights) {
  std::vector<std::uint32_t> votes(ring.modulus);
  for (std::uint32_t i = 0; i < labels.size(); ++i) {
    std::uint64_t sum = 0;
    for (std::size_t j = 0; j < digits.size(); ++j) {
      sum += std::uint64_t{weights[j]} * parity(i, digits[j].mask);
    }
    const auto from = static_cast<std::uint32_t>(sum % ring.modulus);
    ++votes[(ring.place[labels[i]] + ring.modulus - from) % ring.modulus];
  }
  return static_cast<double>(*std::max_element(votes.begin(), votes.end())) /
         static_cast<double>(labels.size());
}

// Masks in the order of their digits: a unit of the ring is chosen that makes the weights powers of
// two in either direction, upwards for the last digit, with as few rows as can be.
std::vector<std::uint32_t> in_order(std::span<const Digit> digits,
                                    std::span<const std::uint32_t> weights, std::uint32_t modulus) {
  constexpr std::size_t max_rows = 32;
  std::vector<std::uint32_t> best;
  for (std::uint64_t unit = 1; unit < modulus; ++unit) {
    std::vector<std::uint32_t> rows;
    std::vector<bool> taken(digits.size(), false);
    std::size_t left = digits.size();
    bool upwards = false;
    for (std::uint64_t wanted = 1; left > 0 && rows.size() < max_rows;
         wanted = wanted * 2 % modulus) {
      rows.push_back(0);
      for (std::size_t j = 0; j < digits.size(); ++j) {
        const std::uint64_t weight = unit * weights[j] % modulus;
        if (taken[j] || (weight != wanted && weight != modulus - wanted)) continue;
        rows.back() = digits[j].mask;
        upwards = weight == wanted;
        taken[j] = true;
        --left;
        break;
      }
    }
    if (left == 0 && upwards && (best.empty() || rows.size() < best.size())) best = rows;
  }
  return best;
}

}  // namespace

std::optional<RemainderFinding> find_remainders(std::span<const std::uint32_t> kind_of,
                                                std::span<const std::uint64_t> constant_masks,
                                                std::uint64_t chunk_bytes, double least_agreement) {
  if (!std::has_single_bit(kind_of.size())) return std::nullopt;
  const auto chunk_shift = static_cast<std::uint32_t>(std::countr_zero(chunk_bytes));
  std::vector<std::uint32_t> constants;
  for (const std::uint64_t mask : constant_masks) {
    constants.push_back(static_cast<std::uint32_t>(mask >> chunk_shift));
  }
  Labels labels = without_strays(label_chunks(kind_of, constants));
  const ChunkMoves moves = find_moves(labels, constants);
  if (moves.digits.empty() ||
      std::count(moves.half_flips.begin(), moves.half_flips.end(), 0U) != 0) {
    return std::nullopt;
  }
  // Twins taken apart are places by which others can be told apart.
  for (std::uint32_t before = 0; before != label_count(labels);) {
    before = label_count(labels);
    labels = split_twins(labels, moves.digits);
  }
  const auto ring = find_ring(labels, moves);
  if (!ring) return std::nullopt;
  std::vector<std::uint32_t> weights;
  for (const Digit& digit : moves.digits) weights.push_back(weight_of(labels, *ring, digit));
  RemainderFinding finding;
  finding.slices = label_count(labels);
  finding.agreement = agreement_of(labels, *ring, moves.digits, weights);
  if (finding.agreement < least_agreement) return std::nullopt;

  finding.stage.modulus = ring->modulus;
  for (const std::uint32_t mask : in_order(moves.digits, weights, ring->modulus)) {
    finding.stage.number.rows.push_back(std::uint64_t{mask} << chunk_shift);
  }
  if (finding.stage.number.empty()) return std::nullopt;
  return finding;
}

}  // namespace demarc::probe
