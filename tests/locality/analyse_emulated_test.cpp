// What closed forms do not cover: the emulator's part, what neither covers, and where it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

using ::testing::HasSubstr;

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

TEST(AnalyseEmulated, tables_of_the_module_have_closed_forms_where_the_emulator_puts_them) {
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

TEST(AnalyseEmulated, an_address_behind_a_table_is_the_emulators_finding) {
  const ptx::ParseResult parsed = ptx::parse(tables, "k.ptx");
  const Analysis analysis = analysed(parsed.module, launch_of("16", "64", "buf:64,i32:0"));
  ASSERT_FALSE(analysis.findings.empty());
  EXPECT_THAT(analysis.findings[0], HasSubstr("out-of-bounds"));
  EXPECT_THAT(analysis.findings[0], HasSubstr("k.ptx"));
}

TEST(AnalyseEmulated, matrix_fragments_and_bulk_copies_are_counted_by_the_emulator) {
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

TEST(AnalyseEmulated, tells_of_the_emulators_progress) {
  Options options;
  options.force = Force::emulated;
  options.threads = 1;
  std::string told;
  options.progress = [&told](double, std::string_view what) { told += what; };
  analysed(module_of(guarded_load, one_pointer), launch_of("400", "64", "buf:4096,i32:150"),
           options);
  EXPECT_EQ(told.find("requests"), told.rfind("k", told.find("requests")) + 1) << told;
}

TEST(AnalyseEmulated, counts_and_names_what_neither_closed_forms_nor_the_emulator_cover) {
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

TEST(AnalyseEmulated, what_an_unknown_instruction_may_have_written_is_not_followed) {
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

TEST(AnalyseEmulated, an_unknown_instruction_writes_all_of_its_first_operand_and_nothing_else) {
  const auto error_of = [](const std::string& unknown) {
    const auto analysis =
        analyse(module_of("ld.param.u64 %rd1, [p0];\n" + unknown + "\nld.global.f32 %f1, [%rd1];\n",
                          one_pointer),
                launch_of("1", "32", "buf:4096,i32:0"), {});
    return analysis ? "" : analysis.error().message;
  };
  for (const char* unknown : {"foo.b64 %rd1, 4;", "foo.v2.b64 {%rd9, %rd1}, 4;",
                              "foo.v2.b64 {%rd1, %rd9}, 4;", "foo.b64 (%rd9, %rd1), 4;"})
    EXPECT_THAT(error_of(unknown), HasSubstr("does not cover: foo")) << unknown;
  for (const char* unknown : {"foo.b64 %rd9, %rd1;", "foo.v2.b64 {%rd9, %rd10}, %rd1;",
                              "foo.b64 [%rd1], %rd1;", "foo.b64 %rd11, {%rd9, %rd1};"})
    EXPECT_EQ(error_of(unknown), "") << unknown;
}

// Four blocks read beyond the 513th word.
const gpu::Launch& over_read() {
  static const gpu::Launch launch = launch_of("16", "64", "buf:2052,i32:1024");
  return launch;
}

TEST(AnalyseEmulated, an_over_read_is_a_finding_and_the_kernel_has_its_maps_whatever_the_method) {
  const ptx::Module module = module_of(guarded_load, one_pointer);
  Options options;
  options.count = Count::distinct;
  options.granularity = Granularity::page_4k;
  options.force = Force::emulated;
  const Analysis emulated = analysed(module, over_read(), options);
  ASSERT_EQ(emulated.findings.size(), 1U);
  EXPECT_THAT(emulated.findings[0], HasSubstr("out-of-bounds access: k.ptx:22: ld.global.f32"));
  for (const Force force : {Force::automatic, Force::symbolic}) {
    options.force = force;
    const Analysis analysis = analysed(module, over_read(), options);
    EXPECT_EQ(analysis.findings, emulated.findings);
    EXPECT_EQ(analysis.method, Method::symbolic);
    EXPECT_EQ(analysis.all.accesses.at(0).executed, 1024U);
    EXPECT_EQ(emulated.all.accesses.at(0).executed, 1024U);
    EXPECT_EQ(analysis.inter.map, emulated.inter.map);
    EXPECT_EQ(Json::parse(analysis_json(analysis, false))["findings"].size(), 1U);
  }
  EXPECT_TRUE(analysed(module, launch_of("16", "64", "buf:4096,i32:1024"), {}).findings.empty());
  EXPECT_FALSE(analysed(module, launch_of("16", "64", "buf:4095,i32:1024"), {}).findings.empty());
}

TEST(AnalyseEmulated, an_over_read_that_the_emulator_cannot_judge_is_named_by_its_line) {
  const ptx::Module module = module_of(guarded_load, one_pointer);
  const auto runs =
      collect_runs(module, over_read(), 0, Force::automatic, 0, {}, {.emulated_buffer_bytes = 64});
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(runs->findings,
            std::vector<std::string>{"an address outside of the buffers or not aligned: k.ptx:22: "
                                     "ld.global.f32 %f1, [%rd4];"});
  EXPECT_THAT(runs->notes, testing::Contains(HasSubstr("the emulator: its addresses")));
}

TEST(AnalyseEmulated, an_over_read_leaves_the_other_kernels_of_the_launch_their_maps) {
  gpu::Launch launch = over_read();
  launch.kernels.push_back(launch.kernels[0]);
  launch.kernels[1].arguments[1] = launch_of("1", "1", "buf:4,i32:512").kernels[0].arguments[1];
  Options second;
  second.instance = 1;
  second.force = Force::emulated;
  const Analysis analysis = analysed(module_of(guarded_load, one_pointer), launch, second);
  EXPECT_EQ(analysis.instance, 1U);
  EXPECT_EQ(analysis.all.accesses.at(0).executed, 512U);
  EXPECT_EQ(analysis.findings.size(), 1U);
}

TEST(AnalyseEmulated, a_kernel_that_does_not_end_has_no_maps) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nld.global.u64 %rd2, [%rd1];\nld.global.u64 %rd2, [%rd2];\n"
      "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 trap;\n",
      one_pointer);
  const auto analysis = analyse(module, launch_of("1", "32", "buf:64:zero,i32:0"), {});
  ASSERT_FALSE(analysis);
  EXPECT_THAT(analysis.error().message, HasSubstr("does not run to its end: "));
}

// A loop whose bound never comes, with and without an access outside of the buffer in each turn:
// the emulator's message, with the line, long before the work that closed forms are worth.
TEST(AnalyseEmulated, an_endless_loop_is_a_hang_that_the_limit_of_instructions_ends) {
  for (const char* const step : {"0", "4096"}) {
    const ptx::Module module = module_of(
        fmt::format("ld.param.u64 %rd1, [p0];\nmov.u32 %r1, 0;\nagain:\n"
                    "ld.global.u32 %r2, [%rd1];\nadd.s64 %rd1, %rd1, {};\nadd.u32 %r1, %r1, 1;\n"
                    "setp.ne.u32 %p1, %r1, %r1;\n@!%p1 bra again;\n",
                    step),
        one_pointer);
    Options options;
    options.instruction_limit = 10'000;
    const auto analysis = analyse(module, launch_of("1", "32", "buf:64:zero,i32:0"), options);
    ASSERT_FALSE(analysis);
    EXPECT_EQ(analysis.error().kind, ErrorKind::check_failed);
    EXPECT_THAT(analysis.error().message,
                testing::AllOf(HasSubstr("does not run to its end: hang: k.ptx:"),
                               HasSubstr("ld.global.u32 %r2, [%rd1];"),
                               HasSubstr("the block executed more than 10000 warp instructions")));
  }
}

// A kernel that ends just within the limit is followed as without one.
TEST(AnalyseEmulated, a_loop_that_ends_within_the_limit_keeps_its_closed_form) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, 0;\nagain:\nld.global.u32 %r2, [%rd1];\n"
      "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 100;\n@%p1 bra again;\n",
      one_pointer);
  Options options;
  options.instruction_limit = 600;
  const Analysis analysis = analysed(module, launch_of("1", "32", "buf:64:zero,i32:0"), options);
  EXPECT_EQ(analysis.method, Method::symbolic);
  EXPECT_EQ(analysis.all.accesses.at(0).executed, 3200U);
}

