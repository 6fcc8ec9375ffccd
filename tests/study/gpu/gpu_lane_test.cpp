// Lanes of this process: what stays resident, how runs are timed, what is refused.
#include "gpu/gpu_lane.hpp"

#include <cmath>

#include "demarc/ptx/parser.hpp"
#include "lane_fixture.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Workloads by name; what was asked for is noted.
class ResidentSetTest : public LaneFixture {
 protected:
  [[nodiscard]] std::shared_ptr<ResidentSet> set(const LaunchForm& form) {
    return std::make_shared<ResidentSet>(
        gpu, memory,
        [this](const Workload& workload) -> Result<LoadedLaunch> {
          asked.push_back(workload.spec);
          const auto found = known.find(workload.spec);
          if (found == known.end()) return counting_launch(workload.spec, made_bytes, made_fill);
          return found->second;
        },
        form);
  }
  static LaunchForm neighbour() {
    LaunchForm form;
    form.neighbour = true;
    return form;
  }
  Result<Resident> get(ResidentSet& from, const std::string& name) {
    return from.get({"the " + name, name}, *stream);
  }

  std::uint64_t made_bytes = 64;
  gpu::FillKind made_fill = gpu::FillKind::iota;
  std::map<std::string, LoadedLaunch> known;
  std::vector<std::string> asked;
};

TEST_F(ResidentSetTest, going_back_to_a_workload_costs_nothing) {
  const auto kept = set(neighbour());
  const Resident first = get(*kept, "one").value();
  ASSERT_TRUE(get(*kept, "two"));
  const Resident again = get(*kept, "one").value();
  EXPECT_EQ(first.work, again.work);
  EXPECT_EQ(again.launch, again.work);
  EXPECT_THAT(asked, ElementsAre("one", "two"));
  EXPECT_EQ(*memory->used, 2 * (64 + 256U));
}

TEST_F(ResidentSetTest, sixty_four_workloads_stay_and_the_next_one_takes_the_place_of_all) {
  const auto kept = set(neighbour());
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(get(*kept, fmt::format("{}", i)));
  EXPECT_EQ(*memory->used, 64 * (64 + 256U));
  ASSERT_TRUE(get(*kept, "0"));
  EXPECT_THAT(asked, SizeIs(64));
  ASSERT_TRUE(get(*kept, "64"));
  EXPECT_EQ(*memory->used, 64 + 256U);
  ASSERT_TRUE(get(*kept, "0"));
  EXPECT_THAT(asked, SizeIs(66));
}

TEST_F(ResidentSetTest, without_room_what_was_used_earlier_goes_and_once_alone_it_is_an_error) {
  const auto kept = set(neighbour());
  memory->room = 2000;
  made_bytes = 1000;
  ASSERT_TRUE(get(*kept, "one"));
  ASSERT_TRUE(get(*kept, "two")) << "in the room of the first";
  EXPECT_EQ(*memory->used, 1256U);
  made_bytes = 3000;
  const auto refused = get(*kept, "three");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message, "workload 'the three': no room for 3000 bytes");
  EXPECT_EQ(*memory->used, 0U);
  EXPECT_FALSE(get(*kept, "three"));
}

TEST_F(ResidentSetTest, a_workload_that_is_wrong_takes_no_place_of_others) {
  known["wrong"] = counting_launch("wrong", 64);
  known["wrong"].launch.kernels[0].kernel = "recount";
  const auto kept = set(neighbour());
  ASSERT_TRUE(get(*kept, "one"));
  const auto refused = get(*kept, "wrong");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("workload 'the wrong': wrong.ptx: no kernel"));
  EXPECT_EQ(*memory->used, 64 + 256U) << "the first is still there";
}

TEST_F(ResidentSetTest, buffers_lie_on_the_card_or_in_the_host_and_not_here_and_there) {
  LoadedLaunch& mixed = known["mixed"] = two_step_launch();
  mixed.launch.buffers[0].host = true;
  LoadedLaunch& host = known["host"] = two_step_launch();
  for (gpu::Buffer& buffer : host.launch.buffers) buffer.host = true;
  const auto kept = set({});
  EXPECT_EQ(get(*kept, "mixed").error().message,
            "workload 'the mixed': launch 'two steps': 1 of its 3 buffers lie in host memory; "
            "in a study all or none must do so");
  const auto before = memory->placed.size();
  const Resident in_host = get(*kept, "host").value();
  EXPECT_EQ(memory->placed.size(), before);
  EXPECT_EQ(in_host.launch->checked_run(*stream)->digest, two_step_digest());
  known["card"] = two_step_launch();
  const Resident on_card = get(*kept, "card").value();
  EXPECT_GT(memory->placed.size(), before);
  EXPECT_EQ(on_card.launch->checked_run(*stream)->digest, two_step_digest());
}

