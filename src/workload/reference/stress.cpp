// Computes what the stress kernels must give, which load one resource each.
#include <cmath>

#include "references.hpp"

namespace demarc::workload {

void stress_read_reference(const ReferenceCall& call) {
  const auto buffer = call.words("buffer");
  const auto sums = call.words("sums");
  for (std::size_t word = 0; word < call.parameter("words"); ++word) {
    const std::uint32_t folded =
        buffer[4 * word] ^ buffer[4 * word + 1] ^ buffer[4 * word + 2] ^ buffer[4 * word + 3];
    sums[word % sums.size()] += folded * static_cast<std::uint32_t>(call.parameter("rounds"));
  }
}

void stress_write_reference(const ReferenceCall& call) {
  const auto buffer = call.words("buffer");
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    buffer[i] = static_cast<std::uint32_t>(i / 4 + call.parameter("rounds") - 1);
  }
}

void stress_chase_reference(const ReferenceCall& call) {
  const auto links = call.words("links");
  const auto ends = call.words("ends");
  for (std::size_t chain = 0; chain < ends.size(); ++chain) {
    std::uint32_t at = static_cast<std::uint32_t>(chain * call.parameter("stride"));
    for (std::size_t step = 0; step < call.parameter("steps"); ++step) at = links[at];
    ends[chain] = at;
  }
}

void stress_atomics_reference(const ReferenceCall& call) {
  const auto counts = call.words("counts");
  const std::size_t step = counts.size() / 7 + 1;
  for (std::size_t thread = 0; thread < 256 * call.parameter("blocks"); ++thread) {
    for (std::size_t round = 0; round < call.parameter("rounds"); ++round) {
      counts[(thread + round * step) % counts.size()] += static_cast<std::uint32_t>(round + 1);
    }
  }
}

void stress_poll_reference(const ReferenceCall& call) {
  const auto seen = call.words("seen");
  const std::uint32_t word = call.words("word")[0];
  for (std::uint32_t& sum : seen) sum = word * static_cast<std::uint32_t>(call.parameter("polls"));
}

void stress_arithmetic_reference(const ReferenceCall& call) {
  constexpr std::size_t period = 1024;  // of the threads' first values
  const auto results = call.floats("results");
  for (std::size_t thread = 0; thread < results.size(); ++thread) {
    if (thread >= period) {
      results[thread] = results[thread - period];
      continue;
    }
    const float start = 0.001F * static_cast<float>(thread);
    float chains[4] = {start, start + 1.0F, start + 2.0F, start + 3.0F};
    for (std::size_t round = 0; round < call.parameter("rounds"); ++round) {
      for (float& value : chains) value = std::fma(value, 0.75F, 0.25F);
    }
    results[thread] = (chains[0] + chains[1]) + (chains[2] + chains[3]);
  }
}

}  // namespace demarc::workload
