// Neighbours on a real GPU: what they get, how they run, and what they leave behind.
#include "gpu_executor_fixture.hpp"

namespace demarc::study {
namespace {

using testing::HasSubstr;

class GpuNeighbours : public GpuExecutorTest {};

TEST_F(GpuNeighbours, memory_of_the_host_is_used_as_it_is_by_lanes_with_and_without_colours) {
  const auto executor = open();
  for (const char* name : {"none", "mask+color"}) {
    SCOPED_TRACE(name);
    const auto stage = executor->divide(parse_modes(name)->at(0), 2);
    ASSERT_TRUE(stage) << stage.error().message;
    expect_right((*stage)->lane(1), true, in_host[1]);
    const auto mixed = (*stage)->lane(1).load(in_host[0]);
    ASSERT_FALSE(mixed);
    EXPECT_THAT(
        mixed.error().message,
        HasSubstr("2 of its 3 buffers lie in host memory; in a study all or none must do so"));
  }
}

TEST_F(GpuNeighbours, copies_are_neighbours_in_either_direction_and_never_victims) {
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("mask")->at(0), 2).value();
  const auto copies = test::fake_symbol<std::uint64_t(int)>("fake_async_copies");
  Lane& lane = stage->lane(1);
  const std::string file = two_steps.spec.substr(std::string_view("launch").size());
  for (const bool in : {true, false}) {
    const std::string name = in ? "copy_in" : "copy_out";
    for (const std::string& spec : {name, name + file}) {
      SCOPED_TRACE(spec);
      ASSERT_TRUE(lane.load({"copies", spec}));
      const std::uint64_t other = copies(!in);
      const std::uint64_t before = copies(in);
      ASSERT_TRUE(lane.start());
      const auto rate = lane.stop();
      ASSERT_TRUE(rate) << rate.error().message;
      EXPECT_GE(copies(in), before + (spec == name ? 2 : 4)) << "as many a run as it has launches";
      EXPECT_EQ(copies(!in), other);
      EXPECT_THAT(lane.sample(1, 1).error().message,
                  HasSubstr("can be an aggressor, but not a victim"));
      EXPECT_THAT(lane.outputs().error().message, HasSubstr("can be an aggressor"));
    }
  }
  EXPECT_FALSE(lane.load({"x", "copy_around"}));
  EXPECT_THAT(lane.start().error().message, HasSubstr("a lane without a loaded workload"));
  std::string no_buffer = file;
  no_buffer.replace(no_buffer.rfind("two_steps.json"), std::string::npos, "no_buffer.json");
  EXPECT_THAT(lane.load({"x", "copy_in" + no_buffer}).error().message,
              HasSubstr("launch 'no_buffer': it needs a buffer to copy"));
  EXPECT_EQ(executor->code_of({"copy_in", "copy_in"}).error().kind, ErrorKind::missing_capability);
}

TEST_F(GpuNeighbours, a_neighbour_takes_no_memory_for_outputs_that_nobody_asks_for) {
  const auto alive = test::fake_symbol<std::uint64_t()>("fake_allocated_bytes");
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("none")->at(0), 2).value();
  const auto taken_by = [&](std::uint32_t part) {
    const std::uint64_t before = alive();
    EXPECT_TRUE(stage->lane(part).load(two_steps));
    return alive() - before;
  };
  const std::uint64_t of_a_victim = taken_by(0);
  const std::uint64_t of_a_neighbour = taken_by(1);
  EXPECT_GE(of_a_victim, of_a_neighbour + 2 * 4 * elements) << "copies of b and c";
  EXPECT_GE(of_a_neighbour, 3 * 4 * elements);
  EXPECT_EQ(stage->lane(1).outputs()->digest, reference_digest()) << "made ready when asked for";
}

TEST_F(GpuNeighbours, neighbours_get_host_memory_copies_and_most_of_what_their_part_has) {
  const auto executor = open();
  const auto means = [&](std::string_view mode, std::uint32_t parts) {
    return executor->neighbour_means(parse_modes(mode)->at(0), parts).value();
  };
  EXPECT_FALSE(means("mask", 2).lacking.contains(Need::host_memory));
  EXPECT_FALSE(means("mask", 2).lacking.contains(Need::copy_engines));
  constexpr std::uint64_t free = std::uint64_t{1} << 30U;  // what the stand-in says
  EXPECT_EQ(means("mask", 2).bytes, free / 4 * 3);
  EXPECT_EQ(means("mask", 4).bytes, free / 3 / 4 * 3);
  EXPECT_EQ(means("mask+color", 2).bytes, std::uint64_t{4} * (2U << 20U) / 2 / 4 * 3);
}

