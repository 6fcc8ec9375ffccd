// The whole way of a translation, cycle by cycle, in a system small enough to compute by hand. Each
// moment is exact, so that the cycle before was not ready. What the constants are made of:
//   67   a wave placed at 0 starts at 1; its first line leaves the memory pipeline 66 cycles later
//   283  a flit over three links and two switches: 1 + 140 + 1 + 140 + 1
//   11   look-up in the L2 TLB and the way to what is asked next
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recording.hpp"

namespace demarc::sim::translation {
namespace {

using testing::HasSubstr;

TEST(TranslationPath, a_centralised_miss_goes_over_the_link_to_the_iommu_and_back) {
  const TinyApplication load({{{load_pages({0})}}}, page_bytes);
  const Recording r = record(one_gpu(), Architecture::centralised, load);
  EXPECT_EQ(r.of(Moment::l2_missed, 0), Cyclelist{67 + 1});
  EXPECT_EQ(r.of(Moment::iommu_asked, 0), Cyclelist{68 + 11 + 283});
  EXPECT_EQ(r.of(Moment::iommu_ended, 0), Cyclelist{362 + 100});
  EXPECT_EQ(r.of(Moment::placed, 0), Cyclelist{462});
  EXPECT_EQ(r.of(Moment::l2_filled, 0), Cyclelist{462 + 283});
  EXPECT_EQ(r.of(Moment::l1_filled, 0), Cyclelist{745 + 1});
  // One cycle to the L1, one to the L2, whose miss takes 10 and the DRAM 100.
  EXPECT_EQ(r.cycles(), 746U + 1 + 1 + 10 + 100);
}

// The first kernel ends at 858, as above. The second starts 1600 cycles later and finds the page in
// its TLB, but the line in the L2 alone: from the L1 it would take 60 cycles, not 1 + 10.
TEST(TranslationPath, between_kernels_the_l1_cache_is_emptied_and_the_tlbs_are_not) {
  Settings settings = one_gpu();
  settings.cus = 1;
  const TinyApplication load({{{load_pages({0})}}}, page_bytes, 2);
  const Recording r = record(settings, Architecture::centralised, load);
  EXPECT_EQ(r.ended(0), (Cyclelist{858, 858 + 1600 + 67 + 1 + 1 + 10}));
  EXPECT_EQ(r.summary.l1_tlb.misses, 1U);
  EXPECT_EQ(r.summary.l1_tlb.hits, 1U);
  EXPECT_EQ(r.summary.l2_tlb.lookups(), 1U);
}

// The same line twice in one kernel: the second time it comes from the L1.
TEST(TranslationPath, within_a_kernel_a_line_stays_in_the_l1_cache) {
  const TinyApplication loads({{{load_pages({0}), load_pages({0})}}}, page_bytes);
  const Recording r = record(one_gpu(), Architecture::centralised, loads);
  EXPECT_EQ(r.ended(0), (Cyclelist{858, 858 + 66 + 1 + 60}));
}

// The same, where a line that was missed takes as long to leave the L1 as one that was hit: the
// load from DRAM, the one from the L1 behind it, and after 1600 cycles the one from the L2.
TEST(TranslationPath, a_line_that_the_l1_missed_may_take_as_long_to_leave_it_as_a_hit) {
  Settings settings = one_gpu();
  settings.cus = 1;
  settings.l1_fill_latency = settings.l1_latency;
  const TinyApplication loads({{{load_pages({0}), load_pages({0})}}}, page_bytes, 2);
  const Recording r = record(settings, Architecture::centralised, loads);
  const std::uint64_t first = 858 + 60;
  const std::uint64_t hit = first + 66 + 1 + 60;
  const std::uint64_t from_l2 = hit + 1600 + 67 + 1 + 1 + 10 + 60;
  EXPECT_EQ(r.ended(0), (Cyclelist{first, hit, from_l2, from_l2 + 66 + 1 + 60}));
}

// A second load of the line, while the first is under way, ends with it.
TEST(TranslationPath, a_load_that_finds_its_line_on_the_way_out_of_the_l1_waits_for_it) {
  Settings settings = one_gpu();
  settings.l1_fill_latency = 60;
  MemoryInstruction again = load_pages({0});
  again.wait = false;
  const TinyApplication loads({{{load_pages({0}), again}}}, page_bytes);
  EXPECT_EQ(record(settings, Architecture::centralised, loads).ended(0),
            (Cyclelist{858 + 60, 858 + 60}));
}

// A miss register is free when the line has come, not when the wave has it.
TEST(TranslationPath, a_line_on_its_way_out_of_the_l1_holds_no_miss_register) {
  Settings settings = one_gpu();
  settings.l1_mshrs = 1;
  settings.l1_fill_latency = 60;
  MemoryInstruction two;
  two.lines = 2;
  two.line[1] = LineNumber(1);
  const TinyApplication loads({{{two}}}, page_bytes);
  // 110 cycles each for the L2 and the DRAM.
  EXPECT_EQ(record(settings, Architecture::centralised, loads).cycles(), 858U + 110 + 60);
}

TEST(TranslationPath, a_gmmu_that_misses_costs_its_walk_and_nothing_else) {
  const TinyApplication load({{{load_pages({0})}}}, page_bytes);
  const Recording r = record(one_gpu(), Architecture::distributed, load);
  EXPECT_EQ(r.of(Moment::gmmu_began, 0), Cyclelist{68 + 11});
  EXPECT_EQ(r.of(Moment::gmmu_ended, 0), Cyclelist{79 + 100});
  EXPECT_EQ(r.of(Moment::iommu_asked, 0), Cyclelist{179 + 283});
  EXPECT_EQ(r.of(Moment::l2_filled, 0), Cyclelist{462 + 100 + 283});
  EXPECT_EQ(r.cycles(), 858U + 100);
}

TEST(TranslationPath, a_gmmu_that_hits_answers_after_its_walk) {
  // TLBs of one entry: page 1 takes the place of page 0, which the GMMU then knows.
  Settings settings = one_gpu();
  settings.l1_tlb_ways = settings.l2_tlb_ways = settings.l2_tlb_sets = 1;
  const TinyApplication loads({{{load_pages({0}), load_pages({1}), load_pages({0})}}},
                              2 * page_bytes);
  const Recording r = record(settings, Architecture::distributed, loads);
  const auto missed = r.of(Moment::l2_missed, 0);
  ASSERT_EQ(missed.size(), 2U);
  EXPECT_EQ(r.of(Moment::gmmu_ended, 0)[1], missed[1] + 11 + 100);
  EXPECT_EQ(r.of(Moment::l2_filled, 0)[1], missed[1] + 11 + 100);
  EXPECT_EQ(r.summary.iommu_accesses, 2U);
  EXPECT_EQ(r.summary.gmmu_hits, 1U);
}

TEST(TranslationPath, a_gmmu_that_is_filled_eagerly_knows_pages_that_lie_there_from_the_start) {
  Settings settings = two_gpus();
  settings.gmmu_fill = GmmuFill::eager;
  const TinyApplication own({{{load_pages({0})}}, {{load_pages({1})}}}, 2 * page_bytes);
  const Recording at_home = record(settings, Architecture::distributed, own);
  EXPECT_EQ(at_home.of(Moment::l2_filled, 0), Cyclelist{79 + 100});
  EXPECT_EQ(at_home.summary.iommu_accesses, 0U);
  const TinyApplication others({{{load_pages({1})}}, {{load_pages({0})}}}, 2 * page_bytes);
  EXPECT_EQ(record(settings, Architecture::distributed, others).summary.iommu_accesses, 2U);
}

TEST(TranslationPath, the_oracle_of_the_bypass_walks_locally_only_for_pages_that_are_there) {
  Settings settings = one_gpu();
  settings.l1_tlb_ways = settings.l2_tlb_ways = settings.l2_tlb_sets = 1;
  settings.bypass_policy = BypassPolicy::oracle;
  const TinyApplication loads({{{load_pages({0}), load_pages({1}), load_pages({0})}}},
                              2 * page_bytes);
  const Recording r = record(settings, Architecture::bypass, loads);
  EXPECT_EQ(r.of(Moment::iommu_asked, 0), Cyclelist{362}) << "as centralised";
  EXPECT_EQ(r.summary.gmmu_walks, 1U);
  EXPECT_EQ(r.summary.gmmu_bypassed, 2U);
}

TEST(TranslationPath, a_hit_in_both_tlb_and_l1_takes_the_latency_of_the_l1) {
  const TinyApplication loads({{{load_pages({0}), load_pages({0})}}}, page_bytes);
  const Recording r = record(one_gpu(), Architecture::centralised, loads);
  // The second load is issued at 858, when the first has returned.
  EXPECT_EQ(r.ended(0), (Cyclelist{858, 858 + 66 + 1 + 60}));
}

TEST(TranslationPath, a_miss_under_a_miss_joins_it_and_is_answered_with_it) {
  const TinyApplication two_waves({{{load_pages({0})}, {load_pages({0})}}}, page_bytes);
  const Recording same_cu = record(one_gpu(), Architecture::centralised, two_waves);
  EXPECT_EQ(same_cu.summary.l1_tlb.joined, 1U);
  EXPECT_EQ(same_cu.summary.l2_tlb.lookups(), 1U);
  const TinyApplication two_groups({{{load_pages({0})}}, {{load_pages({0})}}}, page_bytes);
  const Recording two_cus = record(one_gpu(), Architecture::centralised, two_groups);
  EXPECT_EQ(two_cus.summary.l2_tlb.joined, 1U);
  EXPECT_EQ(two_cus.of(Moment::l1_filled, 0), (Cyclelist{746, 746}));
}

TEST(TranslationPath, a_fill_answers_as_many_cus_a_cycle_as_the_l2_tlb_has_ports) {
  Settings settings = one_gpu();
  settings.l2_tlb_ports = 1;
  const TinyApplication groups({{{load_pages({0})}}, {{load_pages({0})}}, {{load_pages({0})}}},
                               page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  EXPECT_EQ(r.of(Moment::l1_filled, 0), (Cyclelist{746, 747, 748}));
}

TEST(TranslationPath, a_second_page_waits_for_the_only_miss_register_of_the_l1_tlb) {
  Settings settings = one_gpu();
  settings.l1_tlb_mshrs = 1;
  const TinyApplication load({{{load_pages({0, 1})}}}, 2 * page_bytes);
  const Recording full = record(settings, Architecture::centralised, load);
  EXPECT_EQ(full.of(Moment::l2_missed, 1), Cyclelist{746 + 1 + 1});
  settings.l1_tlb_mshrs = 2;
  const Recording room = record(settings, Architecture::centralised, load);
  EXPECT_EQ(room.of(Moment::l2_missed, 1), Cyclelist{68 + 1}) << "its line comes a cycle later";
}

TEST(TranslationPath, a_second_page_waits_for_the_only_miss_register_of_the_l2_tlb) {
  Settings settings = one_gpu();
  settings.l2_tlb_mshrs = 1;
  const TinyApplication groups({{{load_pages({0})}}, {{load_pages({1})}}}, 2 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  EXPECT_EQ(r.of(Moment::l2_filled, 0), Cyclelist{745});
  EXPECT_EQ(r.of(Moment::l2_missed, 1), Cyclelist{746});
}

TEST(TranslationPath, the_queue_of_the_iommu_is_served_in_order_by_its_only_walker) {
  Settings settings = one_gpu();
  settings.iommu_walkers = 1;
  const TinyApplication load({{{load_pages({0, 1, 2})}}}, 3 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, load);
  EXPECT_EQ(r.of(Moment::iommu_asked, 1), Cyclelist{363});
  EXPECT_EQ(r.of(Moment::iommu_ended, 0), Cyclelist{462});
  EXPECT_EQ(r.of(Moment::iommu_ended, 1), Cyclelist{562});
  EXPECT_EQ(r.of(Moment::iommu_ended, 2), Cyclelist{662});
  EXPECT_EQ(r.summary.iommu_queue_wait, Cycles(99 + 198));
}

TEST(TranslationPath, a_page_that_is_copied_at_first_touch_arrives_with_its_translation) {
  Settings settings = one_gpu();
  settings.first_touch = FirstTouch::copy;
  const TinyApplication load({{{load_pages({0})}}}, page_bytes);
  const Recording r = record(settings, Architecture::centralised, load);
  // 16 pieces of 20 flits, each link passing the page on when it has all of it.
  EXPECT_EQ(r.of(Moment::l2_filled, 0), Cyclelist{462 + 3 * 320 + 2 * 140});
}

TEST(TranslationPath, a_remote_line_travels_to_its_owner_and_back) {
  const TinyApplication groups({{{load_pages({0})}}, {{load_pages({0})}}}, 2 * page_bytes);
  const Recording r = record(two_gpus(), Architecture::centralised, groups);
  // GPU 1 asks a cycle after GPU 0, whose flit is on the link of their switch; its walk starts a
  // cycle later too, and so does the answer.
  const auto filled = r.of(Moment::l1_filled, 0);
  EXPECT_EQ(filled, (Cyclelist{746, 747}));
  // Request 1 + 140 + 1; the line is in the L2 from GPU 0's own load, 10; reply 5 + 140 + 5.
  const std::uint64_t asked = 747 + 1 + 1;
  EXPECT_EQ(r.cycles(), asked + 142 + 10 + 150);
  EXPECT_EQ(r.summary.remote_lines, 1U);
}

// GPU 1's second load finds the line that its first has brought to the L1.
TEST(TranslationPath, a_remote_line_that_the_l1_keeps_leaves_it_as_late_as_one_of_its_own) {
  Settings settings = two_gpus();
  settings.remote_in_l1 = 1;
  settings.l1_fill_latency = 60;
  const TinyApplication groups({{{load_pages({0})}}, {{load_pages({0}), load_pages({0})}}},
                               2 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  EXPECT_EQ(r.cycles(), 749U + 142 + 10 + 150 + 60 + 66 + 1 + 60);
  EXPECT_EQ(r.summary.remote_lines, 1U);
}

// The line comes at 1051; a load that finds it in the L1 at 1069 gets it no sooner than the first.
TEST(TranslationPath, a_remote_line_is_there_for_all_when_it_is_there_for_the_first) {
  Settings settings = two_gpus();
  settings.remote_in_l1 = 1;
  settings.l1_fill_latency = 100;
  MemoryInstruction later = load_pages({0});
  later.wait = false;
  later.alu = 250;
  const TinyApplication groups({{{load_pages({0})}}, {{load_pages({0}), later}}}, 2 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  EXPECT_EQ(r.ended(1), (Cyclelist{1051 + 100, 1051 + 100}));
  EXPECT_EQ(r.summary.remote_lines, 1U);
}

TEST(TranslationPath, a_second_line_waits_for_the_only_miss_register_of_the_l1) {
  Settings settings = one_gpu();
  settings.l1_mshrs = 1;
  MemoryInstruction two_lines = load_pages({0});
  two_lines.line[two_lines.lines++] = LineNumber(1);
  const TinyApplication load({{{two_lines}}}, page_bytes);
  EXPECT_EQ(record(settings, Architecture::centralised, load).cycles(), 858U + 110);
  settings.l1_mshrs = 2;
  EXPECT_EQ(record(settings, Architecture::centralised, load).cycles(), 858U + 1)
      << "the bank takes one a cycle";
}

// GPU 1 asks for page 0, which lies on GPU 0.
TEST(TranslationMigration, every_step_of_the_protocol_takes_its_cycles) {
  Settings settings = two_gpus();
  settings.remote = Remote::migration;
  settings.flush_cycles = 700;
  const TinyApplication groups({{{}}, {{load_pages({0})}}}, 2 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  EXPECT_EQ(r.of(Moment::iommu_ended, 0), Cyclelist{462});
  EXPECT_EQ(r.of(Moment::move_began, 0), Cyclelist{462});
  // Two flits leave the root one after the other, and so do the answers.
  EXPECT_EQ(r.of(Moment::drained, 0), Cyclelist{462 + 283 + 1 + 283});
  EXPECT_EQ(r.of(Moment::shot_down, 0), Cyclelist{1029 + 283 + 700 + 283});
  // The new owner is told (283), asks for 16 pieces (142 to the switch and on), each read from DRAM
  // (100), 20 flits a piece over the first link, the last one over the second too (140 + 20),
  // written (100), reported (283).
  EXPECT_EQ(r.of(Moment::page_copied, 0),
            Cyclelist{2295 + 283 + 142 + 100 + 16 * 20 + 140 + 20 + 100 + 283});
  EXPECT_EQ(r.of(Moment::owner_resumed, 0), Cyclelist{3683 + 283 + 283});
  // Behind the two flits that release the links.
  EXPECT_EQ(r.of(Moment::l2_filled, 0), Cyclelist{4249 + 283 + 2});
  EXPECT_EQ(r.summary.migrations, 1U);
  EXPECT_EQ(r.summary.remote_lines, 0U);
  EXPECT_EQ(r.summary.pages_owned, (std::vector<std::uint32_t>{1, 2}));
}

TEST(TranslationMigration, the_distributed_architecture_pays_for_taking_out_and_entering) {
  Settings settings = two_gpus();
  settings.remote = Remote::migration;
  const TinyApplication groups({{{}}, {{load_pages({0})}}}, 2 * page_bytes);
  const auto of = [&](Architecture architecture) { return record(settings, architecture, groups); };
  const std::uint64_t centralised = of(Architecture::centralised).cycles();
  const Recording r = of(Architecture::distributed);
  const std::uint64_t walk = settings.gmmu_latency;
  EXPECT_EQ(r.cycles(), centralised + 3 * walk) << "its walk, the removal, the entry";
}

TEST(TranslationMigration, with_the_default_flush_a_move_takes_the_4800_cycles_of_the_reference) {
  Settings settings = two_gpus();
  settings.remote = Remote::migration;
  const TinyApplication groups({{{}}, {{load_pages({0})}}}, 2 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  const std::uint64_t took = r.of(Moment::l2_filled, 0).at(0) - r.of(Moment::move_began, 0).at(0);
  EXPECT_GT(took, 4700U);
  EXPECT_LT(took, 4900U);
}

TEST(TranslationMigration, the_former_owner_stands_still_until_it_is_resumed) {
  Settings settings = two_gpus();
  settings.remote = Remote::migration;
  settings.flush_cycles = 700;
  // GPU 0 loads from a page of its own, again and again.
  std::vector<MemoryInstruction> own(60, load_pages({1}));
  settings.placement = Placement::interleaved;  // pages 0 and 2 on GPU 0
  for (auto& instruction : own) instruction.line[0] = LineNumber(2 * 64);
  const TinyApplication groups({{own}, {{load_pages({0})}}}, 4 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  const std::uint64_t shot = 1029 + 283;  // the request to shoot down reaches GPU 0
  const std::uint64_t resumed = r.of(Moment::owner_resumed, 0).at(0) - 283;
  bool before = false;
  bool after = false;
  for (const Happening& told : r.told) {
    if (told.moment != Moment::access_ended || told.gpu != GpuIndex(0)) continue;
    const std::uint64_t cycle = told.cycle.raw();
    EXPECT_FALSE(cycle > shot + 10 && cycle < resumed) << cycle;
    before = before || cycle <= shot;
    after = after || cycle >= resumed;
  }
  EXPECT_TRUE(before);
  EXPECT_TRUE(after);
}

TEST(TranslationMigration, pages_move_one_at_a_time_in_the_whole_system) {
  Settings settings = two_gpus();
  settings.remote = Remote::migration;
  settings.placement = Placement::interleaved;
  const TinyApplication groups({{{load_pages({1})}}, {{load_pages({0})}}}, 2 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  std::vector<Cycles> began;
  std::vector<Cycles> ended;
  for (const Happening& told : r.told) {
    if (told.moment == Moment::move_began) began.push_back(told.cycle);
    if (told.moment == Moment::owner_resumed) ended.push_back(told.cycle);
  }
  ASSERT_EQ(began.size(), 2U);
  EXPECT_EQ(began[1], ended[0]);
}

TEST(TranslationMigration, after_its_limit_of_moves_a_page_is_used_by_lines) {
  Settings settings = two_gpus();
  settings.remote = Remote::migration;
  settings.migration_limit = 1;
  // GPU 1 takes page 0; GPU 0 then reads it where it lies.
  std::vector<MemoryInstruction> late(3, load_pages({0}));
  late[0].alu = 3000;
  const TinyApplication groups({{late}, {{load_pages({0})}}}, 2 * page_bytes);
  const Recording r = record(settings, Architecture::centralised, groups);
  EXPECT_EQ(r.summary.migrations, 1U);
  EXPECT_EQ(r.summary.remote_lines, 3U);
}

TEST(TranslationStuck, every_queue_is_shown_when_nothing_can_happen_any_more) {
  // The second wave ends without coming to the barrier.
  MemoryInstruction barrier;
  barrier.barrier = true;
  const TinyApplication groups({{{load_pages({0}), barrier}, {load_pages({1})}}}, 2 * page_bytes);
  const auto summary = simulate(one_gpu(), Architecture::distributed, groups);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().kind, ErrorKind::check_failed);
  for (const char* part :
       {"tiny (distributed): the simulation is stuck at cycle", "IOMMU: 0 queued, 0 walking",
        "links busy for 0 more cycles, 0 messages on the way",
        "page moves: 0 queued, none under way",
        "GPU[0].L2TLB: 0 queued, 0 pages pending, blocked false",
        "GPU[0].GMMU: 0 queued, 0 walking", "GPU[0].L2: 0 misses under way",
        "GPU[0].RDMA: 0 remote accesses in flight, 0 held back",
        "GPU[0].dispatcher: group 1, stalled false, paused false, 0 events deferred",
        "GPU[0].CU[0]: 2 waves, 0 lines in flight", "0 lines waiting for a miss register",
        "work-group 0 of kernel 0: 1 of 2 waves stand at a barrier"}) {
    EXPECT_THAT(summary.error().message, HasSubstr(part));
  }
}

TEST(TranslationStuck, a_work_group_that_fits_no_cu_is_refused_with_its_size) {
  TinyApplication groups({{{load_pages({0})}}}, page_bytes);
  groups.shape().waves_per_group = 50;
  const auto summary = simulate(one_gpu(), Architecture::centralised, groups);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(
      summary.error().message,
      HasSubstr("a work-group of kernel 0 (50 waves of 8 vector registers per lane, 0 bytes "
                "of LDS) does not fit a CU (waves_per_cu=40"));
}

TEST(TranslationPlacement, pages_used_by_several_gpus_are_shared_out_and_others_stay_private) {
  // Eight work-groups in turn on four GPUs: all touch pages 0 to 63, group g also page 64 + g.
  std::vector<TinyApplication::Waves> groups;
  for (std::uint32_t g = 0; g < 8; ++g) {
    MemoryInstruction shared;
    for (std::uint32_t page = 0; page < 64; ++page)
      shared.line[shared.lines++] = LineNumber(page * 64);
    groups.push_back({{shared, load_pages({64 + g})}});
  }
  Settings settings;
  const auto homes =
      homes_under(settings, Split::roundrobin, TinyApplication(groups, 80 * page_bytes));
  std::vector<int> shares(4, 0);
  for (const PageNumber page : indices<PageNumber>(64)) ++shares.at(homes[page].raw());
  for (const int share : shares) EXPECT_GT(share, 8);
  for (std::uint32_t g = 0; g < 8; ++g) EXPECT_EQ(homes[PageNumber(64 + g)], GpuIndex(g % 4));
  EXPECT_EQ(homes[PageNumber(79)], untouched);
}

// 40 work-groups of one wave fill a CU; each further one begins where one has ended. The waves have
// 1000 and more instructions of four cycles, and four SIMDs run them.
TEST(WorkGroups, of_one_wave_use_all_simds_of_a_cu) {
  Settings settings = one_gpu();
  settings.cus = 1;
  settings.waves_per_cu = 40;
  std::vector<TinyApplication::Waves> groups;
  std::uint64_t instructions = 0;
  for (std::uint32_t group = 0; group < 80; ++group) {
    MemoryInstruction work;
    work.alu = 1000 + group;
    instructions += work.alu;
    groups.push_back({{work}});
  }
  const TinyApplication waves(groups, page_bytes);
  const std::uint64_t cycles = record(settings, Architecture::centralised, waves).cycles();
  EXPECT_GE(cycles, instructions * 4 / 4);
  EXPECT_LE(cycles, instructions * 4 / 4 + 1100 * 4);
}

}  // namespace
}  // namespace demarc::sim::translation
