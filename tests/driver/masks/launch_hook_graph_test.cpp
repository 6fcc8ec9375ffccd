// What the launch callback makes of graphs and of memory synchronisation domains, on the stand-in.
#include "demarc/driver/call_parameters.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "hook_fixture.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// A graph of nodes in a row, captured from the stream.
class NodesInARow {
 public:
  NodesInARow(const CardPointer& card, const Stream& stream, int nodes)
      : api_(card->gpu()->api()), stream_(stream) {
    api_.cuStreamBeginCapture_v2(stream.handle(), cu_capture_thread_local);
    for (int i = 0; i < nodes; ++i) {
      EXPECT_TRUE(launch(stream, card->kernels().idle(), LaunchShape::line(48, 32)));
    }
    api_.cuStreamEndCapture(stream.handle(), &graph_);
    api_.cuGraphInstantiateWithFlags(&executable_, graph_, 0);
  }
  ~NodesInARow() {
    api_.cuGraphExecDestroy(executable_);
    api_.cuGraphDestroy(graph_);
  }
  NodesInARow(const NodesInARow&) = delete;
  NodesInARow& operator=(const NodesInARow&) = delete;
  void run() const { EXPECT_EQ(api_.cuGraphLaunch(executable_, stream_.handle()), 0); }
  void upload() const {
    const auto upload = test::fake_symbol<CuResult(CuGraphExec, CuStream)>("cuGraphUpload");
    EXPECT_EQ(upload(executable_, stream_.handle()), 0);
  }

 private:
  const DriverApi& api_;
  const Stream& stream_;
  CuGraph graph_ = nullptr;
  CuGraphExec executable_ = nullptr;
};

class OneNode : public NodesInARow {
 public:
  OneNode(const CardPointer& card, const Stream& stream) : NodesInARow(card, stream, 1) {}
};

std::uint32_t domain_of_last_launch() {
  return test::fake_symbol<std::uint32_t()>("fake_last_domain")();
}

