// The whole probe of translation on planted cards: what is measured, refused and said.
#include "demarc/probe/translation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kept_report.hpp"
#include "small_translation.hpp"

namespace demarc::probe {
namespace {

using test::small_hierarchy;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Own memory, a peer that is not cached, a little of the host.
PlantedHierarchy three_places() {
  const std::vector<PlantedTlb> tlbs = {{16, 1, 0, false, false, 20},
                                        {128, 2, 4, false, false, 90}};
  PlantedHierarchy truth = small_hierarchy(tlbs, 2048);
  truth.facts.peer = "second small card";
  PlantedPlace& peer = truth.places[1];
  peer = truth.places[0];
  peer.hit_cycles = 1600;
  peer.cold_cycles = 1950;
  peer.atomic_cycles = 1700;
  peer.cached_here = false;
  peer.bytes_per_second = 4e10;
  peer.sm_bytes_per_second = 1.5e10;
  peer.packet_bytes = 32;
  PlantedPlace& host = truth.places[2];
  host = peer;
  host.pages = 64;
  host.hit_cycles = 2200;
  host.no_atomics = "the bus carries no atomics";
  host.cold_cycles = 2600;
  return truth;
}

TranslationOptions quick() {
  TranslationOptions options;
  options.levels.least_visits = 512;
  return options;
}

TEST(Translation, of_three_places_is_measured_and_said) {
  PlantedTranslation card(three_places(), 1);
  ProgressSeen progress;
  TranslationReport report = probe_translation(card, quick(), progress.note()).value();
  report.seconds = 1.5;
  ASSERT_EQ(report.places.size(), 8U);
  EXPECT_EQ(report.places[0].levels.levels.size(), 2U);
  EXPECT_EQ(report.places[3].levels.levels.size(), 2U);
  EXPECT_EQ(report.places[3].caching->kept_in_own_l2, false);
  EXPECT_EQ(report.places[0].caching->kept_in_own_l2, true);
  EXPECT_EQ(report.places[6].rates->no_atomics, "the bus carries no atomics");
  EXPECT_FALSE(report.places[7].rates) << "rates do not depend on the distance of pages";
  Json json = test::rounded(Json::parse(translation_to_json(report)));
  EXPECT_EQ(json["schema"], "demarc.probe.translation/1");
  EXPECT_EQ(json["places"][1]["measured"], false);
  EXPECT_THAT(json["places"][1]["reason"].get<std::string>(), HasSubstr("no pieces of 64 KiB"));
  EXPECT_EQ(json["places"][3]["tlbs"]["levels"][1]["ways"], nullptr) << "asked of own memory alone";
  EXPECT_EQ(json["places"][0]["tlbs"]["levels"][0]["pages_per_entry"], 1);
  EXPECT_EQ(json["failure"], nullptr);
  EXPECT_TRUE(check_finished(report));
  EXPECT_EQ(json["places"][6]["l2"]["atomic_cycles"], nullptr);
  EXPECT_EQ(json["places"][6]["rates"]["no_atomics_reason"], "the bus carries no atomics");
  test::expect_kept("probe/golden/translation.txt", translation_to_text(report));
}

TEST(Translation, of_a_card_without_a_peer_says_so) {
  PlantedTranslation card(small_hierarchy({{16, 1, 0, false, false, 20}}, 512), 1);
  const TranslationReport report = probe_translation(card, quick(), {}).value();
  ASSERT_EQ(report.places.size(), 5U) << "a peer is asked for once, the host too";
  EXPECT_EQ(report.places[3].not_measured, "small card: there is no peer");
  EXPECT_EQ(report.places[4].not_measured, "small card: there is no host");
  EXPECT_THAT(report.verdict,
              Contains(HasSubstr("peer memory in pieces of 2 MiB, read every 2 MiB: "
                                 "not measured: small card: there is no peer")));
  EXPECT_EQ(Json::parse(translation_to_json(report))["peer"], nullptr);
  EXPECT_THAT(translation_to_text(report), Not(HasSubstr(", peer ")));
}

TEST(Translation, that_is_missed_nowhere_is_said_not_to_be_felt) {
  PlantedTranslation card(small_hierarchy({{1024, 1, 0, false, false, 20}}, 256), 1);
  const TranslationReport report = probe_translation(card, quick(), {}).value();
  EXPECT_TRUE(report.places[0].levels.levels.empty());
  EXPECT_THAT(report.verdict, Contains(HasSubstr("no TLB shows in 512 MiB: the latency stays at")));
}

// Pieces of 512 MiB that reach further than those of 2 MiB.
class LargerPages final : public TimedTranslation {
 public:
  LargerPages() : small_(truth(1), 1), large_(truth(16), 1) {}
  [[nodiscard]] const TranslationFacts& facts() const override { return small_.facts(); }
  Result<std::unique_ptr<TimedPages>> map(const Mapping& mapping) override {
    return (mapping.piece_bytes > mapping.page_bytes ? large_ : small_).map(mapping);
  }

