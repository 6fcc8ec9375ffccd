// The executor on a real GPU, against the stand-in for libcuda, which runs the kernels in the
// emulator.
#include "demarc/study/gpu_executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "fake_card.hpp"
#include "gpu/support_kernels.hpp"
#include "small_kernels.hpp"

namespace demarc::study {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::uint32_t elements = 1000;

// The digest that a lane must find, from the words themselves.
std::uint64_t reference_digest() {
  std::vector<std::uint32_t> b(elements);
  std::vector<std::uint32_t> c(elements);
  for (std::uint32_t i = 0; i < elements; ++i) b[i] = 3 * i + i;
  for (std::uint32_t i = 0; i < elements; ++i) c[i] = b[i] + b[elements - 1 - i];
  return hash_of(hash_of(std::uint64_t{0}, digest_of(b, 1)), digest_of(c, 2));
}

// A launch of both kernels, the second a grid that depends on all of the first; `beyond`: elements
// of which b and c have no room.
std::string two_steps_json(std::uint32_t beyond) {
  return fmt::format(R"({{"schema": "demarc.launch/1", "name": "two_steps", "ptx": "two_steps.ptx",
    "buffers": [
      {{"name": "a", "bytes": {0}, "element": "u32", "fill": "iota"}},
      {{"name": "b", "bytes": {0}, "element": "u32"}},
      {{"name": "c", "bytes": {0}, "element": "u32", "output": true}}],
    "launches": [
      {{"kernel": "scale", "grid": 8, "block": 128, "args": ["buf:a", "buf:b", "u32:{1}"]}},
      {{"kernel": "fold", "grid": 8, "block": 128, "args": ["buf:b", "buf:c", "u32:{1}"]}}]}})",
                     4 * elements, elements + beyond);
}

// The same with its first `count` buffers in memory of the host.
std::string two_steps_in_host(std::size_t count) {
  std::string text = two_steps_json(0);
  std::size_t at = 0;
  const std::string_view element = R"("element": "u32")";
  for (std::size_t i = 0; i < count; ++i) {
    at = text.find(element, at) + element.size();
    text.insert(at, R"(, "memory": "host")");
  }
  return text;
}

class GpuExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto folder = test::fresh_folder("gpu_executor");
    ASSERT_TRUE(write_file((folder / "two_steps.ptx").string(),
                           test::small_module(test::scale_entry, test::fold_entry)));
    ASSERT_TRUE(write_file((folder / "two_steps.json").string(), two_steps_json(0)));
    ASSERT_TRUE(write_file((folder / "wild.json").string(), two_steps_json(1)));
    ASSERT_TRUE(write_file((folder / "no_buffer.json").string(),
                           R"({"schema": "demarc.launch/1", "name": "no_buffer",
      "ptx": "two_steps.ptx", "buffers": [],
      "launches": [{"kernel": "scale", "grid": 1, "block": 1, "args": ["u64:0", "u64:0", "u32:0"]}]})"));
    for (const std::size_t count : {2U, 3U}) {
      const auto path = folder / fmt::format("host{}.json", count);
      ASSERT_TRUE(write_file(path.string(), two_steps_in_host(count)));
      in_host.push_back({path.stem().string(), "launch:" + path.string()});
    }
    two_steps = {"two_steps", "launch:" + (folder / "two_steps.json").string()};
    wild = {"wild", "launch:" + (folder / "wild.json").string()};
    ::setenv("DEMARC_LIBCUDA", (test::build_dir() / "libdemarc_fake_libcuda.so").c_str(), 1);
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
    test::configure(fake::small_gpu());
    options.arena_pages_a_part = 4;
    options.masks = {0xc4000};
  }
  void TearDown() override {
    ::unsetenv("DEMARC_CACHE");
    ::unsetenv("DEMARC_LIBCUDA");
    test::configure(fake::small_gpu());
  }

  std::unique_ptr<Executor> open() const {
    auto executor = make_gpu_executor(options);
    EXPECT_TRUE(executor) << executor.error().message;
    return std::move(*executor);
  }
  // Both parts of each mode compute what the kernels say, and time every run.
  void expect_right_in(Executor& executor, std::string_view modes) const {
    const auto parsed = parse_modes(modes);
    ASSERT_TRUE(parsed) << parsed.error().message;
    for (const Mode& mode : *parsed) {
      SCOPED_TRACE(mode.name());
      const auto stage = executor.divide(mode, 2);
      ASSERT_TRUE(stage) << stage.error().message;
      ASSERT_EQ((*stage)->lanes(), 2U);
      EXPECT_THAT((*stage)->account(), testing::Not(IsEmpty()));
      for (std::uint32_t part = 0; part < 2; ++part) {
        expect_right((*stage)->lane(part), mode.launches != Launches::fused || part != 0);
      }
    }
  }
  void expect_right(Lane& lane, bool several_launches) const {
    expect_right(lane, several_launches, two_steps);
  }
  static void expect_right(Lane& lane, bool several_launches, const Workload& workload) {
    const auto loaded = lane.load(workload);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto times = lane.sample(3, 10);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_THAT(*times, SizeIs(3));
    EXPECT_THAT(*times, Each(Gt(0)));
    const auto whole = lane.last_runs();
    if (!several_launches) {
      EXPECT_THAT(whole, IsEmpty());
    }
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_GE(whole[i], times->at(i));
    const auto outputs = lane.outputs();
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(outputs->digest, reference_digest());
    EXPECT_TRUE(outputs->exact);
    EXPECT_EQ(outputs->mismatch, "");
  }
  // The card whose colours are runs of remainders.
  void take_remainders() {
    fake::FakeConfig config = fake::small_gpu();
    config.remainders = true;
    test::configure(config);
    options.masks.clear();
    options.description = "h200";
    options.arena_pages_a_part = 8;
  }

  GpuExecutorOptions options;
  Workload two_steps;
  Workload wild;
  std::vector<Workload> in_host;  // two of three buffers, and all
};

