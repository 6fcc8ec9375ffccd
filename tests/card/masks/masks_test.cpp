// Masks on the stand-in: levels, release, refusal.
#include "demarc/card/masks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance.hpp"
#include "demarc/exec/confine.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using gpu::TpcSet;
using test::fake_card;
using testing::HasSubstr;

TpcSet tpcs_used(const CardPointer& card, const Stream& stream) {
  const auto placement =
      probe_placement(stream, card->kernels(), LaunchShape::line(96, 32), 0).value();
  return test::tpcs_of(placement.used_sms());
}

class Masks : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = fake_card();
    ASSERT_TRUE(opened) << opened.error().message;
    card = *opened;
  }
  CardPointer card;
  TpcSet all = TpcSet::first(12);
};

TEST_F(Masks, the_finer_level_overrides_the_coarser) {
  const Stream stream = Stream::create(card->gpu()).value();
  const auto process = ProcessMask::set(card, {1});
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(tpcs_used(card, stream), TpcSet{1});
  {
    const auto of_stream = StreamMask::set(card, stream.handle(), {2, 3});
    ASSERT_TRUE(of_stream);
    EXPECT_EQ(tpcs_used(card, stream), (TpcSet{2, 3}));
    const auto next = NextMask::set(card, {4});
    ASSERT_TRUE(next);
    EXPECT_EQ(tpcs_used(card, stream), TpcSet{4});
    EXPECT_EQ(tpcs_used(card, stream), (TpcSet{2, 3}));
  }
  EXPECT_EQ(tpcs_used(card, stream), TpcSet{1});
}

