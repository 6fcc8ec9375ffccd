// Loops followed once for all their trips, beside the same kernels followed trip by trip, and maps
// of both beside plain enumeration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <tuple>

#include "both_ways.hpp"
#include "demarc/locality/pages.hpp"
#include "demarc/locality/predict.hpp"
#include "naive_maps.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

// Every loop in one run for each access and row.
AccessRuns closed_runs(const ptx::Module& module, const gpu::Launch& launch) {
  const auto runs = collect_runs(module, launch, 0, Force::symbolic);
  EXPECT_TRUE(runs) << (runs ? "" : runs.error().message);
  return runs ? runs->runs : AccessRuns{};
}

// The same trip by trip.
AccessRuns plain_runs(const ptx::Module& module, const gpu::Launch& launch) {
  const auto runs = collect_runs(module, launch, 0, Force::symbolic, 0, {},
                                 {.row_operations = 1'000'000'000, .beginning = true});
  EXPECT_TRUE(runs) << (runs ? "" : runs.error().message);
  if (!runs) return {};
  EXPECT_FALSE(runs->cut);
  EXPECT_EQ(runs->runs.loops.size(), 1U);
  return runs->runs;
}

// By thread, in the order of its steps: access, address and number of the request.
using Sequence = std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>>;
std::map<std::pair<std::uint32_t, std::uint32_t>, Sequence> sequences(const AccessRuns& runs) {
  std::vector<Run> all = expanded(runs).runs;
  std::stable_sort(all.begin(), all.end(),
                   [](const Run& a, const Run& b) { return a.step < b.step; });
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sequence> by_thread;
  for (const locality::Run& run : all)
    for (std::uint32_t k = 0; k < run.count; ++k)
      by_thread[{run.block, run.thread + k}].emplace_back(
          run.access, run.address + static_cast<std::uint64_t>(run.stride) * k, run.request);
  return by_thread;
}

gpu::Device device_of_loops() {
  gpu::Device device = *gpu::find_device("h100-sxm");
  device.sm.blocks = 2;
  device.l2.size_bytes = 65536;
  return device;
}

struct LoopKernel {
  std::string body;
  std::string grid, block;
};

template <class T>
T any_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

// One loop with a counter in %r<c> and an index in %r<i>, at labels of its own.
std::string any_loop(const std::string& name, int c, int i, const std::string& inside) {
  std::string body = fmt::format("mov.u32 %r{}, {};\n", c, any_of({0, 1, 5}));
  // Trips that are the same for all, or those of a row, a block or a lane.
  const std::string bound = any_of<std::string>({"4", "7", "9", "%r21", "%r22", "%r23"});
  const bool tests_first = *rc::gen::arbitrary<bool>();
  const int step = any_of({1, 2, 3});
  body += name + ":\n";
  if (tests_first)
    body += fmt::format("setp.ge.s32 %p1, %r{}, {};\n@%p1 bra {}_end;\n", c, bound, name);
  body += fmt::format("mul.wide.s32 %rd2, %r{}, 4;\nadd.s64 %rd3, %rd1, %rd2;\n", i);
  const int loads = *rc::gen::inRange(1, 4);
  for (int load = 0; load < loads; ++load)
    body += fmt::format("ld.global.f32 %f1, [%rd3+{}];\n", 4 * *rc::gen::inRange(0, 40));
  body += inside;
  if (*rc::gen::arbitrary<bool>()) body += "st.global.f32 [%rd3+4096], %f1;\n";
  if (any_of({0, 0, 0, 1}) == 1)  // an address that is not linear in the trip
    body += fmt::format(
        "and.b32 %r30, %r{}, 3;\nmul.wide.u32 %rd4, %r30, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
        "ld.global.f32 %f2, [%rd5];\n",
        c);
  body += fmt::format("add.s32 %r{0}, %r{0}, {1};\nadd.s32 %r{2}, %r{2}, {3};\n", c, step, i,
                      any_of({0, 1, 2, 4, 8, 40, 128, -1, -3}));
  if (tests_first)
    body += fmt::format("bra {};\n{}_end:\n", name, name);
  else
    body += fmt::format("setp.{}.s32 %p1, %r{}, {};\n@%p1 bra {};\n",
                        any_of<std::string>({"lt", "le"}), c, bound, name);
  return body;
}

LoopKernel any_loop_kernel() {
  LoopKernel kernel;
  kernel.grid = fmt::format("{},{}", *rc::gen::inRange(1, 5), *rc::gen::inRange(1, 3));
  kernel.block = fmt::format("{},{}", *rc::gen::inRange(1, 40), *rc::gen::inRange(1, 5));
  const auto factor = [] { return any_of({0, 1, 2, 4, 33, 40, 80, -1}); };
  std::string& body = kernel.body;
  body =
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\n"
      "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ctaid.y;\nadd.s64 %rd1, %rd1, 32768;\n"
      "add.s32 %r21, %r2, 3;\nadd.s32 %r22, %r3, 6;\nadd.s32 %r23, %r1, 2;\n";
  body +=
      fmt::format("mul.lo.s32 %r5, %r1, {};\nmad.lo.s32 %r5, %r2, {}, %r5;\n", factor(), factor());
  body += fmt::format("mad.lo.s32 %r5, %r3, {}, %r5;\nmad.lo.s32 %r5, %r4, {}, %r5;\n", factor(),
                      factor());
  if (*rc::gen::arbitrary<bool>())
    body += fmt::format("setp.ge.s32 %p2, %r{}, {};\n@%p2 bra done;\n", *rc::gen::inRange(1, 6),
                        *rc::gen::inRange(0, 60));
  const std::string inner = any_of({0, 0, 1}) == 1 ? any_loop("inner", 8, 5, "") : "";
  body += any_loop("outer", 6, 5, inner);
  if (*rc::gen::arbitrary<bool>()) body += any_loop("second", 7, 5, "");
  // What the loop leaves behind decides an address.
  body +=
      "mad.lo.s32 %r9, %r6, 3, %r5;\nmul.wide.s32 %rd2, %r9, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
      "ld.global.f32 %f1, [%rd3];\n";
  if (*rc::gen::arbitrary<bool>())
    body +=
        "and.b32 %r31, %r30, 1;\nmul.wide.u32 %rd2, %r31, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
        "ld.global.f32 %f1, [%rd3];\n";
  body += "done:\n";
  return kernel;
}

RC_GTEST_PROP(Loops, followed_once_or_trip_by_trip_touch_the_same_in_the_same_order, ()) {
  const LoopKernel kernel = any_loop_kernel();
  const ptx::Module module = module_of("mov.u32 %r30, 0;\n" + kernel.body, one_pointer);
  const gpu::Launch launch = launch_of(kernel.grid, kernel.block, "buf:131072,i32:7");
  const AccessRuns closed = closed_runs(module, launch);
  const AccessRuns plain = plain_runs(module, launch);
  RC_CLASSIFY(closed.loops.size() > 1);
  RC_ASSERT(sequences(closed) == sequences(plain));
  const std::vector<bool> all(closed.accesses.size(), true);
  expect_equal_requests(closed, plain, all, kernel.body);
  const CachePrediction a = predict_caches(closed, device_of_loops());
  const CachePrediction b = predict_caches(plain, device_of_loops());
  RC_ASSERT(a.l1_hit_rate == b.l1_hit_rate);
  RC_ASSERT(a.l2_hit_rate == b.l2_hit_rate);
  RC_ASSERT(a.l1_sectors == b.l1_sectors);
  RC_ASSERT(a.dram_bytes == b.dram_bytes);
  const PageSplit p = split_pages(closed, 3, 4096);
  const PageSplit q = split_pages(plain, 3, 4096);
  RC_ASSERT(p.accesses == q.accesses);
  RC_ASSERT(p.pages == q.pages);
}

RC_GTEST_PROP(Loops, maps_of_loops_are_those_of_their_trips, ()) {
  const LoopKernel kernel = any_loop_kernel();
  const ptx::Module module = module_of("mov.u32 %r30, 0;\n" + kernel.body, one_pointer);
  const gpu::Launch launch = launch_of(kernel.grid, kernel.block, "buf:131072,i32:7");
  const AccessRuns loads = only(closed_runs(module, launch), AccessKind::load);
  const AccessRuns plain = expanded(loads);
  const Granularity granularity =
      any_of({Granularity::element, Granularity::sector, Granularity::line, Granularity::page_4k});
  for (const Count count : {Count::accesses, Count::multiset, Count::distinct}) {
    const InterResult inter = inter_map(loads, granularity, count);
    RC_ASSERT(inter.map == naive::inter(plain, granularity, count));
    const InterResult inter_plain = inter_map(plain, granularity, count);
    RC_ASSERT(inter.places == inter_plain.places);
    RC_ASSERT(inter.shared_places == inter_plain.shared_places);
    RC_ASSERT(inter.sets.size() == inter_plain.sets.size());
    RC_ASSERT(inter.degree_of_sharing == inter_plain.degree_of_sharing);
    const IntraResult intra = intra_map(loads, granularity, count);
    RC_ASSERT(intra.map == naive::intra(plain, intra.map_block, granularity, count));
    const IntraResult intra_plain = intra_map(plain, granularity, count);
    RC_ASSERT(intra.map_block == intra_plain.map_block);
    RC_ASSERT(std::abs(intra.degree_of_sharing - intra_plain.degree_of_sharing) < 1e-12);
    RC_ASSERT(intra.appearance_frequency == intra_plain.appearance_frequency);
  }
}

// Words from p0 + 4 * (tid.x + 64 * tid.y) on.
std::string with_index(const std::string& loop) {
  return "ld.param.u64 %rd1, [p0];\nld.param.u32 %r10, [p1];\nmov.u32 %r1, %tid.x;\n"
         "mov.u32 %r2, %tid.y;\nmad.lo.s32 %r5, %r2, 64, %r1;\nmul.wide.s32 %rd2, %r5, 4;\n"
         "add.s64 %rd3, %rd1, %rd2;\nmov.u32 %r6, 0;\n" +
         loop;
}
const gpu::Launch& one_block() {
  static const gpu::Launch launch = launch_of("1", "32,4", "buf:65536,i32:9");
  return launch;
}

// For thread 0: loop trips and strides of its runs, in order.
std::string runs_of_first_thread(const std::string& loop) {
  const ptx::Module module = module_of(with_index(loop), one_pointer);
  const AccessRuns runs = closed_runs(module, one_block());
  EXPECT_EQ(sequences(runs), sequences(plain_runs(module, one_block()))) << loop;
  std::string found;
  for (const locality::Run& run : runs.runs)
    if (run.thread == 0)
      found += fmt::format("{}x{} ", runs.loop_of(run).trips, runs.loop_of(run).stride);
  return found;
}

TEST(Loops, a_predicate_that_each_trip_turns_is_known_behind_them) {
  const ptx::Module module = module_of(
      with_index("setp.eq.u32 %p2, %r6, 0;\nL:\nld.global.f32 %f1, [%rd3];\nnot.pred %p2, %p2;\n"
                 "add.s64 %rd3, %rd3, 4;\nadd.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, %r10;\n"
                 "@%p1 bra L;\n@%p2 ld.global.f32 %f2, [%rd3+64];\n"),
      one_pointer);
  for (const char* trips : {"8", "9"}) {
    const gpu::Launch launch = launch_of("1", "32", fmt::format("buf:65536,i32:{}", trips));
    EXPECT_EQ(sequences(closed_runs(module, launch)), sequences(plain_runs(module, launch)));
  }
}

// The first lane leaves in its first trip and is followed by itself; the others' trips would become
// runs of their own.
TEST(Loops, that_some_lanes_close_and_others_do_not_have_no_closed_form_beyond_a_limit) {
  const ptx::Module module =
      module_of(with_index("setp.ne.u32 %p2, %r1, 0;\n@%p2 bra L;\nadd.s32 %r6, %r10, -1;\nL:\n"
                           "ld.global.f32 %f1, [%rd3];\nadd.s32 %r6, %r6, 1;\n"
                           "setp.lt.s32 %p1, %r6, %r10;\n@%p1 bra L;\n"),
                one_pointer);
  const gpu::Launch few = launch_of("1", "32", "buf:65536,i32:1000");
  EXPECT_EQ(sequences(closed_runs(module, few)), sequences(plain_runs(module, few)));
  const auto many =
      collect_runs(module, launch_of("1", "32", "buf:65536,i32:1000000000"), 0, Force::symbolic);
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().message, testing::HasSubstr("no closed form"));
}

// 2^50 bytes a trip: after 2^14 trips the addresses are back where they began.
TEST(Loops, that_lead_around_the_address_space_leave_their_buffer) {
  const ptx::Module module = module_of(
      with_index("mov.u64 %rd9, 1125899906842624;\nL:\nld.global.f32 %f1, [%rd3];\n"
                 "add.s64 %rd3, %rd3, %rd9;\nadd.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, %r10;\n"
                 "@%p1 bra L;\n"),
      one_pointer);
  const auto found = collect_runs(module, launch_of("1", "1", "buf:4096,i32:16385"), 0,
                                  Force::automatic, 0, {}, {.trace_words = 1000});
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->findings.size(), 1U);
}

