// A launch made ready on a card: what it writes, whether it repeats, its times, and its room.
#include "gpu/resident_launch.hpp"

#include "resident_launch_fixture.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(ResidentLaunchTest, outputs_and_what_its_kernels_write_is_kept_as_it_was_and_nothing_else) {
  // Inputs and outputs, 256 bytes for digests; copies of b, which is written, and c, an output.
  ASSERT_TRUE(make(two_step_launch()));
  EXPECT_THAT(memory->placed, ElementsAre(4000, 4000, 4000, 256, 4000, 4000));
  // An output that no kernel writes is one all the same.
  memory->placed.clear();
  LoadedLaunch more = two_step_launch();
  more.launch.buffers.push_back(made_buffer("d", 9, gpu::FillKind::zero, true));
  more.launch.buffers.push_back(made_buffer("e", 8, gpu::FillKind::zero));
  more.launch.buffers.push_back(made_buffer("f", 12, gpu::FillKind::iota));
  const auto made = make(more);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(memory->placed, ElementsAre(4000, 4000, 4000, 12, 8, 12, 256, 4000, 4000, 12));
  LaunchForm neighbour;
  neighbour.neighbour = true;
  memory->placed.clear();
  ASSERT_TRUE(make(two_step_launch(), neighbour));
  EXPECT_THAT(memory->placed, ElementsAre(4000, 4000, 4000, 256));
  EXPECT_THAT(own_launches(), IsEmpty());
}

TEST_F(ResidentLaunchTest,
       first_contents_that_were_made_already_are_taken_and_given_up_once_they_are_known) {
  for (const bool neighbour : {false, true}) {
    LoadedLaunch loaded = two_step_launch();
    auto contents = std::make_shared<gpu::Memory>(3);
    const std::vector<std::uint32_t> fives(step_elements, 5);
    (*contents)[0].resize(4 * step_elements);
    std::memcpy((*contents)[0].data(), fives.data(), 4 * step_elements);
    const std::weak_ptr<gpu::Memory> alive = contents;
    loaded.contents = std::move(contents);
    LaunchForm form;
    form.neighbour = neighbour;
    const auto made = make(std::move(loaded), form);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(alive.expired(), !neighbour) << "a neighbour's first contents may be asked for";
    std::vector<std::uint32_t> b(step_elements);
    for (std::uint32_t i = 0; i < step_elements; ++i) b[i] = 15 + i;
    const std::vector<std::uint32_t> c(step_elements, 30 + step_elements - 1);
    EXPECT_EQ((*made)->checked_run(*stream)->digest, digest_of_outputs({{1, b}, {2, c}}));
    EXPECT_TRUE(alive.expired());
  }
}

TEST_F(ResidentLaunchTest, a_buffer_that_does_not_read_back_is_an_error) {
  memory->wrong_upload = 1;  // of a
  EXPECT_EQ(refusal(two_step_launch()),
            "buffer 'a' of 'two steps' does not read back as it was written");
  EXPECT_EQ(kind, ErrorKind::check_failed);
}

TEST_F(ResidentLaunchTest, an_error_of_the_card_while_a_launch_is_made_ready_is_its_error) {
  // The zeros of b are written to an address that is not mapped; the driver tells when it is waited
  // for.
  LaunchForm neighbour;
  neighbour.neighbour = true;
  memory->lost_place = 2;
  testing::internal::CaptureStderr();
  EXPECT_THAT(refusal(two_step_launch(), neighbour), HasSubstr("ILLEGAL_ADDRESS"));
  testing::internal::GetCapturedStderr();
}

TEST_F(ResidentLaunchTest, each_checked_run_begins_with_fresh_inputs) {
  const auto made = make(counting_launch("count", 256));
  ASSERT_TRUE(made) << made.error().message;
  std::vector<std::uint32_t> one(64);
  one[0] = 1;
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE((*made)->enqueue(*stream));
    const auto outputs = (*made)->checked_run(*stream);
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_TRUE(outputs->exact);
    EXPECT_EQ(outputs->digest, digest_of_outputs({{0, one}}));
  }
}

