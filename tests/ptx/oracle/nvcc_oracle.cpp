// Tests by ptxas that printed PTX of nvcc gives the same machine code.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "compilers.hpp"
#include "paths.hpp"
#include "round_trip.hpp"

namespace demarc::ptx::test {
namespace {

std::filesystem::path corpus() {
  return demarc::test::source_dir() / "tests" / "ptx" / "corpus";
}

// `debug` is "", "-lineinfo" or "-G"; ptxas gets what nvcc would give it.
RoundTrip nvcc_trip(const std::filesystem::path& source, int target, const std::string& debug) {
  std::vector<std::string> flags = {"-arch=compute_" + std::to_string(target)};
  std::vector<std::string> ptxas;
  if (!debug.empty()) flags.push_back(debug);
  if (debug == "-lineinfo") ptxas.emplace_back("-lineinfo");
  if (debug == "-G") ptxas.emplace_back("-g");
  return {source.filename().string() + " sm_" + std::to_string(target) + " " + debug,
          [source, flags] { return nvcc_ptx(source, flags); }, ptxas};
}

// The PTX that is in the program, as the build made it with nvcc.
RoundTrip embedded_trip(const std::filesystem::path& source, int target) {
  const std::string name = source.stem().string() + ".sm_" + std::to_string(target) + ".ptx";
  const auto made = demarc::test::build_dir() / "src" / "workload" / "workload_kernels_ptx" / name;
  if (!std::filesystem::exists(made)) return nvcc_trip(source, target, "");
  return {name,
          [made] {
            std::ostringstream text;
            text << std::ifstream(made).rdbuf();
            return text.str();
          },
          {}};
}

void expect_kernels_keep_their_code(const std::string& debug) {
  std::vector<RoundTrip> trips;
  const auto sources = cuda_sources(demarc::test::source_dir() / "kernels");
  ASSERT_GE(sources.size(), 8U);
  for (const auto& source : sources) {
    for (const int target : all_targets) {
      trips.push_back(debug.empty() ? embedded_trip(source, target)
                                    : nvcc_trip(source, target, debug));
    }
  }
  EXPECT_EQ(failures_of(trips), "");
}

TEST(Nvcc, bundled_kernels_keep_their_machine_code_on_every_target) {
  expect_kernels_keep_their_code("");
}
// What takes minutes (`make test-whole`): nvcc for each kind of debugging data, which in `make
// test` the run-time compiler makes; and every library on every target in every way.
TEST(Whole, bundled_kernels_with_line_numbers_keep_their_machine_code_on_every_target) {
  expect_kernels_keep_their_code("-lineinfo");
}
TEST(Whole, bundled_kernels_for_the_debugger_keep_their_machine_code_on_every_target) {
  expect_kernels_keep_their_code("-G");
}

TEST(Nvcc, cub_thrust_libcupp_and_curand_keep_their_machine_code) {
  EXPECT_EQ(failures_of({nvcc_trip(corpus() / "cub.cu", 90, "-lineinfo"),
                         nvcc_trip(corpus() / "thrust.cu", 75, ""),
                         nvcc_trip(corpus() / "libcupp.cu", 80, "-G"),
                         nvcc_trip(corpus() / "curand.cu", 100, "")}),
            "");
}

TEST(Whole, features_and_libraries_keep_their_machine_code_on_every_target_with_debug_data) {
  std::vector<RoundTrip> trips;
  for (const char* name : {"features.cu", "cub.cu", "thrust.cu", "libcupp.cu", "curand.cu"}) {
    for (const int target : all_targets) {
      for (const char* debug : {"", "-lineinfo", "-G"}) {
        trips.push_back(nvcc_trip(corpus() / name, target, debug));
      }
    }
  }
  EXPECT_EQ(failures_of(trips), "");
}

TEST(Nvcc, language_features_keep_their_machine_code) {
  const auto source = corpus() / "features.cu";
  EXPECT_EQ(failures_of({nvcc_trip(source, 75, ""), nvcc_trip(source, 80, "-G"),
                         nvcc_trip(source, 90, "-lineinfo"), nvcc_trip(source, 100, "")}),
            "");
}

}  // namespace
}  // namespace demarc::ptx::test
