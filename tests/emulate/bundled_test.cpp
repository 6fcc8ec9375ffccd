// Every bundled kernel runs, finds nothing wrong, and gives what its reference says.
#include <gtest/gtest.h>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::emulate {
namespace {

class BundledKernels : public testing::TestWithParam<std::string> {};

TEST_P(BundledKernels, run_without_findings_and_pass_their_check) {
  const auto launch = workload::instance(GetParam());
  ASSERT_TRUE(launch) << launch.error().message;
  const auto text = workload::ptx_text(*launch, 90);
  ASSERT_TRUE(text) << text.error().message;
  const ptx::ParseResult parsed = ptx::parse(*text, GetParam() + ".ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  Options options;
  options.source = GetParam() + ".ptx";
  const auto outcome = run(parsed.module, *launch, options);
  ASSERT_TRUE(outcome) << outcome.error().message;
  for (const Finding& finding : outcome->findings)
    ADD_FAILURE() << describe(finding, options.source);
  const auto checked = workload::check(*launch, outcome->addresses, outcome->buffers);
  EXPECT_TRUE(checked) << checked.error().message;
}

// The example of docs/workload.md.
Result<void> run_as_the_page_says() {
  DEMARC_TRY(const gpu::Launch launch, workload::instance("vecadd"));
  DEMARC_TRY(const std::string ptx, workload::ptx_text(launch, 90));  // for sm_90 or below
  const ptx::ParseResult parsed = ptx::parse(ptx, "vecadd.ptx");
  DEMARC_TRY(const emulate::Outcome ran, emulate::run(parsed.module, launch));
  return workload::check(launch, ran.addresses, ran.buffers);
}

TEST(WorkloadPage, shows_an_example_that_passes_its_check) {
  const auto done = run_as_the_page_says();
  EXPECT_TRUE(done) << done.error().message;
}

std::vector<std::string> bundled_names() {
  std::vector<std::string> names;
  for (const workload::Workload& workload : workload::all()) names.push_back(workload.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, BundledKernels, testing::ValuesIn(bundled_names()),
                         [](const testing::TestParamInfo<std::string>& given) {
                           std::string name = given.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace demarc::emulate
