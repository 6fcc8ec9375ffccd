// Which launch of a list is analysed, and by which way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "both_ways.hpp"
#include "demarc/base/json.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using ::testing::HasSubstr;

constexpr const char* two_kernels = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry closed(.param .u64 p0, .param .u32 p1)
{
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];
ret;
}
// Loads p1 more words where the first says, and nothing but that word when p1 is 0.
.visible .entry open(.param .u64 p0, .param .u32 p1)
{
.reg .pred %p<2>;
.reg .b32 %r<5>;
.reg .b64 %rd<5>;
ld.param.u64 %rd1, [p0];
ld.param.u32 %r1, [p1];
ld.global.u32 %r2, [%rd1];
mul.wide.u32 %rd2, %r2, 4;
add.u64 %rd3, %rd1, %rd2;
mov.u32 %r3, 0;
again:
setp.ge.u32 %p1, %r3, %r1;
@%p1 bra done;
ld.global.u32 %r4, [%rd3];
add.u32 %r3, %r3, 1;
bra again;
done:
ret;
}
)";

struct Part {
  const char* kernel;
  std::uint32_t blocks;
  std::uint32_t more;
};

gpu::Launch list_of(const std::vector<Part>& parts) {
  gpu::Launch launch = launch_of("1", "32", "buf:4096,i32:0");
  launch.kernels.clear();
  for (const Part& part : parts) {
    const gpu::Launch like = launch_of("1", "32", "buf:4096,i32:" + std::to_string(part.more));
    launch.kernels.push_back(like.kernels[0]);
    launch.kernels.back().kernel = part.kernel;
    launch.kernels.back().grid = {part.blocks, 1, 1};
  }
  return launch;
}

ptx::Module both_kernels() {
  ptx::ParseResult parsed = ptx::parse(two_kernels, "k.ptx");
  EXPECT_TRUE(parsed.diagnostics.ok());
  return std::move(parsed.module);
}

TEST(LaunchChoice, of_a_list_the_largest_is_taken_and_any_other_can_be_asked_for) {
  const ptx::Module module = both_kernels();
  const gpu::Launch launch = list_of(
      {{"closed", 1, 0}, {"open", 3, 0}, {"closed", 4, 0}, {"closed", 4, 1}, {"open", 3, 1}});
  const Analysis largest = analysed(module, launch);
  EXPECT_EQ(largest.kernel, "closed");
  EXPECT_EQ(largest.instance, 1U) << "the first of equals";
  EXPECT_EQ(largest.grid.x, 4U);
  Options options;
  options.instance = 0;
  EXPECT_EQ(analysed(module, launch, options).grid.x, 1U);
  options.instance = 2;
  EXPECT_EQ(analysed(module, launch, options).instance, 2U);
  options.instance = 3;
  EXPECT_THAT(analyse(module, launch, options).error().message,
              HasSubstr("--instance 3: kernel 'closed' is launched 3 times, counted from 0"));
  options.instance = -2;
  EXPECT_THAT(analyse(module, launch, options).error().message, HasSubstr("--instance -2: "));
  options.kernel = "open";
  options.instance = 1;
  const Analysis open = analysed(module, launch, options);
  EXPECT_EQ(open.kernel, "open");
  EXPECT_EQ(open.instance, 1U);
  options.kernel = "other";
  EXPECT_THAT(analyse(module, launch, options).error().message,
              HasSubstr("the launch runs no kernel 'other'"));
}

TEST(LaunchChoice, of_what_the_emulator_runs_the_one_with_the_most_loads_is_taken) {
  const ptx::Module module = both_kernels();
  Options options;
  options.kernel = "open";
  const Analysis most = analysed(
      module, list_of({{"closed", 9, 0}, {"open", 8, 1}, {"open", 2, 9}, {"open", 2, 8}}), options);
  EXPECT_EQ(most.instance, 1U);
  EXPECT_EQ(most.grid.x, 2U);
  EXPECT_EQ(most.method, Method::mixed);
  ASSERT_EQ(most.all.accesses.size(), 2U);
  EXPECT_EQ(most.all.accesses[0].executed, 2U * 32) << "by its closed form, of that launch";
  EXPECT_EQ(most.all.accesses[1].executed, 2U * 32 * 9);
  const Analysis first = analysed(module, list_of({{"open", 2, 3}, {"open", 2, 3}}), options);
  EXPECT_EQ(first.instance, 0U) << "the first of equals";
}

