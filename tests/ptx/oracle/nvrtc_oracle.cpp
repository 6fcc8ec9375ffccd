// Tests by ptxas that printed PTX of the run-time compiler gives the same machine code.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nvrtc.h>

#include <fstream>
#include <initializer_list>
#include <sstream>
#include <stdexcept>

#include "compilers.hpp"
#include "paths.hpp"
#include "round_trip.hpp"

namespace demarc::ptx::test {
namespace {

// The PTX that the run-time compiler makes of a bundled kernel; throws with its messages.
std::string nvrtc_ptx(const std::string& file, const std::vector<std::string>& flags) {
  const auto folder = demarc::test::source_dir() / "kernels";
  std::ostringstream source;
  source << std::ifstream(folder / file).rdbuf();
  // The kernels' header brings the words of CUDA unless a compiler of NVIDIA's is at work; the
  // built-in function is one of the host compiler's, which nvcc knows too.
  std::vector<std::string> all = {"-D__NVCC__=1", "-D__builtin_fmaf=fmaf",
                                  "-I" + (folder / "include").string()};
  all.insert(all.end(), flags.begin(), flags.end());
  std::vector<const char*> options;
  for (const std::string& flag : all) options.push_back(flag.c_str());

  nvrtcProgram program = nullptr;
  nvrtcCreateProgram(&program, source.str().c_str(), file.c_str(), 0, nullptr, nullptr);
  const nvrtcResult made =
      nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  std::string text;
  if (made == NVRTC_SUCCESS) {
    nvrtcGetPTXSize(program, &size);
    text.resize(size);
    nvrtcGetPTX(program, text.data());
  } else {
    nvrtcGetProgramLogSize(program, &size);
    text.resize(size);
    nvrtcGetProgramLog(program, text.data());
  }
  nvrtcDestroyProgram(&program);
  if (!text.empty()) text.pop_back();  // the NUL
  if (made != NVRTC_SUCCESS) throw std::runtime_error(text);
  return text;
}

// The run-time compiler is the same as nvcc's, and ten times as quick to call: it stands for the
// targets and kinds of debugging data that nvcc itself is asked for in `make test-whole`.
void expect_kernels_keep_their_code(std::initializer_list<int> targets, const std::string& debug,
                                    const std::string& for_ptxas) {
  std::vector<RoundTrip> trips;
  for (const auto& source : cuda_sources(demarc::test::source_dir() / "kernels")) {
    const std::string file = source.filename().string();
    for (const int target : targets) {
      const std::vector<std::string> flags = {fmt::format("-arch=compute_{}", target), debug};
      trips.push_back({fmt::format("{} sm_{} {}", file, target, debug),
                       [file, flags] { return nvrtc_ptx(file, flags); },
                       {for_ptxas}});
    }
  }
  ASSERT_GE(trips.size(), 32U);
  EXPECT_EQ(failures_of(trips), "");
}

TEST(Nvrtc, bundled_kernels_with_line_numbers_keep_their_machine_code) {
  expect_kernels_keep_their_code({75, 90}, "-lineinfo", "-lineinfo");
}
TEST(Nvrtc, bundled_kernels_for_the_debugger_keep_their_machine_code) {
  expect_kernels_keep_their_code({80, 100}, "-G", "-g");
}

}  // namespace
}  // namespace demarc::ptx::test
