// Writes a hunt as text for a terminal.
#include <cmath>

#include "demarc/base/text.hpp"
#include "demarc/study/attack.hpp"

namespace demarc::study {
namespace {

std::string interval_text(const Estimate& estimate) {
  if (!std::isfinite(estimate.low) || !std::isfinite(estimate.high)) {
    return slowdown_text(estimate.value);
  }
  return fmt::format("{} ({:.2f} to {:.2f})", slowdown_text(estimate.value),
                     slowdown_of(estimate.low), slowdown_of(estimate.high));
}

std::string victim_text(const AttackResult& result, const Slowdown& slowdown) {
  return result.plan.victims[slowdown.victim].name + (slowdown.whole_runs ? ", whole runs" : "");
}

std::string tail_text(const Tail& tail) {
  if (tail.p99) return "p99 " + interval_text(tail.p99->percent);
  return fmt::format("worst of {} runs {}", tail.worst.runs, slowdown_text(tail.worst.percent));
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
  return fmt::format("{:g}x on average or {:g}x in its slow runs", plan.max_slowdown,
                     plan.max_tail_slowdown);
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
      return "isolates";
    case Verdict::not_held:
      return "does not isolate";
    case Verdict::undecided:
      break;
  }
  return "undecided";
}

std::string verdict_text(const AttackResult& result) {
  const std::string mode = result.plan.mode.name();
  switch (result.verdict) {
    case Verdict::held:
      return fmt::format("{} ISOLATES: next to none of {} neighbours{} does {} take more than {}",
                         mode, result.screened.size(), without_text(result.plan),
                         result.plan.kernels_alone ? "a victim (its kernels)" : "a victim",
                         limits_text(result.plan));
    case Verdict::not_held: {
      const RankedNeighbour& worst = result.ranked.front();
      const Slowdown& mean = worst.slowdowns[worst.worst_mean];
      const Slowdown& tail = worst.slowdowns[worst.worst_tail];
      if (!worst.wrong.empty()) {
        return fmt::format("{} DOES NOT ISOLATE: next to {} a victim computes wrong results: {}",
                           mode, short_name(worst.screened.genes), worst.wrong);
      }
      return fmt::format(
          "{} DOES NOT ISOLATE: next to {} {} takes {} on average, and {} {} ({}); at most {} was "
          "allowed",
          mode, short_name(worst.screened.genes), victim_text(result, mean),
          slowdown_text(mean.mean_percent.value), victim_text(result, tail),
          slowdown_text(judged_by(tail.tail).percent), judged_by(tail.tail).name,
          limits_text(result.plan));
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
  append(out, "{} neighbours in {} generations, each next to {} victim{}\n", result.screened.size(),
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
