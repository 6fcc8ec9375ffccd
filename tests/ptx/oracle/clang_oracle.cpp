// Tests by ptxas that printed PTX of clang gives the same machine code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compilers.hpp"
#include "demarc/base/files.hpp"
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

// The sources of a folder, at least so many, as clang writes them without CUDA's headers for a card
// and an instruction set ("60" for PTX ISA 6.0).
std::string failures_of_sources(const std::filesystem::path& folder, std::size_t least, int target,
                                const std::string& isa) {
  std::vector<RoundTrip> trips;
  for (const auto& source : cuda_sources(folder)) {
    const auto text = read_file(source);
    if (!text || text->find("// demarc: needs nvcc") != std::string::npos) continue;
    // Its products on tensor cores are of PTX ISA 6.5 and sm_75.
    if (target < 75 && source.stem() == "matmul") continue;
    const std::vector<std::string> flags = {
        "-x",
        "cuda",
        "--cuda-device-only",
        "-nocudainc",
        "-nocudalib",
        "-Wno-unknown-cuda-version",
        fmt::format("--cuda-gpu-arch=sm_{}", target),
        "-Xclang",
        "-target-feature",
        "-Xclang",
        "+ptx" + isa,
        "-std=c++17",
        "-O3",
        "-S",
        "-I",
        (demarc::test::source_dir() / "kernels" / "include").string()};
    trips.push_back({fmt::format("clang {} sm_{}", source.filename().string(), target),
                     [source, flags] { return clang_ptx(source, flags); },
                     {}});
  }
  return trips.size() < least ? "too few kernels" : failures_of(trips);
}
std::string failures_of_kernels(int target, const std::string& isa) {
  return failures_of_sources(demarc::test::source_dir() / "kernels", 8, target, isa);
}

TEST(Clang, bundled_kernels_of_a_card_of_2014_keep_their_machine_code) {
  EXPECT_EQ(failures_of_kernels(50, "60"), "");
}
// A machine without CUDA builds the program with them.
TEST(Clang, kernels_that_probe_a_card_are_compiled_without_cudas_headers) {
  const auto sources = demarc::test::source_dir() / "src";
  EXPECT_EQ(failures_of_sources(sources / "card" / "kernels", 3, 75, "70"), "");
  EXPECT_EQ(failures_of_sources(sources / "guest" / "kernels", 1, 75, "70"), "");
}
TEST(Whole, bundled_kernels_by_clang_keep_their_machine_code_on_cards_of_2016_to_2020) {
  EXPECT_EQ(failures_of_kernels(61, "63"), "");
  EXPECT_EQ(failures_of_kernels(70, "63"), "");
  EXPECT_EQ(failures_of_kernels(75, "65"), "");
  EXPECT_EQ(failures_of_kernels(80, "70"), "");
}

}  // namespace
}  // namespace demarc::ptx::test