// Each run adds one to its buffer, so that what a neighbour left there would be seen.
std::string counting_ptx(const std::string& more_variables, const std::string& more_code) {
  return R"(.version 8.0
.target sm_90
.address_size 64
)" + more_variables +
         R"(.visible .entry count(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd1], %r2;
)" + more_code +
         "  ret;\n}\n";
}

Workload counting(const std::string& name, const std::string& ptx, const std::string& memory) {
  const auto folder = test::fresh_folder("gpu_executor_" + name);
  EXPECT_TRUE(write_file((folder / "count.ptx").string(), ptx));
  EXPECT_TRUE(write_file((folder / "count.json").string(),
                         R"({"schema": "demarc.launch/1", "name": "count", "ptx": "count.ptx",
    "buffers": [{"name": "out", "bytes": 256, "element": "u32", "output": true, "memory": ")" +
                             memory + R"("}],
    "launches": [{"kernel": "count", "grid": 1, "block": 64, "args": ["buf:out"]}]})"));
  return {name, "launch:" + (folder / "count.json").string()};
}

TEST_F(GpuNeighbours, what_a_neighbour_left_in_its_buffers_is_gone_when_its_outputs_are_asked_for) {
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("mask+color")->at(0), 2).value();
  Lane& lane = stage->lane(1);
  ASSERT_TRUE(lane.load(counting("left", counting_ptx("", ""), "device")));
  ASSERT_TRUE(lane.start());
  ASSERT_TRUE(lane.stop());
  const auto outputs = lane.outputs();
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_EQ(outputs->digest,
            hash_of(std::uint64_t{0}, digest_of(std::vector<std::uint32_t>(64, 1), 0)));
}

TEST_F(GpuNeighbours, under_colours_kernels_on_memory_of_the_host_use_no_other_memory_of_the_card) {
  const auto executor = open();
  const auto refusal = [&](std::string_view mode, const Workload& workload) {
    const auto stage = executor->divide(parse_modes(mode)->at(0), 2).value();
    const auto loaded = stage->lane(1).load(workload);
    return loaded ? "" : loaded.error().message;
  };
  const Workload plain = counting("plain", counting_ptx("", ""), "host");
  const Workload variable = counting(
      "variable",
      counting_ptx(".visible .global .align 4 .u32 own[64];\n", "  st.global.u32 [own], %r2;\n"),
      "host");
  const Workload local = counting(
      "local", counting_ptx("", "  .local .align 4 .b8 own[64];\n  st.local.u32 [own], %r2;\n"),
      "host");
  EXPECT_EQ(refusal("mask+color", plain), "");
  EXPECT_THAT(refusal("mask+color", variable),
              HasSubstr("its kernels use 256 bytes of variables and 0 bytes of local memory"));
  EXPECT_THAT(refusal("mask+color", local), HasSubstr("64 bytes of local memory per thread"));
  EXPECT_EQ(refusal("mask", variable), "");
  EXPECT_EQ(refusal("mask", local), "");
}

TEST_F(GpuNeighbours, an_aggressor_loops_from_start_to_stop_while_the_victim_is_timed) {
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("mask")->at(0), 2).value();
  Lane& victim = stage->lane(0);
  Lane& aggressor = stage->lane(1);
  ASSERT_TRUE(victim.load(two_steps));
  ASSERT_TRUE(aggressor.load(two_steps));
  const auto launches = test::fake_symbol<std::uint64_t()>("fake_launch_count");
  ASSERT_TRUE(aggressor.start());
  const std::uint64_t before = launches();
  // A busy machine may let the victim end before the aggressor's thread has a turn.
  std::uint64_t own = 0;
  do {
    ASSERT_TRUE(victim.sample(5, 10));
    own += 2 * 6;  // the victim alone launches six runs of two kernels
  } while (launches() <= before + own + 2 * 2 && own < 120'000);
  const auto rate = aggressor.stop();
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_GT(*rate, 0);
  const std::uint64_t after = launches();
  EXPECT_GT(after, before + own);
  EXPECT_EQ(victim.outputs()->digest, reference_digest());
  EXPECT_EQ(launches() - after, 2 + 2 + 2) << "copies, kernels, digests: the loop has ended";
  EXPECT_EQ(aggressor.stop().value(), 0.0) << "nothing to stop";
}

TEST_F(GpuNeighbours, a_launch_that_cannot_be_started_ends_a_loop_with_its_error) {
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("none")->at(0), 2).value();
  Lane& lane = stage->lane(1);
  ASSERT_TRUE(lane.load(two_steps));
  test::fake_symbol<void(int)>("fake_fail_next_launch")(719);
  const auto started = lane.start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("cannot launch kernel 'scale'"));
}

}  // namespace
}  // namespace demarc::study
