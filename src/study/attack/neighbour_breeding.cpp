// Draws neighbours at random, changes and crosses them, within what a lane's means allow.
#include <algorithm>

#include "demarc/study/neighbour.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t slice_page = std::uint64_t{1} << 21U;

bool is_copy(Operation operation) {
  return row_of(operation).need == Need::copy_engines;
}

bool has_pattern(const OperationRow& row, Pattern pattern) {
  return std::find(row.patterns.begin(), row.patterns.end(), pattern) != row.patterns.end();
}

template <class T>
const T& drawn(std::span<const T> all, Random& random) {
  return all[random.below(all.size())];
}

// The gene's value that is nearest from below, or its first.
std::uint64_t value_up_to(const Gene& gene, std::uint64_t most) {
  const auto above = std::upper_bound(gene.values.begin(), gene.values.end(), most);
  return above == gene.values.begin() ? gene.values.front() : *(above - 1);
}

const Gene& gene_of(std::uint64_t Neighbour::*value) {
  const auto all = genes();
  return *std::find_if(all.begin(), all.end(), [&](const Gene& g) { return g.value == value; });
}

void reset(Neighbour& neighbour, std::uint64_t Neighbour::*value) {
  neighbour.*value = gene_of(value).values.front();
}

Neighbour with_random_numbers(Neighbour neighbour, Random& random) {
  for (const Gene& gene : genes()) neighbour.*gene.value = drawn(gene.values, random);
  return settled(neighbour);
}

// Mostly to the value beside it, else to any.
void change_number(Neighbour& neighbour, const Gene& gene, Random& random) {
  std::uint64_t& value = neighbour.*gene.value;
  const auto at = std::find(gene.values.begin(), gene.values.end(), value);
  const std::uint64_t draw = random.below(4);
  if (draw == 0 || at == gene.values.end()) {
    value = drawn(gene.values, random);
  } else if (draw == 1) {
    value = at == gene.values.begin() ? *at : *(at - 1);
  } else {
    value = at + 1 == gene.values.end() ? *at : *(at + 1);
  }
}

void change_one(Neighbour& neighbour, Random& random) {
  const std::uint64_t which = random.below(genes().size() + 2);
  if (which < genes().size()) {
    change_number(neighbour, genes()[which], random);
  } else if (which == genes().size()) {
    neighbour.operation = drawn(operations(), random).operation;
  } else {
    neighbour.pattern = drawn(row_of(neighbour.operation).patterns, random);
  }
}

std::string capability_text(std::uint32_t target) {
  return fmt::format("{}.{}", target / 10, target % 10);
}

}  // namespace

Neighbour settled(Neighbour neighbour) {
  const OperationRow& row = row_of(neighbour.operation);
  if (!has_pattern(row, neighbour.pattern)) neighbour.pattern = row.patterns.front();
  if (neighbour.pattern != Pattern::stride) reset(neighbour, &Neighbour::stride);
  if (neighbour.pattern == Pattern::chase) reset(neighbour, &Neighbour::in_flight);
  if (neighbour.steps < neighbour.in_flight) {
    const auto values = gene_of(&Neighbour::steps).values;
    neighbour.steps = *std::lower_bound(values.begin(), values.end(), neighbour.in_flight);
  }
  if (neighbour.operation == Operation::local) neighbour.apart = 1;
  if (neighbour.operation == Operation::bulk_copy) neighbour.apart = 0;
  neighbour.footprint =
      std::max({neighbour.footprint, row.least_bytes, row_of(neighbour.pattern).least_bytes});
  if (row.max_bytes != 0) neighbour.footprint = std::min(neighbour.footprint, row.max_bytes);
  if (neighbour.pattern == Pattern::slice) neighbour.footprint = slice_page;
  if (is_copy(neighbour.operation)) {
    for (const auto value : {&Neighbour::blocks, &Neighbour::threads, &Neighbour::shared,
                             &Neighbour::apart, &Neighbour::in_flight, &Neighbour::steps}) {
      reset(neighbour, value);
    }
  }
  return neighbour;
}

