// Tests that memory of each colour lies in slices of its own on every simulated card.
#include "sim/sim_memory.hpp"

#include <gtest/gtest.h>

#include <set>

#include "demarc/sim/memory/synthetic.hpp"

namespace demarc::study {
namespace {

// The slices in which memory of `bytes` lies, and its pages.
struct Where {
  std::set<sim::memory::SliceIndex> slices;
  std::set<std::uint64_t> pages;
};
Where where(const sim::memory::Spec& spec, const sim::memory::Translation& translation) {
  const sim::memory::AddressDecoder decoder(spec.address);
  Where found;
  for (const sim::memory::PhysicalAddress chunk : translation.chunks) {
    found.pages.insert(chunk.raw() >> 21U);
    for (std::uint64_t at = 0; at >> translation.chunk_shift == 0; at += 128) {
      found.slices.insert(decoder(line_of(chunk + at)).slice);
    }
  }
  return found;
}

TEST(SimMemory, colours_lie_in_slices_of_their_own_on_every_card_and_plain_memory_in_all) {
  constexpr std::uint64_t bytes = std::uint64_t{24} << 20U;
  for (const char* name : {"gtx1080", "v100", "titan-v", "a30", "h100-sxm"}) {
    const gpu::Device device = gpu::find_device(name).value();
    const sim::memory::Spec spec = sim::memory::make_spec(device, 5).value();
    for (const std::uint32_t parts : {2U, 4U}) {
      const auto coloring = choose_coloring(device, parts);
      ASSERT_TRUE(coloring) << name << ": " << coloring.error().message;
      SimMemory memory(device, spec, 5);
      std::set<sim::memory::SliceIndex> taken;
      std::set<std::uint64_t> pages;
      std::size_t page_count = 0;
      for (std::uint32_t color = 0; color < parts; ++color) {
        const auto translation = memory.colored(sim::Address(0x1000000), bytes, *coloring, color);
        EXPECT_GE(translation.chunks.size() << translation.chunk_shift, bytes);
        const Where found = where(spec, translation);
        EXPECT_EQ(found.slices.size(), spec.slices / parts) << name;
        for (const auto slice : found.slices) {
          EXPECT_TRUE(taken.insert(slice).second) << name << ": slice " << slice << " has two";
        }
        pages.insert(found.pages.begin(), found.pages.end());
        page_count += found.pages.size();
      }
      const Where plain = where(spec, memory.plain(sim::Address(0x1000000), bytes));
      EXPECT_EQ(plain.slices.size(), spec.slices) << name;
      pages.insert(plain.pages.begin(), plain.pages.end());
      EXPECT_EQ(pages.size(), page_count + plain.pages.size()) << name << ": a page is used twice";
    }
  }
}

TEST(SimMemory, page_tables_of_cards_with_known_tlbs_lie_in_pages_of_their_own) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  const sim::memory::Spec spec = sim::memory::make_spec(device, 5).value();
  const std::uint64_t bytes = std::uint64_t{64} << 20U;
  SimMemory memory(device, spec, 5);
  const auto coloring = choose_coloring(device, 4).value();
  const auto plain = memory.plain(sim::Address(0x1000000), bytes);
  const auto colored = memory.colored(sim::Address(0x1000000), bytes, coloring, 3);
  EXPECT_EQ(plain.paging.page_shift, 21U);
  EXPECT_EQ(colored.paging.page_shift, 19U);  // a quarter of each page has the colour
  std::set<std::uint64_t> pages = where(spec, plain).pages;
  const std::set<std::uint64_t> more = where(spec, colored).pages;
  pages.insert(more.begin(), more.end());
  const std::size_t of_data = pages.size();
  EXPECT_EQ(of_data, (bytes >> 21U) + (bytes >> 19U));
  for (const auto& place : {plain.paging.tables, colored.paging.tables}) {
    ASSERT_EQ(place.size(), 1U);
    EXPECT_EQ(place[0].raw() % (std::uint64_t{1} << 21U), 0U);
    pages.insert(place[0].raw() >> 21U);
  }
  EXPECT_EQ(pages.size(), of_data + 2);
}

TEST(SimMemory, windows_are_the_same_memory_in_small_pages) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  const sim::memory::Spec spec = sim::memory::make_spec(device, 5).value();
  const std::uint64_t bytes = std::uint64_t{1} << 30U;
  const auto coloring = choose_coloring(device, 2).value();
  ASSERT_TRUE(check_windows(device, coloring));
  SimMemory pages(device, spec, 5);
  SimMemory windows(device, spec, 5);
  const auto large = pages.colored(sim::Address(0), bytes, coloring, 1);
  const auto small = windows.colored(sim::Address(0), bytes, coloring, 1, PageSize::small);
  EXPECT_EQ(small.chunks, large.chunks);
  EXPECT_EQ(large.paging.page_shift, 20U);
  EXPECT_EQ(small.paging.page_shift, 12U);
  EXPECT_TRUE(large.paging.usual);
  EXPECT_FALSE(small.paging.usual);
  EXPECT_EQ(small.paging.tables.size(), 1U);  // 262144 entries of 8 bytes
  const auto more = windows.plain(sim::Address(0), bytes + 4096, PageSize::small);
  EXPECT_EQ(more.paging.page_shift, 12U);
  EXPECT_EQ(more.paging.tables.size(), 2U);  // memory comes in whole pages of 2 MiB
}

