// The memory of a card, against the stand-in for libcuda.
#include "gpu_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "demarc/card/masks.hpp"
#include "demarc/probe/open_memory.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::probe {
namespace {

using testing::Each;
using testing::FloatNear;
using testing::HasSubstr;

constexpr std::uint64_t page_bytes = 2U << 20U;
constexpr std::uint64_t gibibyte = 1U << 30U;

fake::FakeConfig with_free_pages(std::uint64_t pages) {
  fake::FakeConfig config = fake::small_gpu();
  config.free_bytes = gibibyte + pages * page_bytes;
  return config;
}

TEST(GpuMemory, takes_the_pages_asked_for_but_leaves_a_gibibyte_free) {
  const cuda::GpuPointer gpu = test::fake_gpu(with_free_pages(66));
  const auto pages_of = [&](std::uint64_t bytes) {
    return GpuMemory::open(gpu, bytes).value()->facts().pages;
  };
  EXPECT_EQ(pages_of(65 * page_bytes + page_bytes - 1), 65U);
  EXPECT_EQ(pages_of(1000 * page_bytes), 66U);
  EXPECT_EQ(pages_of(64 * page_bytes), 64U);
}

TEST(GpuMemory, of_too_few_pages_is_refused_with_what_is_free) {
  const auto refused = [](std::uint64_t free_pages, std::uint64_t asked) {
    const auto memory = GpuMemory::open(test::fake_gpu(with_free_pages(free_pages)), asked);
    EXPECT_FALSE(memory);
    EXPECT_EQ(memory.error().kind, ErrorKind::missing_capability);
    return memory.error().message;
  };
  EXPECT_EQ(refused(63, gibibyte),
            "Fake GPU: 1150 MiB of device memory are free; the probe needs 1152 MiB");
  EXPECT_THAT(refused(500, 64 * page_bytes - 1), HasSubstr("2024 MiB of device memory are free"));
  EXPECT_THAT(refused(std::uint64_t{0} - 100, gibibyte), HasSubstr("824 MiB of device memory"));
}

TEST(GpuMemory, is_described_by_what_the_driver_tells) {
  const auto memory = GpuMemory::open(test::fake_gpu(with_free_pages(64)), gibibyte).value();
  const MemoryFacts& facts = memory->facts();
  EXPECT_EQ(facts.name, "Fake GPU");
  EXPECT_FALSE(facts.physical_addresses);
  EXPECT_EQ(facts.page_bytes, page_bytes);
  EXPECT_EQ(facts.sms, 24U);
  EXPECT_EQ(facts.l2_bytes, 50U << 20U);
  const std::uint64_t one[] = {4096};
  EXPECT_EQ(memory->uncached_pairs(0, one).error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(memory->reread(0, one, one).error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(memory->crowded_read(0, one).error().kind, ErrorKind::missing_capability);
}

TEST(GpuMemory, times_its_own_pages) {
  fake::FakeConfig config = with_free_pages(64);
  config.latency_noise = 0;
  const auto memory = GpuMemory::open(test::fake_gpu(config), gibibyte).value();
  const std::vector<std::uint64_t> addresses{0, 5 * page_bytes + 256, 63 * page_bytes, 0};
  const auto sms = test::sm_list({0, 9, 23});
  const auto latencies = memory->hit_latencies(addresses, sms, 2, 1).value();
  ASSERT_EQ(latencies.count(), 4U);
  EXPECT_THAT(latencies.values, Each(FloatNear(282, 33))) << "of pages, whose chunks have slices";
  for (std::size_t k = 0; k < sms.size(); ++k) {
    EXPECT_EQ(latencies.values[k], latencies.values[3 * sms.size() + k]);
  }
}

TEST(GpuMemory, a_victims_stream_is_timed_beside_the_other) {
  const auto memory = GpuMemory::open(test::fake_gpu(with_free_pages(64)), gibibyte).value();
  Stream victim;
  victim.chunk_shift = 14;
  victim.chunks = {0, 1, 2};
  Stream same = victim;
  EXPECT_NEAR(memory->stream_seconds(victim, {}).value(), 300e-9, 1e-9) << "100 ns a chunk";
  EXPECT_NEAR(memory->stream_seconds(victim, same).value(), 540e-9, 1e-9) << "of its module";
  same.writes = true;
  EXPECT_NEAR(memory->stream_seconds(victim, same).value(), 1020e-9, 1e-9);
}

// A mask keeps the launch off one TPC: only where that is a victim's is anything missing.
TEST(GpuMemory, the_victim_has_every_other_tpc) {
  const cuda::CardPointer card = test::fake_card(with_free_pages(64)).value();
  const auto memory = GpuMemory::open(card->gpu(), gibibyte).value();
  Stream victim;
  victim.chunks = {0, 1};
  for (std::uint32_t without = 0; without < 12; ++without) {
    const gpu::TpcSet tpcs = gpu::TpcSet::first(12) - gpu::TpcSet{gpu::TpcIndex(without)};
    const auto mask = cuda::ProcessMask::set(card, tpcs);
    ASSERT_TRUE(mask) << mask.error().message;
    const auto seconds = memory->stream_seconds(victim, victim);
    ASSERT_EQ(seconds.has_value(), without % 2 == 1) << without;
    if (seconds) continue;
    EXPECT_THAT(seconds.error().message, HasSubstr(fmt::format("SM {}:", 2 * without)));
  }
}

TEST(OpenMemory, a_card_is_opened_with_its_description) {
  test::configure(with_free_pages(64));
  ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
  ::setenv("DEMARC_CACHE", test::fresh_folder("cache").c_str(), 1);
  const auto opened = open_memory("cuda:0", 64 * page_bytes, 1);
  const auto small = open_memory("cuda:0", 63 * page_bytes, 1);
  const auto beyond = open_memory("cuda:7", 64 * page_bytes, 1);
  ::unsetenv("DEMARC_CACHE");
  ::unsetenv("DEMARC_LIBCUDA");
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->memory->facts().pages, 64U);
  EXPECT_EQ(opened->device.name, "Fake GPU");
  EXPECT_EQ(opened->device.topology.tpcs.size(), 12U);
  EXPECT_FALSE(small);
  EXPECT_FALSE(beyond);
}

}  // namespace
}  // namespace demarc::probe
