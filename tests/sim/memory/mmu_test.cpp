// Tests to the cycle what TLBs and page walks add to accesses, and what clients share of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t pages = 16;
constexpr PhysicalAddress table(0x100000);
// Beyond a hit of the last level: 3 cycles to the L2, port 1, L2 5, port 1.
constexpr std::uint64_t last_hit = 5;
constexpr std::uint64_t a_walk = last_hit + 10;

// A first level of one page for each SM, and two entries of four pages for all. A walk reads one
// sector.
Spec translated_memory() {
  Spec spec = small_memory();
  spec.l2 = {2, 64};
  spec.tlbs = {{.entries = 1, .page_bits = 0, .hit_cycles = {}, .per_sm = true},
               {.entries = 2, .page_bits = 2, .hit_cycles = Cycles(last_hit), .per_sm = false}};
  spec.walkers = 1;
  spec.walk_cycles = 3_cycles;
  return spec;
}

Translation small_pages(std::uint64_t count = pages) {
  Translation translation{Address(0), 12, {}};
  for (std::uint64_t i = 0; i < count; ++i) translation.chunks.emplace_back(i * page);
  translation.paging = {.page_shift = 12, .tables = {table}};
  return translation;
}

// A load of the second line of each page in turn, one after the other, past the L1.
std::unique_ptr<Source> loads_of(const std::vector<std::uint64_t>& visited) {
  std::vector<Step> steps;
  for (const std::uint64_t number : visited) {
    steps.push_back(access(StepKind::load, {number * page | other_set | 1U}, true));
    steps.back().past_l1 = true;
  }
  return launch_of({{steps}});
}

void warm_l2(Simulation& gpu) {
  for (std::uint64_t i = 0; i < pages; ++i) gpu.touch(PhysicalAddress(i * page | other_set));
  gpu.touch(table);
}

struct Ran {
  std::uint64_t cycles;
  std::uint64_t walks;
};
Ran ran(const Spec& spec, const std::vector<std::uint64_t>& visited,
        const Translation& translation = small_pages()) {
  Simulation gpu(spec);
  warm_l2(gpu);
  const auto client = gpu.add_client({"test", sms({0}), loads_of(visited), translation});
  EXPECT_TRUE(gpu.run_launches(client, 1));
  return {gpu.statistics(client).run_cycles[0].raw(), gpu.statistics(client).page_walks};
}

// Cycles that translation adds to the loads.
std::uint64_t added(const std::vector<std::uint64_t>& visited) {
  Spec without = translated_memory();
  without.tlbs.clear();
  return ran(translated_memory(), visited).cycles - ran(without, visited).cycles;
}

TEST(PageWalks, a_walk_takes_the_last_level_and_a_read_of_the_l2) {
  EXPECT_EQ(translated_memory().walk_latency(), Cycles(a_walk - last_hit));
  EXPECT_EQ(added({0}), a_walk);
}

TEST(PageWalks, entries_that_the_l2_lacks_come_from_dram) {
  Simulation gpu(translated_memory());
  for (std::uint64_t i = 0; i < pages; ++i) gpu.touch(PhysicalAddress(i * page | other_set));
  const auto client = gpu.add_client({"test", sms({0}), loads_of({0}), small_pages()});
  ASSERT_TRUE(gpu.run_launches(client, 1));
  EXPECT_EQ(gpu.statistics(client).run_cycles[0], Cycles(hit + a_walk + miss - hit));
  EXPECT_EQ(gpu.dram().read_sectors, 1U);
}

TEST(PageWalks, a_hit_adds_the_cycles_of_its_level) {
  EXPECT_EQ(added({0, 1}), a_walk + last_hit);
  EXPECT_EQ(added({0, 1, 1}), a_walk + last_hit);
  EXPECT_EQ(added({0, 1, 0}), a_walk + 2 * last_hit);
}

TEST(PageWalks, a_walk_fills_the_first_level_too) {
  EXPECT_EQ(added({0, 0}), a_walk);
}

TEST(PageWalks, an_entry_covers_as_many_pages_as_it_says) {
  EXPECT_EQ(added({0, 3}), a_walk + last_hit);
  EXPECT_EQ(added({0, 4}), 2 * a_walk);
  EXPECT_EQ(ran(translated_memory(), {0, 3, 4, 7}).walks, 2U);
}

TEST(PageWalks, the_least_recently_used_entry_goes_first) {
  EXPECT_EQ(added({0, 4, 8, 0}), 4 * a_walk);
  EXPECT_EQ(added({0, 4, 0, 8, 0}), 3 * a_walk + 2 * last_hit);
  EXPECT_EQ(added({0, 4, 0, 8, 4}), 4 * a_walk + last_hit);
}

