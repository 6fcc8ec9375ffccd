// What the launch callback counts, refuses and reports, on the stand-in.
#include "demarc/cuda/launch_hook.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "conformance.hpp"
#include "demarc/cuda/masks.hpp"
#include "demarc/cuda/sync_domain.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using partition::TpcSet;
using test::fake_card;
using testing::HasSubstr;

std::string reported;  // by the refusal handler, the last one

std::size_t at(LaunchPath path) {
  return static_cast<std::size_t>(path);
}

// A hook whose ceiling and counters are the test's.
class Hook : public testing::Test {
 protected:
  void SetUp() override { open(fake::small_gpu()); }
  void TearDown() override {
    hook->use_ceiling(nullptr);
    hook->use_storage(nullptr, nullptr);
    hook->set_refusal_handler(nullptr);
    hook->set_largest_cluster(0);
    hook->set_sync_domain(std::nullopt);
    hook->set_process_mask(std::nullopt);
    hook->set_next_mask(std::nullopt);
  }
  void open(const fake::FakeConfig& wanted) {
    if (hook != nullptr) hook->use_storage(nullptr, nullptr);
    config = wanted;
    auto opened = fake_card(config);
    ASSERT_TRUE(opened) << opened.error().message;
    card = *opened;
    const auto ready = card->hook();
    ASSERT_TRUE(ready) << ready.error().message;
    hook = *ready;
    stream.emplace(Stream::create(card->gpu()).value());
    hook->use_storage(nullptr, &counters);
    reported.clear();
    hook->set_refusal_handler([](const char* message) { reported = message; });
  }
  void set_ceiling(const TpcSet& tpcs) {
    ceiling.store(card->hardware_mask(tpcs).value(), true);
    hook->use_ceiling(&ceiling);
  }
  // The stand-in goes on with another configuration.
  template <class Change>
  void change(Change how) {
    how(config);
    test::configure(config);
  }
  // The streams of the stand-in outlive a configuration; their masks are those of before.
  [[nodiscard]] std::vector<std::uint32_t> tpcs_used() const {
    TpcSet set;
    const auto placement =
        probe_placement(*stream, card->kernels(), LaunchShape::line(96, 32), 0).value();
    for (const std::uint32_t sm : placement.used_sms()) set.insert(sm / 2);
    return set.members();
  }
  void launch_one() const {
    ASSERT_TRUE(launch(*stream, card->kernels().idle(), LaunchShape::line(1, 1)));
  }
  fake::FakeConfig config;
  CardPointer card;
  LaunchHook* hook = nullptr;
  std::optional<Stream> stream;
  SharedMask ceiling;
  LaunchCounters counters;
};