// Adds up in a variable of the module, which is not restored: the fourth run gives 4.
LoadedLaunch drifting_launch(double absolute, double relative, const std::string& last) {
  LoadedLaunch loaded;
  loaded.launch.name = "drifting";
  loaded.launch.ptx = "drifting.ptx";
  loaded.launch.check.absolute = absolute;
  loaded.launch.check.relative = relative;
  loaded.ptx = test::small_module(".visible .global .align 4 .f32 runs;\n", R"(
.visible .entry drift(.param .u64 other, .param .u64 out)
{
  .reg .f32 %f<4>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.global.f32 %f1, [runs];
  add.f32 %f1, %f1, 0f3F800000;
  st.global.f32 [runs], %f1;
)" + last + R"(
  st.global.f32 [%rd1+20], %f1;
  ret;
}
)");
  loaded.launch.buffers = {made_buffer("other", 64), made_buffer("out", 24)};
  loaded.launch.buffers[1].output = true;
  loaded.launch.buffers[1].element = gpu::ScalarType::f32;
  loaded.launch.kernels = {made_kernel("drift", {1}, {1}, {gpu::BufferUse{0}, gpu::BufferUse{1}})};
  return loaded;
}

TEST_F(ResidentLaunchTest,
       outputs_that_do_not_repeat_are_compared_with_their_first_within_the_check) {
  const auto mismatch = [&](double absolute, double relative, const std::string& last = "") {
    const auto made = make(drifting_launch(absolute, relative, last));
    EXPECT_TRUE(made) << made.error().message;
    const auto outputs = (*made)->checked_run(*stream);
    EXPECT_TRUE(outputs) << outputs.error().message;
    EXPECT_FALSE(outputs->exact);
    return outputs->mismatch;
  };
  EXPECT_EQ(mismatch(0, 0), "element 5 of 'out' is 3, but its first run gave 2");
  EXPECT_EQ(mismatch(0.99, 0), "element 5 of 'out' is 3, but its first run gave 2");
  EXPECT_EQ(mismatch(1, 0), "");
  EXPECT_EQ(mismatch(0, 0.49), "element 5 of 'out' is 3, but its first run gave 2");
  EXPECT_EQ(mismatch(0, 0.5), "");
  EXPECT_EQ(mismatch(0.5, 0.25), "");
  EXPECT_EQ(mismatch(0.4, 0.25), "element 5 of 'out' is 3, but its first run gave 2");
  // Down from 4: -2, -3.
  EXPECT_EQ(mismatch(0.9, 0, "  neg.f32 %f1, %f1;\n"),
            "element 5 of 'out' is -3, but its first run gave -2");
  EXPECT_EQ(mismatch(0, 0.5, "  neg.f32 %f1, %f1;\n"), "");
  // What is not a number in both is the same, in one it is not.
  const std::string nan_in_first = R"(
  .reg .pred %p<2>;
  mov.f32 %f2, 0f7FC00000;
  setp.eq.f32 %p1, %f1, 0f40000000;
  @%p1 mov.f32 %f1, %f2;
)";
  EXPECT_EQ(mismatch(9, 9, nan_in_first), "element 5 of 'out' is 3, but its first run gave nan");
  const std::string both = R"(
  mov.b32 %r1, %f1;
  shr.u32 %r1, %r1, 22;
  and.b32 %r1, %r1, 3;
  or.b32 %r1, %r1, 0x7fc00000;
  mov.b32 %f1, %r1;
)";
  EXPECT_EQ(mismatch(0, 0, both), "");
}