 private:
  static PlantedHierarchy truth(std::uint64_t pages_per_entry) {
    return small_hierarchy({{32, pages_per_entry, 0, false, false, 50}}, 2048);
  }
  PlantedTranslation small_, large_;
};

TEST(Translation, of_larger_pieces_that_reach_further_is_said_to_differ) {
  LargerPages card;
  const TranslationReport report = probe_translation(card, quick(), {}).value();
  EXPECT_THAT(report.verdict,
              Contains(HasSubstr("local memory in pieces of 512 MiB, read every 2 MiB: "
                                 "the translation differs from that of pieces of 2 MiB")));
}

// What does not map anything, or fails.
class Refusing final : public TimedTranslation {
 public:
  explicit Refusing(ErrorKind kind) : kind_(kind) { facts_.name = "no card"; }
  [[nodiscard]] const TranslationFacts& facts() const override { return facts_; }
  Result<std::unique_ptr<TimedPages>> map(const Mapping&) override {
    return failure(kind_, "there is nothing", {});
  }

 private:
  TranslationFacts facts_;
  ErrorKind kind_;
};

// Works for its own memory, and fails when the peer's is to be mapped, or read.
class Failing final : public TimedTranslation {
 public:
  explicit Failing(const std::string& where) : where_(where), planted_(three_places(), 1) {}
  [[nodiscard]] const TranslationFacts& facts() const override { return planted_.facts(); }
  Result<std::unique_ptr<TimedPages>> map(const Mapping& mapping) override {
    if (mapping.place == MemoryPlace::local) return planted_.map(mapping);
    if (where_ == "map") return check_failed("the card fell off the bus");
    return std::unique_ptr<TimedPages>(new Unreadable);
  }

 private:
  class Unreadable final : public TimedPages {
   public:
    [[nodiscard]] std::uint64_t pages() const override { return 100; }
    [[nodiscard]] std::uint64_t page_bytes() const override { return 65536; }
    [[nodiscard]] const std::string& no_atomics() const override { return none_; }
    Result<WalkCycles> walk(std::span<const Visit>, Access, Before) override {
      return check_failed("the card fell off the bus");
    }
    Result<double> accesses_per_second(const Traffic&) override { return 1.0; }

   private:
    std::string none_;
  };
  std::string where_;
  PlantedTranslation planted_;
};

TEST(Translation, a_card_that_fails_leaves_what_was_measured_before) {
  for (const std::string where : {"map", "read"}) {
    Failing card(where);
    const auto report = probe_translation(card, quick(), {});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->places.size(), 3U) << "those of its own memory";
    const std::string said = "peer memory in pieces of 2 MiB, read every 2 MiB: the card fell off";
    EXPECT_THAT(report->failure, HasSubstr(said));
    EXPECT_THAT(report->verdict.front(), HasSubstr("not finished: " + said));
    EXPECT_EQ(Json::parse(translation_to_json(*report))["failure"], report->failure);
    const auto finished = check_finished(*report);
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().kind, ErrorKind::check_failed);
    EXPECT_EQ(finished.error().message, "small card: " + report->failure);
  }
}

TEST(Translation, of_nothing_is_refused) {
  Refusing card(ErrorKind::missing_capability);
  const auto report = probe_translation(card, {}, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(report.error().message, "no card: nothing could be measured: there is nothing");
  Refusing broken(ErrorKind::check_failed);
  EXPECT_EQ(probe_translation(broken, {}, {}).error().message, "there is nothing");
}

}  // namespace
}  // namespace demarc::probe
