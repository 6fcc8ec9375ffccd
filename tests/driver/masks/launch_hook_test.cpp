// What the launch callback counts, refuses and reports, on the stand-in.
#include "demarc/driver/launch_hook.hpp"

#include <thread>

#include "demarc/driver/driver_call.hpp"
#include "hook_fixture.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Hook, under_a_ceiling_masks_of_every_level_are_cut_down_to_it) {
  set_ceiling({2, 3, 4});
  EXPECT_EQ(tpcs_used(), (gpu::TpcSet{2, 3, 4}));
  const auto process = ProcessMask::set(card, {0, 1, 2, 3});
  EXPECT_EQ(tpcs_used(), (gpu::TpcSet{2, 3}));
  const auto of_stream = StreamMask::set(card, stream->handle(), {3, 4, 5});
  EXPECT_EQ(tpcs_used(), (gpu::TpcSet{3, 4}));
  const auto next = NextMask::set(card, {4, 11});
  EXPECT_EQ(tpcs_used(), gpu::TpcSet{4});
  EXPECT_EQ(tpcs_used(), (gpu::TpcSet{3, 4}));
  EXPECT_EQ(reported, "");
  EXPECT_EQ(counters.empty_masks, 0U);
}

// As libsmctrl writes them: into the driver's stream object, past the hook.
TEST_F(Hook, under_a_ceiling_the_drivers_mask_of_a_stream_is_cut_down_too) {
  fake::FakeConfig shy = fake::small_gpu();
  shy.streams = fake::Shows::nothing;
  open(shy);
  ASSERT_FALSE((*card->stream_masks())->uses_hook());
  const auto of_stream = StreamMask::set(card, stream->handle(), {3, 4, 5});
  EXPECT_EQ(tpcs_used(), (gpu::TpcSet{3, 4, 5}));
  set_ceiling({2, 3, 4});
  EXPECT_EQ(tpcs_used(), (gpu::TpcSet{3, 4}));
  EXPECT_EQ(reported, "");
}

TEST_F(Hook, the_drivers_mask_of_a_stream_overrides_the_processs) {
  fake::FakeConfig shy = fake::small_gpu();
  shy.streams = fake::Shows::nothing;
  open(shy);
  const auto process = ProcessMask::set(card, {1});
  const auto of_stream = StreamMask::set(card, stream->handle(), {3, 4});
  EXPECT_EQ(tpcs_used(), (gpu::TpcSet{3, 4}));
}

TEST_F(Hook, a_mask_that_leaves_nothing_of_the_ceiling_is_reported_and_stays_inside) {
  set_ceiling({2});
  const auto of_stream = StreamMask::set(card, stream->handle(), {7});
  ASSERT_TRUE(of_stream) << of_stream.error().message;
  reported.clear();
  counters.empty_masks = 0;
  EXPECT_EQ(tpcs_used(), gpu::TpcSet{2});
  EXPECT_EQ(counters.empty_masks, 1U);
  EXPECT_THAT(reported, HasSubstr("without any TPC of the partition"));
}

TEST_F(Hook, a_ceiling_that_is_taken_away_binds_nobody) {
  set_ceiling({2});
  hook->use_ceiling(nullptr);
  EXPECT_EQ(tpcs_used().size(), 12U);
  EXPECT_EQ(counters.masked[at(LaunchPath::unknown)] + counters.masked[at(LaunchPath::stream)], 0U);
}

TEST_F(Hook,
       a_launch_of_an_unknown_version_is_reported_where_a_mask_is_wanted_and_counted_where_not) {
  change([](fake::FakeConfig& c) { c.descriptor_version = 0x4f; });
  launch_one();
  EXPECT_EQ(counters.unmasked[at(LaunchPath::unknown)] + counters.unmasked[at(LaunchPath::stream)],
            1U);
  EXPECT_EQ(reported, "");
  set_ceiling({2});
  launch_one();
  EXPECT_EQ(counters.refused[at(LaunchPath::unknown)] + counters.refused[at(LaunchPath::stream)],
            1U);
  EXPECT_THAT(reported, HasSubstr("cannot be confined"));
  hook->use_ceiling(nullptr);
  reported.clear();
  const auto process = ProcessMask::set(card, {2});
  launch_one();
  EXPECT_THAT(reported, HasSubstr("cannot be confined"));
}

