// What an H100 did where lanes of a warp part: tests/emulate/asked has the kernels, and the words
// that each left.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <sstream>

#include "demarc/base/files.hpp"
#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "paths.hpp"

namespace demarc::emulate {
namespace {

// The card hangs, stops with an error or gives something: PTX leaves it undefined, and the emulator
// names it by these words.
const std::map<std::string, const char*> undefined_kernels{
    {"half_late_a", "16 threads of the warp do not arrive"},  // bar.sync at two places in a warp
    {"two_sites", "16 threads of the warp do not arrive"},    // the same
    {"mixed_kinds", "16 threads of the warp do not arrive"},
    {"mixed_modes", "16 threads of the warp do not arrive"},
    {"mixed_syncwarp", "16 threads of the warp do not arrive"},
    {"mixed_votes", "16 threads of the warp do not arrive"},
    {"sites_redux_kinds", "16 threads of the warp do not arrive"},
    {"loop_ballot_tail", "threads of the warp do not arrive"},
    {"not_member", "is not in its member mask"},
    {"not_member_half", "is not in its member mask"},
    {"trap_lane", "executed a trap"},
};

struct Asked {
  std::string kernel;
  std::uint32_t threads = 0;
  std::vector<std::uint32_t> words;
};

std::vector<Asked> all_asked() {
  std::istringstream text(
      read_file(demarc::test::source_dir() / "tests/emulate/asked/lanes.txt").value());
  std::vector<Asked> out;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    Asked one;
    words >> one.kernel >> one.threads;
    for (std::int64_t word = 0; words >> word;)
      one.words.push_back(static_cast<std::uint32_t>(word));
    out.push_back(one);
  }
  return out;
}

gpu::Launch launch_of_asked(const Asked& asked, std::size_t parameters, std::int32_t number) {
  gpu::Launch launch;
  launch.buffers.resize(2);
  launch.buffers[0].bytes = 4096;
  launch.buffers[1].bytes = 64;
  gpu::KernelLaunch kernel;
  kernel.kernel = asked.kernel;
  kernel.block.x = asked.threads;
  kernel.arguments.emplace_back(gpu::BufferUse{0, 0});
  if (parameters > 1 && asked.kernel.rfind("lock", 0) == 0) {
    kernel.arguments.emplace_back(gpu::BufferUse{1, 0});
  } else if (parameters > 1) {
    kernel.arguments.emplace_back(gpu::make_scalar(gpu::ScalarType::i32, std::int64_t{number}));
  }
  launch.kernels.push_back(kernel);
  return launch;
}

TEST(AskedOfACard,
     kernels_whose_lanes_part_leave_the_same_words_or_are_named_where_they_are_undefined) {
  const std::string text =
      read_file(demarc::test::source_dir() / "tests/emulate/asked/lanes.ptx").value();
  const ptx::ParseResult parsed = ptx::parse(text, "lanes.ptx");
  ASSERT_TRUE(parsed.diagnostics.ok());
  std::map<std::string, unsigned> times;
  const auto asked = all_asked();
  ASSERT_EQ(asked.size(), 59U);
  for (const Asked& one : asked) {
    const unsigned before = times[one.kernel]++;
    const std::int32_t number = one.kernel.rfind("loop", 0) == 0             ? 5
                                : one.kernel == "exit_values" && before == 0 ? 100
                                                                             : 40;
    const ptx::Function* const kernel = parsed.module.find_function(one.kernel);
    ASSERT_NE(kernel, nullptr) << one.kernel;
    const auto outcome =
        run(parsed.module, launch_of_asked(one, kernel->parameters.size(), number), {}, nullptr);
    ASSERT_TRUE(outcome) << outcome.error().message;
    const std::string found =
        outcome->findings.empty() ? "" : describe(outcome->findings[0], "lanes.ptx");
    if (const auto known = undefined_kernels.find(one.kernel); known != undefined_kernels.end()) {
      EXPECT_THAT(found, testing::HasSubstr(known->second)) << one.kernel;
      continue;
    }
    EXPECT_EQ(found, "") << one.kernel;
    std::vector<std::uint32_t> words(one.words.size());
    std::memcpy(words.data(), outcome->buffers[0].data(), words.size() * 4);
    EXPECT_FALSE(words.empty()) << one.kernel;
    EXPECT_EQ(words, one.words) << one.kernel;
  }
}

}  // namespace
}  // namespace demarc::emulate
