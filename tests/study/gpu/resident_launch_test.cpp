// A launch made ready on a card: its forms, what it writes, whether it repeats, and its times.
#include "gpu/resident_launch.hpp"

#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/fused.hpp"
#include "lane_fixture.hpp"

namespace demarc::study {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ResidentLaunchTest : public LaneFixture {
 protected:
  Result<std::unique_ptr<ResidentLaunch>> make(LoadedLaunch loaded, const LaunchForm& form = {}) {
    auto support = SupportKernels::load(*memory);
    EXPECT_TRUE(support) << support.error().message;
    seen_driver.launches.clear();
    return ResidentLaunch::make(gpu, *memory,
                                std::make_shared<const SupportKernels>(std::move(*support)),
                                std::move(loaded), form, *stream);
  }
  [[nodiscard]] std::string refusal(LoadedLaunch loaded, const LaunchForm& form = {}) {
    const auto made = make(std::move(loaded), form);
    if (made) return "none";
    kind = made.error().kind;
    return made.error().message;
  }
  // The launches of the workload's own kernels since it was made ready.
  static std::vector<SeenLaunch> own_launches() {
    std::vector<SeenLaunch> own;
    for (const SeenLaunch& one : seen_driver.launches) {
      const bool support = one.kernel == "demarc_zero" || one.kernel == "demarc_copy" ||
                           one.kernel == "demarc_digest";
      if (!support) own.push_back(one);
    }
    return own;
  }
  ErrorKind kind = ErrorKind::check_failed;
};

LaunchForm form_of(Launches launches, std::uint32_t own_sms = 0) {
  LaunchForm form;
  form.launches = launches;
  form.own_sms = own_sms;
  return form;
}

LaunchForm affine_on_six_to_nine() {
  LaunchForm form;
  form.affine_sms = std::array<std::uint32_t, 8>{0x3c0};
  return form;
}

// Each thread notes all its indices where they say.
constexpr const char* note_indices_entry = R"(
.visible .entry note(.param .u64 out, .param .u32 salt)
{
  .reg .b32 %r<40>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r30, [salt];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %ntid.y;
  mov.u32 %r6, %ntid.z;
  mov.u32 %r7, %ctaid.x;
  mov.u32 %r8, %ctaid.y;
  mov.u32 %r9, %ctaid.z;
  mov.u32 %r10, %nctaid.x;
  mov.u32 %r11, %nctaid.y;
  mad.lo.u32 %r12, %r9, %r11, %r8;
  mad.lo.u32 %r12, %r12, %r10, %r7;
  mul.lo.u32 %r13, %r4, %r5;
  mul.lo.u32 %r13, %r13, %r6;
  mad.lo.u32 %r14, %r3, %r5, %r2;
  mad.lo.u32 %r14, %r14, %r4, %r1;
  mad.lo.u32 %r15, %r12, %r13, %r14;
  mul.wide.u32 %rd2, %r15, 4;
  add.u64 %rd3, %rd1, %rd2;
  mad.lo.u32 %r16, %r1, 10, %r2;
  mad.lo.u32 %r16, %r16, 10, %r3;
  mad.lo.u32 %r16, %r16, 10, %r7;
  mad.lo.u32 %r16, %r16, 10, %r8;
  mad.lo.u32 %r16, %r16, 10, %r9;
  add.u32 %r16, %r16, %r30;
  st.global.u32 [%rd3], %r16;
  ret;
}
)";

std::vector<std::uint32_t> noted_indices(const gpu::Dim3& grid, const gpu::Dim3& block,
                                         std::uint32_t salt) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t bz = 0; bz < grid.z; ++bz)
    for (std::uint32_t by = 0; by < grid.y; ++by)
      for (std::uint32_t bx = 0; bx < grid.x; ++bx)
        for (std::uint32_t z = 0; z < block.z; ++z)
          for (std::uint32_t y = 0; y < block.y; ++y)
            for (std::uint32_t x = 0; x < block.x; ++x)
              out.push_back(((((x * 10 + y) * 10 + z) * 10 + bx) * 10 + by) * 10 + bz + salt);
  return out;
}

