// What measured streams say of masks, on a memory that feels what it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "demarc/base/gf2.hpp"
#include "demarc/probe/slices.hpp"

namespace demarc::probe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t told_mask = 0x3000;

// Whether the streams of a measurement lie in memory or in the L2, and what the aggressor does.
enum class Felt : std::uint8_t { dram_read, dram_write, l2_read, l2_write };

// Pages add nothing; streams of one value of the mask take twice as long, those of two as told.
class ToldMemory final : public TimedMemory {
 public:
  std::map<Felt, double> other_colour;
  std::vector<std::pair<Stream, Stream>> asked;

  explicit ToldMemory(std::uint64_t pages) {
    facts_.name = "told";
    facts_.page_bytes = 1U << 16U;
    facts_.pages = pages;
    facts_.l2_bytes = 6U << 16U;  // a sixth of it is a page
  }
  [[nodiscard]] const MemoryFacts& facts() const override { return facts_; }
  Result<double> stream_seconds(const Stream& victim, const Stream& aggressor) override {
    if (aggressor.chunks.empty()) return 1.0;
    asked.emplace_back(victim, aggressor);
    if (color_of(victim) == color_of(aggressor)) return 2.0;
    const bool in_cache = victim.chunks.size() << victim.chunk_shift <= facts_.l2_bytes / 6;
    const Felt felt = in_cache ? (aggressor.writes ? Felt::l2_write : Felt::l2_read)
                               : (aggressor.writes ? Felt::dram_write : Felt::dram_read);
    const auto told = other_colour.find(felt);
    return told == other_colour.end() ? 1.0 : told->second;
  }
  static std::uint32_t color_of(const Stream& stream) {
    const auto color = [&](std::uint64_t chunk) {
      return parity(chunk << stream.chunk_shift, told_mask);
    };
    for (const std::uint32_t chunk : stream.chunks) {
      EXPECT_EQ(color(chunk), color(stream.chunks[0])) << "a stream of two colours";
    }
    return color(stream.chunks[0]);
  }

  Result<std::vector<float>> uncached_pairs(std::uint64_t,
                                            std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }
  Result<std::vector<float>> reread(std::uint64_t, std::span<const std::uint64_t>,
                                    std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }
  Result<float> crowded_read(std::uint64_t, std::span<const std::uint64_t>) override {
    return missing_capability("not asked for");
  }
  Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t>,
                                           std::span<const gpu::SmIndex>, std::uint32_t,
                                           std::uint32_t) override {
    return missing_capability("not asked for");
  }

 private:
  MemoryFacts facts_;
};

// Streams of 4 pages, of which a colour has half: 8 pages for the victim, 8 between, 8 behind.
constexpr std::uint64_t enough_pages = 24;

Result<ConflictFinding> measured(ToldMemory& memory,
                                 std::vector<std::uint64_t> masks = {told_mask}) {
  SliceFinding slices;
  slices.model.masks = std::move(masks);
  PageFinding pages;
  pages.constants.assign(memory.facts().pages, 0);
  ConflictOptions options;
  options.dram_bytes = 4 * memory.facts().page_bytes;
  return measure_conflicts(memory, slices, pages, options, {});
}

TEST(Conflicts, a_mask_isolates_where_nothing_is_felt_and_not_where_anything_is) {
  ToldMemory quiet(enough_pages);
  const ConflictFinding all = measured(quiet).value();
  ASSERT_THAT(all.masks, SizeIs(1));
  EXPECT_TRUE(all.masks[0].isolates && all.masks[0].isolates_dram);
  EXPECT_THAT(all.isolating, ElementsAre(told_mask));
  EXPECT_EQ(all.masks[0].same.dram_read, 2);
  EXPECT_EQ(all.masks[0].same.l2_write, 2);
  for (const Felt felt : {Felt::dram_read, Felt::dram_write, Felt::l2_read, Felt::l2_write}) {
    for (const bool too_much : {false, true}) {
      ToldMemory memory(enough_pages);
      memory.other_colour[felt] = color::max_isolated + (too_much ? 0.001 : 0);
      const ConflictFinding found = measured(memory).value();
      EXPECT_EQ(found.masks[0].isolates, !too_much) << static_cast<int>(felt);
      EXPECT_EQ(found.masks[0].isolates_dram, !too_much || felt != Felt::dram_read);
      EXPECT_EQ(found.isolating.empty(), too_much);
      EXPECT_EQ(found.isolating_dram.empty(), too_much && felt == Felt::dram_read);
      const auto& other = found.masks[0].other;
      const double entries[] = {other.dram_read, other.dram_write, other.l2_read, other.l2_write};
      EXPECT_EQ(entries[static_cast<std::size_t>(felt)], memory.other_colour[felt]);
    }
  }
}

TEST(Conflicts, streams_of_two_do_not_share_a_page_and_have_their_whole_length) {
  ToldMemory memory(enough_pages);
  ASSERT_TRUE(measured(memory));
  bool cached = false;
  for (const auto& [victim, aggressor] : memory.asked) {
    EXPECT_EQ(victim.chunk_shift, 12U);
    const auto page_of = [](std::uint32_t chunk) { return chunk >> 4U; };
    if (victim.chunks.size() == 16) cached = true;
    EXPECT_TRUE(victim.chunks.size() == 64 || victim.chunks.size() == 16 ||
                victim.chunks.size() == 32)
        << victim.chunks.size() << ": whole, in the L2, or of one module";
    EXPECT_GE(aggressor.chunks.size(), 32U);
    EXPECT_GE(page_of(aggressor.chunks.front()), page_of(victim.chunks.back()) + 8);
  }
  EXPECT_TRUE(cached);
}

// Without pages behind the victim's there is no aggressor, which no victim would feel.
TEST(Conflicts, too_few_pages_are_refused_and_isolate_nothing) {
  for (const std::uint64_t pages : {std::uint64_t{3}, std::uint64_t{12}, enough_pages - 1}) {
    ToldMemory memory(pages);
    const auto found = measured(memory);
    ASSERT_FALSE(found) << pages;
    EXPECT_EQ(found.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(found.error().message, HasSubstr(fmt::format("told: {} pages are too few", pages)));
  }
  ToldMemory nearly(enough_pages - 1);
  EXPECT_THAT(measured(nearly).error().message,
              HasSubstr("from page 16 on they hold 224 of the 256 KiB of one colour"));
}

TEST(Conflicts, of_masks_that_cut_runs_too_short_for_streams_nothing_is_measured) {
  ToldMemory memory(enough_pages);
  const ConflictFinding found = measured(memory, {0x100 | told_mask}).value();
  EXPECT_THAT(found.masks, IsEmpty());
  EXPECT_THAT(found.modules, IsEmpty());
  EXPECT_THAT(memory.asked, IsEmpty());
}

TEST(Conflicts, every_pair_of_modules_is_measured) {
  ToldMemory memory(enough_pages);
  memory.other_colour[Felt::dram_read] = 1.25;
  const ConflictFinding found = measured(memory).value();
  EXPECT_THAT(found.modules, ElementsAre(ElementsAre(2, 1.25), ElementsAre(1.25, 2)));
}

}  // namespace
}  // namespace demarc::probe