// Steps are counted in 32 bits: a tenth of them would wrap around.
TEST(Loops, of_more_steps_than_are_counted_have_no_closed_form) {
  const ptx::Module module =
      module_of(with_index("mov.u32 %r7, 0;\nM:\nmov.u32 %r6, 0;\nL:\nld.global.f32 %f1, [%rd3];\n"
                           "add.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, 1000000000;\n@%p1 bra L;\n"
                           "add.s32 %r7, %r7, 1;\nsetp.lt.s32 %p1, %r7, %r10;\n@%p1 bra M;\n"),
                one_pointer);
  const auto collected = [&](const char* arguments) {
    return collect_runs(module, launch_of("1", "32", arguments), 0, Force::symbolic, 0, {},
                        {.row_operations = 1'000'000});
  };
  EXPECT_TRUE(collected("buf:65536,i32:1"));
  EXPECT_FALSE(collected("buf:65536,i32:10"));
}

TEST(Loops, are_one_run_for_all_trips_however_they_are_written) {
  const std::string load = "ld.global.f32 %f1, [%rd3];\n";
  // Tested at the end, with <, <= and !=, up and down.
  EXPECT_EQ(runs_of_first_thread("L:\n" + load +
                                 "add.s64 %rd3, %rd3, 512;\nadd.s32 %r6, %r6, 1;\n"
                                 "setp.lt.s32 %p1, %r6, %r10;\n@%p1 bra L;\n"),
            "9x512 ");
  EXPECT_EQ(runs_of_first_thread("L:\n" + load +
                                 "add.s64 %rd3, %rd3, 4;\nadd.s32 %r6, %r6, 2;\n"
                                 "setp.gt.u32 %p1, %r6, %r10;\n@!%p1 bra L;\n"),
            "5x4 ");
  EXPECT_EQ(runs_of_first_thread("L:\n" + load +
                                 "add.s64 %rd3, %rd3, 8;\nadd.s32 %r10, %r10, -1;\n"
                                 "setp.ne.s32 %p1, %r10, 0;\n@%p1 bra L;\n"),
            "9x8 ");
  EXPECT_EQ(runs_of_first_thread("add.s64 %rd3, %rd3, 4096;\nL:\n" + load +
                                 "add.s64 %rd3, %rd3, -4;\nadd.s32 %r6, %r6, 1;\n"
                                 "setp.eq.s32 %p1, %r6, %r10;\n@%p1 bra M;\nbra L;\nM:\n"),
            "9x-4 ");
  // Tested in the middle: what stands before is executed once more.
  EXPECT_EQ(runs_of_first_thread("L:\n" + load +
                                 "setp.ge.s32 %p1, %r6, %r10;\n@%p1 bra M;\n"
                                 "ld.global.f32 %f2, [%rd3+4];\nadd.s64 %rd3, %rd3, 4;\n"
                                 "add.s32 %r6, %r6, 1;\nbra L;\nM:\n"),
            "10x4 9x4 ");
  // The address is made anew in every trip; what the loop leaves behind is known.
  EXPECT_EQ(runs_of_first_thread("L:\nmad.lo.s32 %r7, %r6, 128, %r5;\nmul.wide.s32 %rd4, %r7, 4;\n"
                                 "add.s64 %rd5, %rd1, %rd4;\nld.global.f32 %f1, [%rd5];\n"
                                 "add.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, %r10;\n@%p1 bra L;\n"
                                 "mul.wide.s32 %rd4, %r6, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
                                 "ld.global.f32 %f1, [%rd5];\nld.global.f32 %f1, [%rd5+4];\n"),
            "9x512 1x0 1x0 ");
}