// A process has either green contexts or masks. ctest runs each suite in a process of its own; run
// all together, the masks may come first.
class GpuExecutorGreen : public GpuExecutorTest {};

TEST_F(GpuExecutorGreen, EveryFormOfLaunchComputesTheSame) {
  const auto executor = open();
  if (const auto stage = executor->divide(parse_modes("green")->at(0), 2); !stage) {
    EXPECT_THAT(stage.error().message, HasSubstr("once masks were used"));
    return;
  }
  expect_right_in(*executor,
                  "green,green+graph,green+overlapped,green+graph+overlapped,green+fused");
}

class GpuExecutor : public GpuExecutorTest {};

TEST_F(GpuExecutor, TheWholeCardComputesTheReferenceAndTimesBothLaunches) {
  const auto executor = open();
  EXPECT_EQ(executor->context().sms, 24U);
  const auto stage = executor->whole().value();
  ASSERT_EQ(stage->lanes(), 1U);
  expect_right(stage->lane(0), true);
  EXPECT_THAT(stage->lane(0).last_runs(), SizeIs(3));
}

TEST_F(GpuExecutor, EveryModeOfOneProcessComputesTheReference) {
  const auto executor = open();
  expect_right_in(*executor, "none,mask,affinity");
}

TEST_F(GpuExecutor, EveryFormOfLaunchComputesTheSameUnderAMask) {
  const auto executor = open();
  expect_right_in(*executor, "mask+graph,mask+overlapped,mask+graph+overlapped,mask+fused");
}

TEST_F(GpuExecutor, ColoursThatAreParitiesComputeTheReferenceInEveryForm) {
  const auto executor = open();
  expect_right_in(*executor,
                  "mask+color,mask+color+graph,mask+color+overlapped,mask+color+fused,"
                  "affinity+color,none+color");
}

TEST_F(GpuExecutor, ColoursThatAreRemaindersComputeTheReferenceInEveryForm) {
  take_remainders();
  const auto executor = open();
  expect_right_in(*executor,
                  "mask+color,mask+color+graph,mask+color+overlapped,mask+color+graph+overlapped,"
                  "mask+color+fused");
}

TEST_F(GpuExecutor, AColouredVictimLaunchesWhereTheOthersAreNotFelt) {
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
      "an empty launch takes 1000.00 us, 1000.00 beside traffic of the others' colours";
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

TEST_F(GpuExecutor, ColoursChangePlacesWhereTheOptionsSaySoAndOnesThatDoNotExistAreRefused) {
  options.colors = {1, 0};
  const auto executor = open();
  expect_right_in(*executor, "mask+color");
  const auto refused = executor->divide(parse_modes("mask+color")->at(0), 3);
  ASSERT_FALSE(refused) << "one mask makes two colours";
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
}

TEST_F(GpuExecutor, MemoryOfTheHostIsUsedAsItIsByLanesWithAndWithoutColours) {
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
        HasSubstr("2 of its 3 buffers lie in memory of the host; in a study all do or none"));
  }
}