constexpr gpu::Dim3 noted_grid{2, 3, 4};
constexpr gpu::Dim3 noted_block{4, 8, 1};
constexpr gpu::Dim3 noted_deep{2, 2, 8};

// Two launches with grids and blocks of three dimensions; the second is the larger in threads.
LoadedLaunch noting_launch(const gpu::Dim3& second = noted_deep) {
  LoadedLaunch loaded;
  loaded.launch.name = "noting";
  loaded.launch.ptx = "noting.ptx";
  loaded.ptx = test::small_module(note_indices_entry);
  loaded.launch.buffers = {made_buffer("x", 24 * 32 * 4, gpu::FillKind::zero, true),
                           made_buffer("y", 24 * 4 * second.count(), gpu::FillKind::zero, true)};
  loaded.launch.kernels = {
      made_kernel("note", noted_grid, noted_block, {gpu::BufferUse{0}, made_word(3)}),
      made_kernel("note", noted_grid, second, {gpu::BufferUse{1}, made_word(5)})};
  return loaded;
}

TEST_F(ResidentLaunchTest, GridsAndBlocksOfThreeDimensionsComputeTheSameInEveryForm) {
  const std::uint64_t expected = digest_of_outputs({{0, noted_indices(noted_grid, noted_block, 3)},
                                                    {1, noted_indices(noted_grid, noted_deep, 5)}});
  for (const LaunchForm& form : {LaunchForm{}, form_of(Launches::graph),
                                 form_of(Launches::overlapped), form_of(Launches::overlapped_graph),
                                 form_of(Launches::fused, 24), affine_on_six_to_nine()}) {
    const auto made = make(noting_launch(), form);
    ASSERT_TRUE(made) << made.error().message;
    const auto outputs = (*made)->checked_run(*stream);
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(outputs->digest, expected) << static_cast<int>(form.launches);
    EXPECT_TRUE(outputs->exact);
    EXPECT_EQ((*made)->launch().name, "noting");
  }
}

TEST_F(ResidentLaunchTest, LaunchesHaveTheShapesOfTheirKernelsAndTheSharedMemoryTheyAskFor) {
  LoadedLaunch loaded = noting_launch();
  loaded.launch.kernels[1].dynamic_shared_bytes = 48 * 1024;
  ASSERT_TRUE(make(loaded));
  const SeenLaunch first{"note", {2, 3, 4}, {4, 8, 1}, 0, false};
  const SeenLaunch second{"note", {2, 3, 4}, {2, 2, 8}, 48 * 1024, false};
  EXPECT_THAT(own_launches(), ElementsAre(first, second, first, second)) << "two runs tell enough";
  // More than that a kernel gets only if it is told before.
  loaded.launch.kernels[1].dynamic_shared_bytes = 48 * 1024 + 16;
  EXPECT_EQ(refusal(loaded), "none");
  loaded.launch.kernels[1].dynamic_shared_bytes = 240 * 1024;
  EXPECT_THAT(refusal(loaded), HasSubstr("cannot set an attribute of kernel 'note'"));
}