TEST(Loops, that_are_not_linear_are_followed_trip_by_trip) {
  const std::string again = "add.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, 3;\n@%p1 bra L;\n";
  // A mask of the counter, a square of it, a number that doubles.
  for (const char* address :
       {"and.b32 %r7, %r6, 1;\n", "mul.lo.s32 %r7, %r6, %r6;\n", "add.s32 %r7, %r7, %r7;\n"})
    EXPECT_EQ(runs_of_first_thread("mov.u32 %r7, 1;\nL:\n" + std::string(address) +
                                   "mul.wide.s32 %rd4, %r7, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
                                   "ld.global.f32 %f1, [%rd5];\n" +
                                   again),
              "1x0 1x0 1x0 ")
        << address;
  // What is not linear is used behind the loop only.
  EXPECT_EQ(runs_of_first_thread("mov.u32 %r7, 1;\nL:\nld.global.f32 %f1, [%rd3];\n"
                                 "add.s32 %r7, %r7, %r7;\n" +
                                 again +
                                 "mul.wide.s32 %rd4, %r7, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
                                 "ld.global.f32 %f1, [%rd5];\n"),
            "1x0 1x0 1x0 1x0 ");
  // Lanes that make trips of their own number.
  EXPECT_EQ(runs_of_first_thread("L:\nld.global.f32 %f1, [%rd3];\nadd.s32 %r6, %r6, 1;\n"
                                 "setp.le.s32 %p1, %r6, %r1;\n@%p1 bra L;\n"),
            "1x0 ");
}

