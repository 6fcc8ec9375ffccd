// Whole maps compared cell by cell: closed forms, and what the emulator touches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>

#include "demarc/locality/analyse.hpp"
#include "demarc/workload/workload.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

// Every place a thread touches, in a form that does not depend on how runs were cut.
std::vector<std::array<std::uint64_t, 4>> flattened(const AccessRuns& runs,
                                                    const std::vector<bool>& kept) {
  std::vector<std::array<std::uint64_t, 4>> all;
  for (const locality::Run& run : runs.runs) {
    if (!kept[run.access]) continue;
    for (std::uint32_t k = 0; k < run.count; ++k)
      all.push_back({run.block, run.thread + k, run.access,
                     run.address + static_cast<std::uint64_t>(run.stride) * k});
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Coalescing of every access that `kept` names: what a request is does not depend on the way.
void expect_equal_requests(AccessRuns a, AccessRuns b, const std::vector<bool>& kept,
                           const std::string& what) {
  count_requests(a);
  count_requests(b);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    EXPECT_EQ(a.accesses[i].executed, b.accesses[i].executed) << what << ", access " << i;
    EXPECT_EQ(a.accesses[i].requests, b.accesses[i].requests) << what << ", access " << i;
    EXPECT_NEAR(a.accesses[i].sectors_per_request, b.accesses[i].sectors_per_request, 1e-9)
        << what << ", access " << i;
  }
}

// Affine kernels as one could write them: an index made of threads and blocks of two dimensions,
// perhaps a guard, perhaps a loop with a stride, several loads and a store at offsets of it.
struct AffineKernel {
  std::string body;
  std::string grid, block;
};

AffineKernel any_affine_kernel() {
  AffineKernel kernel;
  kernel.grid = fmt::format("{},{}", *rc::gen::inRange(1, 5), *rc::gen::inRange(1, 4));
  kernel.block = fmt::format("{},{}", *rc::gen::inRange(1, 40), *rc::gen::inRange(1, 5));
  const auto factor = [] { return *rc::gen::element(0, 1, 2, 3, 16, 33); };
  std::string& body = kernel.body;
  body =
      "ld.param.u64 %rd1, [p0];\nld.param.u32 %r9, [p1];\nmov.u32 %r1, %tid.x;\n"
      "mov.u32 %r2, %tid.y;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ctaid.y;\n";
  body +=
      fmt::format("mul.lo.s32 %r5, %r1, {};\nmad.lo.s32 %r5, %r2, {}, %r5;\n", factor(), factor());
  body += fmt::format("mad.lo.s32 %r5, %r3, {}, %r5;\nmad.lo.s32 %r5, %r4, {}, %r5;\n", factor(),
                      factor());
  if (*rc::gen::arbitrary<bool>())
    body += fmt::format("setp.{}.s32 %p1, %r{}, {};\n@%p1 bra done;\n",
                        *rc::gen::element("lt", "ge", "eq"), *rc::gen::inRange(1, 6),
                        *rc::gen::inRange(0, 60));
  const bool loop = *rc::gen::arbitrary<bool>();
  const bool skips = loop && *rc::gen::arbitrary<bool>();  // lanes load in trips of their own
  if (loop) body += "mov.u32 %r6, 0;\nagain:\n";
  body += "mul.wide.s32 %rd2, %r5, 4;\nadd.s64 %rd3, %rd1, %rd2;\n";
  if (skips)
    body += fmt::format("and.b32 %r7, %r{}, 3;\nsetp.{}.s32 %p3, %r7, %r6;\n@%p3 bra skip;\n",
                        *rc::gen::inRange(1, 3), *rc::gen::element("lt", "ge", "eq"));
  for (int load = *rc::gen::inRange(1, 4); load > 0; --load)
    body += fmt::format("ld.global.f32 %f1, [%rd3+{}];\n", 4 * *rc::gen::inRange(0, 70));
  if (*rc::gen::arbitrary<bool>()) body += "st.global.f32 [%rd3+4096], %f1;\n";
  if (skips) body += "skip:\n";
  if (loop && *rc::gen::arbitrary<bool>())  // and make trips of their own number
    body += "and.b32 %r8, %r1, 1;\nadd.s32 %r6, %r6, %r8;\n";
  if (loop)
    body += fmt::format(
        "add.s32 %r5, %r5, {};\nadd.s32 %r6, %r6, 1;\nsetp.lt.s32 %p2, %r6, {};\n@%p2 bra again;\n",
        *rc::gen::element(0, 1, 40, 128), *rc::gen::inRange(1, 5));
  body += "done:\n";
  return kernel;
}

RC_GTEST_PROP(AffineKernels, closed_forms_and_the_emulator_agree_cell_by_cell, ()) {
  const AffineKernel kernel = any_affine_kernel();
  const ptx::Module module = module_of(kernel.body, one_pointer);
  const gpu::Launch launch = launch_of(kernel.grid, kernel.block, "buf:65536,i32:7");
  const auto closed = collect_runs(module, launch, 0, Force::symbolic);
  const auto emulated = collect_runs(module, launch, 0, Force::emulated);
  RC_ASSERT(closed.has_value());
  RC_ASSERT(emulated.has_value());
  const std::vector<bool> all(closed->runs.accesses.size(), true);
  RC_ASSERT(flattened(closed->runs, all) == flattened(emulated->runs, all));
  expect_equal_requests(closed->runs, emulated->runs, all, kernel.body);
  for (const AccessKind kind : {AccessKind::load, AccessKind::store}) {
    const AccessRuns a = only(closed->runs, kind);
    const AccessRuns b = only(emulated->runs, kind);
    for (const Count count : {Count::accesses, Count::multiset, Count::distinct}) {
      RC_ASSERT(inter_map(a, Granularity::element, count).map ==
                inter_map(b, Granularity::element, count).map);
      RC_ASSERT(intra_map(a, Granularity::element, count).map ==
                intra_map(b, Granularity::element, count).map);
    }
  }
}

class BundledKernels : public ::testing::TestWithParam<std::string> {};

TEST_P(BundledKernels, closed_forms_and_the_emulator_agree_address_by_address_and_cell_by_cell) {
  auto launch = workload::instance(GetParam());
  ASSERT_TRUE(launch) << launch.error().message;
  auto text = workload::ptx_text(*launch, 90);
  ASSERT_TRUE(text) << text.error().message;
  const ptx::ParseResult parsed = ptx::parse(*text, GetParam());
  ASSERT_TRUE(parsed.diagnostics.ok());
  // The first launch of every kernel.
  std::vector<std::string> seen;
  for (std::size_t k = 0; k < launch->kernels.size(); ++k) {
    const std::string& kernel = launch->kernels[k].kernel;
    if (std::find(seen.begin(), seen.end(), kernel) != seen.end()) continue;
    seen.push_back(kernel);
    auto mixed = collect_runs(parsed.module, *launch, k, Force::automatic);
    ASSERT_TRUE(mixed) << kernel << ": " << mixed.error().message;
    auto emulated = collect_runs(parsed.module, *launch, k, Force::emulated);
    ASSERT_TRUE(emulated) << kernel << ": " << emulated.error().message;
    ASSERT_EQ(mixed->runs.accesses.size(), emulated->runs.accesses.size()) << kernel;
    std::vector<bool> closed;
    bool any = false;
    for (const Access& access : mixed->runs.accesses) {
      closed.push_back(access.source == Source::symbolic);
      any = any || closed.back();
    }
    if (!any) continue;
    EXPECT_EQ(flattened(mixed->runs, closed), flattened(emulated->runs, closed)) << kernel;
    expect_equal_requests(mixed->runs, emulated->runs, closed, kernel);
    if (mixed->method != Method::symbolic) continue;
    const AccessRuns a = only(mixed->runs, AccessKind::load);
    const AccessRuns b = only(emulated->runs, AccessKind::load);
    for (const Granularity granularity : {Granularity::element, Granularity::line}) {
      EXPECT_EQ(inter_map(a, granularity, Count::accesses).map,
                inter_map(b, granularity, Count::accesses).map)
          << kernel;
      const IntraResult x = intra_map(a, granularity, Count::accesses);
      const IntraResult y = intra_map(b, granularity, Count::accesses);
      EXPECT_EQ(x.map, y.map) << kernel;
      EXPECT_DOUBLE_EQ(x.degree_of_sharing, y.degree_of_sharing) << kernel;
    }
  }
}

std::vector<std::string> bundled_names() {
  std::vector<std::string> names;
  for (const workload::Workload& one : workload::all()) names.push_back(one.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, BundledKernels, ::testing::ValuesIn(bundled_names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace demarc::locality