TEST(PageWalks, memory_that_the_first_level_reaches_is_not_translated) {
  const Ran within = ran(translated_memory(), {0}, small_pages(1));
  EXPECT_EQ(within.cycles, hit);
  EXPECT_EQ(within.walks, 0U);
  EXPECT_EQ(ran(translated_memory(), {0}, small_pages(2)).cycles, hit + a_walk);
}

TEST(PageWalks, pages_of_the_usual_size_are_translated_beyond_the_last_level) {
  Translation usual = small_pages(8);
  usual.paging.usual = true;
  EXPECT_EQ(ran(translated_memory(), {0}, usual).cycles, hit);
  usual = small_pages(9);
  usual.paging.usual = true;
  EXPECT_EQ(ran(translated_memory(), {0}, usual).cycles, hit + a_walk);
}

TEST(PageWalks, memory_without_a_page_table_is_not_translated) {
  Translation translation = small_pages();
  translation.paging.tables.clear();
  EXPECT_EQ(ran(translated_memory(), {0, 4}, translation).walks, 0U);
}

TEST(PageWalks, accesses_to_the_same_entry_wait_for_one_walk) {
  const auto walks_of = [](std::initializer_list<std::uint64_t> words) {
    Simulation gpu(translated_memory());
    warm_l2(gpu);
    const auto client = gpu.add_client(
        {"test", sms({0}), launch_of({{{access(StepKind::load, words)}}}), small_pages()});
    EXPECT_TRUE(gpu.run_launches(client, 1));
    const ClientStatistics& counted = gpu.statistics(client);
    // Reads of the page table are not the client's.
    EXPECT_EQ(counted.l2_hit_sectors + counted.l2_miss_sectors, counted.load_sectors);
    return counted.page_walks;
  };
  EXPECT_EQ(walks_of({0x81, 0x1081, 0x3081}), 1U);
  EXPECT_EQ(walks_of({0x81, 0x1081, 0x4081}), 2U);
}

// The walk for page 0 ends at cycle 26; a load of page 1 begins at cycle 20.
TEST(PageWalks, an_access_that_joins_a_walk_at_its_end_takes_as_long_as_a_hit) {
  Step first = access(StepKind::load, {other_set | 1U});
  Step second = access(StepKind::load, {page | other_set | 1U});
  first.past_l1 = second.past_l1 = true;
  second.instructions = 5;
  Simulation gpu(translated_memory());
  warm_l2(gpu);
  const auto client =
      gpu.add_client({"test", sms({0}), launch_of({{{first, second}}}), small_pages()});
  ASSERT_TRUE(gpu.run_launches(client, 1));
  EXPECT_EQ(gpu.statistics(client).page_walks, 1U);
  EXPECT_EQ(gpu.statistics(client).run_cycles[0], Cycles(1 + 20 + hit + last_hit));
}

// Two clients on SMs of their own load a page each at the same time.
std::vector<std::uint64_t> times_of_two(const Spec& spec) {
  Simulation gpu(spec);
  warm_l2(gpu);
  std::vector<ClientIndex> clients;
  for (const std::uint32_t sm : {0U, 2U}) {
    clients.push_back(gpu.add_client({"test", sms({sm}), loads_of({0}), small_pages()}));
  }
  std::vector<std::uint64_t> times;
  for (const ClientIndex client : clients) {
    EXPECT_TRUE(gpu.run_launches(client, 1));
    EXPECT_EQ(gpu.statistics(client).page_walks, 1U);
    times.push_back(gpu.statistics(client).run_cycles[0].raw());
  }
  return times;
}

TEST(PageWalks, a_neighbours_walks_are_queued_in_front_of_ones_own) {
  Spec spec = translated_memory();
  const auto one = times_of_two(spec);
  spec.walkers = 2;
  const auto two = times_of_two(spec);
  EXPECT_EQ(one[0], hit + a_walk);
  EXPECT_EQ(two[0], hit + a_walk);
  EXPECT_EQ(one[1], hit + a_walk + a_walk - last_hit);  // the second walk follows the first
  EXPECT_EQ(two[1], hit + a_walk + 1);                  // one cycle later at the port
}

TEST(PageWalks, clients_share_the_last_level_and_not_the_pages_in_it) {
  Spec spec = translated_memory();
  spec.tlbs.back().entries = 1;
  Simulation gpu(spec);
  warm_l2(gpu);
  const auto first = gpu.add_client({"a", sms({0}), loads_of({0}), small_pages()});
  ASSERT_TRUE(gpu.run_launches(first, 3));
  EXPECT_EQ(gpu.statistics(first).page_walks, 1U);
  const auto second = gpu.add_client({"b", sms({2}), loads_of({0, 1}), small_pages()});
  ASSERT_TRUE(gpu.run_launches(second, 1));
  EXPECT_EQ(gpu.statistics(second).page_walks, 1U);
}