TEST_F(Hook, UnderACeilingMasksOfEveryLevelAreCutDownToIt) {
  set_ceiling({2, 3, 4});
  EXPECT_EQ(tpcs_used(), (std::vector<std::uint32_t>{2, 3, 4}));
  const auto process = ProcessMask::set(card, {0, 1, 2, 3});
  EXPECT_EQ(tpcs_used(), (std::vector<std::uint32_t>{2, 3}));
  const auto of_stream = StreamMask::set(card, stream->handle(), {3, 4, 5});
  EXPECT_EQ(tpcs_used(), (std::vector<std::uint32_t>{3, 4}));
  const auto next = NextMask::set(card, {4, 11});
  EXPECT_EQ(tpcs_used(), std::vector<std::uint32_t>{4});
  EXPECT_EQ(tpcs_used(), (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(reported, "");
  EXPECT_EQ(counters.empty_masks, 0U);
}

// As libsmctrl writes them: into the driver's stream object, past the hook.
TEST_F(Hook, UnderACeilingTheDriversMaskOfAStreamIsCutDownToo) {
  fake::FakeConfig shy = fake::small_gpu();
  shy.streams = fake::Shows::nothing;
  open(shy);
  ASSERT_FALSE((*card->stream_masks())->uses_hook());
  const auto of_stream = StreamMask::set(card, stream->handle(), {3, 4, 5});
  EXPECT_EQ(tpcs_used(), (std::vector<std::uint32_t>{3, 4, 5}));
  set_ceiling({2, 3, 4});
  EXPECT_EQ(tpcs_used(), (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(reported, "");
}

TEST_F(Hook, TheDriversMaskOfAStreamOverridesTheProcesss) {
  fake::FakeConfig shy = fake::small_gpu();
  shy.streams = fake::Shows::nothing;
  open(shy);
  const auto process = ProcessMask::set(card, {1});
  const auto of_stream = StreamMask::set(card, stream->handle(), {3, 4});
  EXPECT_EQ(tpcs_used(), (std::vector<std::uint32_t>{3, 4}));
}

TEST_F(Hook, AMaskThatLeavesNothingOfTheCeilingIsReportedAndStaysInside) {
  set_ceiling({2});
  const auto of_stream = StreamMask::set(card, stream->handle(), {7});
  ASSERT_TRUE(of_stream) << of_stream.error().message;
  reported.clear();
  counters.empty_masks = 0;
  EXPECT_EQ(tpcs_used(), std::vector<std::uint32_t>{2});
  EXPECT_EQ(counters.empty_masks, 1U);
  EXPECT_THAT(reported, HasSubstr("leaves no TPC of the partition"));
}

TEST_F(Hook, ACeilingThatIsTakenAwayBindsNobody) {
  set_ceiling({2});
  hook->use_ceiling(nullptr);
  EXPECT_EQ(tpcs_used().size(), 12U);
  EXPECT_EQ(counters.masked[at(LaunchPath::unknown)] + counters.masked[at(LaunchPath::stream)], 0U);
}

// A graph of one node, captured from the stream.
class OneNode {
 public:
  OneNode(const CardPointer& card, const Stream& stream)
      : api_(card->gpu()->api()), stream_(stream) {
    api_.cuStreamBeginCapture_v2(stream.handle(), cu_capture_thread_local);
    EXPECT_TRUE(launch(stream, card->kernels().idle(), LaunchShape::line(48, 32)));
    api_.cuStreamEndCapture(stream.handle(), &graph_);
    api_.cuGraphInstantiateWithFlags(&executable_, graph_, 0);
  }
  ~OneNode() {
    api_.cuGraphExecDestroy(executable_);
    api_.cuGraphDestroy(graph_);
  }
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;
  void run() const { EXPECT_EQ(api_.cuGraphLaunch(executable_, stream_.handle()), 0); }

 private:
  const DriverApi& api_;
  const Stream& stream_;
  CuGraph graph_ = nullptr;
  CuGraphExec executable_ = nullptr;
};

std::uint32_t domain_of_last_launch() {
  return test::fake_symbol<std::uint32_t()>("fake_last_domain")();
}

TEST_F(Hook, ADomainIsThatOfEveryLaunchWhateverItsStreamHas) {
  launch_one();
  EXPECT_EQ(domain_of_last_launch(), 0U);
  ASSERT_TRUE(cuda::set_sync_domain(*card->gpu(), stream->handle(), 2));
  launch_one();
  EXPECT_EQ(domain_of_last_launch(), 2U);
  hook->set_sync_domain(3);
  launch_one();
  EXPECT_EQ(domain_of_last_launch(), 3U);
  EXPECT_EQ(hook->last()->domain, 2U) << "as the driver had built it";
  ASSERT_TRUE(hook->count_paths());
  OneNode(card, *stream).run();
  EXPECT_EQ(domain_of_last_launch(), 3U);
  EXPECT_EQ(counters.other_domains, 0U);
  hook->set_sync_domain(std::nullopt);
  launch_one();
  EXPECT_EQ(domain_of_last_launch(), 2U);
}

TEST_F(Hook, LaunchesThatCannotHaveTheirDomainAreCounted) {
  ASSERT_TRUE(hook->count_paths());
  {
    const OneNode graph(card, *stream);
    graph.run();
    hook->set_sync_domain(1);
    graph.run();
    EXPECT_EQ(counters.other_domains, 1U) << "it keeps what it was built with";
  }
  change([](fake::FakeConfig& c) { c.descriptor_version = 0x41; });
  launch_one();
  EXPECT_EQ(counters.other_domains, 2U) << "an unknown version";
  fake::FakeConfig older = fake::small_gpu();
  older.descriptor_version = 0x22;
  older.capability_major = 8;
  open(older);
  const auto before = counters.other_domains.load();
  launch_one();
  EXPECT_EQ(counters.other_domains, before + 1) << "a version that has no domain";
  EXPECT_FALSE(hook->last()->domain);
}

TEST_F(Hook, AGraphIsInsideACeilingWhenItKeepsNothingElse) {
  ASSERT_TRUE(hook->count_paths());
  const auto inside = [&] { return counters.masked[at(LaunchPath::graph)].load(); };
  const auto outside = [&] { return counters.unmasked[at(LaunchPath::graph)].load(); };
  set_ceiling({2, 3, 4});
  const OneNode graph(card, *stream);
  {
    const auto of_stream = StreamMask::set(card, stream->handle(), {3});
    counters.masked[at(LaunchPath::graph)] = 0;
    graph.run();
  }
  graph.run();
  EXPECT_EQ(inside(), 2U) << "it keeps TPC 3 alone";
  EXPECT_EQ(counters.stale_graphs, 0U);
  set_ceiling({3, 9});
  graph.run();
  EXPECT_EQ(inside(), 3U);
  EXPECT_EQ(counters.stale_graphs, 0U);
  EXPECT_EQ(outside(), 0U);
  set_ceiling({9});
  graph.run();
  EXPECT_EQ(inside(), 3U);
  EXPECT_EQ(outside(), 1U);
  EXPECT_EQ(counters.stale_graphs, 1U);
}

TEST_F(Hook, AGraphBuiltBeforeThereWasACeilingIsOutside) {
  ASSERT_TRUE(hook->count_paths());
  const OneNode graph(card, *stream);
  graph.run();
  counters.unmasked[at(LaunchPath::graph)] = 0;
  set_ceiling({3});
  graph.run();
  EXPECT_EQ(counters.unmasked[at(LaunchPath::graph)], 1U);
  EXPECT_EQ(counters.stale_graphs, 1U);
}

TEST_F(Hook, AGraphKeptUnderTheDriversMaskIsJudgedLikeALaunch) {
  fake::FakeConfig shy = fake::small_gpu();
  shy.streams = fake::Shows::nothing;
  open(shy);
  ASSERT_TRUE(hook->count_paths());
  const auto inside = [&] { return counters.masked[at(LaunchPath::graph)].load(); };
  std::optional<OneNode> graph;
  {
    const auto of_stream = StreamMask::set(card, stream->handle(), {3, 4});
    graph.emplace(card, *stream);
  }
  const auto process = ProcessMask::set(card, {1});
  graph->run();
  EXPECT_EQ(inside(), 1U) << "the driver's is finer than the process's";
  {
    const auto next = NextMask::set(card, {3});
    graph->run();
  }
  EXPECT_EQ(inside(), 1U) << "the next launch's is finer than the driver's";
  EXPECT_EQ(counters.unmasked[at(LaunchPath::graph)], 1U);
  set_ceiling({4});
  graph->run();
  EXPECT_EQ(inside(), 1U) << "TPC 3 is outside of the ceiling";
  EXPECT_EQ(counters.unmasked[at(LaunchPath::graph)], 2U);
}

TEST_F(Hook, ANodeOfAGraphThatCannotBeReadIsCountedAsRefused) {
  ASSERT_TRUE(hook->count_paths());
  set_ceiling({3});
  const OneNode graph(card, *stream);
  change([](fake::FakeConfig& c) { c.descriptor_version = 0x4f; });
  graph.run();
  EXPECT_EQ(counters.refused[at(LaunchPath::graph)], 1U);
  EXPECT_THAT(reported, HasSubstr("unknown version"));
}

TEST_F(Hook, ALaunchOfAnUnknownVersionIsReportedWhereAMaskIsWantedAndCountedWhereNot) {
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

TEST_F(Hook, ACallbackThatIsNotUnderstoodIsCountedAndReportedWhereAMaskIsWanted) {
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

TEST_F(Hook, AStreamsMaskIsWantedToo) {
  const auto of_stream = StreamMask::set(card, stream->handle(), {3});
  change([](fake::FakeConfig& c) { c.launch_params = fake::Params::hollow; });
  launch_one();
  EXPECT_THAT(reported, HasSubstr("it cannot be confined"));
}

TEST_F(Hook, ACallOfTheDriverThatIsNotUnderstoodIsCountedAndReported) {
  set_ceiling({2});
  for (const fake::Params what :
       {fake::Params::absent, fake::Params::short_, fake::Params::hollow}) {
    counters.misunderstood = 0;
    reported.clear();
    std::optional<Stream> gone(Stream::create(card->gpu()).value());
    change([what](fake::FakeConfig& c) { c.function_params = what; });
    gone.reset();
    EXPECT_GE(counters.misunderstood, 1U);
    EXPECT_THAT(reported, HasSubstr("a call of the driver"));
    change([](fake::FakeConfig& c) { c.function_params = fake::Params::whole; });
  }
}

TEST_F(Hook, AThreadThatHasNotLaunchedHasNoLastLaunch) {
  launch_one();
  EXPECT_TRUE(hook->last());
  std::thread([this] {
    EXPECT_FALSE(hook->last());
    EXPECT_FALSE(hook->next_mask_pending());
    launch_one();
    EXPECT_EQ(hook->last()->launches, 1U);
  }).join();
}

TEST_F(Hook, ALaunchWhosePathIsNotShownIsNotCountedByThatOfTheOneBefore) {
  ASSERT_TRUE(hook->count_paths());
  launch_one();
  EXPECT_EQ(counters.unmasked[at(LaunchPath::stream)], 1U);
  change([](fake::FakeConfig& c) { c.function_params = fake::Params::hollow; });
  launch_one();
  EXPECT_EQ(counters.unmasked[at(LaunchPath::stream)], 1U);
  EXPECT_EQ(counters.unmasked[at(LaunchPath::unknown)], 1U);
}

TEST_F(Hook, ALaunchThatEndsBeforeItsStreamIsNotUnderstood) {
  const StreamPlace learned = hook->streams().place();
  ASSERT_TRUE(hook->streams().use_place({StreamPlace::Kind::element, 11}));  // behind 88 bytes
  set_ceiling({2});
  launch_one();
  ASSERT_TRUE(hook->streams().use_place(learned));
  EXPECT_EQ(counters.misunderstood, 1U);
  EXPECT_THAT(reported, HasSubstr("does not show its stream"));
}

// As when a second card is opened whose launches show their streams elsewhere.
TEST_F(Hook, WhileStreamsHaveMasksTheyAreFoundWhereTheyWere) {
  const StreamPlace learned = hook->streams().place();
  {
    const auto of_stream = StreamMask::set(card, stream->handle(), {3});
    const auto refused = hook->streams().use_place({});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("in another way"));
    EXPECT_EQ(hook->streams().place(), learned);
    EXPECT_TRUE(hook->streams().use_place(learned));
    EXPECT_EQ(tpcs_used(), std::vector<std::uint32_t>{3});
  }
  EXPECT_TRUE(hook->streams().use_place({}));
  EXPECT_TRUE(hook->streams().use_place(learned));
}

TEST_F(Hook, AClusterOneBlockTooLargeIsReportedAndOneThatFitsIsNot) {
  hook->set_largest_cluster(4);
  set_ceiling({0, 3});
  LaunchShape shape = LaunchShape::line(20, 32);
  shape.cluster_blocks = 4;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 0U);
  EXPECT_EQ(reported, "");
  shape.cluster_blocks = 5;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 1U);
  EXPECT_THAT(reported, HasSubstr("clusters of 5 blocks would hang"));
}

// A stream's own mask does not lift the limit of the ceiling.
TEST_F(Hook, UnderACeilingClustersOfMaskedStreamsAreLookedAtToo) {
  hook->set_largest_cluster(2);
  const auto of_stream = StreamMask::set(card, stream->handle(), {0, 3});
  LaunchShape shape = LaunchShape::line(12, 32);
  shape.cluster_blocks = 3;
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 0U) << "the limit is the process mask's or the ceiling's";
  set_ceiling({0, 3});
  ASSERT_TRUE(launch(*stream, card->kernels().idle(), shape));
  EXPECT_EQ(counters.unsafe_clusters, 1U);
}

TEST_F(Hook, WhatHopperTellsIsNotCountedAsUnknown) {
  hook->set_largest_cluster(4);
  set_ceiling({2});
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 0U);
  EXPECT_EQ(counters.clusters_unknown, 0U);
}

TEST_F(Hook, BlackwellDoesNotTellLaunchersAndClustersAndThatIsCounted) {
  fake::FakeConfig blackwell = fake::small_gpu();
  blackwell.capability_major = 12;
  blackwell.descriptor_version = 0x50;
  open(blackwell);
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 0U) << "no mask is wanted";
  set_ceiling({2});
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 1U);
  EXPECT_EQ(counters.clusters_unknown, 0U) << "no limit is set";
  hook->set_largest_cluster(4);
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 2U);
  EXPECT_EQ(counters.clusters_unknown, 1U);
  EXPECT_EQ(tpcs_used(), std::vector<std::uint32_t>{2});
}

