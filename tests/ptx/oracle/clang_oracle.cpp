#include <gtest/gtest.h>

#include "compilers.hpp"
#include "paths.hpp"
#include "round_trip.hpp"

namespace demarc::ptx::test {
namespace {

TEST(Clang, its_nvptx_output_keeps_its_machine_code_at_every_level_and_with_debug_data) {
  const auto source = demarc::test::source_dir() / "tests" / "ptx" / "corpus" / "clang.c";
  std::vector<RoundTrip> trips;
  for (const std::string level : {"-O0", "-O1", "-O3"}) {
    for (const std::string debug : {"", "-g", "-gline-tables-only"}) {
      std::vector<std::string> flags = {"-target", "nvptx64-nvidia-cuda",
                                        "-x",      "c",
                                        "-S",      level,
                                        "-Xclang", "-target-cpu",
                                        "-Xclang", "sm_75",
                                        "-Xclang", "-target-feature",
                                        "-Xclang", "+ptx63"};
      // clang 14 breaks down over the call sites of newer DWARF when it optimises.
      if (!debug.empty()) flags.insert(flags.end(), {debug, "-gdwarf-2"});
      // clang -g writes `.target sm_75, debug`, which ptxas compiles without optimisation.
      // Its functions are no kernels: without -c ptxas would drop them.
      std::vector<std::string> ptxas = {"-c"};
      if (debug == "-g") ptxas.emplace_back("-g");
      if (debug == "-gline-tables-only") ptxas.emplace_back("-lineinfo");
      trips.push_back({"clang.c " + level + " " + debug,
                       [source, flags] { return clang_ptx(source, flags); }, ptxas});
    }
  }
  EXPECT_EQ(failures_of(trips), "");
}

}  // namespace
}  // namespace demarc::ptx::test
