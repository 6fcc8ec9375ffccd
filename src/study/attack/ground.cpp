// Runs neighbours beside victims on one divided card.
#include "attack/ground.hpp"

#include <algorithm>
#include <numeric>

#include "attack/neighbour_files.hpp"

namespace demarc::study {
namespace {

constexpr std::size_t candidates_an_idle = 8;  // idle neighbours lie among so many of the others

Plan plan_of_batch(const AttackPlan& attack, const StoppingRule& rule) {
  Plan plan;
  plan.parts = attack.parts;
  plan.modes = {attack.mode};
  plan.victims = attack.victims;
  plan.rule = rule;
  plan.seed = attack.seed;
  return plan;
}

std::vector<std::size_t> shuffled(std::size_t count, Random& random) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

// The first line of a reason, without the neighbour's own name, so that equal reasons are equal.
std::string without_name(std::string reason, const Workload& neighbour) {
  reason = reason.substr(0, reason.find('\n'));
  for (const std::string& name :
       {neighbour.spec.substr(neighbour.spec.find(':') + 1), neighbour.name}) {
    for (std::size_t at = reason.find(name); at != std::string::npos; at = reason.find(name)) {
      reason.replace(at, name.size(), "it");
    }
  }
  return reason;
}

}  // namespace

Result<Ground> Ground::open(const AttackPlan& plan, Executor& executor) {
  Ground ground(plan, executor);
  Plan check = plan_of_batch(plan, plan.proof);
  check.rounds = plan.rounds;
  check.aggressors = {{"neighbour", "neighbour"}};
  if (const Workload* const command = first_command(check); command != nullptr) {
    return invalid_input("--victims: '{}' is a command, and an attack times kernels alone",
                         command->name);
  }
  DEMARC_CHECK(check_plan(check));
  DEMARC_TRY(ground.means_, executor.neighbour_means(plan.mode, plan.parts));
  DEMARC_TRY(ground.folder_, StudyFolder::make());
  DEMARC_TRY(const auto whole, executor.whole());
  for (const Workload& victim : plan.victims) {
    DEMARC_TRY(Outputs outputs, solo_outputs(whole->lane(0), victim));
    ground.solo_.push_back(std::move(outputs));
  }
  DEMARC_TRY(ground.stage_, executor.divide(plan.mode, plan.parts));
  return ground;
}

Result<Candidate> Ground::candidate(const Neighbour& genes, std::size_t number) const {
  Candidate made{genes, {fmt::format("{:04}-{}", number, short_name(genes)), {}}};
  DEMARC_TRY(const auto file, write_neighbour(folder_->path(), made.workload.name, genes, means_));
  made.workload.spec = fmt::format("{}:{}", spec_prefix(genes.operation), file.string());
  return made;
}

// Into every other part; not empty: why it cannot be.
Result<std::string> Ground::take(const Workload& neighbour) {
  for (std::uint32_t i = 1; i < stage_->lanes(); ++i) {
    const auto loaded = stage_->lane(i).load(neighbour);
    if (loaded) continue;
    if (loaded.error().kind == ErrorKind::check_failed) return tl::unexpected(loaded.error());
    return without_name(loaded.error().message, neighbour);
  }
  return std::string();
}

Result<void> Ground::visit(std::size_t victim, const Workload* neighbour, const StoppingRule& rule,
                           Cell& cell) {
  auto visited =
      visit_cell(rule, *stage_, {&plan_->victims[victim], neighbour, &solo_[victim]}, cell);
  if (visited && cell.not_run.empty()) return {};
  return check_failed("{} next to {}: {}", plan_->victims[victim].name,
                      neighbour == nullptr ? "-" : neighbour->name,
                      visited ? cell.not_run : visited.error().message);
}

Result<Measured> Ground::measure(const std::vector<Candidate>& candidates, const StoppingRule& rule,
                                 std::uint32_t rounds, std::uint64_t seed,
                                 const Progress& progress) {
  Plan batch = plan_of_batch(*plan_, rule);
  batch.rounds = rounds;
  for (const Candidate& one : candidates) batch.aggressors.push_back(one.workload);
  const std::size_t more_idle = candidates.size() / candidates_an_idle;
  std::vector<PlannedVisit> visits = planned_visits(batch);
  for (std::size_t i = 0; i < more_idle * batch.victims.size(); ++i) {
    visits.push_back({0, {i % batch.victims.size(), std::nullopt}});
  }
  DEMARC_CHECK(executor_->prepare(batch, visits, progress));
  Measured out;
  out.idle.resize(batch.victims.size());
  out.beside.assign(candidates.size(), std::vector<Cell>(batch.victims.size()));
  out.refused.resize(candidates.size());
  const std::size_t neighbours = candidates.size() + 1 + more_idle;
  Random random(seed);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (const std::size_t neighbour : shuffled(neighbours, random)) {
      const bool idle = neighbour >= candidates.size();
      const Workload* workload = idle ? nullptr : &candidates[neighbour].workload;
      if (!idle) {
        DEMARC_TRY(out.refused[neighbour], take(*workload));
        if (!out.refused[neighbour].empty()) continue;
      }
      for (const std::size_t victim : shuffled(batch.victims.size(), random)) {
        Cell& cell = idle ? out.idle[victim] : out.beside[neighbour][victim];
        cell.victim = victim;
        DEMARC_CHECK(visit(victim, workload, rule, cell));
        if (!idle || cell.error.empty()) continue;
        return check_failed("{} next to -: {}", batch.victims[victim].name, cell.error);
      }
    }
  }
  return out;
}

}  // namespace demarc::study