TEST_F(ResidentSetTest, the_kernels_of_each_memory_are_loaded_once) {
  const auto modules = [] { return test::fake_symbol<std::int64_t()>("fake_live_objects")(); };
  const auto kept = set(neighbour());
  const std::int64_t none = modules();
  ASSERT_TRUE(get(*kept, "one"));
  const std::int64_t one = modules();
  ASSERT_TRUE(get(*kept, "two"));
  EXPECT_EQ(modules() - one, 3) << "a module and two pieces of memory";
  EXPECT_EQ(one - none, 4) << "and the module that all have";
}

// --- Lanes

// Each run takes as much longer than the one before as a step of a loop takes.
LoadedLaunch slowing_launch() {
  return counting_launch("slowing", 64, gpu::FillKind::zero, R"(
  .reg .pred %p<2>;
next:
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra next;
)");
}

class GpuLaneTest : public ResidentSetTest {
 protected:
  std::unique_ptr<Lane> lane(Clock clock, LaunchForm form = {}) {
    known["slowing"] = slowing_launch();
    known["two"] = two_step_launch();
    form.stamps = clock == Clock::gpu;
    return make_gpu_lane(set(form), stream, clock);
  }
  // How many steps further each time is than the one before.
  static std::vector<int> steps(const std::vector<double>& times) {
    std::vector<int> out;
    for (std::size_t i = 1; i < times.size(); ++i) {
      out.push_back(static_cast<int>(std::lround((times[i] - times[i - 1]) / 3)));
    }
    return out;
  }
};

// In batches of 25, with one run in front of each that is not counted.
TEST_F(GpuLaneTest, every_run_is_timed_but_the_one_in_front_of_each_batch) {
  for (const Clock clock : {Clock::gpu, Clock::events}) {
    SCOPED_TRACE(clock_name(clock));
    const auto timed = lane(clock);
    ASSERT_TRUE(timed->load({"slowing", "slowing"}));
    seen_driver.launches.clear();
    const auto times = timed->sample(60, 1000);
    ASSERT_TRUE(times) << times.error().message;
    std::vector<int> expected(59, 1);
    expected[24] = expected[49] = 2;
    EXPECT_EQ(steps(*times), expected);
    EXPECT_THAT(seen_driver.launches, SizeIs(63));
    // A sample of fewer has no more runs than it must.
    seen_driver.launches.clear();
    EXPECT_THAT(timed->sample(2, 1000).value(), SizeIs(2));
    EXPECT_THAT(seen_driver.launches, SizeIs(3));
    EXPECT_THAT(timed->last_runs(), IsEmpty()) << "a run is one kernel";
  }
}

TEST_F(GpuLaneTest, requests_come_one_at_a_time_after_as_much_idle_time_as_the_last_took) {
  static constexpr auto wait = std::chrono::milliseconds(20);
  open(fake::small_gpu(), [](cuda::DriverApi& api) {
    api.cuStreamQuery = [](cuda::CuStream one) -> cuda::CuResult {
      std::this_thread::sleep_for(wait);
      return seen_driver.real.cuStreamQuery(one);
    };
  });
  const auto timed = lane(Clock::requests);
  ASSERT_TRUE(timed->load({"slowing", "slowing"}));
  seen_driver.launches.clear();
  const auto begun = std::chrono::steady_clock::now();
  const auto times = timed->sample(3, 1000);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 6 * wait);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(steps(*times), std::vector<int>(2, 1));
  EXPECT_THAT(seen_driver.launches, SizeIs(3)) << "each is counted";
  EXPECT_THAT(timed->sample(3, 0).value(), SizeIs(1)) << "its time is over";
}

TEST_F(GpuLaneTest, a_victim_has_the_right_of_way_while_it_is_timed) {
  static RightOfWay* watched = nullptr;
  static std::vector<bool> taken;
  taken.clear();
  open(fake::small_gpu(), [](cuda::DriverApi& api) {
    api.cuEventRecord = [](cuda::CuEvent event, cuda::CuStream one) -> cuda::CuResult {
      taken.push_back(watched->is_taken());
      return seen_driver.real.cuEventRecord(event, one);
    };
  });
  known["slowing"] = slowing_launch();
  for (const Clock clock : {Clock::events, Clock::requests}) {
    const auto way = std::make_shared<RightOfWay>();
    watched = way.get();
    const auto timed = make_gpu_lane(set({}), stream, clock, way);
    ASSERT_TRUE(timed->load({"slowing", "slowing"}));
    taken.clear();
    ASSERT_TRUE(timed->sample(3, 1000));
    EXPECT_THAT(taken, SizeIs(clock == Clock::events ? 4 : 6));
    EXPECT_THAT(taken, testing::Each(true));
    EXPECT_FALSE(way->is_taken()) << "after it";
  }
}

