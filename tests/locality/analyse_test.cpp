#include "demarc/locality/analyse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using ::testing::HasSubstr;

Analysis analysed(const ptx::Module& module, const gpu::Launch& launch,
                  const Options& options = {}) {
  auto analysis = analyse(module, launch, options);
  EXPECT_TRUE(analysis) << (analysis ? "" : analysis.error().message);
  return analysis ? std::move(*analysis) : Analysis{};
}

// in[i] under a guard i < n.
const char* const guarded_load = R"(
ld.param.u64 %rd1, [p0];
ld.param.u32 %r1, [p1];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.s32 %r5, %r2, %r3, %r4;
setp.ge.s32 %p1, %r5, %r1;
@%p1 bra done;
cvta.to.global.u64 %rd2, %rd1;
mul.wide.s32 %rd3, %r5, 4;
add.s64 %rd4, %rd2, %rd3;
ld.global.f32 %f1, [%rd4];
done:
)";

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

// Reads and writes of tables that the module declares: by name and offset, through registers, and
// through a generic address and back.
constexpr const char* tables = R"(.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 fixed[64];
.global .align 4 .u32 head[3] = {1, 2, 3};
.global .align 4 .b8 tab[4096];
.global .align 8 .u64 pointer = tab;
.visible .entry k(.param .u64 p0, .param .u32 p1)
{
.reg .pred %p<2>;
.reg .b32 %r<9>;
.reg .b64 %rd<12>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.u32 %r3, %r2, 64, %r1;
mul.wide.u32 %rd1, %r3, 4;
mov.u64 %rd2, tab;
add.s64 %rd3, %rd2, %rd1;
ld.global.u32 %r4, [%rd3];
mov.u64 %rd4, tab+16;
add.s64 %rd5, %rd4, %rd1;
ld.global.u32 %r5, [%rd5+4];
mov.u64 %rd6, head;
cvta.global.u64 %rd7, %rd6;
cvta.to.global.u64 %rd8, %rd7;
ld.global.u32 %r6, [%rd8+8];
ld.global.u32 %r7, [tab+64];
ld.const.u32 %r8, [fixed];
setp.lt.u32 %p1, %r1, 20;
@%p1 st.global.u32 [%rd3+2048], %r5;
ld.global.u64 %rd9, [pointer];
ld.global.u32 %r4, [%rd9];
ret;
}
)";