TEST_F(ResidentLaunchTest, OverlappedLaunchesAndTheEdgesOfTheirGraphsAreProgrammatic) {
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

TEST_F(ResidentLaunchTest, OverlappedLaunchesNeedComputeCapabilityNine) {
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

TEST_F(ResidentLaunchTest, GraphsAreMissingWhereTheDriverLacksEitherHalfOfThem) {
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

TEST_F(ResidentLaunchTest, AGraphThatCannotBeMadeIsAnErrorAndLeavesNothing) {
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
TEST_F(ResidentLaunchTest, ALaunchThatFailsInACaptureIsTheErrorOfTheGraph) {
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

TEST_F(ResidentLaunchTest, WhatItsKernelsUseIsTheMostOfTheirLaunches) {
  LoadedLaunch loaded = noting_launch({32, 4, 2});
  loaded.launch.kernels.push_back(loaded.launch.kernels.front());
  const auto used = [&] {
    std::vector<std::string> out;
    for (const cuda::KernelUse& one : memory->uses) {
      out.push_back(fmt::format("{} {} {}", one.kernel, one.threads, one.block_threads));
    }
    return out;
  };
  ASSERT_TRUE(make(loaded));
  EXPECT_THAT(used(), ElementsAre("note 6144 256"));
  ASSERT_TRUE(make(two_step_launch()));
  EXPECT_THAT(used(), ElementsAre("scale 1024 128", "fold 1024 256"));
  // Of a persistent grid as many as the SMs hold.
  ASSERT_TRUE(make(loaded, form_of(Launches::fused, 4)));
  EXPECT_THAT(used(), ElementsAre("demarc_fused 49152 256"));
  ASSERT_TRUE(make(two_step_launch(), affine_on_six_to_nine()));
  EXPECT_THAT(used(), ElementsAre("scale 49152 128", "fold 49152 256"));
}

TEST_F(ResidentLaunchTest, AnAffineKernelHasAGridThatFillsTheCardAndTheBlockItHad) {
  for (const int resident : {3, 0}) {  // 0: a kernel that hides how it fits
    seen_driver.resident_blocks = resident;
    const auto made = make(noting_launch(), affine_on_six_to_nine());
    ASSERT_TRUE(made) << made.error().message;
    const unsigned blocks = resident == 3 ? 72 : 24;
    EXPECT_THAT(own_launches(),
                ElementsAre(SeenLaunch{"note", {blocks, 1, 1}, {4, 8, 1}, 0, false},
                            SeenLaunch{"note", {blocks, 1, 1}, {2, 2, 8}, 0, false},
                            SeenLaunch{"note", {blocks, 1, 1}, {4, 8, 1}, 0, false},
                            SeenLaunch{"note", {blocks, 1, 1}, {2, 2, 8}, 0, false}));
  }
}

TEST_F(ResidentLaunchTest, AFusedLaunchFillsTheSmsOfItsPartWithTheLargestBlock) {
  LoadedLaunch loaded = noting_launch({32, 2, 2});
  loaded.launch.kernels[0].dynamic_shared_bytes = 512;
  loaded.launch.kernels[1].dynamic_shared_bytes = 64;
  for (const int resident : {2, 0}) {
    seen_driver.resident_blocks = resident;
    const auto made = make(loaded, form_of(Launches::fused, resident == 0 ? 5 : 3));
    ASSERT_TRUE(made) << made.error().message;
    const SeenLaunch one{"demarc_fused", {resident == 0 ? 5U : 6U, 1, 1}, {128, 1, 1}, 512, false};
    EXPECT_THAT(own_launches(), ElementsAre(one, one));
    EXPECT_EQ((*made)->launches(), 1U);
  }
}

TEST_F(ResidentLaunchTest, OneLaunchAloneOrAnAffineOneIsNeverFused) {
  LoadedLaunch one = noting_launch();
  one.launch.kernels.pop_back();
  ASSERT_TRUE(make(one, form_of(Launches::fused)));
  EXPECT_THAT(own_launches(), Each(Field(&SeenLaunch::kernel, "note")));
  LaunchForm affine = affine_on_six_to_nine();
  affine.launches = Launches::fused;
  ASSERT_TRUE(make(noting_launch(), affine));
  EXPECT_THAT(own_launches(), AllOf(SizeIs(4), Each(Field(&SeenLaunch::kernel, "note"))));
}

TEST_F(ResidentLaunchTest, WhatCannotBeFusedIsRefusedByName) {
  const LaunchForm fused = form_of(Launches::fused, 24);
  EXPECT_EQ(refusal(two_step_launch(), form_of(Launches::fused)),
            "fused launches wait for each other's blocks and need a part with SMs of its own");
  EXPECT_EQ(kind, ErrorKind::missing_capability);
  EXPECT_EQ(refusal(noting_launch({33, 1, 1}), fused),
            "note: blocks of 33 threads cannot be fused, only multiples of 32");
  EXPECT_EQ(kind, ErrorKind::missing_capability);
  LoadedLaunch other = two_step_launch();
  other.launch.kernels[1].kernel = "crease";
  EXPECT_EQ(refusal(other, fused), "two_steps.ptx: no kernel 'crease'");
  EXPECT_EQ(kind, ErrorKind::invalid_input);
  EXPECT_THAT(refusal(other), HasSubstr("no kernel 'crease'"));
  LoadedLaunch wrong = two_step_launch();
  wrong.ptx += ".visible";
  EXPECT_THAT(refusal(wrong), HasSubstr("two_steps.ptx"));
}

TEST_F(ResidentLaunchTest, OutputsAndWhatItsKernelsWriteIsKeptAsItWasAndNothingElse) {
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

TEST_F(ResidentLaunchTest, FirstContentsThatWereMadeAlreadyAreTakenAndGivenUpOnceTheyAreKnown) {
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

TEST_F(ResidentLaunchTest, ABufferThatDoesNotReadBackIsAnError) {
  memory->wrong_upload = 1;  // of a
  EXPECT_EQ(refusal(two_step_launch()),
            "buffer 'a' of 'two steps' does not read back as it was written");
  EXPECT_EQ(kind, ErrorKind::check_failed);
}

TEST_F(ResidentLaunchTest, AnErrorOfTheCardWhileALaunchIsMadeReadyIsItsError) {
  // The zeros of b are written to an address that nobody has; the driver tells when it is waited
  // for.
  LaunchForm neighbour;
  neighbour.neighbour = true;
  memory->lost_place = 2;
  testing::internal::CaptureStderr();
  EXPECT_THAT(refusal(two_step_launch(), neighbour), HasSubstr("ILLEGAL_ADDRESS"));
  testing::internal::GetCapturedStderr();
}

TEST_F(ResidentLaunchTest, EachCheckedRunBeginsWithFreshInputs) {
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

// Adds up in a variable of the module, which nobody restores: the fourth run gives 4.
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

TEST_F(ResidentLaunchTest, OutputsThatDoNotRepeatAreComparedWithTheirFirstWithinTheCheck) {
  const auto mismatch = [&](double absolute, double relative, const std::string& last = "") {
    const auto made = make(drifting_launch(absolute, relative, last));
    EXPECT_TRUE(made) << made.error().message;
    const auto outputs = (*made)->checked_run(*stream);
    EXPECT_TRUE(outputs) << outputs.error().message;
    EXPECT_FALSE(outputs->exact);
    return outputs->mismatch;
  };
  EXPECT_EQ(mismatch(0, 0), "element 5 of 'out' is 3, its first run gave 2");
  EXPECT_EQ(mismatch(0.99, 0), "element 5 of 'out' is 3, its first run gave 2");
  EXPECT_EQ(mismatch(1, 0), "");
  EXPECT_EQ(mismatch(0, 0.49), "element 5 of 'out' is 3, its first run gave 2");
  EXPECT_EQ(mismatch(0, 0.5), "");
  EXPECT_EQ(mismatch(0.5, 0.25), "");
  EXPECT_EQ(mismatch(0.4, 0.25), "element 5 of 'out' is 3, its first run gave 2");
  // Down from 4: -2, -3.
  EXPECT_EQ(mismatch(0.9, 0, "  neg.f32 %f1, %f1;\n"),
            "element 5 of 'out' is -3, its first run gave -2");
  EXPECT_EQ(mismatch(0, 0.5, "  neg.f32 %f1, %f1;\n"), "");
  // What is no number in both is the same, in one it is not.
  const std::string nan_in_first = R"(
  .reg .pred %p<2>;
  mov.f32 %f2, 0f7FC00000;
  setp.eq.f32 %p1, %f1, 0f40000000;
  @%p1 mov.f32 %f1, %f2;
)";
  EXPECT_EQ(mismatch(9, 9, nan_in_first), "element 5 of 'out' is 3, its first run gave nan");
  const std::string both = R"(
  mov.b32 %r1, %f1;
  shr.u32 %r1, %r1, 22;
  and.b32 %r1, %r1, 3;
  or.b32 %r1, %r1, 0x7fc00000;
  mov.b32 %f1, %r1;
)";
  EXPECT_EQ(mismatch(0, 0, both), "");
}

// One run's kernels and the gap between them, 1000 ns on this card, in places of their own.
TEST_F(ResidentLaunchTest, StampsTellTheKernelsOfEachRunAndTheWholeRun) {
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

TEST_F(ResidentLaunchTest, ARunWithoutStampsOrInAGraphTellsNoTimes) {
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

TEST_F(ResidentLaunchTest, WithoutRoomForAnyOfItsPiecesItIsMissing) {
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