TEST_F(ResidentLaunchTest, outputs_that_do_not_repeat_are_noticed_in_the_first_buffer_too) {
  LoadedLaunch first = drifting_launch(0, 0, "");
  std::swap(first.launch.buffers[0], first.launch.buffers[1]);
  first.launch.kernels = {made_kernel("drift", {1}, {1}, {gpu::BufferUse{1}, gpu::BufferUse{0}})};
  const auto made = make(std::move(first));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)->checked_run(*stream)->mismatch,
            "element 5 of 'out' is 3, but its first run gave 2");
}

// One run's kernels and the gap between them, 1000 ns on this card, in places of their own.
TEST_F(ResidentLaunchTest, stamps_tell_the_kernels_of_each_run_and_the_whole_run) {
  LaunchForm form;
  form.stamps = true;
  EXPECT_EQ(ResidentLaunch::stamped_runs, 26U);
  const auto made = make(two_step_launch(), form);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE((*made)->stamped());
  EXPECT_EQ((*made)->launches(), 2U);
  EXPECT_EQ((*made)->run_times(0)->size(), 0U);
  for (std::uint32_t run = 0; run < ResidentLaunch::stamped_runs; ++run) {
    ASSERT_TRUE((*made)->enqueue(*stream, run));
  }
  ASSERT_TRUE(stream->wait());
  const auto times = (*made)->run_times(ResidentLaunch::stamped_runs);
  ASSERT_TRUE(times) << times.error().message;
  ASSERT_THAT(*times, SizeIs(26));
  for (const RunTime& time : *times) {
    EXPECT_GT(time.kernels_ns, 0);
    EXPECT_EQ(time.kernels_ns, times->front().kernels_ns);
    EXPECT_EQ(time.span_ns, times->front().span_ns);
    EXPECT_GE(time.span_ns - time.kernels_ns, 1000);
    EXPECT_LE(time.span_ns - time.kernels_ns, 1100);
    EXPECT_LT(time.kernels_ns, 1000);
  }
  EXPECT_THAT(memory->placed, testing::Contains(26 * 2 * 512U));
}

TEST_F(ResidentLaunchTest, a_run_without_stamps_or_in_a_graph_tells_no_times) {
  LaunchForm form;
  for (const Launches launches : {Launches::graph, Launches::overlapped_graph}) {
    form = form_of(launches);
    form.stamps = true;
    const auto graph = make(two_step_launch(), form);
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_FALSE((*graph)->stamped()) << "arguments of a graph stay";
    EXPECT_THAT((*graph)->run_times(3).value(), IsEmpty());
  }
  EXPECT_FALSE((*make(two_step_launch()))->stamped());
  form = form_of(Launches::overlapped);
  form.stamps = true;
  const auto both = make(two_step_launch(), form);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_TRUE((*both)->stamped());
  EXPECT_EQ((*both)->checked_run(*stream)->digest, two_step_digest());
}

TEST_F(ResidentLaunchTest, without_room_for_any_of_its_pieces_it_is_missing) {
  const auto placed = [&](LaunchForm form) {
    form.stamps = form.launches == Launches::separate;
    memory->placed.clear();
    EXPECT_TRUE(make(two_step_launch(), form));
    return memory->placed;
  };
  for (LaunchForm form : {LaunchForm{}, form_of(Launches::fused, 24), affine_on_six_to_nine()}) {
    const auto sizes = placed(form);
    ASSERT_EQ(*memory->used, 0U) << "all is given back";
    form.stamps = form.launches == Launches::separate;
    for (std::size_t without = 0; without < sizes.size(); ++without) {
      memory->room = 0;
      for (std::size_t i = 0; i < without; ++i) memory->room += sizes[i];
      EXPECT_THAT(refusal(two_step_launch(), form),
                  HasSubstr(fmt::format("no room for {} bytes", sizes[without])));
      EXPECT_EQ(kind, ErrorKind::missing_capability);
    }
    memory->room = std::size_t{1} << 30U;
  }
}

}  // namespace
}  // namespace demarc::study