TEST_F(Hook, a_domain_is_that_of_every_launch_whatever_its_stream_has) {
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

TEST_F(Hook, launches_that_cannot_have_their_domain_are_counted) {
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

TEST_F(Hook, a_graph_is_inside_a_ceiling_when_it_keeps_nothing_else) {
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

TEST_F(Hook, a_graph_built_before_there_was_a_ceiling_is_outside) {
  ASSERT_TRUE(hook->count_paths());
  const OneNode graph(card, *stream);
  graph.run();
  counters.unmasked[at(LaunchPath::graph)] = 0;
  set_ceiling({3});
  graph.run();
  EXPECT_EQ(counters.unmasked[at(LaunchPath::graph)], 1U);
  EXPECT_EQ(counters.stale_graphs, 1U);
}

// The driver shows one descriptor more, without a block, before ten kernels in a row.
TEST_F(Hook, a_graph_has_as_many_launches_as_kernels_that_ran) {
  ASSERT_TRUE(hook->count_paths());
  const auto unmasked = [&] { return counters.unmasked[at(LaunchPath::graph)].load(); };
  const auto masked = [&] { return counters.masked[at(LaunchPath::graph)].load(); };
  const NodesInARow graph(card, *stream, 10);
  graph.run();
  graph.run();
  EXPECT_EQ(unmasked(), 20U);
  set_ceiling({2});
  const NodesInARow other(card, *stream, 10);
  other.run();
  EXPECT_EQ(masked(), 10U);
  EXPECT_EQ(counters.masked_blocks[at(LaunchPath::graph)], 480U);
}

TEST_F(Hook, an_uploaded_graph_is_built_under_the_mask_of_then_and_counted_as_it_is_launched) {
  ASSERT_TRUE(hook->count_paths());
  const auto masked = [&] { return counters.masked[at(LaunchPath::graph)].load(); };
  set_ceiling({2, 3});
  const OneNode graph(card, *stream);
  graph.upload();
  EXPECT_EQ(counters.seen(), 0U);
  EXPECT_EQ(counters.graphs, 0U);
  EXPECT_TRUE(counters.has_graphs()) << "it keeps its mask";
  graph.run();
  EXPECT_EQ(masked(), 1U);
  EXPECT_EQ(counters.seen(), 1U);
  EXPECT_EQ(counters.graphs, 1U);
  EXPECT_EQ(counters.stale_graphs, 0U);
  const OneNode other(card, *stream);
  other.upload();
  set_ceiling({4});
  other.run();
  EXPECT_EQ(masked(), 1U);
  EXPECT_EQ(counters.unmasked[at(LaunchPath::graph)], 1U) << "it keeps TPCs 2 and 3";
  EXPECT_EQ(counters.stale_graphs, 1U);
}

TEST_F(Hook, a_graph_that_is_instantiated_with_an_upload_is_built_then) {
  ASSERT_TRUE(hook->count_paths());
  set_ceiling({2, 3});
  const auto& api = card->gpu()->api();
  const auto instantiate = test::fake_symbol<CuResult(CuGraphExec*, CuGraph, CuInstantiation*)>(
      "cuGraphInstantiateWithParams");
  CuGraph graph = nullptr;
  api.cuStreamBeginCapture_v2(stream->handle(), cu_capture_thread_local);
  launch_one();
  api.cuStreamEndCapture(stream->handle(), &graph);
  CuInstantiation how{CuInstantiation::upload, stream->handle()};
  CuGraphExec executable = nullptr;
  ASSERT_EQ(instantiate(&executable, graph, &how), cu_success);
  EXPECT_EQ(counters.seen(), 0U);
  ASSERT_EQ(api.cuGraphLaunch(executable, stream->handle()), cu_success);
  EXPECT_EQ(counters.masked[at(LaunchPath::graph)], 1U);
  EXPECT_EQ(counters.stale_graphs, 0U);
  CuGraphExec other = nullptr;
  set_ceiling({5});
  ASSERT_EQ(instantiate(&other, graph, &how), cu_success);
  set_ceiling({4});
  ASSERT_EQ(api.cuGraphLaunch(other, stream->handle()), cu_success);
  EXPECT_EQ(counters.unmasked[at(LaunchPath::graph)], 1U) << "it keeps TPC 5";
  EXPECT_EQ(counters.stale_graphs, 1U);
  for (const CuGraphExec one : {executable, other}) api.cuGraphExecDestroy(one);
  api.cuGraphDestroy(graph);
}

TEST_F(Hook, a_kernel_that_fills_memory_is_counted_as_such) {
  ASSERT_TRUE(hook->count_paths());
  change([](fake::FakeConfig& c) { c.fills_launch = true; });
  const DeviceBuffer buffer = DeviceBuffer::allocate(card->gpu(), std::size_t{64}).value();
  set_ceiling({2});
  const auto& api = card->gpu()->api();
  ASSERT_EQ(api.cuMemsetD32Async(buffer.address(), 1, 16, stream->handle()), cu_success);
  EXPECT_EQ(counters.masked[at(LaunchPath::copy_or_fill)], 1U);
  EXPECT_EQ(counters.masked_blocks[at(LaunchPath::copy_or_fill)], 4U);
  launch_one();
  EXPECT_EQ(counters.masked[at(LaunchPath::stream)], 1U);
  EXPECT_EQ(counters.seen(), 2U);
}

TEST_F(Hook, a_graph_kept_under_the_drivers_mask_is_judged_like_a_launch) {
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

TEST_F(Hook, a_node_of_a_graph_that_cannot_be_read_is_counted_as_refused) {
  ASSERT_TRUE(hook->count_paths());
  set_ceiling({3});
  const OneNode graph(card, *stream);
  change([](fake::FakeConfig& c) { c.descriptor_version = 0x4f; });
  graph.run();
  EXPECT_EQ(counters.refused[at(LaunchPath::graph)], 1U);
  EXPECT_THAT(reported, HasSubstr("unknown version"));
}

TEST_F(Hook, graphs_that_cannot_be_remembered_are_stale_once_masks_change_and_gone_ones_make_room) {
  std::vector<std::unique_ptr<OneNode>> graphs;
  std::optional<ProcessMask> process(ProcessMask::set(card, {2}).value());
  for (std::size_t i = 0; i <= StreamTable::max_streams; ++i) {
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

TEST(GraphMasks, a_graph_keeps_the_mask_of_its_first_launch_until_it_goes) {
  GraphMasks graphs;
  int graph = 0;
  const HardwareMask first{{1, 0, 0, 0}};
  const HardwareMask second{{2, 0, 0, 0}};
  EXPECT_EQ(graphs.at_launch(&graph, first).mask, first);
  EXPECT_EQ(graphs.at_launch(&graph, second).mask, first);
  graphs.forget(&graph);
  EXPECT_EQ(graphs.at_launch(&graph, second).mask, second);
}

TEST(GraphMasks, a_graph_too_many_is_unknown_once_masks_have_changed) {
  const auto graphs = std::make_unique<GraphMasks>();
  std::vector<char> places(StreamTable::max_streams + 2);
  const HardwareMask first{{1, 0, 0, 0}};
  const HardwareMask second{{2, 0, 0, 0}};
  for (std::size_t i = 0; i < StreamTable::max_streams; ++i) {
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