TEST_F(GpuLaneTest, when_its_time_is_over_a_sample_ends_with_its_batch) {
  const auto timed = lane(Clock::gpu);
  ASSERT_TRUE(timed->load({"slowing", "slowing"}));
  EXPECT_THAT(timed->sample(60, 0).value(), SizeIs(25));
  EXPECT_THAT(timed->sample(3, -1).value(), SizeIs(3));
  EXPECT_THAT(timed->sample(0, 1).value(), IsEmpty());
}

TEST_F(GpuLaneTest, the_whole_run_stands_beside_the_kernels_of_the_last_sample_alone) {
  const auto timed = lane(Clock::gpu);
  ASSERT_TRUE(timed->load({"two", "two"}));
  const auto times = timed->sample(30, 1000).value();
  const auto whole = timed->last_runs();
  ASSERT_THAT(whole, SizeIs(30));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_GE(whole[i] - times[i], 1000) << "the gap between two launches";
    EXPECT_LE(whole[i] - times[i], 1100);
  }
  EXPECT_THAT(timed->sample(4, 1).value(), SizeIs(4));
  EXPECT_THAT(timed->last_runs(), SizeIs(4));
}

// Two events hold what lies between launches; a graph's arguments stay, so that it is timed by them
// whatever the clock.
TEST_F(GpuLaneTest, events_are_the_clock_where_the_options_say_so_and_of_graphs) {
  const auto times = [&](Clock clock, Launches launches) {
    LaunchForm form;
    form.launches = launches;
    const auto timed = lane(clock, form);
    EXPECT_TRUE(timed->load({"two", "two"}));
    const auto seen = timed->sample(3, 1000).value();
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[1], seen[2]);
    EXPECT_THAT(timed->last_runs(),
                SizeIs(clock == Clock::gpu && launches == Launches::separate ? 3 : 0));
    return seen.front();
  };
  const double kernels = times(Clock::gpu, Launches::separate);
  const double events = times(Clock::events, Launches::separate);
  EXPECT_LT(kernels, 1000);
  EXPECT_GE(events, 2000);
  EXPECT_LT(events, 3000);
  EXPECT_EQ(times(Clock::gpu, Launches::graph), times(Clock::events, Launches::graph));
}

TEST_F(GpuLaneTest, nothing_is_loaded_before_a_load_and_after_one_that_failed) {
  const auto idle = lane(Clock::gpu);
  const auto refuses = [&] {
    const std::string words = "a lane without a loaded workload cannot run";
    EXPECT_EQ(idle->start().error().message, words);
    EXPECT_EQ(idle->sample(1, 1).error().message, words);
    EXPECT_EQ(idle->outputs().error().message, words);
  };
  refuses();
  ASSERT_TRUE(idle->load({"two", "two"}));
  EXPECT_EQ(idle->outputs()->digest, two_step_digest());
  known["wrong"] = counting_launch("wrong", 64);
  known["wrong"].launch.kernels[0].kernel = "recount";
  ASSERT_FALSE(idle->load({"wrong", "wrong"}));
  refuses();
  EXPECT_EQ(idle->stop().value(), 0.0);
  ASSERT_TRUE(idle->load({"two", "two"}));
  EXPECT_GT(*memory->used, 0U);
  ASSERT_TRUE(idle->unload());
  EXPECT_EQ(*memory->used, 0U);
  refuses();
}

TEST_F(GpuLaneTest, a_loop_that_did_not_start_is_none_and_the_next_one_may_start) {
  const auto neighbour_lane = lane(Clock::events, neighbour());
  ASSERT_TRUE(neighbour_lane->load({"two", "two"}));
  test::fake_symbol<void(int)>("fake_fail_next_launch")(719);
  ASSERT_FALSE(neighbour_lane->start());
  EXPECT_EQ(neighbour_lane->stop().value(), 0.0);
  ASSERT_TRUE(neighbour_lane->start());
  const auto rate = neighbour_lane->stop();
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_GT(*rate, 0);
  EXPECT_EQ(neighbour_lane->stop().value(), 0.0) << "it is not stopped twice";
}

// --- Copies