TEST_F(Hook, CardsBeforeHopperHaveNoClustersThatCouldBeUnknown) {
  fake::FakeConfig ampere = fake::small_gpu();
  ampere.capability_major = 8;
  ampere.descriptor_version = 0x30;
  open(ampere);
  hook->set_largest_cluster(4);
  set_ceiling({2});
  launch_one();
  EXPECT_EQ(counters.launchers_unknown, 1U);
  EXPECT_EQ(counters.clusters_unknown, 0U);
}

TEST_F(Hook, LaunchesInsideAreNotCountedWhenSwitchedOffAndThoseOutsideAre) {
  hook->count_masked(false);
  launch_one();
  set_ceiling({2});
  launch_one();
  hook->count_masked(true);
  EXPECT_EQ(counters.seen(), 1U);
  EXPECT_EQ(counters.unmasked[at(LaunchPath::unknown)] + counters.unmasked[at(LaunchPath::stream)],
            1U);
}

TEST_F(Hook, WordsOfAMaskThatIsNotSwitchedOnAreNotTheDrivers) {
  change([](fake::FakeConfig& c) { c.stale_mask[0] = 0x8; });
  const auto process = ProcessMask::set(card, {2});
  EXPECT_EQ(tpcs_used(), std::vector<std::uint32_t>{2});
  ASSERT_TRUE(hook->last());
  EXPECT_EQ(hook->last()->mask.disabled[0], 0x8U);
  EXPECT_FALSE(hook->last()->enabled);
}

