// Writes a hunt as JSON.
#include "demarc/study/attack.hpp"
#include "json_parts.hpp"

namespace demarc::study {
namespace {

Json genes_json(const Neighbour& neighbour) {
  Json out{{"operation", row_of(neighbour.operation).name},
           {"pattern", row_of(neighbour.pattern).name}};
  for (const Gene& gene : genes()) out[std::string(gene.name)] = neighbour.*gene.value;
  return out;
}

Json rule_json(const StoppingRule& rule) {
  return {{"warm_up", rule.warm_up},
          {"least", rule.least},
          {"most", rule.most},
          {"precision", rule.precision},
          {"longest_seconds", rule.longest_seconds}};
}

Json hunt_json(const AttackPlan& plan) {
  Json victims = Json::array();
  for (const Workload& victim : plan.victims) {
    victims.push_back({{"name", victim.name}, {"spec", victim.spec}});
  }
  Json without = Json::array();
  for (const Operation operation : plan.without) without.push_back(row_of(operation).name);
  return {{"mode", plan.mode.name()},
          {"parts", plan.parts},
          {"victims", std::move(victims)},
          {"without", std::move(without)},
          {"kernels_alone", plan.kernels_alone},
          {"seed", plan.seed},
          {"candidates", plan.candidates},
          {"seconds", end_json(plan.seconds)},
          {"generation", plan.generation},
          {"keep", plan.keep},
          {"screening", rule_json(plan.screening)},
          {"proof", rule_json(plan.proof)},
          {"rounds", plan.rounds},
          {"max_slowdown", plan.max_slowdown},
          {"max_tail_slowdown", plan.max_tail_slowdown}};
}

Json slowdown_json(const AttackPlan& plan, const Slowdown& one) {
  return {{"victim", plan.victims[one.victim].name},
          {"times", one.whole_runs ? "whole runs" : "kernels"},
          {"mean_slowdown", estimate_json(slowdown_of(one.mean_percent))},
          {"p99_slowdown",
           one.tail.p99 ? estimate_json(slowdown_of(one.tail.p99->percent)) : Json(nullptr)},
          {"worst",
           {{"slowdown", slowdown_of(one.tail.worst.percent)}, {"runs", one.tail.worst.runs}}}};
}

Json ranked_json(const AttackResult& result, std::size_t index) {
  const RankedNeighbour& one = result.ranked[index];
  Json slowdowns = Json::array();
  for (const Slowdown& slowdown : one.slowdowns) {
    slowdowns.push_back(slowdown_json(result.plan, slowdown));
  }
  Json out{{"file", ranked_file(result, index)},
           {"screened_as", one.screened.name},
           {"words", in_words(one.screened.genes)},
           {"genes", genes_json(one.screened.genes)},
           {"worst_mean", slowdown_json(result.plan, one.slowdowns[one.worst_mean])},
           {"worst_tail", slowdown_json(result.plan, one.slowdowns[one.worst_tail])},
           {"runs_per_second", one.runs_per_second},
           {"slowdowns", std::move(slowdowns)}};
  if (!one.wrong.empty()) out["wrong"] = one.wrong;
  return out;
}

}  // namespace

std::string attack_json(const AttackResult& result, const std::string& command) {
  Json out{{"schema", "demarc.attack/2"}};
  out["context"] = context_json(result.device, command);
  out["plan"] = hunt_json(result.plan);
  out["account"] = result.account;
  out["verdict"] = name_of(result.verdict);
  out["words"] = verdict_text(result);
  if (!result.failure.empty()) out["failure"] = result.failure;
  out["complete"] = result.complete;
  out["uncleared"] = result.uncleared;
  out["generations"] = result.generations;
  out["untried"] = result.untried;
  for (const char* list : {"ranked", "refusals", "screened"}) out[list] = Json::array();
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    out["ranked"].push_back(ranked_json(result, i));
  }
  for (const Refusal& refusal : result.refusals) {
    out["refusals"].push_back(
        {{"what", refusal.what}, {"reason", refusal.reason}, {"count", refusal.count}});
  }
  for (const Screened& one : result.screened) {
    out["screened"].push_back({{"name", one.name},
                               {"genes", genes_json(one.genes)},
                               {"slowdown", slowdown_of(one.percent)},
                               {"victim", result.plan.victims[one.victim].name}});
  }
  return json_text(out, 2) + "\n";
}

}  // namespace demarc::study
