// Closed forms: classes, counts and expressions of accesses, and what is refused.
#include "demarc/locality/analyse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using ::testing::HasSubstr;

TEST(Analyse, writes_the_address_of_the_papers_example_as_the_paper_does) {
  const ptx::Module module =
      module_of(R"(
ld.param.u64 %rd1, [p5];
cvta.to.global.u64 %rd2, %rd1;
mov.u32 %r1, %ctaid.y;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, %tid.y;
add.s32 %r4, %r2, %r3;
mul.wide.s32 %rd3, %r4, 4;
add.s64 %rd4, %rd2, %rd3;
ld.global.f32 %f1, [%rd4];
)",
                ".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 "
                "p3, .param .u64 p4, .param .u64 p5");
  const Analysis analysis =
      analysed(module, launch_of("1,4", "8,4", "buf:64,buf:64,buf:64,buf:64,buf:64,buf:4096"));
  ASSERT_EQ(analysis.all.accesses.size(), 1U);
  EXPECT_EQ(analysis.all.accesses[0].expression, "param5 + 4*(tid.y + 4*ctaid.y)");
  EXPECT_EQ(analysis.all.accesses[0].access_class, AccessClass::affine);
  EXPECT_EQ(analysis.method, Method::symbolic);
}

TEST(Analyse, counts_only_the_lanes_that_pass_the_guard) {
  const Analysis analysis =
      analysed(module_of(guarded_load, one_pointer), launch_of("4", "64", "buf:4096,i32:150"));
  const Access& access = analysis.all.accesses.at(0);
  EXPECT_EQ(access.executed, 150U);
  EXPECT_EQ(access.requests, 5U);
  EXPECT_EQ(access.access_class, AccessClass::guarded_affine);
  EXPECT_EQ(access.expression, "param0 + 4*(tid.x + ctaid.x*ntid.x)");
  // 128 lanes in full warps: 4 sectors a request; 22 lanes: 3 sectors.
  EXPECT_DOUBLE_EQ(access.sectors_per_request, (4 * 4 + 3) / 5.0);
}

TEST(Analyse, honours_the_trips_of_a_loop) {
  const ptx::Module module = module_of(R"(
ld.param.u64 %rd1, [p0];
ld.param.u32 %r1, [p1];
mov.u32 %r2, %tid.x;
mov.u32 %r3, 0;
loop:
mad.lo.s32 %r4, %r3, 32, %r2;
mul.wide.s32 %rd3, %r4, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.f32 %f1, [%rd4];
add.s32 %r3, %r3, 1;
setp.lt.s32 %p1, %r3, %r1;
@%p1 bra loop;
)",
                                       one_pointer);
  const Analysis analysis = analysed(module, launch_of("2", "32", "buf:4096,i32:10"));
  const Access& access = analysis.all.accesses.at(0);
  EXPECT_EQ(access.executed, 640U);
  EXPECT_EQ(access.access_class, AccessClass::loop_affine);
  EXPECT_EQ(analysis.inter.map.cells.at(0).value, 32U);
  EXPECT_EQ(analysis.inter.degree_of_sharing, 1.0);
}

TEST(Analyse, trips_that_differ_between_threads_are_followed_apart) {
  // Thread t reads t + 1 words.
  const ptx::Module module = module_of(R"(
ld.param.u64 %rd1, [p0];
mov.u32 %r2, %tid.x;
mov.u32 %r3, 0;
loop:
mul.wide.s32 %rd3, %r3, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.f32 %f1, [%rd4];
add.s32 %r3, %r3, 1;
setp.le.s32 %p1, %r3, %r2;
@%p1 bra loop;
)",
                                       one_pointer);
  const Analysis analysis = analysed(module, launch_of("1", "32", "buf:4096,i32:0"));
  EXPECT_EQ(analysis.all.accesses.at(0).executed, 33U * 32 / 2);
  EXPECT_EQ(analysis.all.accesses.at(0).requests, 32U);
}

TEST(Analyse, names_the_line_when_only_closed_forms_are_allowed_and_there_is_none) {
  const ptx::Module module = module_of(R"(
ld.param.u64 %rd1, [p0];
ld.global.u64 %rd2, [%rd1];
ld.global.u32 %r1, [%rd2];
)",
                                       one_pointer);
  Options closed_only;
  closed_only.force = Force::symbolic;
  const auto analysis = analyse(module, launch_of("1", "32", "buf:4096,i32:0"), closed_only);
  ASSERT_FALSE(analysis);
  EXPECT_THAT(analysis.error().message, HasSubstr("k.ptx:"));
  EXPECT_THAT(analysis.error().message, HasSubstr("ld.global.u32"));
}

