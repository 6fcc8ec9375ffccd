// A whole `demarc exec` on the stand-in driver, for tests of it. What runs in a child process,
// since the driver is used and signals are taken there, says what did not hold and ends with 1.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "demarc/exec/confine.hpp"
#include "fake_card.hpp"
#include "supervised.hpp"

namespace demarc::cuda {

using test::Supervised;

inline ConfinePlan plan_for(const Supervised& program, const std::vector<std::string>& steps) {
  ConfinePlan plan;
  plan.choice.tpcs = "1,3";
  plan.command = program.subject(steps);
  plan.preload = (test::build_dir() / "libdemarc_preload.so").string();
  return plan;
}

inline int complain(const std::string& what) {
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  return 1;
}
#define REQUIRE_IN_CHILD(condition) \
  if (!(condition)) return complain(#condition)

class Confine : public testing::Test {
 protected:
  void SetUp() override {
    test::configure(fake::small_gpu());  // whatever ran before in this process
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", test::fresh_folder("confine").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("DEMARC_LIBCUDA");
    ::unsetenv("DEMARC_CACHE");
  }
  Supervised program{"confine_program"};
};

}  // namespace demarc::cuda
