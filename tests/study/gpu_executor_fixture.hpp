// The executor on a real GPU, against the stand-in for libcuda, which runs the kernels in the
// emulator; and a launch of two kernels whose outputs are known.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "fake_card.hpp"
#include "gpu/support_kernels.hpp"
#include "small_kernels.hpp"

namespace demarc::study {

inline constexpr std::uint32_t elements = 1000;

// The digest that a lane must find, from the words themselves.
inline std::uint64_t reference_digest() {
  std::vector<std::uint32_t> b(elements);
  std::vector<std::uint32_t> c(elements);
  for (std::uint32_t i = 0; i < elements; ++i) b[i] = 3 * i + i;
  for (std::uint32_t i = 0; i < elements; ++i) c[i] = b[i] + b[elements - 1 - i];
  return hash_of(hash_of(std::uint64_t{0}, digest_of(b, 1)), digest_of(c, 2));
}

// A launch of both kernels, the second a grid that depends on all of the first; `beyond`: elements
// of which b and c have no room.
inline std::string two_steps_json(std::uint32_t beyond) {
  return fmt::format(R"({{"schema": "demarc.launch/1", "name": "two_steps", "ptx": "two_steps.ptx",
    "buffers": [
      {{"name": "a", "bytes": {0}, "element": "u32", "fill": "iota"}},
      {{"name": "b", "bytes": {0}, "element": "u32"}},
      {{"name": "c", "bytes": {0}, "element": "u32", "output": true}}],
    "launches": [
      {{"kernel": "scale", "grid": 8, "block": 128, "args": ["buf:a", "buf:b", "u32:{1}"]}},
      {{"kernel": "fold", "grid": 8, "block": 128, "args": ["buf:b", "buf:c", "u32:{1}"]}}]}})",
                     4 * elements, elements + beyond);
}

// The same with its first `count` buffers in host memory.
inline std::string two_steps_in_host(std::size_t count) {
  std::string text = two_steps_json(0);
  std::size_t at = 0;
  const std::string_view element = R"("element": "u32")";
  for (std::size_t i = 0; i < count; ++i) {
    at = text.find(element, at) + element.size();
    text.insert(at, R"(, "memory": "host")");
  }
  return text;
}

class GpuExecutorTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto folder = test::fresh_folder("gpu_executor");
    ASSERT_TRUE(write_file((folder / "two_steps.ptx").string(),
                           test::small_module(test::scale_entry, test::fold_entry)));
    ASSERT_TRUE(write_file((folder / "two_steps.json").string(), two_steps_json(0)));
    ASSERT_TRUE(write_file((folder / "wild.json").string(), two_steps_json(1)));
    ASSERT_TRUE(write_file((folder / "no_buffer.json").string(),
                           R"({"schema": "demarc.launch/1", "name": "no_buffer",
      "ptx": "two_steps.ptx", "buffers": [],
      "launches": [{"kernel": "scale", "grid": 1, "block": 1, "args": ["u64:0", "u64:0", "u32:0"]}]})"));
    for (const std::size_t count : {2U, 3U}) {
      const auto path = folder / fmt::format("host{}.json", count);
      ASSERT_TRUE(write_file(path.string(), two_steps_in_host(count)));
      in_host.push_back({path.stem().string(), "launch:" + path.string()});
    }
    two_steps = {"two_steps", "launch:" + (folder / "two_steps.json").string()};
    wild = {"wild", "launch:" + (folder / "wild.json").string()};
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
    test::configure(fake::small_gpu());
    options.arena_pages_a_part = 4;
    options.masks = {0xc4000};
  }
  void TearDown() override {
    ::unsetenv("DEMARC_CACHE");
    ::unsetenv("DEMARC_LIBCUDA");
    test::configure(fake::small_gpu());
  }

  std::unique_ptr<Executor> open() const {
    auto executor = make_gpu_executor(options);
    EXPECT_TRUE(executor) << executor.error().message;
    return std::move(*executor);
  }
  // Both parts of each mode compute what the kernels say, and time every run.
  void expect_right_in(Executor& executor, std::string_view modes) const {
    const auto parsed = parse_modes(modes);
    ASSERT_TRUE(parsed) << parsed.error().message;
    for (const Mode& mode : *parsed) {
      SCOPED_TRACE(mode.name());
      const auto stage = executor.divide(mode, 2);
      ASSERT_TRUE(stage) << stage.error().message;
      ASSERT_EQ((*stage)->lanes(), 2U);
      EXPECT_THAT((*stage)->account(), testing::Not(testing::IsEmpty()));
      for (std::uint32_t part = 0; part < 2; ++part) {
        expect_right((*stage)->lane(part), mode.launches != Launches::fused || part != 0);
      }
    }
  }
  void expect_right(Lane& lane, bool several_launches) const {
    expect_right(lane, several_launches, two_steps);
  }
  static void expect_right(Lane& lane, bool several_launches, const Workload& workload) {
    const auto loaded = lane.load(workload);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto times = lane.sample(3, 10);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_THAT(*times, testing::SizeIs(3));
    EXPECT_THAT(*times, testing::Each(testing::Gt(0)));
    const auto whole = lane.last_runs();
    if (!several_launches) {
      EXPECT_THAT(whole, testing::IsEmpty());
    }
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_GE(whole[i], times->at(i));
    const auto outputs = lane.outputs();
    ASSERT_TRUE(outputs) << outputs.error().message;
    EXPECT_EQ(outputs->digest, reference_digest());
    EXPECT_TRUE(outputs->exact);
    EXPECT_EQ(outputs->mismatch, "");
  }
  // The card whose colours are runs of remainders.
  void take_remainders() {
    fake::FakeConfig config = fake::small_gpu();
    config.remainders = true;
    test::configure(config);
    options.masks.clear();
    options.description = "h200";
    options.arena_pages_a_part = 8;
  }

  GpuExecutorOptions options;
  Workload two_steps;
  Workload wild;
  std::vector<Workload> in_host;  // two of three buffers, and all
};

}  // namespace demarc::study