TEST(LaunchChoice, of_the_way_accesses_say_which_was_theirs) {
  const Analysis mixed = analysed(both_kernels(), list_of({{"open", 2, 2}}));
  ASSERT_EQ(mixed.all.accesses.size(), 2U);
  EXPECT_EQ(mixed.all.accesses[0].source, Source::symbolic);
  EXPECT_EQ(mixed.all.accesses[1].source, Source::emulated);
  Options options;
  options.force = Force::emulated;
  const Analysis emulated = analysed(both_kernels(), list_of({{"open", 2, 2}}), options);
  EXPECT_EQ(emulated.method, Method::emulated);
  for (const Access& access : emulated.all.accesses) EXPECT_EQ(access.source, Source::emulated);
}

constexpr const char* kept_analysis = R"json(
{"schema":"demarc.locality/1","kernel":"k","instance":0,"grid":[2,1,1],"block":[32,1,1],"threads":64,
"granularity":"element","count":"accesses","kind":"load","counted_instructions":2,"method":"mixed",
"accesses":[
{"instruction":"ld.global.u32 %r2, [%rd3];","line":15,"source_line":"","space":"global","kind":"load","bytes":4,
 "expression":"param0 + 4*tid.x","class":"affine","method":"symbolic",
 "executed":64,"requests":2,"sectors_per_request":4.0},
{"instruction":"ld.global.u32 %r3, [%rd5];","line":18,"source_line":"","space":"global","kind":"load","bytes":4,
 "expression":"param0 + 4*load(param0 + 4*tid.x)","class":"data-dependent","method":"emulated",
 "executed":64,"requests":2,"sectors_per_request":1.0},
{"instruction":"atom.global.add.u32 %r4, [%rd3+1024], 1;","line":19,"source_line":"","space":"global","kind":"atomic",
 "bytes":4,"expression":"param0 + 4*(tid.x + 256)","class":"affine","method":"symbolic",
 "executed":64,"requests":2,"sectors_per_request":4.0},
{"instruction":"@%p1 st.global.u8 [%rd1+2048], %r3;","line":21,"source_line":"","space":"global","kind":"store",
 "bytes":1,"expression":"param0 + 2048","class":"affine under a guard","method":"symbolic",
 "executed":16,"requests":2,"sectors_per_request":1.0}],
"inter":{"degree_of_sharing":1.0,"appearance_frequency":1.0,"spscore":0.5,
 "paver_degree_of_sharing":16.0,"sharing_blocks":2,"sharing_pairs":1,"places":32,"shared_places":32,
 "map":{"size":2,"bin":1,"cells":[[0,1,64]]},"sets":[[32,[0,1]]]},
"intra":{"degree_of_sharing":0.53125,"appearance_frequency":1.0,"map_block":0,
 "distinct_blocks":1},
"left_out":0,"advice":["line 15 (ld.global.u32 %r2, [%rd3];) is shared most: on average 2.00 blocks touch each of its places. Larger tiles, or more work for each block, fetch them less often; blocks that share should run side by side."],"findings":[],"notes":["a prefetch, which is not counted: k.ptx:22: prefetch.global.L2 [%rd1];"]})json";