TEST(Analyse, tables_of_the_module_have_closed_forms_where_the_emulator_puts_them) {
  const ptx::ParseResult parsed = ptx::parse(tables, "k.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  const gpu::Launch launch = launch_of("4", "64", "buf:64,i32:0");
  const auto mixed = collect_runs(parsed.module, launch, 0, Force::automatic);
  const auto emulated = collect_runs(parsed.module, launch, 0, Force::emulated);
  ASSERT_TRUE(mixed) << mixed.error().message;
  ASSERT_TRUE(emulated) << emulated.error().message;
  const std::vector<Access>& accesses = mixed->runs.accesses;
  std::string found;
  for (const Access& access : accesses) {
    found += fmt::format("{} {} {}\n", access.expression, to_string(access.access_class),
                         access.source == Source::symbolic ? "symbolic" : "emulated");
  }
  EXPECT_EQ(found,
            "tab + 4*(tid.x + 64*ctaid.x) affine symbolic\n"
            "tab + 4*(tid.x + 64*ctaid.x + 5) affine symbolic\n"
            "head + 8 affine symbolic\n"
            "tab + 64 affine symbolic\n"
            "tab + 4*(tid.x + 64*ctaid.x + 512) affine under a guard symbolic\n"
            "pointer affine symbolic\n"
            "load(pointer) data-dependent emulated\n");
  // Thread by thread, the same addresses.
  const auto places = [](const AccessRuns& runs) {
    std::vector<std::array<std::uint64_t, 4>> all;
    for (const locality::Run& run : runs.runs)
      for (std::uint32_t i = 0; i < run.count; ++i)
        all.push_back({run.block, run.thread + i, run.access,
                       run.address + static_cast<std::uint64_t>(run.stride) * i});
    std::sort(all.begin(), all.end());
    return all;
  };
  EXPECT_EQ(places(mixed->runs), places(emulated->runs));
  EXPECT_EQ(inter_map(mixed->runs, Granularity::element, Count::multiset).map,
            inter_map(emulated->runs, Granularity::element, Count::multiset).map);
  EXPECT_EQ(intra_map(mixed->runs, Granularity::sector, Count::accesses).map,
            intra_map(emulated->runs, Granularity::sector, Count::accesses).map);
}

TEST(Analyse, an_address_behind_a_table_is_the_emulators_error) {
  const ptx::ParseResult parsed = ptx::parse(tables, "k.ptx");
  const auto analysis = analyse(parsed.module, launch_of("16", "64", "buf:64,i32:0"), {});
  ASSERT_FALSE(analysis);
  EXPECT_THAT(analysis.error().message, HasSubstr("out-of-bounds"));
  EXPECT_THAT(analysis.error().message, HasSubstr("k.ptx"));
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

TEST(Analyse, matrix_fragments_and_bulk_copies_are_counted_by_the_emulator) {
  const ptx::Module fragment = module_of(
      "ld.param.u64 %rd1, [p0];\nwmma.load.a.sync.aligned.m16n16k8.global.row.tf32 "
      "{%r1, %r2, %r3, %r4}, [%rd1], 8;\n",
      one_pointer);
  const Analysis loads = analysed(fragment, launch_of("2", "32", "buf:4096,i32:0"));
  EXPECT_EQ(loads.method, Method::emulated);
  ASSERT_EQ(loads.all.accesses.size(), 1U);
  EXPECT_GT(loads.all.accesses[0].executed, 0U);
  EXPECT_EQ(loads.left_out, 0U);

  const ptx::Module copy = module_of(R"(
.shared .align 128 .b8 s[256];
ld.param.u64 %rd1, [p0];
mov.u32 %r1, s;
mov.u32 %r3, %tid.x;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra done;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 256;
done:
)",
                                     one_pointer);
  const Analysis stores = analysed(copy, launch_of("2", "32", "buf:4096,i32:0"));
  ASSERT_EQ(stores.all.accesses.size(), 1U);
  EXPECT_EQ(stores.all.accesses[0].kind, AccessKind::store);
  EXPECT_EQ(stores.all.accesses[0].executed, 2U * 256 / 16);
}

TEST(Analyse, counts_and_names_what_neither_closed_forms_nor_the_emulator_cover) {
  const ptx::Module module = module_of(R"(
ld.param.u64 %rd1, [p0];
ldx.global.f32 %f1, [%rd1];
ld.global.foo.f32 %f2, [%rd1];
prefetch.global.L2 [%rd1];
st.global.f32 [%rd1], %f1;
)",
                                       one_pointer);
  const Analysis analysis = analysed(module, launch_of("1", "32", "buf:4096,i32:0"));
  EXPECT_EQ(analysis.left_out, 2U);
  EXPECT_THAT(analysis.notes, testing::Contains(HasSubstr("k.ptx:12: ldx.global.f32 %f1, [%rd1]")));
  EXPECT_THAT(analysis.notes, testing::Contains(HasSubstr("k.ptx:13: ld.global.foo.f32")));
  EXPECT_THAT(analysis.notes, testing::Contains(HasSubstr("prefetch.global.L2 [%rd1]")));
  const Json json = Json::parse(analysis_json(analysis, false));
  EXPECT_EQ(json["left_out"], 2);
  Options closed_only;
  closed_only.force = Force::symbolic;
  const auto refused = analyse(module, launch_of("1", "32", "buf:4096,i32:0"), closed_only);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("k.ptx:12: ldx.global.f32"));
}

TEST(Analyse, what_an_unknown_instruction_may_have_written_is_not_followed) {
  const ptx::Module module = module_of(R"(
ld.param.u64 %rd1, [p0];
foo.b64 %rd1, 4;
ld.global.f32 %f1, [%rd1];
)",
                                       one_pointer);
  const auto analysis = analyse(module, launch_of("1", "32", "buf:4096,i32:0"), {});
  ASSERT_FALSE(analysis);
  EXPECT_THAT(analysis.error().message, HasSubstr("k.ptx:12"));
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

