// Tests that the probe does not decide where all slices look alike.
#include <gtest/gtest.h>

#include "demarc/probe/probe.hpp"
#include "few_sms.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

TEST(Slices, says_that_it_cannot_decide_when_all_slices_look_alike) {
  auto truth = planted_truth("h100").value();
  truth.facts.pages = 64;
  truth.noise.hit_jitter = 500;
  PlantedMemory memory(truth, 4);
  ProbeOptions options;
  options.slices = few_sms();
  const auto report = probe_memory(memory, options, {}).value();
  EXPECT_FALSE(report.decided);
}

}  // namespace
}  // namespace demarc::probe
