// Tests the lines that applications touch, and that every simulated miss is answered.
#include "demarc/sim/translation/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

#include "demarc/base/json.hpp"
#include "demarc/sim/translation/study.hpp"
#include "translation/small_machine.hpp"

namespace demarc::sim::translation {
namespace {

struct LineCounts {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
};

LineCounts count_lines(const Application& application) {
  LineCounts counts;
  MemoryInstruction instruction;
  const auto kernels = application.kernels();
  for (std::uint32_t k = 0; k < kernels.size(); ++k) {
    for (std::uint32_t group = 0; group < kernels[k].groups(); ++group) {
      for (std::uint32_t wave = 0; wave < kernels[k].waves_per_group; ++wave) {
        for (std::uint32_t i = 0; application.instruction(
                 {.kernel = k, .group = group, .wave = wave, .index = i}, instruction);
             ++i) {
          (instruction.store ? counts.writes : counts.reads) += instruction.lines;
        }
      }
    }
  }
  return counts;
}

// The figures of the reference simulator's own counters.
TEST(TranslationApplications, relu_of_one_million_elements_reads_and_writes_65536_lines) {
  Settings settings;
  settings.megabytes = 8;
  const LineCounts counts = count_lines(**make_application("RL", settings));
  EXPECT_EQ(counts.reads, 65536U);
  EXPECT_EQ(counts.writes, 65536U);
}

TEST(TranslationApplications, kmeans_of_4096_points_and_two_iterations_reads_212992_lines) {
  Settings settings;
  settings.megabytes = 1;
  settings.iterations = 2;
  const LineCounts counts = count_lines(**make_application("KM", settings));
  EXPECT_EQ(counts.reads, 212992U);
  EXPECT_EQ(counts.writes, 8704U);
}

TEST(TranslationApplications, waves_touch_the_lines_per_wave_of_the_reference) {
  const Settings settings = one_megabyte();
  const auto per_wave = [&](std::string_view name) {
    const auto application = *make_application(name, settings);
    LineCounts counts = count_lines(*application);
    std::uint64_t waves = 0;
    for (const auto& kernel : application->kernels())
      waves += std::uint64_t{kernel.groups()} * kernel.waves_per_group;
    counts.reads /= waves;
    counts.writes /= waves;
    return counts;
  };
  EXPECT_EQ(per_wave("FIR").reads, 79U);
  EXPECT_EQ(per_wave("FIR").writes, 4U);
  EXPECT_EQ(per_wave("MT").reads, 64U);
  EXPECT_EQ(per_wave("MT").writes, 64U);
  EXPECT_EQ(per_wave("FFT").reads, 64U);
  EXPECT_EQ(per_wave("ST").reads, 90U + 36);
  EXPECT_EQ(per_wave("ST").writes, 80U);
  EXPECT_NEAR(static_cast<double>(per_wave("AES").reads), 916, 10);
  EXPECT_EQ(per_wave("AES").writes, 16U);
}

TEST(TranslationApplications, every_line_lies_within_the_footprint) {
  const Settings settings = one_megabyte();
  for (const auto& info : application_table()) {
    const auto application = info.make(settings);
    MemoryInstruction instruction;
    const auto kernels = application->kernels();
    for (std::uint32_t k = 0; k < kernels.size(); ++k) {
      for (std::uint32_t group = 0; group < kernels[k].groups(); ++group) {
        for (std::uint32_t i = 0; application->instruction({k, group, 0, i}, instruction); ++i) {
          ASSERT_GT(instruction.lines, 0U) << info.name;
          for (std::uint32_t l = 0; l < instruction.lines; ++l) {
            ASSERT_LT(instruction.line[l].raw<std::uint64_t>() * line_bytes, application->bytes())
                << info.name;
          }
        }
      }
    }
  }
}

TEST(Translation, pages_used_once_are_walked_for_once_centrally_and_twice_when_distributed) {
  Settings settings = one_megabyte();
  settings.gpus = 1;
  const Summary centralised = run_application(settings, Architecture::centralised, "RL");
  const Summary distributed = run_application(settings, Architecture::distributed, "RL");
  EXPECT_EQ(centralised.iommu_accesses, 256U) << "one per page";
  EXPECT_EQ(distributed.walks(), 512U) << "every page is walked for twice";
  EXPECT_GT(distributed.cycles, centralised.cycles);
}

TEST(Translation, the_oracle_never_walks_in_vain_and_never_misses_a_resident_page) {
  Settings settings = one_megabyte();
  settings.bypass_policy = BypassPolicy::oracle;
  for (const std::string_view name : {"KM", "ST", "FFT"}) {
    const Summary bypass = run_application(settings, Architecture::bypass, name);
    EXPECT_EQ(bypass.gmmu_hits, bypass.gmmu_walks) << name;
    EXPECT_EQ(bypass.gmmu_walks + bypass.gmmu_bypassed, bypass.l2_tlb.misses) << name;
  }
}

TEST(Translation, a_timeline_is_bounded_and_counts_what_the_summary_counts) {
  Settings settings = one_megabyte();
  const auto application = make_application("RL", settings);
  Timeline timeline;
  const auto summary = simulate(settings, Architecture::distributed, **application, {}, &timeline);
  ASSERT_TRUE(summary);
  EXPECT_LE(timeline.bins.size(), Timeline::max_bins);
  EXPECT_LT((timeline.bins.size() - 1) * timeline.bin_cycles, summary->cycles);
  TimelineBin sum;
  for (const TimelineBin& bin : timeline.bins) {
    sum.l2_misses += bin.l2_misses;
    sum.gmmu_walks += bin.gmmu_walks;
    sum.iommu_arrivals += bin.iommu_arrivals;
    sum.pages_placed += bin.pages_placed;
  }
  EXPECT_EQ(sum.l2_misses, summary->l2_tlb.misses);
  EXPECT_EQ(sum.gmmu_walks, summary->gmmu_walks);
  EXPECT_EQ(sum.iommu_arrivals, summary->iommu_accesses);
  EXPECT_EQ(sum.pages_placed, summary->first_touches);
}

TEST(Translation, results_do_not_depend_on_the_number_of_threads) {
  const Settings settings = one_megabyte();
  const std::vector<std::string> names{"RL", "KM", "ST", "MT"};
  const std::vector architectures{Architecture::centralised, Architecture::distributed};
  const auto serial = compare(settings, names, architectures, 1);
  const auto parallel = compare(settings, names, architectures, 4);
  EXPECT_EQ(to_json(*serial), to_json(*parallel));
}

TEST(Translation, a_bad_setting_is_refused_with_what_would_be_right) {
  Settings settings;
  EXPECT_EQ(apply_setting(settings, "gpus=65").error().message, "gpus: 65 is not within 1..64");
  EXPECT_EQ(apply_setting(settings, "topology=ring").error().message,
            "topology: 'ring' is not one of star|chain|single");
  EXPECT_TRUE(
      apply_setting(settings, "gpu=4").error().message.starts_with("there is no setting 'gpu'"));
  ASSERT_TRUE(apply_setting(settings, "page_bytes=5000"));
  EXPECT_EQ(validate(settings).error().message, "page_bytes: 5000 is not a power of two");
  settings.page_bytes = 4096;
  settings.coalesced_lanes = 48;
  EXPECT_EQ(validate(settings).error().message, "coalesced_lanes: 48 is not a power of two");
}

TEST(Translation, the_table_of_settings_reads_back_what_it_prints) {
  for (const auto& info : setting_table()) {
    Settings settings;
    EXPECT_TRUE(apply_setting(settings, fmt::format("{}={}", info.name, info.get(Settings{}))))
        << info.name;
    EXPECT_EQ(info.get(settings), info.get(Settings{})) << info.name;
  }
}

RC_GTEST_PROP(Translation, any_machine_finishes_and_answers_every_miss, ()) {
  Settings settings;
  settings.megabytes = 1;
  settings.iterations = 1;
  settings.gpus = *rc::gen::inRange(1U, 9U);
  settings.cus = *rc::gen::inRange(1U, 9U);
  settings.l1_tlb_mshrs = *rc::gen::inRange(1U, 5U);
  settings.l2_tlb_mshrs = *rc::gen::inRange(1U, 9U);
  settings.l2_tlb_ways = *rc::gen::inRange(1U, 5U);
  settings.gmmu_walkers = *rc::gen::inRange(1U, 9U);
  settings.page_bytes = 4096U << *rc::gen::inRange(0, 5);
  settings.topology = *rc::gen::element(Topology::star, Topology::chain);
  settings.first_touch =
      *rc::gen::element(FirstTouch::free, FirstTouch::copy, FirstTouch::protocol);
  settings.placement = *rc::gen::element(Placement::first_touch, Placement::first_walk,
                                         Placement::interleaved, Placement::contiguous);
  settings.remote = *rc::gen::weightedElement<Remote>({{3, Remote::lines}, {1, Remote::migration}});
  settings.migration_limit = *rc::gen::inRange(0U, 3U);
  settings.l1_mshrs = *rc::gen::inRange(1U, 5U);
  settings.split =
      *rc::gen::element(Split::native, Split::roundrobin, Split::contiguous, Split::dim0);
  settings.bypass_policy =
      *rc::gen::element(BypassPolicy::residency, BypassPolicy::epoch, BypassPolicy::oracle);
  const auto architecture =
      *rc::gen::element(Architecture::centralised, Architecture::distributed, Architecture::bypass);
  const auto name = *rc::gen::element<std::string>("RL", "MT", "FFT", "ST");
  const auto application = make_application(name, settings);
  const auto summary = simulate(settings, architecture, **application);
  RC_ASSERT(summary.has_value());
  // A move that overtakes an answer makes the GPU ask again.
  const std::uint64_t answered = summary->iommu_accesses + summary->gmmu_hits;
  const bool complete = settings.remote == Remote::migration ? answered >= summary->l2_tlb.misses
                                                             : answered == summary->l2_tlb.misses;
  RC_ASSERT(complete);
}

}  // namespace
}  // namespace demarc::sim::translation
