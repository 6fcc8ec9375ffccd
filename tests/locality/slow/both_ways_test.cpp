// Whole maps of the bundled kernels compared cell by cell: closed forms, and what the emulator
// touches.
#include <gtest/gtest.h>

#include <algorithm>

#include "both_ways.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::locality {
namespace {

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