TEST_F(GpuExecutor, CopiesAreNeighboursInEitherDirectionAndNeverVictims) {
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
                  HasSubstr("can be an aggressor, not a victim"));
      EXPECT_THAT(lane.outputs().error().message, HasSubstr("can be an aggressor"));
    }
  }
  EXPECT_FALSE(lane.load({"x", "copy_around"}));
  EXPECT_THAT(lane.start().error().message, HasSubstr("has nothing loaded"));
  std::string no_buffer = file;
  no_buffer.replace(no_buffer.rfind("two_steps.json"), std::string::npos, "no_buffer.json");
  EXPECT_THAT(lane.load({"x", "copy_in" + no_buffer}).error().message,
              HasSubstr("launch 'no_buffer': a buffer is needed, which is copied"));
  EXPECT_EQ(executor->code_of({"copy_in", "copy_in"}).error().kind, ErrorKind::missing_capability);
}

TEST_F(GpuExecutor, ANeighbourTakesNoMemoryForOutputsThatNobodyAsksFor) {
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

TEST_F(GpuExecutor, NeighboursGetHostMemoryCopiesAndMostOfWhatTheirPartHas) {
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

TEST_F(GpuExecutor, ColouredPartsHaveTheMemoryThatIsAskedFor) {
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
TEST_F(GpuExecutor, AVariableOfTheModuleWithoutFirstContentBeginsAsZeros) {
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

TEST_F(GpuExecutor, WhatANeighbourLeftInItsBuffersIsGoneWhenItsOutputsAreAskedFor) {
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

TEST_F(GpuExecutor, UnderColoursKernelsOnMemoryOfTheHostUseNoOtherMemoryOfTheCard) {
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

TEST_F(GpuExecutor, PartsHaveDomainsOfTheirOwnUnlessTheModeSaysOtherwiseOrTheCardHasNone) {
  const auto account = [&](std::string_view mode) {
    return open()->divide(parse_modes(mode)->at(0), 2).value()->account();
  };
  EXPECT_THAT(account("mask"), HasSubstr("; a memory synchronisation domain each"));
  EXPECT_THAT(account("mask+common-domain"),
              HasSubstr("; one memory synchronisation domain for all"));
  fake::FakeConfig old = fake::small_gpu();
  old.sync_domains = 1;
  test::configure(old);
  EXPECT_THAT(account("mask"), HasSubstr("; Fake GPU has no memory synchronisation domains"));
  options.sync_domain = 1;
  EXPECT_EQ(open()->whole().error().kind, ErrorKind::missing_capability);
}

TEST_F(GpuExecutor, AnAggressorLoopsFromStartToStopWhileTheVictimIsTimed) {
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("mask")->at(0), 2).value();
  Lane& victim = stage->lane(0);
  Lane& aggressor = stage->lane(1);
  ASSERT_TRUE(victim.load(two_steps));
  ASSERT_TRUE(aggressor.load(two_steps));
  const auto launches = test::fake_symbol<std::uint64_t()>("fake_launch_count");
  ASSERT_TRUE(aggressor.start());
  const std::uint64_t before = launches();
  ASSERT_TRUE(victim.sample(5, 10));
  const auto rate = aggressor.stop();
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_GT(*rate, 0);
  const std::uint64_t after = launches();
  EXPECT_GT(after, before + 2 * 6) << "the victim alone launches six runs of two kernels";
  EXPECT_EQ(victim.outputs()->digest, reference_digest());
  EXPECT_EQ(launches() - after, 2 + 2 + 2) << "copies, kernels, digests: the loop has ended";
  EXPECT_EQ(aggressor.stop().value(), 0.0) << "nothing to stop";
}

TEST_F(GpuExecutor, AKernelThatWritesBehindItsBufferIsAnErrorOfItsWorkload) {
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

TEST_F(GpuExecutor, ALaunchThatCannotBeStartedEndsALoopWithItsError) {
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
