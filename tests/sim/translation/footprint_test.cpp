// Large data on many GPUs: memory goes by the pages that are touched, and finding work does not go
// through the work of others.
#include <gtest/gtest.h>
#include <malloc.h>

#include "tiny_application.hpp"
#include "translation/page_map.hpp"
#include "translation/small_machine.hpp"
#include "translation/system.hpp"

namespace demarc::sim::translation {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(TranslationPageMap, a_page_that_is_read_takes_no_memory_and_one_that_is_written_a_run) {
  constexpr std::uint32_t run = PageMap<int>::run_pages;
  PageMap<int> map(3 * run - 1, 7);
  EXPECT_EQ(map[PageNumber(3 * run - 2)], 7);
  EXPECT_EQ(map.runs_written(), 0U);
  map.at(PageNumber(3 * run - 2)) = 9;
  map.at(PageNumber(2 * run)) = 8;
  EXPECT_EQ(map.runs_written(), 1U);
  map.at(PageNumber(1)) = 5;
  EXPECT_EQ(map.runs_written(), 2U);
  EXPECT_EQ(map[PageNumber(3 * run - 2)], 9);
  EXPECT_EQ(map[PageNumber(2 * run)], 8);
  EXPECT_EQ(map[PageNumber(2 * run + 1)], 7) << "of a run that was written";
  EXPECT_EQ(map[PageNumber(run)], 7) << "of one that was not";
}

TEST(TranslationPageMap, goes_through_the_pages_of_written_runs_in_order) {
  constexpr std::uint32_t run = PageMap<int>::run_pages;
  PageMap<int> map(4 * run);
  map.at(PageNumber(3 * run + 2)) = 3;
  map.at(PageNumber(run)) = 1;
  std::vector<std::pair<std::uint32_t, int>> seen;
  map.each([&](PageNumber page, int value) { seen.emplace_back(page.raw(), value); });
  ASSERT_EQ(seen.size(), 2U * run);
  EXPECT_EQ(seen.front(), std::pair(run, 1));
  EXPECT_EQ(seen[run - 1], std::pair(2 * run - 1, 0));
  EXPECT_EQ(seen[run + 2], std::pair(3 * run + 2, 3));
}

TEST(TranslationDispatch, the_next_work_group_of_a_gpu_is_the_one_that_a_search_finds) {
  for (const std::uint32_t gpus : {1U, 2U, 3U, 7U}) {
    Settings settings;
    settings.gpus = gpus;
    for (const auto& [x, y] : {std::pair(1U, 1U), {5U, 1U}, {2U, 6U}, {7U, 3U}, {9U, 4U}}) {
      KernelShape shape;
      shape.groups_x = x;
      shape.groups_y = y;
      for (const Split split : {Split::roundrobin, Split::contiguous, Split::dim0}) {
        for (const GpuIndex gpu : indices<GpuIndex>(gpus)) {
          for (std::uint32_t from = 0; from <= shape.groups(); ++from) {
            std::uint32_t found = from;
            while (found < shape.groups() && gpu_of_group(settings, split, shape, found) != gpu)
              ++found;
            ASSERT_EQ(next_group_of(settings, split, shape, gpu, from), found)
                << gpus << " GPUs, " << x << " x " << y << ", " << to_string(split) << ", GPU "
                << gpu.raw() << " from " << from;
          }
        }
      }
    }
  }
}

// One line at either end of 64 GiB, which have 16 Mi pages of 4 KiB.
TEST(TranslationFootprint, of_64_gib_on_64_gpus_takes_the_memory_of_the_pages_touched) {
  constexpr std::uint32_t pages = 64 * gib / 4096;
  Settings settings;
  settings.gpus = 64;
  settings.cus = 1;
  settings.l2_bank_bytes = 16384;
  for (const Placement placement : {Placement::first_touch, Placement::first_walk,
                                    Placement::interleaved, Placement::contiguous}) {
    settings.placement = placement;
    const TinyApplication loads({{{load_pages({0, pages - 1})}}}, 64 * gib);
    const auto held = [] {
      const struct mallinfo2 now = mallinfo2();
      return now.uordblks + now.hblkhd;
    };
    const std::size_t before = held();
    System system(settings, Architecture::distributed, loads);
    const auto summary = system.run({});
    EXPECT_LT(held() - before, std::size_t{24} << 20U) << static_cast<int>(placement);
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->lines, 2U);
    EXPECT_EQ(summary->iommu_accesses, 2U);
    // The second page lies on the last GPU under both placements from the start.
    const bool touched = placement == Placement::first_touch || placement == Placement::first_walk;
    EXPECT_EQ(summary->remote_lines, touched ? 0U : 1U);
    EXPECT_EQ(summary->pages_owned[0], touched ? 2U : pages / 64);
  }
}

// Pages that lie somewhere from the start fill each GPU's frames in order.
TEST(TranslationFootprint, pages_from_the_start_are_shared_out_as_far_as_they_go) {
  Settings settings = one_megabyte();
  settings.gpus = 5;
  const TinyApplication load({{{load_pages({0})}}}, 13 * 4096);
  for (const auto& [placement, owned] :
       {std::pair(Placement::interleaved, std::vector<std::uint32_t>{3, 3, 3, 2, 2}),
        std::pair(Placement::contiguous, std::vector<std::uint32_t>{3, 3, 2, 3, 2})}) {
    settings.placement = placement;
    EXPECT_EQ(simulate(settings, Architecture::centralised, load)->pages_owned, owned);
  }
}

// Frames 0 and 8 of a GPU lie in one of its eight L2 banks, frames 0 and 4 in two.
TEST(TranslationFootprint, pages_dealt_out_from_the_start_follow_each_other_in_a_gpus_memory) {
  Settings settings = one_megabyte();
  settings.gpus = 2;
  settings.placement = Placement::interleaved;
  settings.l2_mshrs = 1;
  const auto cycles = [&](std::uint32_t second) {
    const TinyApplication loads({{{load_pages({0, second})}}}, 20 * 4096);
    return simulate(settings, Architecture::centralised, loads)->cycles;
  };
  EXPECT_GT(cycles(16), cycles(8) + 100_cycles);
}

TEST(TranslationFootprint, the_last_work_groups_of_64_gib_touch_lines_within_it) {
  Settings settings;
  ASSERT_TRUE(apply_setting(settings, "megabytes=65536"));
  for (const auto& info : application_table()) {
    const auto application = info.make(settings);
    const auto kernels = application->kernels();
    EXPECT_LT(application->bytes(), 70 * gib) << info.name;
    EXPECT_GT(application->bytes(), 63 * gib) << info.name;
    LineNumber last;
    for (std::uint32_t k = 0; k < kernels.size(); ++k) {
      MemoryInstruction one;
      for (std::uint32_t i = 0; application->instruction({k, kernels[k].groups() - 1, 0, i}, one);
           ++i) {
        for (std::uint32_t l = 0; l < one.lines; ++l) last = std::max(last, one.line[l]);
      }
    }
    EXPECT_LT(last.raw<std::uint64_t>() * line_bytes, application->bytes()) << info.name;
    EXPECT_GT(last.raw<std::uint64_t>() * line_bytes, application->bytes() / 2) << info.name;
  }
  EXPECT_EQ(apply_setting(settings, "megabytes=65537").error().message,
            "megabytes: 65537 is not within 1..65536");
}

}  // namespace
}  // namespace demarc::sim::translation
