// Access streams of emulated kernels against the written-out applications.
#include <gtest/gtest.h>

#include "demarc/ptx/parser.hpp"
#include "demarc/sim/translation/simulate.hpp"
#include "demarc/sim/translation/stream.hpp"
#include "demarc/workload/workload.hpp"

namespace demarc::sim::translation {
namespace {

struct StreamLines {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  friend bool operator==(const StreamLines&, const StreamLines&) = default;
};

StreamLines lines_of(const Application& application) {
  StreamLines lines;
  MemoryInstruction instruction;
  const auto kernels = application.kernels();
  for (std::uint32_t k = 0; k < kernels.size(); ++k) {
    for (std::uint32_t group = 0; group < kernels[k].groups(); ++group) {
      for (std::uint32_t wave = 0; wave < kernels[k].waves_per_group; ++wave) {
        for (std::uint32_t i = 0; application.instruction(
                 {.kernel = k, .group = group, .wave = wave, .index = i}, instruction);
             ++i)
          (instruction.store ? lines.writes : lines.reads) += instruction.lines;
      }
    }
  }
  return lines;
}

// `scalar`: buffers whose loads a GPU with scalar loads does not send through its vector memory.
StreamLines emulated_lines(const std::string& workload,
                           std::map<std::string, std::int64_t> parameters,
                           const std::vector<std::string>& scalar = {}) {
  gpu::LaunchFileOptions sizes;
  sizes.parameters = std::move(parameters);
  const auto launch = workload::instance(workload, sizes);
  EXPECT_TRUE(launch) << launch.error().message;
  const auto module = ptx::parse(*workload::ptx_text(*launch, 90), workload);
  StreamOptions options;
  const auto addresses = gpu::default_addresses(*launch);
  for (std::size_t i = 0; i < launch->buffers.size(); ++i) {
    if (std::find(scalar.begin(), scalar.end(), launch->buffers[i].name) == scalar.end()) continue;
    const Address first(addresses[i]);
    options.left_out.emplace_back(first, first + launch->buffers[i].bytes);
  }
  const auto application = application_of_launch(module.module, *launch, options);
  EXPECT_TRUE(application) << application.error().message;
  return lines_of(**application);
}

StreamLines written_lines(std::string_view name, std::uint32_t iterations = 0) {
  Settings settings;
  settings.megabytes = 1;
  settings.iterations = iterations;
  return lines_of(**make_application(name, settings));
}

TEST(TranslationLaunch, emulated_kernels_touch_the_lines_of_the_written_out_applications) {
  EXPECT_EQ(emulated_lines("relu", {{"n", 131072}}), written_lines("RL"));
  EXPECT_EQ(emulated_lines("transpose_4x4", {{"width", 256}}), written_lines("MT"));
  EXPECT_EQ(emulated_lines("fft", {{"transforms", 256}}), written_lines("FFT"));
  EXPECT_EQ(emulated_lines("stencil9", {{"rows", 256}, {"columns", 256}, {"iterations", 1}}),
            written_lines("ST", 1));
  EXPECT_EQ(emulated_lines("kmeans_full", {{"points", 4096}, {"iterations", 2}}, {"centres"}),
            written_lines("KM", 2));
}

TEST(TranslationLaunch, the_filter_differs_in_its_first_wave_alone) {
  const StreamLines emulated = emulated_lines("fir", {{"n", 131072}}, {"taps"});
  const StreamLines written = written_lines("FIR");
  EXPECT_EQ(emulated.writes, written.writes);
  // The written-out stream has the history in front of the input; the kernel reads a buffer of its
  // own, one more line for each of 15 taps and the line of the input beside it.
  EXPECT_NEAR(static_cast<double>(emulated.reads), static_cast<double>(written.reads), 32);
}

TEST(TranslationLaunch, the_cipher_gathers_as_many_lines_from_its_box) {
  // 65536 blocks of 16 bytes; the keys are scalar, and the written-out stream has one line a round.
  const StreamLines emulated = emulated_lines("aes", {{"blocks", 65536}}, {"keys"});
  const StreamLines written = written_lines("AES");
  EXPECT_EQ(emulated.writes, written.writes);
  const double keys = 14.0 * 65536 / 64;
  EXPECT_NEAR(static_cast<double>(emulated.reads), static_cast<double>(written.reads) - keys,
              0.02 * static_cast<double>(written.reads));
}

}  // namespace
}  // namespace demarc::sim::translation
