// Probes whose kernels lose blocks, SMs or their time: what they could not measure is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "demarc/card/colored_memory.hpp"
#include "demarc/card/memory_timer.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/card/proof.hpp"
#include "demarc/card/remainder_colors.hpp"
#include "demarc/card/stream_mask.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "fake_card.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// The stand-in behind a table some of whose functions are the test's.
template <class Change>
GpuPointer gpu_behind(Change change, const fake::FakeConfig& config = fake::small_gpu()) {
  test::configure(config);
  DriverApi api = test::fake_driver()->api();
  change(api);
  return Gpu::open(Driver::from_table(api, "changed").value(), 0).value();
}

// Launches that the test lets pass; the next is lost, or comes after `before_launch`.
int launches_left = 0;
void (*before_launch)() = nullptr;

CuResult launch_or_lose(CuFunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CuStream stream,
                        void** arguments, void** extra) {
  if (launches_left-- == 0) {
    if (before_launch == nullptr) return cu_success;
    before_launch();
  }
  return test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream,
                                                   arguments, extra);
}

TEST(LostBlocks, of_the_placement_probe_are_counted) {
  const GpuPointer gpu = gpu_behind([](DriverApi& api) { api.cuLaunchKernel = &launch_or_lose; });
  const auto kernels = ProbeKernels::load(gpu).value();
  const Stream stream = Stream::create(gpu).value();
  before_launch = nullptr;
  launches_left = 1;
  EXPECT_EQ(probe_placement(stream, kernels, LaunchShape::line(96, 32), 0)->total(), 96U);
  const auto lost = probe_placement(stream, kernels, LaunchShape::line(96, 32), 0);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, ErrorKind::check_failed);
  EXPECT_EQ(lost.error().message, "the placement probe counted 0 of 96 blocks");
}

TEST(LostBlocks, kernels_that_name_sms_need_each_function_of_the_drivers_linker) {
  for (const auto remove : {+[](DriverApi& api) { api.cuLinkCreate_v2 = nullptr; },
                            +[](DriverApi& api) { api.cuLinkAddData_v2 = nullptr; },
                            +[](DriverApi& api) { api.cuLinkComplete = nullptr; },
                            +[](DriverApi& api) { api.cuLinkDestroy = nullptr; }}) {
    const auto kernels = ProbeKernels::load(gpu_behind(remove), SmNumbers::of_card);
    ASSERT_FALSE(kernels);
    EXPECT_EQ(kernels.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(kernels.error().message,
              "probes.ptx: the driver has no cuLinkCreate, so it makes no machine code of PTX");
  }
}

TEST(LostBlocks, of_a_grid_of_three_dimensions_are_none) {
  const GpuPointer gpu = test::fake_gpu();
  const auto kernels = ProbeKernels::load(gpu).value();
  const Stream stream = Stream::create(gpu).value();
  const auto placement =
      probe_placement(stream, kernels, LaunchShape{{5, 3, 2}, {32, 1, 1}, 0, {0, 1, 1}, false}, 0);
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_EQ(placement->total(), 30U);
}

// A load takes an eighth of what eight loads take.
TEST(LostBlocks, sms_that_no_block_reaches_have_no_latencies_and_the_others_those_of_a_load) {
  fake::FakeConfig config = fake::small_gpu();
  config.client = 0x3;
  config.client_hidden = true;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  const Stream stream = Stream::create(gpu).value();
  const DeviceBuffer buffer = DeviceBuffer::allocate(gpu, 4 * 4352).value();
  const auto latency = probe_latencies(stream, kernels, buffer, 4352, 4, 1).value();
  ASSERT_EQ(latency.size(), 24U);
  for (const gpu::SmIndex sm : latency.keys()) {
    ASSERT_EQ(latency[sm].size(), sm.raw() < 4 ? 4U : 0U) << sm;
    for (const double cycles : latency[sm]) EXPECT_NEAR(cycles, 290, 21.5);
  }
}

TEST(LostBlocks, of_clusters_are_none_where_the_card_or_the_driver_has_no_clusters) {
  fake::FakeConfig old = fake::small_gpu();
  old.capability_major = 8;
  const auto clusters_of = [](const GpuPointer& gpu) {
    const auto kernels = ProbeKernels::load(gpu).value();
    return probe_clusters(Stream::create(gpu).value(), kernels).value().size();
  };
  EXPECT_EQ(clusters_of(test::fake_gpu(old)), 0U);
  EXPECT_EQ(clusters_of(gpu_behind([](DriverApi& api) { api.cuLaunchKernelEx = nullptr; })), 0U);
  EXPECT_NE(clusters_of(test::fake_gpu()), 0U);
}

TEST(LostBlocks, lines_that_do_not_fit_into_their_buffer_are_refused) {
  const GpuPointer gpu = test::fake_gpu();
  const auto kernels = ProbeKernels::load(gpu).value();
  const Stream stream = Stream::create(gpu).value();
  const DeviceBuffer buffer = DeviceBuffer::allocate(gpu, 4 * 4352).value();
  EXPECT_TRUE(probe_latencies(stream, kernels, buffer, 4352, 4, 1));
  EXPECT_EQ(probe_latencies(stream, kernels, buffer, 4352, 5, 1).error().message,
            "5 lines every 4352 bytes do not fit into a buffer of 17408 bytes");
}

TEST(LostBlocks, facts_that_cannot_be_written_are_told_as_not_remembered) {
  CardOptions options;
  options.cache_folder = "/proc/no/such/folder";
  const auto card = Card::open(test::fake_gpu(), options);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_THAT((*card)->facts().notes, testing::Contains(testing::StartsWith("not remembered: ")));
}

TEST(LostBlocks, remainders_of_other_pages_are_refused) {
  const auto card = test::fake_card().value();
  color::ColorScheme scheme = color::color_scheme(gpu::find_device("h200").value(), 2).value();
  scheme.remainders->page_bytes = 1 << 20;
  constexpr ShareRequest by_side[] = {{{0x1, 2}, 0}, {{0x2, 2}, 0}};
  const auto pool = ColoredPool::create(card, scheme, 4 << 20, by_side);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().message, "remainders of pages of 1048576 bytes on pages of 2097152");
}

