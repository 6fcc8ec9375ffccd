// Kernels of affine indices, whole maps compared cell by cell: closed forms, and what the emulator
// touches.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "both_ways.hpp"
#include "written_kernel.hpp"

namespace demarc::locality {
namespace {

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

}  // namespace
}  // namespace demarc::locality
