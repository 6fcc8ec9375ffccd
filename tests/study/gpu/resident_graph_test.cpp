// Graphs and overlapped launches made ready on a card: how they run, and where they are missing.
#include "resident_launch_fixture.hpp"

namespace demarc::study {
namespace {

using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

TEST_F(ResidentLaunchTest, overlapped_launches_and_the_edges_of_their_graphs_are_programmatic) {
  for (const Launches launches : {Launches::overlapped, Launches::overlapped_graph}) {
    const auto made = make(two_step_launch(), form_of(launches));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_THAT(own_launches(), Each(Field(&SeenLaunch::overlapped, true)));
    // A graph is captured once.
    EXPECT_THAT(own_launches(), SizeIs(launches == Launches::overlapped ? 4 : 2));
    EXPECT_EQ((*made)->checked_run(*stream)->digest, two_step_digest());
  }
  for (const Launches launches : {Launches::separate, Launches::graph, Launches::fused}) {
    ASSERT_TRUE(make(two_step_launch(), form_of(launches, 24)));
    EXPECT_THAT(own_launches(), Each(Field(&SeenLaunch::overlapped, false)));
    EXPECT_THAT(own_launches(), SizeIs(launches == Launches::separate ? 4 : 2));
  }
}

TEST_F(ResidentLaunchTest, overlapped_launches_need_compute_capability_nine) {
  fake::FakeConfig config = fake::small_gpu();
  config.capability_major = 8;
  open(config, [](cuda::DriverApi&) {});
  for (const Launches launches : {Launches::overlapped, Launches::overlapped_graph}) {
    EXPECT_EQ(refusal(two_step_launch(), form_of(launches)),
              "Fake GPU: overlapped launches need compute capability 9.0");
    EXPECT_EQ(kind, ErrorKind::missing_capability);
  }
  EXPECT_EQ(refusal(two_step_launch(), form_of(Launches::graph)), "none");
  EXPECT_EQ(refusal(two_step_launch()), "none");
}

TEST_F(ResidentLaunchTest, graphs_are_missing_where_the_driver_lacks_either_half_of_them) {
  const auto no_capture = [](cuda::DriverApi& api) { api.cuStreamBeginCapture_v2 = nullptr; };
  const auto no_graphs = [](cuda::DriverApi& api) { api.cuGraphInstantiateWithFlags = nullptr; };
  open(fake::small_gpu(), no_capture);
  EXPECT_EQ(refusal(two_step_launch(), form_of(Launches::graph)),
            "Fake GPU: the driver has no graphs");
  EXPECT_EQ(kind, ErrorKind::missing_capability);
  open(fake::small_gpu(), no_graphs);
  EXPECT_EQ(refusal(two_step_launch(), form_of(Launches::graph)),
            "Fake GPU: the driver has no graphs");
  EXPECT_EQ(refusal(two_step_launch()), "none");
}

TEST_F(ResidentLaunchTest, a_graph_that_cannot_be_made_is_an_error_and_leaves_nothing) {
  const auto alive = test::fake_symbol<std::int64_t()>("fake_live_objects");
  const std::int64_t before = alive();
  ASSERT_TRUE(make(two_step_launch(), form_of(Launches::graph)));
  EXPECT_EQ(alive(), before) << "its graph goes with the launch";
  const auto fails = [&](const auto& change, const std::string& words) {
    open(fake::small_gpu(), change);
    const std::int64_t at_first = alive();
    EXPECT_THAT(refusal(two_step_launch(), form_of(Launches::graph)), HasSubstr(words));
    EXPECT_EQ(alive(), at_first);
  };
  fails(
      [](cuda::DriverApi& api) {
        api.cuGraphInstantiateWithFlags = [](cuda::CuGraphExec*, cuda::CuGraph,
                                             unsigned long long) -> cuda::CuResult { return 801; };
      },
      "cannot make a graph ready");
  fails(
      [](cuda::DriverApi& api) {
        api.cuStreamBeginCapture_v2 = [](cuda::CuStream, int) -> cuda::CuResult { return 901; };
      },
      "cannot capture a graph");
  fails(
      [](cuda::DriverApi& api) {
        api.cuGraphLaunch = [](cuda::CuGraphExec, cuda::CuStream) -> cuda::CuResult { return 719; };
      },
      "cannot launch a graph");
  fails(
      [](cuda::DriverApi& api) {
        api.cuStreamEndCapture = [](cuda::CuStream of, cuda::CuGraph* graph) -> cuda::CuResult {
          const auto code = seen_driver.real.cuStreamEndCapture(of, graph);
          seen_driver.real.cuGraphDestroy(*graph);
          return code == cuda::cu_success ? 901 : code;
        };
      },
      "capturing a graph");
}

// A launch into the capture fails: that is the error, and the capture is at its end.
TEST_F(ResidentLaunchTest, a_launch_that_fails_in_a_capture_is_the_error_of_the_graph) {
  const auto made = make(two_step_launch(), form_of(Launches::graph));
  LaunchForm neighbour = form_of(Launches::graph);
  neighbour.neighbour = true;
  const auto idle = make(two_step_launch(), neighbour);
  ASSERT_TRUE(idle);
  test::fake_symbol<void(int)>("fake_fail_next_launch")(719);
  const auto failed = (*idle)->enqueue(*stream);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("cannot launch kernel 'scale'"));
  EXPECT_EQ((*idle)->checked_run(*stream)->digest, two_step_digest()) << "nothing is captured now";
}

}  // namespace
}  // namespace demarc::study