TEST(PageWalks, with_a_neighbour_of_small_pages_those_of_large_pages_are_translated_too) {
  Translation large = small_pages();
  large.paging.page_shift = 16;
  for (const char* clients : {"L", "Ls", "sL"}) {
    Simulation gpu(translated_memory());
    warm_l2(gpu);
    ClientIndex client;
    for (const char one : std::string(clients)) {
      if (one == 's') gpu.add_client({"small", sms({2}), loads_of({0}), small_pages()});
      if (one == 'L') client = gpu.add_client({"large", sms({0}), loads_of({0, 15}), large});
    }
    ASSERT_TRUE(gpu.run_launches(client, 1));
    EXPECT_EQ(gpu.statistics(client).page_walks, std::string(clients) == "L" ? 0U : 1U) << clients;
  }
}

TEST(PageWalks, each_walk_reads_the_entries_of_its_pages) {
  Spec spec = translated_memory();
  spec.table_entry_bytes = 16;  // 64 bytes for four pages: two sectors
  Simulation gpu(spec);
  for (std::uint64_t i = 0; i < pages; ++i) gpu.touch(PhysicalAddress(i * page | other_set));
  const auto client = gpu.add_client({"test", sms({0}), loads_of({0, 4, 8}), small_pages()});
  ASSERT_TRUE(gpu.run_launches(client, 1));
  EXPECT_EQ(gpu.dram().read_sectors, 6U);  // halves of one line, and half of the next one
}

TEST(PageWalks, a_table_goes_on_in_its_next_piece) {
  Spec spec = translated_memory();
  spec.table_entry_bytes = 32;
  Translation translation = small_pages();
  translation.chunks.assign(65536 + 4, PhysicalAddress(0));
  translation.paging.tables = {table, PhysicalAddress(0x200000)};
  Simulation gpu(spec);
  gpu.touch(PhysicalAddress(other_set));
  gpu.touch(PhysicalAddress(0x200000));
  const auto client = gpu.add_client({"test", sms({0}), loads_of({65536}), translation});
  ASSERT_TRUE(gpu.run_launches(client, 1));
  EXPECT_EQ(gpu.dram().read_sectors, 0U);
}

// Cycles per load that translation adds to the second pass over pages of 2 MiB, one page of each
// entry after the other, as the probe goes through them. All data is one line of the L2.
double added_per_load(const std::string& card, std::uint64_t count) {
  constexpr std::uint64_t group = 16;
  std::vector<Step> steps;
  for (std::uint64_t within = 0; within < group; ++within) {
    for (std::uint64_t first = 0; first < count; first += group) {
      steps.push_back(access(StepKind::load, {((first + within) << 21U) | 1U}, true));
      steps.back().past_l1 = true;
    }
  }
  Translation translation{Address(0), 21, {}};
  translation.chunks.assign(count, PhysicalAddress(0));
  std::vector<double> cycles;
  for (const bool translated : {true, false}) {
    if (translated) translation.paging = {.page_shift = 21, .tables = {table}};
    if (!translated) translation.paging = {};
    Simulation gpu(make_spec(gpu::find_device(card).value()).value());
    const auto client = gpu.add_client({"chase", sms({5}), launch_of({{steps}}), translation});
    EXPECT_TRUE(gpu.run_launches(client, 2));
    cycles.push_back(static_cast<double>(gpu.statistics(client).kernel_cycles[1].raw()));
  }
  return (cycles[0] - cycles[1]) / static_cast<double>(count);
}

// docs/measurements/probe.md: 10 cycles beyond 128 pages, 77 (an H200: 89) more beyond 32768.
TEST(PageWalks, a_chase_over_pages_costs_on_simulated_cards_what_the_probe_measured) {
  for (const auto& [card, walk] : {std::pair{"h100-sxm", 77}, std::pair{"h200", 89}}) {
    EXPECT_EQ(added_per_load(card, 128), 0) << card;
    EXPECT_NEAR(added_per_load(card, 1024), 10, 0.1) << card;
    EXPECT_NEAR(added_per_load(card, 32768), 10, 0.1) << card;
    EXPECT_NEAR(added_per_load(card, 33024), 10 + walk, 1) << card;
  }
}

TEST(PageWalks, a_stuck_simulation_says_what_waits_for_walks) {
  Simulation gpu(translated_memory());
  gpu.add_client({"a", sms({0}), loads_of({0}), small_pages()});
  gpu.add_client({"b", sms({2}), loads_of({0}), small_pages()});
  ASSERT_TRUE(gpu.run_for(12_cycles));
  EXPECT_THAT(gpu.waiting(), HasSubstr("on the way to: 2 page walkers\n"));
  ASSERT_TRUE(gpu.run_for(20_cycles));
  EXPECT_THAT(gpu.waiting(),
              HasSubstr("page walks: 1 of 1 walkers, 1 walks wait for one; 2 accesses wait\n"));
  ASSERT_TRUE(gpu.run_for(200_cycles));
  EXPECT_THAT(gpu.waiting(), Not(HasSubstr("page walks")));
}

}  // namespace
}  // namespace demarc::sim::memory::test