TEST_F(Masks, a_mask_goes_with_its_object_also_by_an_exception) {
  const Stream stream = Stream::create(card->gpu()).value();
  try {
    const auto process = ProcessMask::set(card, {5});
    const auto of_stream = StreamMask::set(card, stream.handle(), {6});
    const auto next = NextMask::set(card, {7});
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(tpcs_used(card, stream), all);
}

TEST_F(Masks, nested_process_masks_come_back_in_order) {
  const Stream stream = Stream::create(card->gpu()).value();
  const auto outer = ProcessMask::set(card, {1, 2});
  {
    const auto inner = ProcessMask::set(card, {3});
    EXPECT_EQ(tpcs_used(card, stream), TpcSet{3});
  }
  EXPECT_EQ(tpcs_used(card, stream), (TpcSet{1, 2}));
}

TEST_F(Masks, nested_stream_masks_come_back_in_order) {
  const Stream stream = Stream::create(card->gpu()).value();
  const auto outer = StreamMask::set(card, stream.handle(), {1, 2});
  {
    const auto inner = StreamMask::set(card, stream.handle(), {3});
    EXPECT_EQ(tpcs_used(card, stream), TpcSet{3});
  }
  EXPECT_EQ(tpcs_used(card, stream), (TpcSet{1, 2}));
}

TEST(LaunchStreams, refuse_a_mask_to_one_stream_too_many) {
  const auto streams = std::make_unique<LaunchStreams>();
  const auto number = [](std::uintptr_t n) {
    return reinterpret_cast<CuStream>(64 * (n + 1));  // NOLINT: never followed
  };
  for (std::size_t n = 0; n < StreamTable::max_streams; ++n) {
    ASSERT_TRUE(streams->set_mask(number(n), HardwareMask{}));
  }
  EXPECT_TRUE(streams->set_mask(number(0), HardwareMask{}));
  const auto refused = streams->set_mask(number(StreamTable::max_streams), HardwareMask{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message, "4096 streams have a mask already");
}

TEST_F(Masks, a_mask_without_any_tpc_is_refused_at_every_level) {
  const Stream stream = Stream::create(card->gpu()).value();
  for (const TpcSet& none : {TpcSet{}, TpcSet{100}}) {
    EXPECT_THAT(ProcessMask::set(card, none).error().message, HasSubstr("would hang"));
    EXPECT_THAT(StreamMask::set(card, stream.handle(), none).error().message,
                HasSubstr("would hang"));
    EXPECT_THAT(NextMask::set(card, none).error().message, HasSubstr("would hang"));
  }
  EXPECT_EQ(tpcs_used(card, stream), all);
}

TEST_F(Masks, the_default_streams_are_refused_a_stream_mask) {
  for (const std::uintptr_t number : {0U, 1U, 2U}) {
    const auto stream = reinterpret_cast<CuStream>(number);  // NOLINT: names of the default streams
    EXPECT_THAT(StreamMask::set(card, stream, {0}).error().message, HasSubstr("default stream"));
    EXPECT_FALSE((*card->stream_masks())->get(stream));
    EXPECT_TRUE((*card->stream_masks())->clear(stream));
  }
}

// Finding out how a stream shows takes a launch; a waiting mask is not for that one.
TEST_F(Masks, a_mask_that_waits_for_the_next_launch_is_not_used_up_by_a_streams_mask) {
  const Stream stream = Stream::create(card->gpu()).value();
  const auto next = NextMask::set(card, {4});
  const auto of_stream = StreamMask::set(card, stream.handle(), {2, 3});
  EXPECT_EQ(tpcs_used(card, stream), TpcSet{4});
  EXPECT_EQ(tpcs_used(card, stream), (TpcSet{2, 3}));
}

TEST_F(Masks, a_stream_that_is_being_captured_gets_no_node_by_its_mask) {
  const auto& api = card->gpu()->api();
  const Stream stream = Stream::create(card->gpu()).value();
  const auto launches = test::fake_symbol<std::uint64_t()>("fake_launch_count");
  CuGraph graph = nullptr;
  CuGraphExec executable = nullptr;
  ASSERT_EQ(api.cuStreamBeginCapture_v2(stream.handle(), cu_capture_thread_local), 0);
  const auto mask = StreamMask::set(card, stream.handle(), {2});
  ASSERT_EQ(api.cuStreamEndCapture(stream.handle(), &graph), 0);
  ASSERT_EQ(api.cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  const std::uint64_t before = launches();
  ASSERT_EQ(api.cuGraphLaunch(executable, stream.handle()), 0);
  EXPECT_EQ(launches(), before);
  api.cuGraphExecDestroy(executable);
  api.cuGraphDestroy(graph);
}

// The driver gives a destroyed stream's object, with what was written into it, to a later stream.
void a_later_stream_is_free(const CardPointer& card) {
  const auto& api = card->gpu()->api();
  const StreamMasks* masks = card->stream_masks().value();
  CuStream library = nullptr;  // a library's alone, which knows nothing of masks
  ASSERT_EQ(api.cuStreamCreateWithPriority(&library, cu_stream_non_blocking, 0), 0);
  ASSERT_TRUE(masks->set(library, {5}));
  ASSERT_EQ(masks->get(library), TpcSet{5});
  ASSERT_EQ(api.cuStreamDestroy_v2(library), 0);
  EXPECT_FALSE((*card->hook())->streams().shows(library))
      << "a later one may show itself elsewhere";
  const Stream later = Stream::create(card->gpu()).value();
  ASSERT_EQ(later.handle(), library) << "the stand-in did not reuse the object";
  EXPECT_FALSE(masks->get(later.handle()));
  EXPECT_EQ(tpcs_used(card, later), TpcSet::first(12));
}

TEST_F(Masks, a_destroyed_streams_mask_is_not_the_next_streams) {
  ASSERT_TRUE((*card->stream_masks())->uses_hook());
  a_later_stream_is_free(card);
}

TEST(MasksInTheDriversObjects, confine_and_go_with_their_stream_too) {
  fake::FakeConfig config = fake::small_gpu();
  config.streams = fake::Shows::nothing;  // so that the hook cannot keep masks by stream
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  ASSERT_FALSE((*(*card)->stream_masks())->uses_hook());
  const Stream stream = Stream::create((*card)->gpu()).value();
  {
    const auto mask = StreamMask::set(*card, stream.handle(), {2, 7});
    ASSERT_TRUE(mask);
    EXPECT_EQ(tpcs_used(*card, stream), (TpcSet{2, 7}));
  }
  EXPECT_EQ(tpcs_used(*card, stream).size(), 12U);
  a_later_stream_is_free(*card);
}

// Not every stream's launches show it at the place in use.
TEST(MasksOfStrayStreams, confine_too) {
  fake::FakeConfig config = fake::small_gpu();
  config.stray_streams = 12;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  ASSERT_TRUE((*(*card)->stream_masks())->uses_hook());
  LaunchHook* hook = (*card)->hook().value();
  std::vector<Stream> streams;
  std::size_t strays = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    streams.push_back(Stream::create((*card)->gpu()).value());
    const CuStream handle = streams.back().handle();
    const auto mask = StreamMask::set(*card, handle, {gpu::TpcIndex(i % 12)});
    ASSERT_TRUE(mask);
    EXPECT_EQ((*(*card)->stream_masks())->get(handle), TpcSet{gpu::TpcIndex(i % 12)});
    EXPECT_EQ(tpcs_used(*card, streams.back()), TpcSet{gpu::TpcIndex(i % 12)});
    strays += hook->streams().shows(handle) == false ? 1U : 0U;
  }
  EXPECT_GT(strays, 0U);
  EXPECT_LT(strays, 20U);
  EXPECT_EQ(tpcs_used(*card, streams.back()).size(), 12U);
}

TEST(MasksByName, confine_where_the_callback_names_the_stream) {
  fake::FakeConfig config = fake::small_gpu();
  config.streams = fake::Shows::by_name;
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  ASSERT_TRUE((*(*card)->stream_masks())->uses_hook());
  const Stream stream = Stream::create((*card)->gpu()).value();
  const auto mask = StreamMask::set(*card, stream.handle(), {2, 7});
  EXPECT_EQ(tpcs_used(*card, stream), (TpcSet{2, 7}));
  a_later_stream_is_free(*card);
}

TEST_F(Masks, the_stream_a_graph_is_launched_into_decides) {
  const auto& api = card->gpu()->api();
  const Stream captured = Stream::create(card->gpu()).value();
  const Stream launched = Stream::create(card->gpu()).value();
  const DeviceBuffer counts = DeviceBuffer::allocate(card->gpu(), 4 * 24).value();
  ASSERT_TRUE(counts.fill(0));
  const auto mask = StreamMask::set(card, launched.handle(), {6});
  CuGraph graph = nullptr;
  CuGraphExec executable = nullptr;
  api.cuStreamBeginCapture_v2(captured.handle(), 1);
  ASSERT_TRUE(launch(captured, card->kernels().where(), LaunchShape::line(48, 32), counts.address(),
                     DevicePointer{0}, std::uint64_t{0}));
  api.cuStreamEndCapture(captured.handle(), &graph);
  api.cuGraphInstantiateWithFlags(&executable, graph, 0);
  ASSERT_EQ(api.cuGraphLaunch(executable, launched.handle()), 0);
  ASSERT_TRUE(launched.wait());
  Placement placement;
  placement.blocks = counts.read<std::uint32_t>(24).value();
  EXPECT_EQ(placement.used_sms(), test::sm_list({12, 13}));
  api.cuGraphExecDestroy(executable);
  api.cuGraphDestroy(graph);
}

TEST_F(Masks, a_graph_keeps_the_mask_of_its_first_launch_and_stale_ones_are_counted) {
  const auto& gpu = card->gpu();
  const auto& api = gpu->api();
  LaunchHook* hook = card->hook().value();
  ASSERT_TRUE(hook->count_paths());
  const auto outside = [hook] {
    return hook->counters().unmasked[static_cast<std::size_t>(LaunchPath::graph)].load();
  };
  const Stream stream = Stream::create(gpu).value();
  const DeviceBuffer counts = DeviceBuffer::allocate(gpu, 4 * 24).value();
  CuGraph graph = nullptr;
  CuGraphExec executable = nullptr;
  api.cuStreamBeginCapture_v2(stream.handle(), 1);
  for (int node = 0; node < 2; ++node) {
    ASSERT_TRUE(launch(stream, card->kernels().where(), LaunchShape::line(48, 32), counts.address(),
                       DevicePointer{0}, std::uint64_t{0}));
  }
  api.cuStreamEndCapture(stream.handle(), &graph);
  api.cuGraphInstantiateWithFlags(&executable, graph, 0);
  const auto run = [&] {
    EXPECT_TRUE(counts.fill(0));
    EXPECT_EQ(api.cuGraphLaunch(executable, stream.handle()), 0);
    EXPECT_TRUE(stream.wait());
    Placement placement;
    placement.blocks = counts.read<std::uint32_t>(24).value();
    EXPECT_EQ(placement.total(), 96U);
    return placement.used_sms();
  };
  auto process = ProcessMask::set(card, {3});
  const std::uint64_t before = outside();
  const std::uint64_t graphs_before = hook->counters().graphs;
  const std::uint64_t stale_before = hook->counters().stale_graphs;
  EXPECT_EQ(run(), test::sm_list({6, 7}));
  EXPECT_EQ(run(), test::sm_list({6, 7}));
  EXPECT_EQ(outside(), before) << "nodes inside the partition were counted as outside";
  ASSERT_TRUE(process->change({4}));
  EXPECT_EQ(run(), test::sm_list({6, 7}));
  EXPECT_EQ(outside(), before + 2) << "stale nodes went unnoticed";
  EXPECT_EQ(hook->counters().graphs, graphs_before + 3);
  EXPECT_EQ(hook->counters().stale_graphs, stale_before + 1);
  ASSERT_TRUE(process->change({3}));
  run();
  EXPECT_EQ(hook->counters().stale_graphs, stale_before + 1) << "the mask is its own again";
  api.cuGraphExecDestroy(executable);
  api.cuGraphDestroy(graph);
}

TEST_F(Masks, launches_are_counted_by_path) {
  LaunchHook* hook = card->hook().value();
  ASSERT_TRUE(hook->count_paths());
  LaunchCounters counters;
  SharedMask mask;
  hook->use_storage(&mask, &counters);
  const auto process = ProcessMask::set(card, {0, 1});
  const Stream stream = Stream::create(card->gpu()).value();
  static_cast<void>(tpcs_used(card, stream));
  ASSERT_EQ(card->gpu()->api().cuLaunchKernel(card->kernels().idle().handle(), 5, 1, 1, 1, 1, 1, 0,
                                              nullptr, nullptr, nullptr),
            0);
  const auto at = [](LaunchPath path) { return static_cast<std::size_t>(path); };
  EXPECT_EQ(counters.masked[at(LaunchPath::stream)], 1U);
  EXPECT_EQ(counters.masked_blocks[at(LaunchPath::stream)], 96U);
  EXPECT_EQ(counters.masked[at(LaunchPath::default_stream)], 1U);
  EXPECT_EQ(counters.masked_blocks[at(LaunchPath::default_stream)], 5U);
  EXPECT_EQ(counters.unmasked[at(LaunchPath::stream)], 0U);
  static SharedMask lasting_mask;
  static LaunchCounters lasting_counters;
  hook->use_storage(&lasting_mask, &lasting_counters);
}

TEST_F(Masks, a_cluster_that_cannot_be_hosted_is_reported_before_it_hangs) {
  LaunchHook* hook = card->hook().value();
  static std::string cluster_report;
  hook->set_refusal_handler([](const char* message) { cluster_report = message; });
  hook->set_largest_cluster(2);
  {
    const auto process = ProcessMask::set(card, {11});
    LaunchShape shape = LaunchShape::line(8, 32);
    shape.cluster[0] = 4;
    const Stream stream = Stream::create(card->gpu()).value();
    ASSERT_TRUE(launch(stream, card->kernels().idle(), shape));
  }
  EXPECT_THAT(cluster_report, HasSubstr("clusters of 4 blocks would hang"));
  hook->set_largest_cluster(0);
  hook->set_refusal_handler(nullptr);
}

TEST(MaskCounters, kernels_that_may_launch_kernels_are_counted) {
  fake::FakeConfig config = fake::small_gpu();
  const auto card = fake_card(config);
  ASSERT_TRUE(card) << card.error().message;
  const auto& counters = (*(*card)->hook())->counters();
  const std::uint64_t before = counters.launchers;
  const Stream stream = Stream::create((*card)->gpu()).value();
  ASSERT_TRUE(launch(stream, (*card)->kernels().idle(), LaunchShape::line(1, 1)));
  EXPECT_EQ(counters.launchers, before);
  config.kernels_launch = true;
  test::configure(config);
  ASSERT_TRUE(launch(stream, (*card)->kernels().idle(), LaunchShape::line(1, 1)));
  EXPECT_EQ(counters.launchers, before + 1);
}

// Places that were found on these drivers; patches (the last digit) never moved them.
TEST(StreamFields, of_every_driver_seen_are_where_they_were_seen) {
#if defined(__x86_64__)
  const std::vector<std::pair<int, std::uint32_t>> seen{
      {8000, 0xec},   {9000, 0x130},  {9010, 0x130},  {9020, 0x140},  {10000, 0x244},
      {10010, 0x244}, {10020, 0x244}, {11000, 0x274}, {11010, 0x2c4}, {11020, 0x37c},
      {11030, 0x37c}, {11040, 0x37c}, {11050, 0x37c}, {11060, 0x38c}, {11070, 0x3c4},
      {11080, 0x47c}, {12000, 0x4cc}, {12010, 0x4cc}, {12020, 0x4e4}, {12030, 0x49c},
      {12040, 0x4ac}, {12050, 0x4ec}, {12060, 0x4ec}, {12070, 0x4fc}, {12080, 0x4fc},
      {13000, 0x51c}, {13030, 0x5fc}};
  for (const auto& [version, offset] : seen) {
    const auto field = known_stream_field(version + 3);
    ASSERT_TRUE(field) << version;
    EXPECT_EQ(field->offset, offset) << version;
    EXPECT_EQ(field->wide, version >= 12000) << version;
  }
#endif
  EXPECT_FALSE(known_stream_field(13020));
  EXPECT_FALSE(known_stream_field(14000));
  EXPECT_FALSE(known_stream_field(7050));
}

// Two words, the higher TPCs first.
TEST(StreamFields, of_old_drivers_are_narrow_and_confine_too) {
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 11080;
  config.stream_offset = 0x47c;
  config.streams = fake::Shows::nothing;
  config.tpcs = 40;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) config.bit[t] = t;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  hook->begin_probe(gpu->compute_capability());
  const Stream stream = Stream::create(gpu).value();
  ASSERT_TRUE(launch(stream, kernels.idle(), LaunchShape::line(1, 1)));
  ASSERT_TRUE(hook->end_probe());
  const auto masks = StreamMasks::open(gpu, *hook, kernels.idle());
  ASSERT_TRUE(masks) << masks.error().message;
  EXPECT_EQ(masks->tpc_count(), 40U);
  EXPECT_EQ(masks->edge_bits().last, 39U);
  EXPECT_FALSE(masks->get(stream.handle()));
  const TpcSet some{0, 5, 31, 32, 38};
  ASSERT_TRUE(masks->set(stream.handle(), some));
  EXPECT_EQ(masks->get(stream.handle()), some);
  const auto placement = probe_placement(stream, kernels, LaunchShape::line(160, 32), 0).value();
  EXPECT_EQ(test::tpcs_of(placement.used_sms()), some);
  ASSERT_TRUE(masks->set(stream.handle(), TpcSet::first(32)));
  EXPECT_EQ(masks->get(stream.handle()), TpcSet::first(32)) << "one of the words is empty";
  ASSERT_TRUE(masks->clear(stream.handle()));
  EXPECT_FALSE(masks->get(stream.handle()));
}

TEST(StreamMasksOfTheHook, need_the_bit_of_every_tpc) {
  const auto card = fake_card().value();
  LaunchHook* hook = card->hook().value();
  const auto fresh = [&] {
    return StreamMasks::open(card->gpu(), *hook, card->kernels().idle()).value();
  };
  auto whole = fresh();
  EXPECT_FALSE(whole.uses_hook());
  whole.use_hook(*hook, card->topology());
  EXPECT_TRUE(whole.uses_hook());
  gpu::Topology torn = card->topology();
  torn.tpcs[gpu::TpcIndex(3)].bit.reset();
  auto without = fresh();
  without.use_hook(*hook, torn);
  EXPECT_FALSE(without.uses_hook());
  torn.tpcs[gpu::TpcIndex(3)].bit = 128;
  without.use_hook(*hook, torn);
  EXPECT_FALSE(without.uses_hook()) << "a mask has 128 bits";
}

TEST(StreamFields, of_new_drivers_are_read_back_as_they_were_set) {
  fake::FakeConfig config = fake::small_gpu();
  config.streams = fake::Shows::nothing;
  config.tpcs = 127;
  for (std::uint32_t t = 0; t < config.tpcs; ++t) config.bit[t] = t;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  const auto masks = StreamMasks::open(gpu, *hook, kernels.idle());
  ASSERT_TRUE(masks) << masks.error().message;
  const Stream stream = Stream::create(gpu).value();
  const TpcSet some{1, 31, 32, 63, 64, 79, 95, 96, 126};
  ASSERT_TRUE(masks->set(stream.handle(), some));
  EXPECT_EQ(masks->get(stream.handle()), some);
  EXPECT_FALSE(masks->set(stream.handle(), TpcSet{127})) << "there is no such TPC";
  const auto placement = probe_placement(stream, kernels, LaunchShape::line(508, 32), 0).value();
  EXPECT_EQ(test::tpcs_of(placement.used_sms()), some);
  ASSERT_TRUE(masks->clear(stream.handle()));
  EXPECT_FALSE(masks->get(stream.handle()));
}

}  // namespace
}  // namespace demarc::cuda