// 400 warp instructions, of which few are followed.
TEST(AnalyseEmulated, trips_of_a_closed_form_do_not_count_for_the_limit) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, 0;\nagain:\nld.global.u32 %r2, [%rd1];\n"
      "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 100;\n@%p1 bra again;\n",
      one_pointer);
  Options options;
  options.instruction_limit = 60;
  const gpu::Launch launch = launch_of("1", "32", "buf:64:zero,i32:0");
  EXPECT_EQ(analysed(module, launch, options).all.accesses.at(0).executed, 3200U);
  options.force = Force::emulated;
  const auto emulated = analyse(module, launch, options);
  ASSERT_FALSE(emulated);
  EXPECT_THAT(emulated.error().message,
              HasSubstr("the block executed more than 60 warp instructions"));
}

// A store that only threads execute which read something other than 0.
constexpr const char* store_by_data = R"(
ld.param.u64 %rd1, [p0];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r1, 32, %r2;
mul.wide.u32 %rd2, %r3, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.u32 %r4, [%rd3];
setp.eq.u32 %p1, %r4, 0;
@%p1 bra skip;
st.global.u32 [%rd3], %r4;
skip:
ld.global.u32 %r5, [%rd3+4];
)";

TEST(AnalyseEmulated, a_store_whose_guard_depends_on_data_leaves_the_loads_their_closed_forms) {
  const ptx::Module module = module_of(store_by_data, one_pointer);
  const gpu::Launch launch = launch_of("2", "32", "buf:4096:zero,i32:0");
  Options options;
  const Analysis whole = analysed(module, launch, options);
  EXPECT_EQ(whole.method, Method::mixed);
  EXPECT_EQ(whole.all.accesses.size(), 3U);
  EXPECT_EQ(whole.left_out, 0U);

  options.force = Force::symbolic;
  const Analysis closed = analysed(module, launch, options);
  EXPECT_EQ(closed.method, Method::symbolic);
  EXPECT_EQ(closed.inter.map, whole.inter.map);
  EXPECT_EQ(closed.intra.map, whole.intra.map);
  ASSERT_EQ(closed.all.accesses.size(), 2U);
  EXPECT_EQ(closed.all.accesses[1].executed, 64U);
  EXPECT_EQ(closed.left_out, 1U);
  EXPECT_EQ(closed.notes, std::vector<std::string>{"left out, depends on loaded data: k.ptx:20: "
                                                   "st.global.u32 [%rd3], %r4;"});

  options.kind = AccessKind::store;
  const auto stores = analyse(module, launch, options);
  ASSERT_FALSE(stores);
  EXPECT_THAT(stores.error().message,
              HasSubstr("k.ptx:20: st.global.u32 [%rd3], %r4;: it depends"));
}

