// The translation of cards, against the stand-in for libcuda, whose emulator runs the kernels.
#include "gpu_translation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "demarc/probe/open_translation.hpp"
#include "demarc/probe/translation.hpp"
#include "fake_card.hpp"

namespace demarc::probe {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t two_mebibytes = 2U << 20U;
constexpr std::uint64_t one_mebibyte = 1U << 20U;
constexpr TranslationLimits small_limits{.card_bytes = 160 * one_mebibyte,
                                         .host_bytes = 128 * one_mebibyte,
                                         .traffic_lasts = std::chrono::microseconds(2)};

// Two TPCs, for the emulator's sake.
fake::FakeConfig two_tpcs() {
  fake::FakeConfig config = fake::small_gpu();
  config.tpcs = 2;
  return config;
}

std::unique_ptr<GpuTranslation> opened(const fake::FakeConfig& config = fake::small_gpu(),
                                       const TranslationLimits& limits = small_limits) {
  return GpuTranslation::open(test::fake_gpu(config), nullptr, limits).value();
}

TEST(GpuTranslation, is_described_by_what_the_driver_tells) {
  const auto card = opened();
  EXPECT_EQ(card->facts().name, "Fake GPU");
  EXPECT_EQ(card->facts().peer, "");
  EXPECT_EQ(card->facts().sms, 24U);
  EXPECT_EQ(card->facts().l2_bytes, 50U << 20U);
  EXPECT_DOUBLE_EQ(card->facts().sm_clock_hz, 1e6);
}

TEST(GpuTranslation, maps_the_memory_asked_for_but_leaves_a_tenth_of_what_is_free) {
  const auto pages = [](std::uint64_t free_bytes) {
    fake::FakeConfig config = fake::small_gpu();
    config.free_bytes = free_bytes;
    const auto card = opened(config);
    return card->map({MemoryPlace::local, two_mebibytes, two_mebibytes}).value()->pages();
  };
  EXPECT_EQ(pages(1024 * one_mebibyte), 80U);
  EXPECT_EQ(pages(160 * one_mebibyte), 72U);
}

TEST(GpuTranslation, pieces_may_be_larger_than_pages) {
  const auto card = opened();
  const auto memory = card->map({MemoryPlace::local, 32 * one_mebibyte, two_mebibytes}).value();
  EXPECT_EQ(memory->pages(), 80U);
  EXPECT_EQ(memory->page_bytes(), two_mebibytes);
}

TEST(GpuTranslation, what_cannot_be_mapped_is_refused_by_name) {
  const auto refused = [](const TranslationLimits& limits, const Mapping& mapping) {
    const auto card = opened(fake::small_gpu(), limits);
    const auto memory = card->map(mapping);
    EXPECT_FALSE(memory);
    EXPECT_EQ(memory.error().kind, ErrorKind::missing_capability);
    return memory.error().message;
  };
  EXPECT_EQ(refused(small_limits, {MemoryPlace::peer, two_mebibytes, two_mebibytes}),
            "no peer was named; name one with --peer cuda:N");
  EXPECT_THAT(refused(small_limits, {MemoryPlace::local, 65536, 65536}),
              HasSubstr("maps no pieces of 64 KiB"));
  TranslationLimits tiny = small_limits;
  tiny.card_bytes = 127 * one_mebibyte;
  tiny.host_bytes = 3 * one_mebibyte;
  EXPECT_EQ(refused(tiny, {MemoryPlace::local, two_mebibytes, two_mebibytes}),
            "126 MiB of local memory can be taken; the probe needs 128 MiB");
  EXPECT_EQ(refused(tiny, {MemoryPlace::host, 0, 65536}),
            "3 MiB of host memory can be taken; the probe needs 4 MiB");
}

TEST(GpuTranslation, walks_and_traffic_run_on_every_place) {
  const auto card = opened(two_tpcs());
  for (const Mapping& mapping : {Mapping{MemoryPlace::local, two_mebibytes, two_mebibytes},
                                 Mapping{MemoryPlace::host, 0, 65536}}) {
    const auto memory = card->map(mapping).value();
    const std::vector<Visit> visits = {{PageIndex(3), LineIndex(5)}, {PageIndex(60), LineIndex(0)}};
    const auto launches = test::fake_symbol<std::uint64_t()>("fake_launch_count");
    for (const Access access : {Access::load, Access::atomic}) {
      for (const Before before : {Before::whatever, Before::evicted}) {
        const std::uint64_t begin = launches();
        const auto cycles = memory->walk(visits, access, before);
        ASSERT_TRUE(cycles) << cycles.error().message;
        EXPECT_GT(cycles->again, 0);
        EXPECT_EQ(launches() - begin, before == Before::evicted ? 4U : 2U);
      }
    }
    for (const auto kind : {Traffic::Kind::read, Traffic::Kind::write, Traffic::Kind::page,
                            Traffic::Kind::word, Traffic::Kind::atomic}) {
      const bool wide = kind == Traffic::Kind::read || kind == Traffic::Kind::write;
      const auto rate = memory->accesses_per_second({kind, wide ? 32U : 4U, 2, 100});
      ASSERT_TRUE(rate) << rate.error().message;
      EXPECT_GT(*rate, 0);
    }
  }
}

TEST(GpuTranslation, is_probed_from_end_to_end) {
  const auto card = opened(two_tpcs());
  TranslationOptions options;
  options.levels.least_visits = 16;
  options.levels.repeats = 1;
  const auto report = probe_translation(*card, options, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->places[0].bytes, 160 * one_mebibyte);
  EXPECT_TRUE(report->places[0].rates);
  EXPECT_THAT(report->places[1].not_measured, HasSubstr("maps no pieces of 64 KiB"));
  EXPECT_THAT(report->places[2].not_measured, HasSubstr("0 MiB of local memory can be taken"));
  EXPECT_EQ(report->places[3].not_measured, "no peer was named; name one with --peer cuda:N");
  EXPECT_TRUE(report->places[4].rates);
  EXPECT_EQ(report->places[5].levels.curve.back().pages, 2048U) << "of 64 KiB";
}

// With DEMARC_LIBCUDA as the stand-in that has two cards.
class OpenTranslation : public testing::Test {
 protected:
  void SetUp() override {
    test::configure(fake::small_gpu());
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_FAKE_DEVICES", "2", 1);
  }
  void TearDown() override {
    ::unsetenv("DEMARC_FAKE_DEVICES");
    ::unsetenv("DEMARC_LIBCUDA");
  }
  static Error refused(const TranslationNames& names) {
    const auto found = open_translation(names);
    EXPECT_FALSE(found);
    return found.error();
  }
};

TEST_F(OpenTranslation, opens_cards_and_what_is_planted) {
  const auto planted = open_translation({.device = "planted:h200"});
  ASSERT_TRUE(planted) << planted.error().message;
  EXPECT_EQ((*planted)->facts().name, "planted:h200");
  const auto card = open_translation({.device = "cuda:0", .peer = "cuda:1", .card_gib = 0.25});
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ((*card)->facts().peer, "Fake GPU");
  const auto memory = (*card)->map({MemoryPlace::peer, two_mebibytes, two_mebibytes});
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ((*memory)->pages(), 128U);
}

TEST_F(OpenTranslation, a_link_that_carries_no_atomics_is_told_of_its_memory) {
  fake::FakeConfig config = fake::small_gpu();
  config.peer_atomics = false;
  config.host_atomics = false;
  test::configure(config);
  const auto card =
      open_translation({.device = "cuda:0", .peer = "cuda:1", .card_gib = 0.25, .host_gib = 0.25});
  ASSERT_TRUE(card) << card.error().message;
  const auto no_atomics = [&](MemoryPlace place) {
    return (*card)->map({place, two_mebibytes, two_mebibytes}).value()->no_atomics();
  };
  EXPECT_EQ(no_atomics(MemoryPlace::peer),
            "the link between Fake GPU (cuda:0) and Fake GPU (cuda:1) carries no atomics");
  EXPECT_EQ(no_atomics(MemoryPlace::local), "");
  EXPECT_EQ((*card)->map({MemoryPlace::host, 0, 65536}).value()->no_atomics(),
            "the bus between Fake GPU (cuda:0) and the host carries no atomics");
}

TEST_F(OpenTranslation, refuses_what_has_no_tlbs_to_find_by_name) {
  const Error simulated = refused({.device = "sim:gtx1080"});
  EXPECT_EQ(simulated.kind, ErrorKind::invalid_input);
  EXPECT_THAT(simulated.message,
              HasSubstr("--device sim:gtx1080: a simulated card is not probed for TLBs"));
  EXPECT_THAT(refused({.device = "cuda:0", .peer = "sim:gtx1080"}).message,
              HasSubstr("--peer sim:gtx1080: a simulated card"));
  EXPECT_THAT(refused({.device = "planted:gtx1080"}).message, HasSubstr("there is h200"));
  EXPECT_THAT(refused({.device = "planted:h200", .peer = "cuda:1"}).message,
              HasSubstr("--peer cuda:1: a planted translation has its own peer"));
  EXPECT_THAT(refused({.device = "gpu0"}).message, HasSubstr("gpu0"));
}

TEST_F(OpenTranslation, refuses_a_peer_that_is_the_card_or_is_not_there_or_out_of_reach) {
  const Error same = refused({.device = "cuda:1", .peer = "cuda:1"});
  EXPECT_EQ(same.kind, ErrorKind::invalid_input);
  EXPECT_EQ(same.message, "--peer cuda:1 is the probed card itself; name another card");
  EXPECT_EQ(refused({.device = "cuda:0", .peer = "cuda:2"}).kind, ErrorKind::missing_capability);
  fake::FakeConfig config = fake::small_gpu();
  config.peer_access = false;
  test::configure(config);
  const Error far = refused({.device = "cuda:0", .peer = "cuda:1"});
  EXPECT_EQ(far.kind, ErrorKind::missing_capability);
  EXPECT_THAT(far.message, HasSubstr("the driver gives no peer access"));
}

TEST_F(OpenTranslation, refuses_a_mig_instance) {
  fake::FakeConfig config = fake::small_gpu();
  config.instance_uuid = 7;
  test::configure(config);
  EXPECT_THAT(refused({.device = "cuda:0"}).message, HasSubstr("is a MIG instance"));
}

}  // namespace
}  // namespace demarc::probe