// The driver builds descriptors in place: what the hook wrote for an earlier launch is in them.
TEST_F(Hook, AMaskOfOursThatIsNoLongerWantedIsTakenOut) {
  change([](fake::FakeConfig& c) {
    c.stale_mask[0] = 0x8;
    c.stale_mask[3] = 0x80000000U;
    c.stale_enabled = true;
  });
  EXPECT_EQ(tpcs_used().size(), 12U);
  const auto process = ProcessMask::set(card, {2});
  EXPECT_EQ(tpcs_used(), std::vector<std::uint32_t>{2}) << "ours is not the driver's";
}

TEST_F(Hook, GraphsThatCannotBeRememberedAreStaleOnceMasksChangeAndGoneOnesMakeRoom) {
  std::vector<std::unique_ptr<OneNode>> graphs;
  std::optional<ProcessMask> process(ProcessMask::set(card, {2}).value());
  for (std::size_t i = 0; i <= StreamTable::most_streams; ++i) {
    graphs.push_back(std::make_unique<OneNode>(card, *stream));
    graphs.back()->run();
  }
  EXPECT_EQ(counters.stale_graphs, 0U);
  ASSERT_TRUE(process->change({3}));
  graphs.back()->run();
  EXPECT_EQ(counters.stale_graphs, 1U);
  graphs.clear();
  const OneNode later(card, *stream);
  later.run();
  ASSERT_TRUE(process->change({4}));
  later.run();
  EXPECT_EQ(counters.stale_graphs, 2U) << "it was built under the mask before";
  ASSERT_TRUE(process->change({3}));
  later.run();
  EXPECT_EQ(counters.stale_graphs, 2U) << "it is remembered";
}

