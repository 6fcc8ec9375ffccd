// Breeds neighbours: the best so far are parents, a quarter of each generation are strangers.
#include "attack/breeder.hpp"

#include <algorithm>

namespace demarc::study {
namespace {

constexpr std::size_t draws_a_neighbour = 64;

// Worst neighbours first; those that are equal in the order they came.
std::vector<const Screened*> by_harm(const std::vector<Screened>& screened) {
  std::vector<const Screened*> order;
  order.reserve(screened.size());
  for (const Screened& one : screened) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(),
                   [](const Screened* a, const Screened* b) { return a->percent > b->percent; });
  return order;
}

// Better ones more often: the better of two drawn.
const Neighbour& parent_among(const std::vector<const Screened*>& parents, Random& random) {
  return parents[std::min(random.below(parents.size()), random.below(parents.size()))]->genes;
}

Neighbour child_of(const std::vector<const Screened*>& parents, Random& random) {
  const std::uint64_t way = parents.empty() ? 0 : random.below(4);
  if (way == 0) return random_neighbour(random);
  const Neighbour& parent = parent_among(parents, random);
  if (way == 1) return crossed(parent, parent_among(parents, random), random);
  return mutated(parent, random);
}

}  // namespace

void Refusals::add(const std::string& what, const std::string& reason) {
  for (Refusal& known : all_) {
    if (known.what != what || known.reason != reason) continue;
    ++known.count;
    return;
  }
  all_.push_back({what, reason, 1});
}

std::string refused_part(const Neighbour& neighbour) {
  const bool by_pattern = neighbour.pattern == Pattern::slice;
  return std::string(by_pattern ? row_of(neighbour.pattern).name
                                : row_of(neighbour.operation).name);
}

Breeder::Breeder(const AttackPlan& plan, NeighbourMeans means)
    : random_(plan.seed), without_(plan.without), means_(std::move(means)) {}

bool Breeder::left_out(Operation operation) const {
  return std::find(without_.begin(), without_.end(), operation) != without_.end();
}

bool Breeder::new_one(const Neighbour& neighbour) {
  std::vector<std::uint64_t> key{static_cast<std::uint64_t>(neighbour.operation),
                                 static_cast<std::uint64_t>(neighbour.pattern)};
  for (const Gene& gene : genes()) key.push_back(neighbour.*gene.value);
  return seen_.insert(std::move(key)).second;
}

bool Breeder::accept(Neighbour& neighbour, Refusals& refusals) {
  if (left_out(neighbour.operation)) return false;
  neighbour = bounded(neighbour, means_);
  if (!new_one(neighbour)) return false;
  const std::string why = impossible(neighbour, means_);
  if (why.empty()) return true;
  refusals.add(refused_part(neighbour), why);
  return false;
}

bool Breeder::hopeless(Operation operation, Pattern pattern) const {
  Neighbour least;
  least.operation = operation;
  least.pattern = pattern;
  return !impossible(settled(least), means_).empty();
}

std::vector<Neighbour> Breeder::another(Operation operation, Refusals& refusals) {
  if (left_out(operation)) return {};
  for (std::size_t i = 0; i < draws_a_neighbour; ++i) {
    Neighbour one = random_neighbour(random_, operation);
    if (accept(one, refusals)) return {one};
    if (hopeless(operation, row_of(operation).patterns.front())) break;
  }
  return {};
}

std::vector<Neighbour> Breeder::another(Pattern pattern, Refusals& refusals) {
  for (std::size_t i = 0; i < draws_a_neighbour; ++i) {
    Neighbour one = random_neighbour(random_, pattern);
    if (accept(one, refusals)) return {one};
    if (!left_out(Operation::load) && hopeless(Operation::load, pattern)) break;  // has them all
  }
  return {};
}

std::vector<Neighbour> Breeder::first(Refusals& refusals) {
  std::vector<Neighbour> all;
  const auto take = [&](const std::vector<Neighbour>& found) {
    all.insert(all.end(), found.begin(), found.end());
  };
  for (const OperationRow& row : operations()) take(another(row.operation, refusals));
  for (const PatternRow& row : patterns()) take(another(row.pattern, refusals));
  return all;
}

std::vector<Neighbour> Breeder::next(const std::vector<Screened>& so_far, std::size_t count,
                                     Refusals& refusals) {
  auto parents = by_harm(so_far);
  parents.resize(std::min(parents.size(), std::max<std::size_t>(count / 2, 1)));
  std::vector<Neighbour> all;
  for (std::size_t i = 0; i < draws_a_neighbour * count && all.size() < count; ++i) {
    Neighbour child = child_of(parents, random_);
    if (accept(child, refusals)) all.push_back(child);
  }
  return all;
}

}  // namespace demarc::study
