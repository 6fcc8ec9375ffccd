// Every bundled kernel runs, finds nothing wrong, and gives what its reference says.
#include <gtest/gtest.h>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/workload/workload.hpp"
#include "sanitized.hpp"

namespace demarc::emulate {
namespace {

// A sanitizer sees the targets of the newest two architectures, the second where the kernels are
// short. The optimised build runs them all.
using demarc::test::sanitized;

class BundledKernels : public testing::TestWithParam<std::string> {};

// The number of thread instructions.
std::uint64_t run_for_target(const std::string& name, std::uint32_t target) {
  const auto launch = workload::instance(name);
  const auto text = workload::ptx_text(launch.value(), target);
  const ptx::ParseResult parsed = ptx::parse(text.value(), name + ".ptx");
  EXPECT_TRUE(parsed.diagnostics.ok());
  Options options;
  options.source = fmt::format("{}.ptx for sm_{}", name, target);
  const auto outcome = run(parsed.module, *launch, options);
  if (!outcome) {
    ADD_FAILURE() << options.source << ": " << outcome.error().message;
    return 0;
  }
  for (const Finding& finding : outcome->findings)
    ADD_FAILURE() << describe(finding, options.source);
  const auto checked = workload::check(*launch, outcome->addresses, outcome->buffers);
  EXPECT_TRUE(checked) << options.source << ": " << checked.error().message;
  std::uint64_t instructions = 0;
  for (const KernelStatistics& kernel : outcome->kernels)
    instructions += kernel.thread_instructions;
  return instructions;
}

TEST_P(BundledKernels, run_without_findings_and_pass_their_check_on_every_target) {
  const std::uint64_t instructions = run_for_target(GetParam(), 90);
  if (sanitized) {
    if (instructions < 2'000'000) run_for_target(GetParam(), 100);
    return;
  }
  const auto launch = workload::instance(GetParam());
  const std::string module = launch->ptx.substr(std::string("bundled:").size());
  const auto targets = workload::targets_of(module);
  EXPECT_GE(targets.size(), 2U) << module;
  for (const std::uint32_t target : targets)
    if (target != 90) run_for_target(GetParam(), target);
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