TEST(GraphMasks, AGraphKeepsTheMaskOfItsFirstLaunchUntilItGoes) {
  GraphMasks graphs;
  int graph = 0;
  const HardwareMask first{{1, 0, 0, 0}};
  const HardwareMask second{{2, 0, 0, 0}};
  EXPECT_EQ(graphs.at_launch(&graph, first).mask, first);
  EXPECT_EQ(graphs.at_launch(&graph, second).mask, first);
  graphs.forget(&graph);
  EXPECT_EQ(graphs.at_launch(&graph, second).mask, second);
}

TEST(GraphMasks, AGraphTooManyIsUnknownOnceMasksHaveChanged) {
  const auto graphs = std::make_unique<GraphMasks>();
  std::vector<char> places(StreamTable::most_streams + 2);
  const HardwareMask first{{1, 0, 0, 0}};
  const HardwareMask second{{2, 0, 0, 0}};
  for (std::size_t i = 0; i < StreamTable::most_streams; ++i) {
    ASSERT_EQ(graphs->at_launch(&places[i], first).mask, first);
  }
  const char* one = &places[places.size() - 2];
  const char* other = &places.back();
  EXPECT_TRUE(graphs->at_launch(one, first).known);
  EXPECT_TRUE(graphs->at_launch(other, first).known) << "all masks so far are the same";
  EXPECT_FALSE(graphs->at_launch(one, second).known);
  EXPECT_FALSE(graphs->at_launch(one, first).known) << "it may have been built under the second";
  EXPECT_TRUE(graphs->at_launch(&places[0], second).known);
}

}  // namespace
}  // namespace demarc::cuda