TEST(Analyse, refuses_a_kernel_that_is_not_there_and_names_those_that_are) {
  gpu::Launch launch = launch_of("1", "32", "buf:64,i32:1");
  launch.kernels[0].kernel = "other";
  const auto analysis = analyse(module_of(guarded_load, one_pointer), launch, {});
  ASSERT_FALSE(analysis);
  EXPECT_THAT(analysis.error().message, HasSubstr("it has: k"));
}

TEST(Analyse, refuses_a_launch_of_the_list_that_is_not_there) {
  const gpu::Launch launch = launch_of("1", "32", "buf:64,i32:1");
  const auto module = module_of(guarded_load, one_pointer);
  EXPECT_TRUE(collect_runs(module, launch, 0, Force::automatic));
  const auto runs = collect_runs(module, launch, 1, Force::automatic);
  ASSERT_FALSE(runs);
  EXPECT_THAT(runs.error().message, HasSubstr("the launch has 1 kernels, none with index 1"));
}

TEST(Analyse, refuses_more_rows_of_threads_than_it_can_keep) {
  const auto module = module_of("", one_pointer);
  for (const auto& [grid, block] :
       {std::pair{"2147483647", "32"}, std::pair{"16777217", "32"}, std::pair{"2097153", "2,8"}}) {
    const auto analysis = analyse(module, launch_of(grid, block, "buf:4096,i32:0"), {});
    ASSERT_FALSE(analysis) << grid;
    EXPECT_NE(analysis.error().message.find("locality is found for launches of at most 16777216"),
              std::string::npos);
  }
}

TEST(Analyse, refuses_a_launch_with_another_kernel_that_is_too_large_to_be_emulated) {
  const auto module = module_of(
      "ld.param.u64 %rd1, [p0];\nld.global.u32 %r1, [%rd1];\nmul.wide.u32 %rd2, %r1, 4;\n"
      "add.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\n",
      one_pointer);
  gpu::Launch launch = launch_of("2147483647", "32", "buf:4096,i32:0");
  gpu::KernelLaunch second = launch.kernels[0];
  second.grid = {1, 1, 1};
  launch.kernels.push_back(second);
  Options options;
  options.instance = 1;
  const auto analysis = analyse(module, launch, options);
  ASSERT_FALSE(analysis);
  EXPECT_NE(analysis.error().message.find("2147483647 blocks with 1 rows of threads each"),
            std::string::npos)
      << analysis.error().message;
}

TEST(Analyse, refuses_a_grid_that_is_counted_in_clusters) {
  std::string text(*module_of("", one_pointer).text);
  text.insert(text.find("{\n"), ".reqntid 32 .blocksareclusters .reqnctapercluster 2\n");
  const auto module = ptx::parse_whole(text, "k.ptx").value();
  const auto analysis = analyse(module, launch_of("2", "32", "buf:4096,i32:0"), {});
  ASSERT_FALSE(analysis);
  EXPECT_NE(analysis.error().message.find("in a grid of clusters (.blocksareclusters)"),
            std::string::npos)
      << analysis.error().message;
}

TEST(Analyse, json_has_the_promised_keys) {
  const Analysis analysis =
      analysed(module_of(guarded_load, one_pointer), launch_of("4", "64", "buf:4096,i32:256"));
  const Json json = Json::parse(analysis_json(analysis, false));
  for (const char* key :
       {"schema", "kernel", "grid", "block", "accesses", "inter", "intra", "method"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key :
       {"instruction", "line", "space", "kind", "expression", "class", "sectors_per_request"})
    EXPECT_TRUE(json["accesses"][0].contains(key)) << key;
  for (const char* key : {"degree_of_sharing", "appearance_frequency"}) {
    EXPECT_TRUE(json["inter"].contains(key)) << key;
    EXPECT_TRUE(json["intra"].contains(key)) << key;
  }
  EXPECT_TRUE(json["inter"].contains("spscore"));
  EXPECT_TRUE(json["inter"].contains("paver_degree_of_sharing"));
}

TEST(Analyse, counts_asynchronous_copies_as_loads_of_what_they_read) {
  const ptx::Module module = module_of(R"(
.shared .align 16 .b8 tile[1024];
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 16;
add.s64 %rd3, %rd1, %rd2;
mov.u32 %r2, tile;
shl.b32 %r3, %r1, 4;
add.s32 %r4, %r2, %r3;
cp.async.cg.shared.global [%r4], [%rd3], 16;
cp.async.wait_all;
)",
                                       one_pointer);
  for (const Force force : {Force::symbolic, Force::emulated}) {
    Options options;
    options.force = force;
    const Analysis analysis = analysed(module, launch_of("1", "32", "buf:4096,i32:0"), options);
    ASSERT_EQ(analysis.all.accesses.size(), 1U);
    const Access& access = analysis.all.accesses[0];
    EXPECT_EQ(access.kind, AccessKind::load);
    EXPECT_EQ(access.bytes, 16U);
    EXPECT_EQ(access.executed, 32U);
    EXPECT_DOUBLE_EQ(access.sectors_per_request, 16);
    EXPECT_EQ(access.expression, "param0 + 16*tid.x");
    EXPECT_TRUE(access.passes_l1);
  }
}