TEST(LostBlocks, a_driver_that_cannot_tell_a_streams_domain_has_one) {
  EXPECT_EQ(sync_domain_count(*test::fake_gpu()), 4U);
  EXPECT_EQ(
      sync_domain_count(*gpu_behind([](DriverApi& api) { api.cuStreamSetAttribute = nullptr; })),
      1U);
  EXPECT_EQ(
      sync_domain_count(*gpu_behind([](DriverApi& api) { api.cuStreamGetAttribute = nullptr; })),
      1U);
}

CuResult fail_where(CuFunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                    unsigned by, unsigned bz, unsigned shared, CuStream stream, void** arguments,
                    void** extra) {
  if (bx == 32 && x == 32) return 719;  // the look for renumbered SMs
  return test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream,
                                                   arguments, extra);
}

TEST(LostBlocks, of_the_look_for_renumbered_sms_open_no_card) {
  const GpuPointer gpu = gpu_behind([](DriverApi& api) { api.cuLaunchKernel = &fail_where; });
  CardOptions options;
  options.cache_folder = test::fresh_folder("look").string();
  const auto card = Card::open(gpu, options);
  ASSERT_FALSE(card);
  EXPECT_EQ(card.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(card.error().message, HasSubstr("cannot launch kernel 'demarc_where'"));
}

const Gpu* stuck_card = nullptr;  // gets stuck in its first launch

// Without masks it would be opened, and the next call might never return.
TEST(LostBlocks, of_a_card_that_gets_stuck_while_masks_are_tried_open_no_card) {
  const GpuPointer gpu = gpu_behind([](DriverApi& api) {
    api.cuLaunchKernel = [](CuFunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CuStream stream,
                            void** arguments, void** extra) {
      const Gpu* stuck = std::exchange(stuck_card, nullptr);
      if (stuck == nullptr) {
        return test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz, shared,
                                                         stream, arguments, extra);
      }
      stuck->set_stuck();
      return CuResult{702};
    };
  });
  CardOptions options;
  options.cache_folder = test::fresh_folder("stuck").string();
  stuck_card = gpu.get();
  const auto card = Card::open(gpu, options);
  ASSERT_FALSE(card);
  EXPECT_THAT(card.error().message, HasSubstr("cannot launch kernel 'demarc_idle'"));
}

// The error of a launch that is not waited for is lost, or another's.
TEST(LostBlocks, of_a_launch_that_fails_prove_no_domains) {
  static int answers = 0;
  const GpuPointer gpu = gpu_behind([](DriverApi& api) {
    api.cuStreamQuery = [](CuStream) -> CuResult { return answers++ == 0 ? 719 : cu_success; };
  });
  answers = 0;
  const auto proved = prove_sync_domains(gpu);
  ASSERT_FALSE(proved);
  EXPECT_EQ(proved.error().kind, ErrorKind::check_failed);
}