TEST(Loops, an_index_of_32_bits_that_wraps_around_is_followed_to_where_it_does) {
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r5, 2147483645;\nmov.u32 %r6, 0;\nL:\n"
      "mul.wide.s32 %rd2, %r5, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.f32 %f1, [%rd3];\n"
      "add.s32 %r5, %r5, 1;\nadd.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, 6;\n@%p1 bra L;\n",
      one_pointer);
  const gpu::Launch launch = launch_of("1", "1", "buf:64,i32:0");
  const AccessRuns closed = closed_runs(module, launch);
  EXPECT_EQ(closed.runs.size(), 6U);
  EXPECT_EQ(sequences(closed), sequences(plain_runs(module, launch)));
}

TEST(Loops, of_ten_million_trips_have_their_indices_from_a_handful_of_runs) {
  // Rows of ten million words that two blocks share, and a column that each thread walks.
  const ptx::Module module = module_of(
      "ld.param.u64 %rd1, [p0];\nld.param.u32 %r10, [p1];\nmov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nmov.u32 %r6, 0;\nL:\n"
      "ld.global.f32 %f1, [%rd1];\nld.global.f32 %f2, [%rd3+4000000000];\n"
      "add.s64 %rd1, %rd1, 4;\nadd.s64 %rd3, %rd3, 128;\nadd.s32 %r6, %r6, 1;\n"
      "setp.lt.s32 %p1, %r6, %r10;\n@%p1 bra L;\n",
      one_pointer);
  const Analysis analysis = analysed(module, launch_of("2", "32", "buf:8000000000,i32:10000000"));
  EXPECT_EQ(analysis.all.runs.size(), 4U);
  EXPECT_EQ(analysis.all.accesses.at(0).executed, 640'000'000U);
  EXPECT_EQ(analysis.all.accesses.at(0).requests, 20'000'000U);
  EXPECT_EQ(analysis.all.accesses.at(0).sectors_per_request, 1);
  EXPECT_EQ(analysis.all.accesses.at(1).sectors_per_request, 4);
  EXPECT_EQ(analysis.inter.places, 10'000'000U + 320'000'000U);
  EXPECT_EQ(analysis.inter.shared_places, 330'000'000U);
  EXPECT_EQ(analysis.inter.degree_of_sharing, 1);
  EXPECT_EQ(analysis.intra.degree_of_sharing, 0.5);
}

