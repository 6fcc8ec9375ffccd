// Writes a hunt as text for a terminal.
#include <cmath>

#include "demarc/base/text.hpp"
#include "demarc/study/attack.hpp"

namespace demarc::study {
namespace {

std::string interval_text(const Estimate& estimate) {
  if (!std::isfinite(estimate.low) || !std::isfinite(estimate.high)) {
    return fmt::format("{:+.1f} %", estimate.value);
  }
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", estimate.value, estimate.low, estimate.high);
}

std::string victim_text(const AttackResult& result, const Slowdown& slowdown) {
  return result.plan.victims[slowdown.victim].name + (slowdown.whole_runs ? ", whole runs" : "");
}

std::string tail_text(const Tail& tail) {
  if (tail.p99) return "p99 " + interval_text(tail.p99->percent);
  return fmt::format("worst of {} runs {:+.1f} %", tail.worst.runs, tail.worst.percent);
}

std::string ranked_text(const AttackResult& result, std::size_t index) {
  const RankedNeighbour& one = result.ranked[index];
  const Slowdown& mean = one.slowdowns[one.worst_mean];
  const Slowdown& tail = one.slowdowns[one.worst_tail];
  std::string out =
      fmt::format("  {:>2}  mean {} of {}; {} of {}\n", index + 1, interval_text(mean.mean_percent),
                  victim_text(result, mean), tail_text(tail.tail), victim_text(result, tail));
  if (!one.wrong.empty()) append(out, "      WRONG RESULT of a victim: {}\n", one.wrong);
  append(out, "      {}\n      {}\n", in_words(one.screened.genes), ranked_file(result, index));
  return out;
}

std::string limits_text(const AttackPlan& plan) {
  return fmt::format("{:g} % of the mean and {:g} % of the slow runs", plan.limit_percent,
                     plan.limit_tail_percent);
}

std::string names_of(const std::vector<Operation>& some) {
  std::vector<std::string_view> names;
  names.reserve(some.size());
  for (const Operation operation : some) names.push_back(row_of(operation).name);
  return joined(names, ", ");
}

std::string without_text(const AttackPlan& plan) {
  return plan.without.empty() ? "" : fmt::format(" without {}", names_of(plan.without));
}

std::string undecided_text(const AttackResult& result) {
  if (!result.failure.empty()) return "the hunt ended early: " + result.failure;
  return "the time ended before every operation and every pattern had been tried";
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::held:
      return "held";
    case Verdict::not_held:
      return "not held";
    case Verdict::undecided:
      break;
  }
  return "undecided";
}

std::string verdict_text(const AttackResult& result) {
  const std::string mode = result.plan.mode.name();
  switch (result.verdict) {
    case Verdict::held:
      return fmt::format("{} HOLDS: none of {} neighbours{} slows {} by more than {}", mode,
                         result.screened.size(), without_text(result.plan),
                         result.plan.kernels_alone ? "the kernels of a victim" : "a victim",
                         limits_text(result.plan));
    case Verdict::not_held: {
      const RankedNeighbour& worst = result.ranked.front();
      const Slowdown& mean = worst.slowdowns[worst.worst_mean];
      const Slowdown& tail = worst.slowdowns[worst.worst_tail];
      if (!worst.wrong.empty()) {
        return fmt::format("{} DOES NOT HOLD: beside {} a victim computes wrong results: {}", mode,
                           short_name(worst.screened.genes), worst.wrong);
      }
      return fmt::format("{} DOES NOT HOLD {}: {} slows {} by {:.1f} %, {} of {} {:+.1f} %", mode,
                         limits_text(result.plan), short_name(worst.screened.genes),
                         victim_text(result, mean), mean.mean_percent.value,
                         judged_by(tail.tail).name, victim_text(result, tail),
                         judged_by(tail.tail).percent);
    }
    case Verdict::undecided:
      break;
  }
  return fmt::format("{}: NO VERDICT, {}", mode, undecided_text(result));
}

std::string attack_text(const AttackResult& result) {
  const AttackPlan& plan = result.plan;
  std::string out = fmt::format(
      "{} ({}{}), {}, {} parts, seed {}\n", result.device.name, result.device.device,
      result.device.driver.empty() ? "" : fmt::format(", driver {}", result.device.driver),
      plan.mode.name(), plan.parts, plan.seed);
  if (!result.device.measured) out += "A MODEL ANSWERED: these figures are not measurements.\n";
  if (!result.account.empty()) out += result.account + "\n";
  append(out, "{} neighbours in {} generations, each beside {} victim{}\n", result.screened.size(),
         result.generations, plan.victims.size(), plan.victims.size() == 1 ? "" : "s");
  if (!result.ranked.empty()) {
    out += "\nThe worst neighbours, measured again:\n";
    for (std::size_t i = 0; i < result.ranked.size(); ++i) out += ranked_text(result, i);
  }
  if (!result.refusals.empty()) out += "\nNot possible here:\n";
  for (const Refusal& refusal : result.refusals) {
    append(out, "  {:>4} {:<10} {}\n", refusal.count, refusal.what, refusal.reason);
  }
  if (plan.kernels_alone) out += "\nThe kernels alone are judged, not the gaps between launches.\n";
  if (!plan.without.empty()) append(out, "\nLeft out: {}\n", names_of(plan.without));
  if (!result.untried.empty()) {
    append(out, "\nNever tried: {}\n", joined(result.untried, ", "));
  }
  return out + "\n" + verdict_text(result) + "\n";
}

std::string ranked_file(const AttackResult& result, std::size_t index) {
  return fmt::format("{:02}-{}.json", index + 1, short_name(result.ranked[index].screened.genes));
}

}  // namespace demarc::study