// A load by its closed form, one that the emulator followed, and a store; the trees left out.
TEST(AnalysisJson, is_whole) {
  const ptx::Module module = module_of(R"(
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
ld.global.u32 %r2, [%rd3];
mul.wide.u32 %rd4, %r2, 4;
add.u64 %rd5, %rd1, %rd4;
ld.global.u32 %r3, [%rd5];
atom.global.add.u32 %r4, [%rd3+1024], 1;
setp.lt.u32 %p1, %r1, 8;
@%p1 st.global.u8 [%rd1+2048], %r3;
prefetch.global.L2 [%rd1];
)",
                                       one_pointer);
  const Analysis analysis = analysed(module, launch_of("2,1,1", "32", "buf:4096:zero,i32:0"));
  Json json = Json::parse(analysis_json(analysis, true));
  EXPECT_TRUE(json["trees"].is_object());
  json.erase("trees");
  json["intra"].erase("map");
  EXPECT_EQ(json_text(json), json_text(Json::parse(kept_analysis)));
}

TEST(LaunchChoice, launches_that_do_not_fit_the_kernel_are_refused) {
  const ptx::Module module = both_kernels();
  gpu::Launch launch = list_of({{"closed", 1, 0}});
  launch.kernels[0].block = {512, 2, 1};
  EXPECT_TRUE(analyse(module, launch, {}));
  launch.kernels[0].block = {1, 1025, 1};
  EXPECT_THAT(analyse(module, launch, {}).error().message,
              HasSubstr("1025 threads per block; at most 1024 are possible"));
  launch.kernels[0].block = {32, 1, 1};
  launch.kernels[0].arguments.pop_back();
  EXPECT_THAT(analyse(module, launch, {}).error().message,
              HasSubstr("takes 2 arguments, but the launch gives 1"));
}

// Whether a generic address is one of global memory shows where the kernel runs.
TEST(GenericAccesses, that_touch_no_global_memory_are_not_among_the_accesses) {
  const ptx::Module module = module_of(R"(
.shared .align 4 .b8 tile[128];
ld.param.u64 %rd1, [p0];
mov.u64 %rd2, tile;
cvta.shared.u64 %rd3, %rd2;
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd5, %rd3, %rd4;
st.u32 [%rd5], %r1;
ld.global.u32 %r2, [%rd1];
mul.wide.u32 %rd6, %r2, 4;
add.u64 %rd7, %rd1, %rd6;
ld.u16 %r3, [%rd7];
ld.u32 %r3, [%rd5];
st.global.u8 [%rd7], %r3;
)",
                                       one_pointer);
  const Analysis analysis = analysed(module, launch_of("2", "32", "buf:4096:zero,i32:0"));
  ASSERT_EQ(analysis.all.accesses.size(), 3U);
  EXPECT_EQ(analysis.all.accesses[0].bytes, 4U);
  EXPECT_EQ(analysis.all.accesses[1].bytes, 2U);
  EXPECT_EQ(analysis.all.accesses[1].space, "generic");
  EXPECT_EQ(analysis.all.accesses[2].kind, AccessKind::store);
  for (const Access& access : analysis.all.accesses) EXPECT_EQ(access.executed, 64U);
  for (const std::string& note : analysis.notes) EXPECT_EQ(note.find("never executed"), note.npos);
}

TEST(Emulated, kernels_that_race_or_read_what_nobody_wrote_are_followed_too) {
  const ptx::Module module = module_of(R"(
.shared .align 4 .b8 tile[128];
ld.param.u64 %rd1, [p0];
ld.shared.u32 %r1, [tile];
and.b32 %r1, %r1, 3;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
mov.u32 %r2, %tid.x;
st.global.u32 [%rd3], %r2;
st.shared.u32 [tile], %r2;
ld.global.u32 %r3, [%rd3];
)",
                                       one_pointer);
  const Analysis analysis = analysed(module, launch_of("2", "64", "buf:4096,i32:0"));
  EXPECT_EQ(analysis.method, Method::emulated);
  EXPECT_EQ(analysis.all.accesses.at(0).executed, 128U);
}

