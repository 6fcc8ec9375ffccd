// Where a launch shows its stream, in parameters and objects that the test makes up; and drivers
// that fail while it is learned.
#include "demarc/driver/launch_streams.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "callback_params.hpp"
#include "demarc/card/stream_mask.hpp"
#include "fake_card.hpp"

namespace demarc::cuda {
namespace {

using PlaceKind = StreamPlace::Kind;

class ShownStreams : public testing::Test {
 protected:
  void SetUp() override { say_bytes(8 * params.size()); }
  void say_bytes(std::uint64_t bytes) { params[0] = bytes; }
  [[nodiscard]] CuStream stream() { return reinterpret_cast<CuStream>(&pointer); }
  // The place that is learned of a launch whose descriptor is so far from the stream's object.
  StreamPlace learned(std::ptrdiff_t distance) {
    streams.begin_learning(stream());
    streams.look(params.data(), memory.data() + distance);
    return streams.end_learning();
  }
  void show_in(std::size_t element) { params[element] = reinterpret_cast<std::uint64_t>(stream()); }
  std::vector<char> memory = std::vector<char>(40000);
  char* pointer = memory.data();
  std::array<std::uint64_t, 64> params{};
  LaunchStreams streams;
};

TEST_F(ShownStreams, are_found_by_a_descriptor_in_their_object) {
  EXPECT_EQ(learned(1), (StreamPlace{PlaceKind::in_object, 1}));
  EXPECT_EQ(learned(16383), (StreamPlace{PlaceKind::in_object, 16383}));
  EXPECT_EQ(learned(16384), StreamPlace{});
  EXPECT_EQ(learned(0), StreamPlace{});
}

TEST_F(ShownStreams, are_found_in_the_parameters_that_there_are_but_not_as_the_descriptor) {
  show_in(descriptor_index);
  EXPECT_EQ(learned(0), StreamPlace{});
  show_in(32);
  EXPECT_EQ(learned(0), StreamPlace{}) << "behind what is looked at";
  show_in(31);
  EXPECT_EQ(learned(0), (StreamPlace{PlaceKind::element, 31}));
  say_bytes(8 * 31);
  EXPECT_EQ(learned(0), StreamPlace{}) << "behind the last one";
  show_in(1);
  EXPECT_EQ(learned(0), (StreamPlace{PlaceKind::element, 1}));
}

TEST_F(ShownStreams, are_learned_of_one_launch_while_somebody_asks) {
  streams.begin_learning(stream());
  streams.look(params.data(), memory.data() + 64);
  streams.look(params.data(), memory.data() + 128);
  EXPECT_EQ(streams.end_learning(), (StreamPlace{PlaceKind::in_object, 64}));
  streams.begin_learning(stream());
  EXPECT_EQ(streams.end_learning(), StreamPlace{}) << "no launch came";
  streams.look(params.data(), memory.data() + 128);
  EXPECT_EQ(streams.end_learning(), StreamPlace{}) << "nobody asks any more";
}

TEST_F(ShownStreams, have_no_key_where_the_place_is_not_known) {
  const void* key = &pointer;
  EXPECT_TRUE(streams.key_of_launch(params.data(), memory.data(), key));
  EXPECT_EQ(key, nullptr);
}

TEST_F(ShownStreams, of_the_default_are_not_forgotten) {
  static int gone = 0;
  gone = 0;
  ASSERT_TRUE(streams.use_place({PlaceKind::in_object, 64}));
  streams.set_gone_handler([](CuStream) { ++gone; });
  for (const std::uintptr_t number : {0U, 1U, 2U}) {
    streams.forget(reinterpret_cast<CuStream>(number));  // NOLINT: names of the default streams
  }
  EXPECT_EQ(gone, 0);
  streams.forget(stream());
  EXPECT_EQ(gone, 1);
}

// For calls of one kind, numbered from 0, this one fails; -1: none does.
int failing_call = -1;
int calls_made = 0;

bool fails_now() {
  return calls_made++ == failing_call;
}

using Ruin = void (*)(DriverApi& api);

Result<StreamMasks> open_masks(Ruin ruin, int failing) {
  test::configure(fake::small_gpu());
  DriverApi api = test::fake_driver()->api();
  ruin(api);
  failing_call = -1;
  const GpuPointer gpu = Gpu::open(Driver::from_table(api, "failing").value(), 0).value();
  const auto kernels = ProbeKernels::load(gpu).value();
  LaunchHook* hook = LaunchHook::install(gpu->driver()).value();
  hook->expect(gpu->compute_capability());
  calls_made = 0;
  failing_call = failing;
  auto masks = StreamMasks::open(gpu, *hook, kernels.idle());
  failing_call = -1;
  return masks;
}

TEST(StreamMasksThatOpen, stop_at_any_call_that_fails_and_say_which) {
  const std::pair<Ruin, const char*> kinds[] = {
      {[](DriverApi& api) {
         api.cuStreamQuery = [](CuStream stream) -> CuResult {
           return fails_now() ? 719 : test::fake_driver()->api().cuStreamQuery(stream);
         };
       },
       "work on the GPU failed"},
      {[](DriverApi& api) {
         api.cuLaunchKernel = [](CuFunction function, unsigned x, unsigned y, unsigned z,
                                 unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                 CuStream stream, void** arguments, void** extra) -> CuResult {
           return fails_now()
                      ? 719
                      : test::fake_driver()->api().cuLaunchKernel(function, x, y, z, bx, by, bz,
                                                                  shared, stream, arguments, extra);
         };
       },
       "cannot launch kernel"},
      {[](DriverApi& api) {
         api.cuMemsetD8Async = [](DevicePointer target, unsigned char value, std::size_t bytes,
                                  CuStream stream) -> CuResult {
           return fails_now()
                      ? 719
                      : test::fake_driver()->api().cuMemsetD8Async(target, value, bytes, stream);
         };
       },
       "cannot fill a buffer"}};
  for (const auto& [ruin, words] : kinds) {
    const auto unharmed = open_masks(ruin, -1);
    ASSERT_TRUE(unharmed) << unharmed.error().message;
    const int calls = calls_made;
    EXPECT_GT(calls, 1) << words;
    for (int failing = 0; failing < calls; ++failing) {
      const auto masks = open_masks(ruin, failing);
      ASSERT_FALSE(masks) << words << " " << failing;
      EXPECT_EQ(masks.error().kind, ErrorKind::check_failed);
      EXPECT_THAT(masks.error().message, testing::HasSubstr(words)) << failing;
    }
  }
}

}  // namespace
}  // namespace demarc::cuda