TEST_F(GpuLaneTest, copies_need_a_buffer_and_are_no_launch) {
  known["copies"].copies = CopyDirection::to_card;
  known["copies"].launch.name = "copies";
  const auto copying = lane(Clock::gpu);
  EXPECT_THAT(copying->load({"x", "copies"}).error().message,
              HasSubstr("launch 'copies': it needs a buffer to copy"));
  known["copies"].launch.buffers = {made_buffer("data", 512)};
  known["copies"].launch.kernels.resize(3);
  const auto kept = set({});
  EXPECT_EQ(get(*kept, "copies").value().launch, nullptr);
}

class CopyWorkTest : public ResidentSetTest {};

TEST_F(CopyWorkTest, a_run_copies_as_often_as_it_has_launches_all_of_the_buffer_in_its_direction) {
  static std::vector<std::string> copied;
  copied.clear();
  open(fake::small_gpu(), [](cuda::DriverApi& api) {
    api.cuMemcpyHtoDAsync_v2 = [](cuda::DevicePointer, const void*, std::size_t bytes,
                                  cuda::CuStream) -> cuda::CuResult {
      copied.push_back(fmt::format("in {}", bytes));
      return bytes == 513 ? 719 : 0;
    };
    api.cuMemcpyDtoHAsync_v2 = [](void*, cuda::DevicePointer, std::size_t bytes,
                                  cuda::CuStream) -> cuda::CuResult {
      copied.push_back(fmt::format("out {}", bytes));
      return 0;
    };
  });
  const auto run = [&](CopyDirection direction, std::uint64_t size, std::size_t times) {
    LoadedLaunch& loaded = known["copies"];
    loaded.copies = direction;
    loaded.launch.buffers = {made_buffer("data", size), made_buffer("more", 99)};
    loaded.launch.kernels.resize(times);
    const auto kept = set({});
    return get(*kept, "copies").value().work->enqueue(*stream);
  };
  EXPECT_TRUE(run(CopyDirection::to_card, 512, 3));
  EXPECT_TRUE(run(CopyDirection::to_host, 256, 1));
  EXPECT_THAT(copied, ElementsAre("in 512", "in 512", "in 512", "out 256"));
  EXPECT_THAT(run(CopyDirection::to_card, 513, 1).error().message,
              HasSubstr("cannot copy between host and card"));
}

// --- Memory

TEST_F(LaneFixture, memory_of_the_host_holds_what_is_put_there_and_plain_memory_too) {
  for (const auto& source : {make_host_memory(gpu, false), make_plain_memory(gpu)}) {
    SCOPED_TRACE(source->account());
    auto placed = source->place(64).value();
    std::vector<std::uint32_t> words(16);
    for (std::uint32_t i = 0; i < 16; ++i) words[i] = i * i;
    ASSERT_TRUE(placed->upload(words.data(), 64));
    std::vector<std::uint32_t> back(16);
    ASSERT_TRUE(placed->download(back.data(), 64));
    EXPECT_EQ(back, words);
    EXPECT_NE(placed->address(), 0U);
    EXPECT_FALSE(source->colored());
  }
  EXPECT_EQ(make_host_memory(gpu, true)->account(), "host memory");
  EXPECT_EQ(make_plain_memory(gpu)->account(), "memory not divided");
  EXPECT_TRUE(make_host_memory(gpu, true)->colored());
  EXPECT_FALSE(make_host_memory(gpu, false)->place(0));
}

// What a compiler keeps in local memory without a word in the PTX: 8 bytes of kernels that name
// %stack, on this card.
TEST_F(LaneFixture,
       local_memory_that_only_the_driver_knows_of_is_refused_where_it_would_have_no_colour) {
  const auto parsed = ptx::parse_whole(test::small_module(R"(
.visible .entry tidy() { ret; }
.visible .entry stacked()
{
  .reg .b64 %stack;
  ret;
}
)"),
                                       "some.ptx")
                          .value();
  const cuda::KernelUse tidy[] = {{"tidy", 1, 1}};
  const cuda::KernelUse both[] = {{"tidy", 1, 1}, {"stacked", 1, 1}};
  const auto alone = make_host_memory(gpu, true);
  EXPECT_TRUE(alone->load(parsed, tidy));
  const auto refused = alone->load(parsed, both);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(refused.error().message,
            "some.ptx: kernel 'stacked' keeps 8 bytes per thread in local memory, which has no "
            "colour");
  EXPECT_TRUE(make_host_memory(gpu, false)->load(parsed, both));
}

}  // namespace
}  // namespace demarc::study