TEST(Analyse, an_address_outside_of_the_buffers_is_the_error_that_the_emulator_makes_of_it) {
  const ptx::Module module = module_of(guarded_load, one_pointer);
  const gpu::Launch launch = launch_of("16", "64", "buf:4,i32:1024");
  Options emulated;
  emulated.force = Force::emulated;
  const auto expected = analyse(module, launch, emulated);
  ASSERT_FALSE(expected);
  EXPECT_THAT(expected.error().message, HasSubstr("out-of-bounds"));
  for (const Force force : {Force::automatic, Force::symbolic}) {
    Options options;
    options.force = force;
    const auto analysis = analyse(module, launch, options);
    ASSERT_FALSE(analysis);
    EXPECT_EQ(analysis.error(), expected.error());
  }
  EXPECT_TRUE(analyse(module, launch_of("16", "64", "buf:4096,i32:1024"), {}));
  EXPECT_FALSE(analyse(module, launch_of("16", "64", "buf:4095,i32:1024"), {}));
}

TEST(Analyse, shared_memory_is_that_of_the_kernel_of_the_module_and_of_the_launch) {
  const ptx::ParseResult parsed = ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 all[64];\n"
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

TEST(Analyse, accesses_of_functions_that_the_kernel_calls_are_the_emulators) {
  const ptx::ParseResult parsed = ptx::parse(R"(.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 result) f(.param .b64 address)
{
.reg .b64 %rd<2>;
.reg .b32 %r<2>;
ld.param.u64 %rd1, [address];
ld.global.u16 %r1, [%rd1];
st.param.b32 [result], %r1;
ret;
}
.visible .entry k(.param .u64 p0)
{
.reg .b64 %rd<4>;
.reg .b32 %r<4>;
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 2;
add.u64 %rd3, %rd1, %rd2;
{
.param .b64 to;
.param .b32 from;
st.param.b64 [to], %rd3;
call.uni (from), f, (to);
ld.param.b32 %r2, [from];
}
st.global.u16 [%rd3], %r2;
ret;
}
)",
                                             "k.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  const Analysis analysis = analysed(parsed.module, launch_of("2", "64", "buf:128"));
  EXPECT_EQ(analysis.method, Method::emulated);
  ASSERT_EQ(analysis.all.accesses.size(), 2U);
  const Access& called = analysis.all.accesses[1];
  EXPECT_THAT(called.instruction, HasSubstr("ld.global.u16"));
  EXPECT_EQ(called.line, 9U);
  EXPECT_EQ(called.space, "global");
  EXPECT_EQ(called.kind, AccessKind::load);
  EXPECT_EQ(called.bytes, 2U);
  EXPECT_EQ(called.source, Source::emulated);
  EXPECT_EQ(called.access_class, AccessClass::data_dependent);
  EXPECT_EQ(called.executed, 128U);
  EXPECT_EQ(called.requests, 4U);
  EXPECT_EQ(analysis.all.accesses[0].executed, 128U);
  EXPECT_EQ(analysis.all.accesses[0].kind, AccessKind::store);
}

// Every thread reads where the word before says.
constexpr const char* follows_data = R"(
ld.param.u64 %rd1, [p0];
mov.u32 %r1, 0;
L:
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, 100;
@%p1 bra L;
ld.global.u32 %r2, [%rd1];
mul.wide.u32 %rd2, %r2, 4;
add.u64 %rd3, %rd1, %rd2;
ld.global.u32 %r3, [%rd3];
)";

TEST(Analyse, what_takes_more_effort_than_allowed_is_refused_with_the_reason) {
  const ptx::Module module = module_of(follows_data, one_pointer);
  const gpu::Launch launch = launch_of("4", "64", "buf:4096:zero,i32:0");
  const auto said = [&](const Effort& effort) {
    const auto runs = collect_runs(module, launch, 0, Force::automatic, 0, {}, effort);
    return runs ? std::string("collected") : runs.error().message;
  };
  EXPECT_EQ(said({}), "collected");
  EXPECT_THAT(said({.trace_words = 3}), HasSubstr("too long to be emulated"));
  EXPECT_EQ(said({.emulated_buffer_bytes = 4096}), "collected");
  EXPECT_THAT(said({.emulated_buffer_bytes = 4095}),
              HasSubstr("its 4096 bytes of buffers are more than the 4095 that may be emulated"));
}

}  // namespace
}  // namespace demarc::locality
