// Finds by latencies what each page adds to the remainders of its chunks.
#include "demarc/color/remainder_model.hpp"

#include <algorithm>
#include <numeric>

#include "demarc/base/gf2.hpp"

namespace demarc::color {
namespace {

constexpr double least_model_agreement = 0.9;
constexpr std::size_t least_kinds = 3;  // two are the sides of the L2

// In the page of the model.
std::uint32_t slice_of(const RemainderHash& hash, std::uint64_t offset, std::uint32_t constant) {
  return parity(offset, hash.half) * hash.modulus + hash.number(offset, constant) % hash.modulus;
}

}  // namespace

Result<RemainderModel> make_remainder_model(RemainderHash hash,
                                            const gpu::LatencyMatrix& latencies) {
  constexpr std::uint32_t least_size = 20;
  RemainderModel model;
  model.kinds = gpu::cluster_latencies(latencies, least_size);
  const auto kinds = model.kinds.sizes.size();
  if (kinds < least_kinds) {
    return check_failed(
        "colours: the latencies of a page have {} kinds, which do not tell remainders apart",
        kinds);
  }
  const std::size_t slices = 2 * std::size_t{hash.modulus};
  std::size_t best = 0;
  for (std::uint32_t constant = 0; constant < 1U << hash.digits.size(); ++constant) {
    std::vector<std::vector<std::uint32_t>> seen(slices, std::vector<std::uint32_t>(kinds));
    for (std::size_t i = 0; i < latencies.count(); ++i) {
      const std::uint64_t offset = i << hash.chunk_shift;
      ++seen[slice_of(hash, offset, constant)][model.kinds.cluster[i]];
    }
    std::vector<std::uint32_t> kind_of;
    std::size_t agree = 0;
    for (const auto& counts : seen) {
      const auto most = std::max_element(counts.begin(), counts.end());
      if (most == counts.end()) continue;
      agree += *most;
      kind_of.push_back(static_cast<std::uint32_t>(most - counts.begin()));
    }
    if (agree <= best) continue;
    best = agree;
    model.kind_of = std::move(kind_of);
    model.constant = constant;
  }
  model.agreement = latencies.count() == 0
                        ? 0
                        : static_cast<double>(best) / static_cast<double>(latencies.count());
  model.hash = std::move(hash);
  if (model.agreement < least_model_agreement) {
    return check_failed(
        "colours: remainders modulo {} explain {:.0f} % of the latencies of a page; this card "
        "chooses its slices in another way",
        model.hash.modulus, 100 * model.agreement);
  }
  return model;
}

PageRemainder find_page_remainder(const RemainderModel& model,
                                  std::span<const std::uint64_t> offsets,
                                  const gpu::LatencyMatrix& latencies, std::size_t first_row) {
  struct Sample {
    std::uint32_t number, half, kind;
  };
  const RemainderHash& hash = model.hash;
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    samples.push_back({hash.number(offsets[i], 0), parity(offsets[i], hash.half),
                       model.kinds.match(latencies.row(first_row + i)).cluster});
  }
  PageRemainder found;
  std::size_t best = 0;
  for (std::uint32_t constant = 0; constant < 1U << hash.digits.size(); ++constant) {
    for (std::uint32_t half = 0; half < 2; ++half) {
      for (std::uint32_t remainder = 0; remainder < hash.modulus; ++remainder) {
        std::size_t agree = 0;
        for (const Sample& sample : samples) {
          const std::uint32_t slice = (sample.half ^ half) * hash.modulus +
                                      ((sample.number ^ constant) + remainder) % hash.modulus;
          agree += model.kind_of[slice] == sample.kind ? 1U : 0U;
        }
        if (agree <= best) continue;
        best = agree;
        found.constant = constant;
        found.remainder = remainder;
      }
    }
  }
  found.agreement = static_cast<double>(best) / static_cast<double>(offsets.size());
  return found;
}

NumberRemainders find_number_remainders(const RemainderModel& model,
                                        std::span<const std::uint64_t> offsets,
                                        const gpu::LatencyMatrix& latencies,
                                        std::size_t first_row) {
  const std::uint32_t modulus = model.hash.modulus;
  std::vector<std::uint32_t> votes(2 * std::size_t{modulus}, 0);  // [half of the page][remainder]
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint32_t kind = model.kinds.match(latencies.row(first_row + i)).cluster;
    const std::uint32_t half = parity(offsets[i], model.hash.half);
    for (std::uint32_t slice = 0; slice < votes.size(); ++slice) {
      if (model.kind_of[slice] != kind) continue;
      ++votes[((slice / modulus) ^ half) * modulus + slice % modulus];
    }
  }
  const std::uint32_t most = *std::max_element(votes.begin(), votes.end());
  NumberRemainders found;
  found.agreement = static_cast<double>(most) / static_cast<double>(offsets.size());
  for (std::uint32_t remainder = 0; remainder < modulus; ++remainder) {
    if (votes[remainder] == most || votes[modulus + remainder] == most) {
      found.remainders.push_back(remainder);
    }
  }
  return found;
}

}  // namespace demarc::color