TEST(Analyse, accesses_that_share_a_line_of_the_text_are_told_apart) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;\n"
      "add.u64 %rd4, %rd1, %rd3; ld.global.u32 %r5, [%rd4]; add.u32 %r5, %r5, 1; "
      "st.global.u32 [%rd4], %r5;\n",
      one_pointer);
  for (const Force force : {Force::symbolic, Force::emulated}) {
    Options options;
    options.force = force;
    const Analysis analysis = analysed(module, launch_of("4", "64", "buf:4096,i32:0"), options);
    ASSERT_EQ(analysis.all.accesses.size(), 2U);
    for (const Access& access : analysis.all.accesses) EXPECT_EQ(access.executed, 256U);
    EXPECT_EQ(analysis.all.accesses[0].kind, AccessKind::load);
    EXPECT_EQ(analysis.all.accesses[1].kind, AccessKind::store);
    EXPECT_DOUBLE_EQ(analysis.inter.degree_of_sharing, 1);
  }
}

TEST(Analyse, the_address_of_a_variable_has_its_offset) {
  const ptx::ParseResult parsed = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .b8 tab[64];\n"
      ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<2>;\n"
      "ld.global.u32 %r1, [tab+4];\nret;\n}\n",
      "k.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  const Analysis analysis = analysed(parsed.module, launch_of("1", "32", "buf:64"));
  EXPECT_EQ(analysis.all.accesses.at(0).expression, "tab + 4");
}

TEST(Analyse, tells_of_its_progress_without_the_emulator_too) {
  Options options;
  std::vector<double> shares;
  options.progress = [&shares](double share, std::string_view) { shares.push_back(share); };
  const Analysis analysis = analysed(module_of(guarded_load, one_pointer),
                                     launch_of("4", "64", "buf:4096,i32:150"), options);
  EXPECT_EQ(analysis.method, Method::symbolic);
  ASSERT_GE(shares.size(), 4U);
  EXPECT_EQ(shares.back(), 1);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
}

// Threads 0 to 15 load in the second trip, the others in the first: two requests of a warp.
TEST(Analyse, lanes_that_load_in_different_trips_make_different_requests) {
  const ptx::Module module = module_of(R"(
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd3, %rd1, %rd2;
setp.ge.u32 %p1, %r1, 16;
selp.u32 %r2, 1, 0, %p1;
mov.u32 %r3, 0;
L:
setp.ne.u32 %p2, %r2, %r3;
@%p2 bra S;
ld.global.u32 %r4, [%rd3];
S:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 2;
@%p3 bra L;
)",
                                       one_pointer);
  for (const Force force : {Force::symbolic, Force::emulated}) {
    Options options;
    options.force = force;
    const Analysis analysis = analysed(module, launch_of("1", "32", "buf:4096,i32:0"), options);
    EXPECT_EQ(analysis.all.accesses.at(0).requests, 2U);
    EXPECT_DOUBLE_EQ(analysis.all.accesses.at(0).sectors_per_request, 2);
  }
}

TEST(Analyse, shared_memory_is_that_of_the_kernel_of_the_module_and_of_the_launch) {
  const ptx::ParseResult parsed = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 4 .b8 all[64];\n"
      ".visible .shared .align 4 .b8 all[64];\n"
      ".global .align 4 .b8 none[999];\n"
      ".visible .entry k(.param .u64 p)\n{\n.shared .align 4 .b8 own[400];\nret;\n}\n",
      "k.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  gpu::KernelLaunch kernel;
  kernel.kernel = "k";
  kernel.dynamic_shared_bytes = 5;
  EXPECT_EQ(shared_bytes_of(parsed.module, kernel), 469U);
}

// Threads from 20 on end at once.
TEST(Analyse, threads_that_leave_the_kernel_touch_nothing_behind_it) {
  for (const std::string leave : {"@%p1 ret;", "@%p1 exit;"}) {
    const ptx::Module module = module_of(
        "ld.param.u64 %rd1, [p0];\nmov.u32 %r2, %tid.x;\nsetp.ge.u32 %p1, %r2, 20;\n" + leave +
            "\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
            "ld.global.u32 %r3, [%rd3];\n",
        one_pointer);
    const Analysis analysis = analysed(module, launch_of("1", "32", "buf:80,i32:0"));
    EXPECT_EQ(analysis.method, Method::symbolic);
    EXPECT_EQ(analysis.all.accesses.at(0).executed, 20U) << leave;
  }
}

}  // namespace
}  // namespace demarc::locality