TEST(Loops, that_leave_their_buffer_in_a_late_trip_are_a_finding) {
  const auto findings = [](const std::string& step, const char* buffers) {
    const ptx::Module module = module_of(
        with_index("add.s64 %rd3, %rd3, 1024;\nL:\nld.global.f32 %f1, [%rd3];\n"
                   "add.s64 %rd3, %rd3, " +
                   step + ";\nadd.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, 9;\n@%p1 bra L;\n"),
        one_pointer);
    return analysed(module, launch_of("1", "32", buffers)).findings.size();
  };
  // The last word that is read ends at 1024 + 32 * 4 + 8 * 512.
  EXPECT_EQ(findings("512", "buf:5248,i32:0"), 0U);
  EXPECT_EQ(findings("512", "buf:5247,i32:0"), 1U);
  EXPECT_EQ(findings("-128", "buf:1152,i32:0"), 0U);
  EXPECT_EQ(findings("-132", "buf:1152,i32:0"), 1U);
  EXPECT_EQ(findings("2", "buf:5248,i32:0"), 1U) << "not aligned in the second trip";
}

TEST(Loops, beside_what_the_emulator_follows_keep_the_order_of_their_trips) {
  const ptx::Module module = module_of(
      with_index("L:\nld.global.u32 %r7, [%rd3];\nand.b32 %r7, %r7, 7;\n"
                 "mul.wide.u32 %rd4, %r7, 4;\nadd.s64 %rd5, %rd1, %rd4;\n"
                 "ld.global.u32 %r8, [%rd5];\nadd.s64 %rd3, %rd3, 4;\nadd.s32 %r6, %r6, 1;\n"
                 "setp.lt.s32 %p1, %r6, 9;\n@%p1 bra L;\n"),
      one_pointer);
  const auto mixed = collect_runs(module, one_block(), 0, Force::automatic);
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_EQ(mixed->method, Method::mixed);
  EXPECT_GT(mixed->runs.loops.size(), 1U);
  const auto by_thread = sequences(mixed->runs);
  std::uint32_t at = 0;
  for (const auto& [access, address, request] : by_thread.at({0, 5})) {
    EXPECT_EQ(access, at % 2);
    EXPECT_EQ(request, at++ / 2);
  }
  EXPECT_EQ(at, 18U);
}

}  // namespace
}  // namespace demarc::locality