// Random reads of half a gibibyte by two SMs, with and without what is known of TLBs.
TEST(SimMemory, large_pages_take_the_time_that_they_take_without_tlbs_and_windows_more) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  const auto coloring = choose_coloring(device, 2).value();
  const auto reads = [&](bool tlbs, PageSize pages) {
    sim::memory::Spec spec = sim::memory::make_spec(device, 5).value();
    SimMemory memory(device, spec, 5);
    if (!tlbs) spec.tlbs.clear();
    sim::memory::Simulation gpu(spec);
    sim::memory::Walk walk;
    walk.bytes = std::uint64_t{1} << 29U;
    walk.order = sim::memory::WalkOrder::random;
    walk.sectors = 1;
    walk.blocks = 2;
    std::vector<sim::memory::ClientIndex> clients;
    for (const std::uint32_t sm : {0U, 1U}) {
      clients.push_back(
          gpu.add_client({"reader",
                          {sim::SmIndex(sm)},
                          sim::memory::walk_source(walk),
                          memory.colored(sim::Address(0), walk.bytes, coloring, sm, pages)}));
    }
    EXPECT_TRUE(gpu.run_for(sim::Cycles(50000)));
    return gpu.statistics(clients[0]).load_sectors + gpu.statistics(clients[1]).load_sectors;
  };
  const std::uint64_t before = reads(false, PageSize::large);
  EXPECT_EQ(reads(true, PageSize::large), before);
  EXPECT_LT(reads(true, PageSize::small), before);
}

TEST(SimMemory, a_card_whose_tlbs_are_not_known_has_no_page_tables) {
  const gpu::Device device = gpu::find_device("v100").value();
  const sim::memory::Spec spec = sim::memory::make_spec(device, 5).value();
  SimMemory memory(device, spec, 5);
  EXPECT_TRUE(memory.plain(sim::Address(0), std::uint64_t{1} << 30U).paging.tables.empty());
}

TEST(SimMemory, chunks_of_a_colour_are_in_order_and_keep_their_place_within_a_line) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  const sim::memory::Spec spec = sim::memory::make_spec(device, 5).value();
  const auto coloring = choose_coloring(device, 2, {0xc4000}).value();
  SimMemory memory(device, spec, 5);
  const auto translation = memory.colored(sim::Address(), std::uint64_t{4} << 20U, coloring, 1);
  EXPECT_EQ(translation.chunk_shift, 14U);  // 16 KiB runs
  for (std::size_t i = 1; i < translation.chunks.size(); ++i) {
    EXPECT_EQ(translation.chunks[i].raw() % (1U << 14U), 0U);
    if (translation.chunks[i].raw() >> 21U == translation.chunks[i - 1].raw() >> 21U) {
      EXPECT_GT(translation.chunks[i], translation.chunks[i - 1]);
    }
  }
}

}  // namespace
}  // namespace demarc::study
