#include <gtest/gtest.h>
#include <nvrtc.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "paths.hpp"
#include "round_trip.hpp"

namespace demarc::ptx::test {
namespace {

// The PTX that the run-time compiler makes of a bundled kernel; throws with its messages.
std::string nvrtc_ptx(const std::string& file, const std::vector<std::string>& flags) {
  const auto folder = demarc::test::source_dir() / "kernels";
  std::ostringstream source;
  source << std::ifstream(folder / file).rdbuf();
  // The kernels' header brings the words of CUDA unless a compiler of NVIDIA's is at work.
  std::vector<std::string> all = {"-D__NVCC__=1", "-I" + (folder / "include").string()};
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

TEST(Nvrtc, what_is_compiled_at_run_time_keeps_its_machine_code) {
  std::vector<RoundTrip> trips;
  for (const std::string file : {"hotspot.cu", "matmul.cu", "bfs.cu", "histogram.cu"}) {
    for (const std::string target : {"75", "90", "100"}) {
      trips.push_back(
          {file + " sm_" + target,
           [file, target] { return nvrtc_ptx(file, {"--gpu-architecture=compute_" + target}); },
           {}});
    }
    trips.push_back({file + " -lineinfo",
                     [file] {
                       return nvrtc_ptx(file, {"--gpu-architecture=compute_80", "-lineinfo"});
                     },
                     {"-lineinfo"}});
  }
  EXPECT_EQ(failures_of(trips), "");
}

}  // namespace
}  // namespace demarc::ptx::test