// For every kind of place, thread by thread; and as few runs as there can be.
void expect_runs(const std::string& body, std::size_t count) {
  const ptx::Module module =
      module_of("ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\n" + body, one_pointer);
  const gpu::Launch launch = launch_of("2", "64", "buf:4096,i32:0");
  auto closed = collect_runs(module, launch, 0, Force::symbolic);
  auto emulated = collect_runs(module, launch, 0, Force::emulated);
  ASSERT_TRUE(closed) << closed.error().message;
  ASSERT_TRUE(emulated) << emulated.error().message;
  const std::vector<bool> all(closed->runs.accesses.size(), true);
  EXPECT_EQ(flattened(closed->runs, all), flattened(emulated->runs, all)) << body;
  expect_equal_requests(closed->runs, emulated->runs, all, body);
  EXPECT_EQ(closed->runs.runs.size(), 2 * count) << body;
}

TEST(JoinedRuns, parts_of_a_row_are_joined_where_they_continue_each_other_and_nowhere_else) {
  const auto body = [](const char* below, const char* others, const char* split) {
    return fmt::format(
        "setp.lt.u32 %p1, %r1, {2};\n@%p1 bra below;\n{1}\nbra meet;\nbelow:\n{0}\nmeet:\n"
        "mul.wide.s32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r4, [%rd3+1024];\n",
        below, others, split);
  };
  const char* same = "mov.u32 %r2, %r1;";
  const char* far = "add.u32 %r2, %r1, 7;";
  const char* down = "neg.s32 %r2, %r1;";
  const char* doubled = "shl.b32 %r2, %r1, 1;";
  const char* one = "mov.u32 %r2, 20;";
  expect_runs(body(same, same, "20"), 1);
  expect_runs(body(down, down, "20"), 1);
  expect_runs(body(same, same, "1"), 1);
  expect_runs(body(same, same, "63"), 1);
  expect_runs(body(same, far, "20"), 2);
  expect_runs(body(same, down, "20"), 2);
  expect_runs(body(same, doubled, "20"), 2);
  expect_runs(body(doubled, same, "20"), 2);
  expect_runs(body(one, same, "20"), 2);
  expect_runs(body(one, same, "1"), 2);
  expect_runs(body(same, one, "63"), 2);
  expect_runs(body(same, "mov.u32 %r2, 63;", "63"), 1);
  expect_runs(
      "mov.u32 %r3, %laneid;\nshl.b32 %r3, %r3, 3;\ncvt.u64.u32 %rd2, %r3;\n"
      "add.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r4, [%rd3];\n",
      2);
}

// As often as the warp executed the access before: calls of a function too.
TEST(Emulated, requests_of_a_warp_are_counted_from_0_for_each_access) {
  const ptx::ParseResult parsed = ptx::parse(R"(.version 8.0
.target sm_80
.address_size 64
.func f(.param .b64 address)
{
.reg .b64 %rd<2>;
.reg .b32 %r<2>;
ld.param.u64 %rd1, [address];
ld.global.u32 %r1, [%rd1];
ld.global.u16 %r1, [%rd1];
ret;
}
.visible .entry k(.param .u64 p0)
{
.reg .pred %p<2>;
.reg .b64 %rd<4>;
.reg .b32 %r<4>;
ld.param.u64 %rd1, [p0];
mov.u32 %r1, 0;
again:
ld.global.u32 %r2, [%rd1];
{
.param .b64 to;
st.param.b64 [to], %rd1;
call.uni f, (to);
}
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 3;
@%p1 bra again;
ret;
}
)",
                                             "k.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  const auto collected =
      collect_runs(parsed.module, launch_of("2", "64", "buf:128"), 0, Force::emulated);
  ASSERT_TRUE(collected) << collected.error().message;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> lanes;  // of access, request
  for (const locality::Run& run : collected->runs.runs)
    lanes[{run.access, run.request}] += run.count;
  ASSERT_EQ(lanes.size(), 9U);
  for (std::uint32_t access = 0; access < 3; ++access)
    for (std::uint32_t request = 0; request < 3; ++request)
      EXPECT_EQ((lanes[{access, request}]), 128U) << access << ", " << request;
}

}  // namespace
}  // namespace demarc::locality
