// Computes the outputs of the kernels that each time one path of the memory system.
#include <algorithm>

#include "references.hpp"

namespace demarc::workload {
namespace {

// How a launch goes over its elements: `kernels` one after the other, each with so many accesses.
struct Walk {
  std::size_t threads;
  std::size_t accesses;  // of one kernel
  std::size_t kernels;
  std::size_t elements;
  explicit Walk(const ReferenceCall& call)
      : threads(call.parameter("blocks") * call.parameter("threads")),
        accesses(4 * call.parameter("steps") * threads),
        kernels(call.parameter("parts")),
        elements(call.parameter("elements")) {}
};

}  // namespace

// Each kernel writes the sums anew: those of the last one stay.
void gauge_read_reference(const ReferenceCall& call) {
  const Walk walk(call);
  const auto buffer = call.words("buffer");
  const auto sums = call.words("sums");
  const std::size_t words = buffer.size() / walk.elements;  // per element
  const std::size_t first = walk.accesses * (walk.kernels - 1);
  for (std::uint32_t& one : sums) one = 0;
  for (std::size_t access = 0; access < walk.accesses; ++access) {
    const std::size_t element = (first + access) % walk.elements;
    std::uint32_t sum = 0;
    for (std::size_t word = 0; word < words; ++word) sum += buffer[words * element + word];
    sums[access % walk.threads] += sum;
  }
}

void gauge_write_reference(const ReferenceCall& call) {
  const Walk walk(call);
  const auto buffer = call.words("buffer");
  const std::size_t words = buffer.size() / walk.elements;
  const std::size_t all = std::min(walk.accesses * walk.kernels, walk.elements);
  for (std::size_t i = 0; i < all * words; ++i) {
    buffer[i] = static_cast<std::uint32_t>(i / words + 1);
  }
}

// The chains of the last kernel stay.
void gauge_chase_reference(const ReferenceCall& call) {
  const auto links = call.words("links");
  const auto ends = call.words("ends");
  const std::size_t first = (call.parameter("parts") - 1) * call.parameter("chains");
  for (std::size_t chain = 0; chain < ends.size(); ++chain) {
    const std::size_t element = (first + chain) % call.parameter("elements");
    auto at = static_cast<std::uint32_t>(element * call.parameter("stride"));
    for (std::size_t load = 0; load < 8 * call.parameter("turns"); ++load) at = links[at];
    ends[chain] = at;
  }
}

void gauge_add_reference(const ReferenceCall& call) {
  const auto a = call.words("a");
  const auto b = call.words("b");
  const auto c = call.words("c");
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i] + b[i];
}

void gauge_mark_reference(const ReferenceCall& call) {
  const auto marks = call.words("marks");
  for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = static_cast<std::uint32_t>(i + 1);
}

}  // namespace demarc::workload