TEST_F(Hook, a_callback_that_is_not_understood_is_counted_and_reported_where_a_mask_is_wanted) {
  for (const fake::Params what :
       {fake::Params::absent, fake::Params::short_, fake::Params::hollow}) {
    counters.misunderstood = 0;
    hook->use_ceiling(nullptr);
    change([what](fake::FakeConfig& c) { c.launch_params = what; });
    reported.clear();
    launch_one();
    EXPECT_EQ(counters.misunderstood, 1U);
    EXPECT_EQ(reported, "") << "nothing is wanted";
    set_ceiling({2});
    launch_one();
    EXPECT_EQ(counters.misunderstood, 2U);
    EXPECT_THAT(reported, HasSubstr("it cannot be confined"));
    hook->use_ceiling(nullptr);
    reported.clear();
    const auto process = ProcessMask::set(card, {2});
    launch_one();
    EXPECT_THAT(reported, HasSubstr("it cannot be confined"));
  }
}

TEST_F(Hook, a_streams_mask_is_wanted_too) {
  const auto of_stream = StreamMask::set(card, stream->handle(), {3});
  change([](fake::FakeConfig& c) { c.launch_params = fake::Params::hollow; });
  launch_one();
  EXPECT_THAT(reported, HasSubstr("it cannot be confined"));
}

TEST_F(Hook, a_call_of_the_driver_that_is_not_understood_is_counted_and_reported) {
  set_ceiling({2});
  for (const fake::Params what :
       {fake::Params::absent, fake::Params::short_, fake::Params::hollow}) {
    counters.misunderstood = 0;
    reported.clear();
    std::optional<Stream> gone(Stream::create(card->gpu()).value());
    change([what](fake::FakeConfig& c) { c.function_params = what; });
    gone.reset();
    EXPECT_GE(counters.misunderstood, 1U);
    EXPECT_THAT(
        reported,
        HasSubstr(
            "a call of the driver whose callback has unknown parameters: it cannot be confined"));
    change([](fake::FakeConfig& c) { c.function_params = fake::Params::whole; });
  }
}

TEST_F(Hook, a_thread_that_has_not_launched_has_no_last_launch) {
  launch_one();
  EXPECT_TRUE(hook->last());
  set_ceiling({2});
  std::thread([this] {
    EXPECT_FALSE(hook->last());
    EXPECT_FALSE(hook->next_mask_pending());
    launch_one();
    EXPECT_EQ(hook->last()->launches, 1U);
  }).join();
  EXPECT_EQ(reported, "") << "its first launch is confined";
}

TEST_F(Hook, a_probe_that_no_launch_answered_is_over) {
  hook->begin_probe({8, 0});
  EXPECT_FALSE(hook->end_probe());
  set_ceiling({2});
  EXPECT_EQ(tpcs_used(), gpu::TpcSet{2});
  EXPECT_EQ(reported, "");
}

TEST_F(Hook, the_fewest_parameters_that_show_a_descriptor_are_enough) {
  change([](fake::FakeConfig& c) { c.launch_params = fake::Params::least; });
  set_ceiling({2});
  launch_one();
  EXPECT_EQ(counters.misunderstood, 0U);
  EXPECT_EQ(reported, "");
}

TEST_F(Hook, a_launch_whose_path_is_not_shown_is_not_counted_by_that_of_the_one_before) {
  ASSERT_TRUE(hook->count_paths());
  launch_one();
  EXPECT_EQ(counters.unmasked[at(LaunchPath::stream)], 1U);
  change([](fake::FakeConfig& c) { c.function_params = fake::Params::hollow; });
  launch_one();
  EXPECT_EQ(counters.unmasked[at(LaunchPath::stream)], 1U);
  EXPECT_EQ(counters.unmasked[at(LaunchPath::unknown)], 1U);
}