Neighbour random_neighbour(Random& random, Operation operation) {
  Neighbour neighbour;
  neighbour.operation = operation;
  neighbour.pattern = drawn(row_of(operation).patterns, random);
  return with_random_numbers(neighbour, random);
}

Neighbour random_neighbour(Random& random) {
  return random_neighbour(random, drawn(operations(), random).operation);
}

Neighbour random_neighbour(Random& random, Pattern pattern) {
  Neighbour neighbour;
  neighbour.pattern = pattern;
  do {
    neighbour.operation = drawn(operations(), random).operation;
  } while (!has_pattern(row_of(neighbour.operation), pattern));
  return with_random_numbers(neighbour, random);
}

Neighbour mutated(const Neighbour& parent, Random& random) {
  Neighbour child = parent;
  while (child == parent) {
    change_one(child, random);
    if (random.below(2) == 0) change_one(child, random);
    child = settled(child);
  }
  return child;
}

Neighbour crossed(const Neighbour& a, const Neighbour& b, Random& random) {
  Neighbour child = a;
  if (random.below(2) == 0) child.operation = b.operation;
  if (random.below(2) == 0) child.pattern = b.pattern;
  for (const Gene& gene : genes()) {
    if (random.below(2) == 0) child.*gene.value = b.*gene.value;
  }
  return settled(child);
}

std::string impossible(const Neighbour& neighbour, const NeighbourMeans& means) {
  const OperationRow& row = row_of(neighbour.operation);
  if (const auto why = means.lacking.find(row.need); why != means.lacking.end()) {
    return why->second;
  }
  if (neighbour.pattern == Pattern::slice) {
    const auto why = means.lacking.find(Need::one_slice);
    if (why != means.lacking.end()) return why->second;
    if (means.slice_lines.empty()) return "the lines of one L2 slice are unknown";
  }
  if (means.target != 0 && means.target < row.target) {
    return fmt::format("it needs compute capability {}, the card has {}",
                       capability_text(row.target), capability_text(means.target));
  }
  if (neighbour.footprint > means.bytes) {
    return fmt::format("its footprint is larger than the {} bytes that a neighbour gets",
                       means.bytes);
  }
  if (shared_bytes_of(neighbour) > means.shared_bytes) {
    return fmt::format("its blocks need more shared memory than the {} bytes that a block gets",
                       means.shared_bytes);
  }
  return {};
}

Neighbour bounded(Neighbour neighbour, const NeighbourMeans& means) {
  const auto fit = [&](std::uint64_t Neighbour::*value, std::uint64_t accesses,
                       std::uint64_t of_the_others) {
    const std::uint64_t most = std::max<std::uint64_t>(accesses / of_the_others, 1);
    if (neighbour.*value > most) neighbour.*value = value_up_to(gene_of(value), most);
  };
  fit(&Neighbour::launches, means.in_a_row, neighbour.steps);
  fit(&Neighbour::steps, means.in_a_row, neighbour.launches);
  fit(&Neighbour::launches, means.accesses, neighbour.blocks * neighbour.threads * neighbour.steps);
  fit(&Neighbour::steps, means.accesses, neighbour.blocks * neighbour.threads * neighbour.launches);
  fit(&Neighbour::blocks, means.accesses, neighbour.threads * neighbour.steps * neighbour.launches);
  const std::uint64_t footprint = value_up_to(gene_of(&Neighbour::footprint), means.bytes);
  const std::uint64_t least =
      std::max(row_of(neighbour.operation).least_bytes, row_of(neighbour.pattern).least_bytes);
  neighbour.footprint = std::max(std::min(neighbour.footprint, footprint), least);
  neighbour.in_flight =
      value_up_to(gene_of(&Neighbour::in_flight), std::min(neighbour.in_flight, neighbour.steps));
  return neighbour;
}

}  // namespace demarc::study
