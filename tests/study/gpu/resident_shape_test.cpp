// The grids and blocks of a launch made ready on a card, fused and affine ones among them.
#include "resident_launch_fixture.hpp"

namespace demarc::study {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

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

TEST_F(ResidentLaunchTest, grids_and_blocks_of_three_dimensions_compute_the_same_in_every_form) {
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

TEST_F(ResidentLaunchTest,
       launches_have_the_shapes_of_their_kernels_and_the_shared_memory_they_ask_for) {
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

TEST_F(ResidentLaunchTest, what_its_kernels_use_is_the_most_of_their_launches) {
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
  // For a persistent grid as many as the SMs hold.
  ASSERT_TRUE(make(loaded, form_of(Launches::fused, 4)));
  EXPECT_THAT(used(), ElementsAre("demarc_fused 49152 256"));
  ASSERT_TRUE(make(two_step_launch(), affine_on_six_to_nine()));
  EXPECT_THAT(used(), ElementsAre("scale 49152 128", "fold 49152 256"));
}

TEST_F(ResidentLaunchTest, an_affine_kernel_has_a_grid_that_fills_the_card_and_the_block_it_had) {
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

LaunchForm sliced_form() {
  LaunchForm form;
  form.gives_way_to = std::make_shared<const RightOfWay>();
  return form;
}

TEST_F(ResidentLaunchTest, a_sliced_launch_is_as_many_launches_as_fill_the_card_with_all_blocks) {
  constexpr gpu::Dim3 grid{10, 12, 4};
  LoadedLaunch loaded = noting_launch();
  loaded.launch.kernels.pop_back();
  loaded.launch.kernels[0].grid = grid;
  loaded.launch.buffers.pop_back();
  loaded.launch.buffers[0].bytes = grid.count() * noted_block.count() * 4;
  for (const int resident : {1, 2, 0}) {  // 0: a kernel that hides how it fits
    seen_driver.resident_blocks = resident;
    const auto made = make(loaded, sliced_form());
    ASSERT_TRUE(made) << made.error().message;
    const auto slice = [](unsigned blocks) {
      return SeenLaunch{"note", {blocks, 1, 1}, {4, 8, 1}, 0, false};
    };
    if (resident == 2) {
      EXPECT_THAT(own_launches(), ElementsAre(slice(384), slice(96), slice(384), slice(96)));
    } else {
      EXPECT_THAT(own_launches(), ElementsAre(slice(192), slice(192), slice(96), slice(192),
                                              slice(192), slice(96)));
    }
    const auto outputs = (*made)->checked_run(*stream);
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(outputs->digest, digest_of_outputs({{0, noted_indices(grid, noted_block, 3)}}));
    EXPECT_EQ((*made)->launches(), 1U);
  }
}

// A launch of 480 blocks; a slice has eight times the 24 that fill the card.
LoadedLaunch three_slices() {
  LoadedLaunch loaded = noting_launch();
  loaded.launch.kernels.pop_back();
  loaded.launch.kernels[0].grid = {480, 1, 1};
  loaded.launch.buffers.pop_back();
  loaded.launch.buffers[0].bytes = 480 * noted_block.count() * 4;
  return loaded;
}

LaunchForm neighbour_in_slices(std::shared_ptr<const RightOfWay> way) {
  LaunchForm form;
  form.neighbour = true;
  form.gives_way_to = std::move(way);
  return form;
}

TEST_F(ResidentLaunchTest, no_slice_begins_while_the_victim_has_work) {
  const auto way = std::make_shared<RightOfWay>();
  const auto made = make(three_slices(), neighbour_in_slices(way));
  ASSERT_TRUE(made) << made.error().message;
  seen_driver.launches.clear();
  std::atomic<bool> done{false};
  std::thread neighbour;
  {
    const RightOfWay::Holder victim(way.get());
    neighbour = std::thread([&] {
      EXPECT_TRUE(gpu->make_current());
      EXPECT_TRUE((*made)->enqueue(*stream));
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(done);
    EXPECT_THAT(seen_driver.launches, IsEmpty());
  }
  neighbour.join();
  EXPECT_THAT(own_launches(), SizeIs(3));
  EXPECT_FALSE(way->is_taken());
}

TEST_F(ResidentLaunchTest, two_slices_are_in_flight_at_most) {
  static std::vector<std::size_t> launched_at_queries;
  static int slow = 0;
  launched_at_queries.clear();
  slow = 2;
  open(fake::small_gpu(), [](cuda::DriverApi& api) {
    api.cuEventQuery = [](cuda::CuEvent event) -> cuda::CuResult {
      launched_at_queries.push_back(seen_driver.launches.size());
      return slow-- > 0 ? cuda::cu_error_not_ready : seen_driver.real.cuEventQuery(event);
    };
  });
  const auto made = make(three_slices(), neighbour_in_slices(std::make_shared<RightOfWay>()));
  ASSERT_TRUE(made) << made.error().message;
  seen_driver.launches.clear();
  ASSERT_TRUE((*made)->enqueue(*stream));
  EXPECT_THAT(launched_at_queries, ElementsAre(2, 2, 2)) << "the third waits for the first";
  ASSERT_TRUE((*made)->enqueue(*stream));
  EXPECT_THAT(launched_at_queries, ElementsAre(2, 2, 2, 3, 4, 5));
}

TEST_F(ResidentLaunchTest, a_slice_that_does_not_end_is_not_waited_for_without_end) {
  open(fake::small_gpu(), [](cuda::DriverApi& api) {
    api.cuEventQuery = [](cuda::CuEvent) -> cuda::CuResult { return cuda::cu_error_not_ready; };
  });
  LaunchForm form = neighbour_in_slices(std::make_shared<RightOfWay>());
  form.longest_slice = std::chrono::milliseconds(1);
  const auto made = make(three_slices(), form);
  ASSERT_TRUE(made) << made.error().message;
  const auto outcome = (*made)->enqueue(*stream);
  EXPECT_EQ(outcome.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(outcome.error().message, HasSubstr("did not end within 1 ms"));
}

TEST_F(ResidentLaunchTest, what_cannot_be_cut_into_slices_is_refused_by_name) {
  LoadedLaunch loaded = noting_launch();
  LaunchForm form = sliced_form();
  form.neighbour = true;
  loaded.launch.kernels[0].grid = {4294967295, 1, 1};
  EXPECT_EQ(refusal(loaded, form), "none");
  loaded.launch.kernels[0].grid = {65536, 65536, 1};
  EXPECT_EQ(refusal(loaded, form), "it cannot be cut into slices: a grid has 4294967296 blocks");
  EXPECT_EQ(kind, ErrorKind::missing_capability);
  loaded = noting_launch();
  loaded.ptx.replace(loaded.ptx.find("mov.u32 %r7, %ctaid.x;"), 22,
                     "{.reg .b32 %v<3>; mov.v4.u32 {%r7, %v0, %v1, %v2}, %ctaid; }");
  EXPECT_THAT(refusal(loaded, form), HasSubstr("it cannot be cut into slices: noting.ptx:"));
  EXPECT_EQ(kind, ErrorKind::missing_capability);
}

TEST_F(ResidentLaunchTest, a_fused_launch_fills_the_sms_of_its_part_with_the_largest_block) {
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

TEST_F(ResidentLaunchTest, one_launch_alone_or_an_affine_one_is_never_fused) {
  LoadedLaunch one = noting_launch();
  one.launch.kernels.pop_back();
  ASSERT_TRUE(make(one, form_of(Launches::fused)));
  EXPECT_THAT(own_launches(), Each(Field(&SeenLaunch::kernel, "note")));
  LaunchForm affine = affine_on_six_to_nine();
  affine.launches = Launches::fused;
  ASSERT_TRUE(make(noting_launch(), affine));
  EXPECT_THAT(own_launches(), AllOf(SizeIs(4), Each(Field(&SeenLaunch::kernel, "note"))));
}

TEST_F(ResidentLaunchTest, what_cannot_be_fused_is_refused_by_name) {
  const LaunchForm fused = form_of(Launches::fused, 24);
  EXPECT_EQ(refusal(two_step_launch(), form_of(Launches::fused)),
            "fused launches wait for each other's blocks and need a part with SMs of its own");
  EXPECT_EQ(kind, ErrorKind::missing_capability);
  EXPECT_EQ(refusal(noting_launch({33, 1, 1}), fused),
            "note: blocks of 33 threads cannot be fused; their size must be a multiple of 32");
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

}  // namespace
}  // namespace demarc::study