TEST(AnalyseEmulated, a_store_that_the_emulator_cannot_follow_is_left_out_beside_closed_loads) {
  const Analysis analysis =
      analysed(module_of(std::string(store_by_data) + "@%p1 trap;\n", one_pointer),
               launch_of("2", "32", "buf:4096:zero,i32:0"));
  EXPECT_EQ(analysis.method, Method::symbolic);
  EXPECT_EQ(analysis.left_out, 1U);
  EXPECT_EQ(analysis.all.accesses.size(), 2U);
  EXPECT_THAT(analysis.notes,
              testing::Contains(HasSubstr("the emulator: the kernel does not run to its end: ")));
}

TEST(AnalyseEmulated, accesses_of_functions_that_the_kernel_calls_are_the_emulators) {
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

TEST(AnalyseEmulated, what_takes_more_effort_than_allowed_is_refused_with_the_reason) {
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

TEST(AnalyseEmulated, rows_that_take_more_operations_than_allowed_together_have_no_closed_forms) {
  const ptx::Module module = module_of(guarded_load, one_pointer);
  const gpu::Launch launch = launch_of("4", "64", "buf:4096:zero,i32:1024");
  const auto method_within = [&](std::uint64_t operations) {
    const auto runs =
        collect_runs(module, launch, 0, Force::automatic, 0, {}, {.row_operations = operations});
    return std::string(runs ? to_string(runs->method) : runs.error().message);
  };
  std::uint64_t least = 1;
  while (least < 1000 && method_within(least) == "emulated") ++least;
  EXPECT_EQ(least, 60U) << "4 blocks of 15 each";
  EXPECT_EQ(method_within(least), "symbolic");
}

}  // namespace
}  // namespace demarc::locality
