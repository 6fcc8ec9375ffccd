// What neighbours can be made of, some that were bred, and a whole hunt, compared with kept ones. A
// difference is read before it is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attack/breeder.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/launch/launch_write.hpp"
#include "demarc/study/attack.hpp"
#include "kept.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {
namespace {

std::string digest_of_text(std::string_view text) {
  return fmt::format("{:016x}", hash_of(std::as_bytes(std::span(text))));
}

TEST(KeptNeighbours, their_tables_are_as_kept) {
  std::string text;
  for (const OperationRow& row : operations()) {
    text += fmt::format("{}: {}; need {}, {} bytes, answers {}, target {}, {} to {} bytes, as",
                        row.name, row.words, static_cast<int>(row.need), row.bytes, row.answers,
                        row.target, row.least_bytes, row.max_bytes);
    for (const Pattern pattern : row.patterns) text += fmt::format(" {}", row_of(pattern).name);
    text += "\n";
  }
  for (const PatternRow& row : patterns()) {
    text += fmt::format("{}: {}; from {} bytes on\n", row.name, row.words, row.least_bytes);
  }
  for (const Gene& gene : genes()) {
    text += fmt::format("{}:", gene.name);
    for (const std::uint64_t value : gene.values) text += fmt::format(" {}", value);
    text += "\n";
  }
  test::expect_kept("study/golden/neighbour_tables.txt", text);
}

std::string numbers_of(const Neighbour& one) {
  std::string text = fmt::format("{}-{}", row_of(one.operation).name, row_of(one.pattern).name);
  for (const Gene& gene : genes()) text += fmt::format(" {}", one.*gene.value);
  return text;
}

NeighbourMeans narrow_means() {
  NeighbourMeans means;
  means.bytes = 64U << 20U;
  means.accesses = 1U << 20U;
  means.shared_bytes = 48U << 10U;
  means.slice_lines = {0, 256, 640, 4096};
  means.row_bytes = 2048;
  means.target = 86;
  return means;
}

// Strangers, their children, and what a lane makes of them: in words, as a launch, as PTX.
TEST(KeptNeighbours, bred_from_a_seed_are_as_kept) {
  const NeighbourMeans means = narrow_means();
  Random random(11);
  std::string text;
  Neighbour last;
  for (int i = 0; i < 60; ++i) {
    const Neighbour stranger = random_neighbour(random);
    const Neighbour child = mutated(stranger, random);
    const Neighbour both = crossed(child, last, random);
    last = bounded(stranger, means);
    text += numbers_of(stranger) + " | " + numbers_of(child) + " | " + numbers_of(both) + "\n";
    const Places places = places_of(last, means);
    const auto launch = neighbour_launch(last, means, short_name(last), "n.ptx");
    text += fmt::format(
        "  {}: {}\n  {} places of {} bytes, {} bytes shared, launch {}, ptx {}{}\n",
        short_name(last), in_words(last), places.places, places.place_bytes, shared_bytes_of(last),
        digest_of_text(gpu::launch_to_json(launch).value()), digest_of_text(neighbour_ptx(last)),
        impossible(last, means).empty() ? "" : ", not possible: " + impossible(last, means));
  }
  test::expect_kept("study/golden/neighbours.txt", text);
}

// For every operation and pattern one kernel in each of its forms: `digest name`.
TEST(KeptNeighbours, kernels_are_as_kept) {
  std::string text;
  for (const OperationRow& row : operations()) {
    if (row.need == Need::copy_engines) continue;
    for (const Pattern pattern : row.patterns) {
      text += fmt::format("{}-{}:", row.name, row_of(pattern).name);
      for (const std::uint64_t apart : {0U, 1U}) {
        for (const std::uint64_t in_flight : {1U, 4U}) {
          Neighbour one;
          one.operation = row.operation;
          one.pattern = pattern;
          one.footprint = 64U << 10U;
          one.apart = apart;
          one.in_flight = in_flight;
          one.steps = 16;
          text += " " + digest_of_text(neighbour_ptx(settled(one)));
        }
      }
      text += "\n";
    }
  }
  test::expect_kept("study/golden/neighbour_kernels.txt", text);
}

// What hurts is in the name: stores, random ones, and most those of 512 threads.
double told_time(const Workload& victim, const Workload* neighbour) {
  const auto named = [&](std::string_view part) {
    return neighbour != nullptr && neighbour->name.find(part) != std::string::npos;
  };
  double time = victim.name == "b" ? 200 : 100;
  if (named("-store-")) time *= victim.name == "b" ? 1.04 : 1.01;
  if (named("-random-")) time *= 1.03;
  if (named("x512")) time *= 1.06;
  return time;
}

TEST(KeptHunt, is_as_kept) {
  Script script;
  script.means = narrow_means();
  script.means.lacking[Need::host_memory] = "no host memory here";
  script.means.lacking[Need::copy_engines] = "no copy engines here";
  script.time = told_time;
  script.refuses = [](const Workload& workload) {
    return workload.name.find("-atomic-") == std::string::npos ? "" : workload.name + " is no good";
  };
  AttackPlan plan;
  plan.mode = {partition::Mode::mask, true};
  plan.victims = {{"a", "a"}, {"b", "b"}};
  plan.candidates = 70;
  plan.generation = 10;
  plan.keep = 3;
  plan.screening = {0, 2, 2, 1, 10};
  plan.proof = {0, 4, 4, 1, 10};
  plan.rounds = 2;
  plan.seed = 9;
  ScriptedExecutor executor(script);
  const auto result = run_attack(plan, executor, {}, [] { return 0.0; });
  ASSERT_TRUE(result) << result.error().message;
  Json json = test::rounded(Json::parse(attack_json(*result, "demarc attack")));
  for (const char* left_out : {"program", "revision"}) json["context"].erase(left_out);
  std::string text;
  for (const auto& [part, value] : json.items()) {
    if (part != "screened" && part != "ranked" && part != "refusals") {
      text += part + ": " + json_text(value) + "\n";
      continue;
    }
    for (const Json& entry : value) text += part + ": " + json_text(entry) + "\n";
  }
  test::expect_kept("study/golden/hunt.txt", text + attack_text(*result));
}

AttackPlan seeded() {
  AttackPlan plan;
  plan.seed = 5;
  return plan;
}

// A quarter are strangers, the others have the worst as parents.
TEST(KeptHunt, breeds_from_what_hurts_most) {
  Breeder breeder(seeded(), narrow_means());
  Refusals refusals;
  std::vector<Screened> screened;
  std::string text = "first\n";
  for (const Neighbour& one : breeder.first(refusals)) {
    text += numbers_of(one) + "\n";
    screened.push_back({one, "", "", one.pattern == Pattern::stride ? 50.0 : 1.0, 0, 0});
  }
  text += "next\n";
  for (const Neighbour& one : breeder.next(screened, 12, refusals)) text += numbers_of(one) + "\n";
  for (const Refusal& refusal : refusals.all()) {
    text += fmt::format("{} {}: {}\n", refusal.count, refusal.what, refusal.reason);
  }
  test::expect_kept("study/golden/bred.txt", text);
}

// A slice needs more than these means have, and a search that asks for one is told so at once.
TEST(Breeding, of_a_pattern_that_is_not_possible_is_given_up) {
  NeighbourMeans means = narrow_means();
  means.bytes = 1U << 20U;  // half a page
  Breeder breeder(seeded(), means);
  Refusals refusals;
  EXPECT_TRUE(breeder.another(Pattern::slice, refusals).empty());
  ASSERT_EQ(refusals.all().size(), 1U);
  EXPECT_EQ(refusals.all()[0].what, "slice");
  EXPECT_EQ(refusals.all()[0].count, 1U);
  EXPECT_EQ(breeder.another(Pattern::stream, refusals).size(), 1U);
  EXPECT_TRUE(breeder.another(Operation::bulk_copy, refusals).empty());
  EXPECT_EQ(refusals.all().back().what, "bulk_copy");
  EXPECT_EQ(refusals.all().back().count, 1U);
}

}  // namespace
}  // namespace demarc::study