TEST_F(Hook, a_launch_that_ends_before_its_stream_is_not_understood) {
  const StreamPlace learned = hook->streams().place();
  ASSERT_TRUE(hook->streams().use_place({StreamPlace::Kind::element, 11}));  // behind 88 bytes
  set_ceiling({2});
  launch_one();
  ASSERT_TRUE(hook->streams().use_place(learned));
  EXPECT_EQ(counters.misunderstood, 1U);
  EXPECT_THAT(reported, HasSubstr("does not show its stream"));
}

// As when a second card is opened whose launches show their streams elsewhere.
TEST_F(Hook, while_streams_have_masks_they_are_found_where_they_were) {
  const StreamPlace learned = hook->streams().place();
  {
    const auto of_stream = StreamMask::set(card, stream->handle(), {3});
    const auto refused = hook->streams().use_place({});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("in another way"));
    EXPECT_EQ(hook->streams().place(), learned);
    EXPECT_TRUE(hook->streams().use_place(learned));
    EXPECT_EQ(tpcs_used(), gpu::TpcSet{3});
  }
  EXPECT_TRUE(hook->streams().use_place({}));
  EXPECT_TRUE(hook->streams().use_place(learned));
}

TEST_F(Hook, a_cluster_one_block_too_large_is_reported_and_one_that_fits_is_not) {
  hook->set_largest_cluster(4);
  set_ceiling({0, 3});
  LaunchShape shape = LaunchShape::line(20, 32);
  shape.cluster[0] = 4;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 0U);
  EXPECT_EQ(reported, "");
  shape.cluster[0] = 5;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 1U);
  EXPECT_THAT(reported, HasSubstr("clusters of 5 blocks would hang: no GPC of the partition has "
                                  "more than 4 SMs; take whole GPCs (--gpcs)"));
}

// A stream's own mask does not lift the limit of the ceiling.
TEST_F(Hook, under_a_ceiling_clusters_of_masked_streams_are_looked_at_too) {
  hook->set_largest_cluster(2);
  const auto of_stream = StreamMask::set(card, stream->handle(), {0, 3});
  LaunchShape shape = LaunchShape::line(12, 32);
  shape.cluster[0] = 3;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 0U) << "the limit is the process mask's or the ceiling's";
  set_ceiling({0, 3});
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 1U);
}

TEST_F(Hook, what_hopper_tells_is_not_counted_as_unknown) {
  set_ceiling({2});
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 0U);
}

TEST_F(Hook, blackwell_does_not_tell_launchers_and_that_is_counted) {
  fake::FakeConfig blackwell = fake::small_gpu();
  blackwell.capability_major = 12;
  blackwell.descriptor_version = 0x50;
  open(blackwell);
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 0U) << "no mask is wanted";
  set_ceiling({2});
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 1U);
  hook->know_launchers(true);
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 1U) << "the modules were looked at";
  hook->know_launchers(false);
  EXPECT_EQ(tpcs_used(), gpu::TpcSet{2});
}

TEST_F(Hook, clusters_of_a_blackwell_are_looked_at_too) {
  fake::FakeConfig blackwell = fake::small_gpu();
  blackwell.capability_major = 12;
  blackwell.descriptor_version = 0x50;
  open(blackwell);
  hook->set_largest_cluster(2);
  set_ceiling({0, 3});
  LaunchShape shape = LaunchShape::line(12, 32);
  shape.cluster[0] = 2;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 0U);
  shape.cluster[0] = 3;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 1U);
}

TEST_F(Hook, launches_under_a_ceiling_are_counted_by_the_number_of_its_mask) {
  MaskHistory history;
  const auto begin = [&](const gpu::TpcSet& tpcs) {
    history.begin(ceiling.published() + 1, to_string(tpcs));
    ceiling.store(card->hardware_mask(tpcs).value(), true);
  };
  hook->use_ceiling(&ceiling, &history);
  begin({2});
  launch_one();
  begin({4, 5});
  launch_one();
  launch_one();
  const auto periods = history.periods(ceiling.published());
  ASSERT_EQ(periods.size(), 2U);
  EXPECT_EQ(periods[0].tpcs, "2");
  EXPECT_EQ(periods[0].launches, 1U);
  EXPECT_EQ(periods[1].tpcs, "4-5");
  EXPECT_EQ(periods[1].launches, 2U);
}

