// What lanes of the executor on a real GPU compute, in every mode and form of launch.
#include "gpu_executor_fixture.hpp"

namespace demarc::study {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// A process has either green contexts or masks. ctest runs each suite in a process of its own; run
// all together, the masks may come first.
class GpuExecutorGreen : public GpuExecutorTest {};

TEST_F(GpuExecutorGreen, every_form_of_launch_computes_the_same) {
  const auto executor = open();
  if (const auto stage = executor->divide(parse_modes("green")->at(0), 2); !stage) {
    EXPECT_THAT(stage.error().message, HasSubstr("because masks were used"));
    return;
  }
  expect_right_in(*executor,
                  "green,green+graph,green+overlapped,green+graph+overlapped,green+fused");
}

class GpuExecutor : public GpuExecutorTest {};

TEST_F(GpuExecutor, the_whole_card_computes_the_reference_and_times_both_launches) {
  const auto executor = open();
  EXPECT_EQ(executor->context().sms, 24U);
  const auto stage = executor->whole().value();
  ASSERT_EQ(stage->lanes(), 1U);
  expect_right(stage->lane(0), true);
  EXPECT_THAT(stage->lane(0).last_runs(), SizeIs(3));
}

TEST_F(GpuExecutor, every_mode_of_one_process_computes_the_reference) {
  const auto executor = open();
  expect_right_in(*executor, "none,mask,affinity");
}

TEST_F(GpuExecutor, every_form_of_launch_computes_the_same_under_a_mask) {
  const auto executor = open();
  expect_right_in(*executor, "mask+graph,mask+overlapped,mask+graph+overlapped,mask+fused");
}

TEST_F(GpuExecutor, colours_that_are_parities_compute_the_reference_in_every_form) {
  const auto executor = open();
  expect_right_in(*executor,
                  "mask+color,mask+color+graph,mask+color+overlapped,mask+color+fused,"
                  "affinity+color,none+color");
}

TEST_F(GpuExecutor, colours_that_are_remainders_compute_the_reference_in_every_form) {
  take_remainders();
  const auto executor = open();
  expect_right_in(*executor,
                  "mask+color,mask+color+graph,mask+color+overlapped,mask+color+graph+overlapped,"
                  "mask+color+fused");
}

TEST_F(GpuExecutor, a_coloured_victim_launches_where_the_others_are_not_felt) {
  take_remainders();
  fake::FakeConfig config = fake::small_gpu();
  config.remainders = true;
  config.streams_feel_sides = true;
  test::configure(config);
  const auto account = [&](const char* mode) {
    const auto stage = open()->divide(parse_modes(mode)->at(0), 2);
    return stage ? (*stage)->account() : stage.error().message;
  };
  const char* const unfelt =
      "an empty launch takes 1000.00 us, and 1000.00 us next to traffic of the others' colours";
  options.colors = {1, 0};
  EXPECT_THAT(account("mask+color"), HasSubstr(unfelt)) << "of its streams half feel each side";
  EXPECT_THAT(account("mask+color"), HasSubstr("the parts have the colours 1, 0;"));
  options.colors.clear();
  config.streams_feel_sides = false;
  config.felt_paths = 1U << 4U;  // on one side: the victim takes that colour
  test::configure(config);
  EXPECT_THAT(account("mask+color"), HasSubstr(unfelt));
  EXPECT_THAT(account("mask+color"), AnyOf(HasSubstr("the parts have the colours 1, 0;"),
                                           HasSubstr("the parts have the colours 0, 1;")));
  std::uint32_t felt = 0;
  for (const std::uint32_t own : {0U, 1U}) {
    options.colors = {own, 1 - own};
    felt += account("mask+color").find(unfelt) == std::string::npos ? 1U : 0U;
  }
  EXPECT_EQ(felt, 1U);
  EXPECT_THAT(account("mask"), Not(HasSubstr("an empty launch")));
}

TEST_F(GpuExecutor,
       colours_change_places_where_the_options_say_so_and_ones_that_do_not_exist_are_refused) {
  options.colors = {1, 0};
  const auto executor = open();
  expect_right_in(*executor, "mask+color");
  const auto refused = executor->divide(parse_modes("mask+color")->at(0), 3);
  ASSERT_FALSE(refused) << "one mask makes two colours";
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
}

TEST_F(GpuExecutor, coloured_parts_have_the_memory_that_is_asked_for) {
  const auto pages = [&](std::uint64_t wanted) {
    options.arena_pages = wanted;
    const auto stage = open()->divide(parse_modes("mask+color")->at(0), 2);
    const std::string account = stage ? (*stage)->account() : stage.error().message;
    return account.substr(account.find("; ") + 2);
  };
  EXPECT_THAT(pages(0), HasSubstr("8 pages measured"));
  EXPECT_THAT(pages(14), HasSubstr("14 pages measured"));
  const auto mode = parse_modes("mask+color")->at(0);
  constexpr std::uint64_t page = 2U << 20U;
  EXPECT_EQ(open()->neighbour_means(mode, 2)->bytes, 14 * page / 2 / 2 / 4 * 3);
  take_remainders();
  EXPECT_EQ(open()->neighbour_means(mode, 2)->bytes, 14 * page / 2 / 4 * 3);
}

// Under remainders a copy of no bytes is an error of the driver's.
TEST_F(GpuExecutor, a_variable_of_the_module_without_first_content_begins_as_zeros) {
  take_remainders();
  const auto folder = test::fresh_folder("gpu_executor_variable");
  ASSERT_TRUE(write_file((folder / "variable.ptx").string(), R"(.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 before[64];
.visible .entry read(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  mov.u64 %rd3, before;
  add.u64 %rd3, %rd3, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 7;
  st.global.u32 [%rd1], %r2;
  ret;
}
)"));
  ASSERT_TRUE(write_file((folder / "variable.json").string(),
                         R"({"schema": "demarc.launch/1", "name": "variable", "ptx": "variable.ptx",
    "buffers": [{"name": "out", "bytes": 256, "element": "u32", "output": true}],
    "launches": [{"kernel": "read", "grid": 1, "block": 64, "args": ["buf:out"]}]})"));
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("mask+color")->at(0), 2).value();
  for (std::uint32_t part = 0; part < 2; ++part) {
    const auto loaded =
        stage->lane(part).load({"variable", "launch:" + (folder / "variable.json").string()});
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto outputs = stage->lane(part).outputs();
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(outputs->digest,
              hash_of(std::uint64_t{0}, digest_of(std::vector<std::uint32_t>(64, 7), 0)));
  }
}

TEST_F(GpuExecutor, windows_are_left_to_tenants) {
  const auto stage = open()->divide(parse_modes("mask+windows")->at(0), 2);
  ASSERT_FALSE(stage);
  EXPECT_EQ(stage.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(stage.error().message,
              HasSubstr("mask+windows: on a card, windows are for programs in a tenant; run them "
                        "with demarc exec --windows always"));
}

TEST_F(GpuExecutor,
       parts_have_domains_of_their_own_unless_the_mode_says_otherwise_or_the_card_has_none) {
  const auto account = [&](std::string_view mode) {
    return open()->divide(parse_modes(mode)->at(0), 2).value()->account();
  };
  EXPECT_THAT(account("mask"), HasSubstr("; each part has a memory synchronisation domain"));
  EXPECT_THAT(account("mask+common-domain"),
              HasSubstr("; all parts share one memory synchronisation domain"));
  fake::FakeConfig old = fake::small_gpu();
  old.sync_domains = 1;
  test::configure(old);
  EXPECT_THAT(account("mask"), HasSubstr("; Fake GPU has no memory synchronisation domains"));
  options.sync_domain = 1;
  EXPECT_EQ(open()->whole().error().kind, ErrorKind::missing_capability);
}

TEST_F(GpuExecutor, a_kernel_that_writes_behind_its_buffer_is_an_error_of_its_workload) {
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("none")->at(0), 2).value();
  testing::internal::CaptureStderr();
  const auto loaded = stage->lane(0).load(wild);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("out-of-bounds access"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(loaded.error().message, HasSubstr("workload 'wild': "));
  EXPECT_THAT(loaded.error().message, HasSubstr("ILLEGAL_ADDRESS"));
}

}  // namespace
}  // namespace demarc::study
