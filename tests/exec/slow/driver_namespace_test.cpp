// Drivers that a program loads into another namespace of the linker, where no sanitizer works.
#include <gmock/gmock.h>

#include "assumptions_fixture.hpp"

namespace demarc::cuda {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// There another copy of the library that hooks reports.
class DriverNamespaces : public Assumptions {};

TEST_F(DriverNamespaces, the_same_file_in_another_namespace_of_the_linkers_ends_the_process) {
  EXPECT_EQ(ran({"context", "driver-in-namespace", "launch"}, 3, false), 0) << said();
  EXPECT_THAT(said(),
              HasSubstr("stopped: it starts a second driver of CUDA (in another namespace"));
  EXPECT_THAT(program.log(), EndsWith("context 0\n"));
}

// Without the library that hooks: the drivers that a process has loaded are counted from outside.
TEST_F(DriverNamespaces, a_second_driver_that_reports_nothing_gets_no_context) {
  EXPECT_EQ(
      ran({"context", "set=CUDA_INJECTION64_PATH=", "driver-in-namespace", "launch"}, 0, false), 0)
      << said();
  EXPECT_THAT(program.log(), EndsWith("context 0\nsecond context 800\nlaunch 0\n"));
  EXPECT_THAT(said(), HasSubstr("KEPT OFF GPU"));
  EXPECT_THAT(said(),
              HasSubstr("it has loaded several drivers of CUDA (" + test::fake_libcuda().string() +
                        ", " + test::fake_libcuda().string() + ")"));
}

}  // namespace
}  // namespace demarc::cuda