TEST(MaskHistories, keep_the_last_16_masks_and_the_sum_of_the_launches_before) {
  MaskHistory history;
  for (std::uint32_t number = 1; number <= 18; ++number) {
    history.begin(number, std::to_string(number));
    for (std::uint32_t launch = 0; launch < number; ++launch) history.count(number);
  }
  const auto periods = history.periods(18);
  ASSERT_EQ(periods.size(), 17U);
  EXPECT_EQ(periods.front().tpcs, "earlier ones");
  EXPECT_EQ(periods.front().launches, 1U + 2U);
  EXPECT_EQ(periods[1].tpcs, "3");
  EXPECT_EQ(periods.back().launches, 18U);
  EXPECT_TRUE(MaskHistory().periods(0).empty());
}

TEST_F(Hook, a_function_that_the_driver_exports_and_does_not_tell_of_is_refused_by_name) {
  change([](fake::FakeConfig& now) { now.functions = 651; });
  const auto refused = hook->watch_calls([](const DriverCall&) {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("callback 652 of domain 6, that of cuLaunchKernelEx"));
  change([](fake::FakeConfig& now) { now.functions = 806; });
  hook->use_ceiling(nullptr);
}

TEST_F(Hook, words_of_a_mask_that_is_not_switched_on_are_not_the_drivers) {
  change([](fake::FakeConfig& c) { c.stale_mask[0] = 0x8; });
  const auto process = ProcessMask::set(card, {2});
  EXPECT_EQ(tpcs_used(), gpu::TpcSet{2});
  ASSERT_TRUE(hook->last());
  EXPECT_EQ(hook->last()->mask.disabled[0], 0x8U);
  EXPECT_FALSE(hook->last()->enabled);
}

// The driver builds descriptors in place: what the hook wrote for an earlier launch is in them.
TEST_F(Hook, a_mask_of_ours_that_is_no_longer_wanted_is_taken_out) {
  change([](fake::FakeConfig& c) {
    c.stale_mask[0] = 0x8;
    c.stale_mask[3] = 0x80000000U;
    c.stale_enabled = true;
  });
  EXPECT_EQ(tpcs_used().size(), 12U);
  const auto process = ProcessMask::set(card, {2});
  EXPECT_EQ(tpcs_used(), gpu::TpcSet{2}) << "ours is not the driver's";
}

TEST_F(Hook, every_call_is_shown_and_may_be_answered_at_its_entry) {
  static std::vector<std::string> shown;
  shown.clear();
  ASSERT_TRUE(hook->watch_calls([](const DriverCall& call) {
    shown.push_back((call.leaving() ? "left " : "") + std::string(call.name()));
    const bool host = call.function() == DriverFunction::cuMemHostAlloc;
    if (!call.leaving() && host && call.parameters<Allocate>().bytes == 64) call.answer(801);
  }));
  EXPECT_FALSE(HostBuffer::allocate(card->gpu(), 64));
  EXPECT_TRUE(HostBuffer::allocate(card->gpu(), 128));
  EXPECT_THAT(shown, ElementsAre("cuMemHostAlloc", "cuMemHostAlloc", "left cuMemHostAlloc"));
  EXPECT_EQ(reported, "");
}

TEST_F(Hook, a_call_that_cannot_be_shown_is_reported) {
  ASSERT_TRUE(hook->watch_calls([](const DriverCall&) { FAIL() << "nothing can be read"; }));
  for (const auto params : {fake::Params::absent, fake::Params::short_, fake::Params::hollow}) {
    reported.clear();
    change([&](fake::FakeConfig& now) { now.function_params = params; });
    EXPECT_TRUE(HostBuffer::allocate(card->gpu(), 64));
    EXPECT_THAT(reported, HasSubstr("a call of the driver whose callback"));
  }
}

}  // namespace
}  // namespace demarc::cuda