const Gpu* hanging_gpu = nullptr;  // whose work never ends, once it is set

TEST(LostBlocks, a_place_that_hangs_the_card_when_it_is_tried_ends_the_search) {
  fake::FakeConfig config = fake::small_gpu();
  config.cuda_version = 14020;
  hanging_gpu = nullptr;
  const GpuPointer gpu = gpu_behind(
      [](DriverApi& api) {
        api.cuStreamQuery = [](CuStream stream) -> CuResult {
          if (hanging_gpu == nullptr) return test::fake_driver()->api().cuStreamQuery(stream);
          hanging_gpu->set_stuck();
          return 702;
        };
      },
      config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  hanging_gpu = gpu.get();
  std::vector<std::uint32_t> tried;
  const auto field = calibrate(gpu, *hook, kernels.idle(), 0x800, {},
                               [&tried](std::uint32_t at) { tried.push_back(at); });
  ASSERT_FALSE(field);
  EXPECT_EQ(field.error().kind, ErrorKind::check_failed);
  ASSERT_EQ(tried.size(), 1U) << "nothing more is tried on a card that hangs";
  EXPECT_EQ(field.error().message,
            fmt::format("the mask tried at {:#x} of the stream object hangs the GPU", tried[0]));
}

// What is remembered of the card would do, were it not for what happens now.
TEST(LostBlocks, a_card_that_hangs_or_fails_while_it_is_opened_is_refused) {
  static CuFunction where = nullptr;
  CardOptions options;
  options.cache_folder = test::fresh_folder("hangs").string();
  hanging_gpu = nullptr;
  where = nullptr;
  const GpuPointer gpu = gpu_behind([](DriverApi& api) {
    api.cuStreamQuery = [](CuStream stream) -> CuResult {
      if (hanging_gpu == nullptr) return test::fake_driver()->api().cuStreamQuery(stream);
      hanging_gpu->set_stuck();
      return 702;
    };
    api.cuModuleGetFunction = [](CuFunction* function, CuModule module, const char* name) {
      const CuResult code = test::fake_driver()->api().cuModuleGetFunction(function, module, name);
      if (std::string(name) == "demarc_where") where = *function;
      return code;
    };
    api.cuLaunchKernel = [](CuFunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CuStream stream,
                            void** arguments, void** extra) -> CuResult {
      if (function == where) return 719;
      return test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz, shared,
                                                       stream, arguments, extra);
    };
  });
  ASSERT_TRUE(Card::open(test::fake_gpu(), options));
  const auto failed = Card::open(gpu, options);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(failed.error().message, HasSubstr("cannot launch kernel 'demarc_where'"));
  hanging_gpu = gpu.get();
  const auto hung = Card::open(gpu, options);
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().kind, ErrorKind::check_failed);
}

TEST(LostBlocks, launches_that_do_not_pass_the_callback_show_no_mask) {
  fake::FakeConfig config = fake::small_gpu();
  config.descriptors_pass = false;
  const GpuPointer gpu = test::fake_gpu(config);
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  EXPECT_THAT(StreamMasks::open(gpu, *hook, kernels.idle()).error().message,
              HasSubstr("a launch did not pass the driver's callback"));
}

// A stream whose launches cannot be looked at gets its mask in the driver's object.
TEST(LostBlocks, a_stream_that_may_be_capturing_is_masked_in_the_drivers_object) {
  static CuResult answer = cu_success;
  for (const CuResult code : {cu_success, 1}) {
    answer = code;
    CardOptions options;
    options.cache_folder = test::fresh_folder("capturing").string();
    const GpuPointer gpu = gpu_behind([](DriverApi& api) {
      if (answer == cu_success) {
        api.cuStreamIsCapturing = nullptr;
      } else {
        api.cuStreamIsCapturing = [](CuStream, int*) { return answer; };
      }
    });
    const auto card = Card::open(gpu, options).value();
    const StreamMasks* masks = card->stream_masks().value();
    ASSERT_TRUE(masks->uses_hook());
    const Stream stream = Stream::create(gpu).value();
    ASSERT_TRUE(masks->set(stream.handle(), {2, 3}));
    EXPECT_FALSE((*card->hook())->streams().mask(stream.handle()));
    EXPECT_EQ(masks->get(stream.handle()), (gpu::TpcSet{2, 3}));
    const auto placement =
        probe_placement(stream, card->kernels(), LaunchShape::line(96, 32), 0).value();
    EXPECT_EQ(placement.used_sms(), test::sm_list({4, 5, 6, 7}));
  }
}

}  // namespace
}  // namespace demarc::cuda
