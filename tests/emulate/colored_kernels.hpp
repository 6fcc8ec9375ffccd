// Coloured kernels on the emulator: the results are those of the plain ones, and every byte of the
// arena that is not theirs is left alone. Masks and remainders.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "colors.hpp"
#include "harness.hpp"
#include "striped_law.hpp"

namespace demarc::emulate::colored {

// Places in linear bytes: the output, the variables, the local memory.
inline constexpr std::uint64_t output_at = 0x4100;
struct Layout {
  std::uint64_t variables_at = 0x9000;
  std::uint64_t local_at = 0x20000;
  std::uint64_t spare_threads = 0;  // that local memory has room for beyond those of the launch
};
inline constexpr Layout other_layout{0x31040, 0x6080, 13};

struct Shape {
  std::uint32_t grid = 3;
  std::uint32_t block = 40;
  std::uint64_t words = 3 * 40;            // words of 8 bytes, of the output
  std::vector<std::uint64_t> arguments{};  // behind the output's address
};

inline Options one_thread() {
  Options options;
  options.threads = 1;
  return options;
}

inline gpu::Launch launch_of(const Shape& shape) {
  gpu::Launch launch = test::launch_of(shape.grid, shape.block, shape.words * 8);
  for (const std::uint64_t value : shape.arguments) {
    launch.kernels[0].arguments.emplace_back(
        gpu::make_scalar(gpu::ScalarType::u64, static_cast<std::int64_t>(value)));
  }
  return launch;
}

inline std::vector<std::byte> plain_result(const std::string& text, const Shape& shape) {
  const auto outcome = test::run_text(text, launch_of(shape), one_thread());
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return {};
  EXPECT_TRUE(outcome->findings.empty()) << describe(outcome->findings[0], "plain");
  return outcome->buffers[0];
}

// The arena of a run: byte `linear` of the colour.
struct Arena {
  gpu::Memory buffers;  // the arena, the table
  std::uint64_t shift = 0;
  const Colors* colors = nullptr;

  std::byte& at(std::uint64_t linear) { return buffers[0][shift + colors->position(linear)]; }
};

struct ColoredRun {
  Arena arena;  // after the run
  ptx::ColoredNeeds needs;
  std::vector<Finding> findings;
};

// The coloured form of kernel `k`, with local memory for `threads` threads.
inline Result<ColoredRun> run_colored(const Colors& colors, const std::string& text,
                                      const Shape& shape, std::uint64_t threads,
                                      const Layout& layout = {}) {
  const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
  ColoredRun run;
  DEMARC_TRY(run.needs, ptx::find_colored_needs(parsed.module));
  const std::vector<std::byte> table = colors.table();
  gpu::Launch launch;
  launch.buffers.resize(2);
  launch.buffers[0].bytes = colors.pages() * page + colors.alignment();
  launch.buffers[1].bytes = table.size();
  const auto addresses = gpu::default_addresses(launch);
  const std::uint64_t arena = colors.first_from(addresses[0]);
  const ptx::ColoredPlaces given{colors.pointer(arena, layout.variables_at),
                                 colors.pointer(arena, layout.local_at), threads};
  DEMARC_TRY(const auto made, colors.rewrite(parsed.module, arena, addresses[1], given));
  DEMARC_CHECK(ptx::check_accepted(made.kernels, "t.ptx"));

  launch.kernels = launch_of(shape).kernels;
  launch.kernels[0].arguments[0] = gpu::make_scalar(
      gpu::ScalarType::u64, static_cast<std::int64_t>(colors.pointer(arena, output_at)));
  run.arena = {{std::vector<std::byte>(launch.buffers[0].bytes, untouched), table},
               arena - addresses[0],
               &colors};
  const auto content = run.needs.variables.content(given.variables);
  for (std::uint64_t i = 0; i < run.needs.variables.bytes; ++i) {
    run.arena.at(layout.variables_at + i) =
        i < content.size() ? std::byte{content[i]} : std::byte{0};
  }
  for (std::uint64_t i = 0; i < shape.words * 8; ++i) run.arena.at(output_at + i) = std::byte{0};
  DEMARC_TRY(auto outcome, run_on(made.module, launch, run.arena.buffers, one_thread()));
  run.arena.buffers = std::move(outcome.buffers);
  run.findings = std::move(outcome.findings);
  return run;
}

inline void expect_same(const Colors& colors, const std::string& text, const Shape& shape,
                        const std::vector<std::byte>& expected, const Layout& layout = {}) {
  const std::uint64_t threads = std::uint64_t{shape.grid} * shape.block + layout.spare_threads;
  auto run = run_colored(colors, text, shape, threads, layout);
  ASSERT_TRUE(run) << run.error().message;
  ASSERT_TRUE(run->findings.empty()) << describe(run->findings[0], "coloured");
  Arena& arena = run->arena;
  for (std::uint64_t i = 0; i < shape.words * 8; ++i) {
    ASSERT_EQ(arena.at(output_at + i), expected[i]) << "byte " << i;
    arena.at(output_at + i) = untouched;
  }
  for (std::uint64_t i = 0; i < run->needs.variables.bytes; ++i) {
    arena.at(layout.variables_at + i) = untouched;
  }
  for (std::uint64_t i = 0; i < run->needs.local_bytes * threads; ++i) {
    arena.at(layout.local_at + i) = untouched;
  }
  const auto& bytes = arena.buffers[0];
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), untouched), std::ssize(bytes))
      << "bytes of others were written";
}

inline void expect_contained(const std::string& text, const Shape& shape = {}) {
  const std::vector<std::byte> expected = plain_result(text, shape);
  if (expected.empty()) return;
  EXPECT_NE(std::count(expected.begin(), expected.end(), std::byte{0}), std::ssize(expected))
      << "the kernel writes nothing";
  for (const std::uint32_t color : {0U, 1U}) {
    expect_same(MaskColors({0xc4000}, color), text, shape, expected);
    expect_same(MaskColors({0x600, 0x1fa000}, 2 + color), text, shape, expected);
    expect_same(MaskColors({0x2c4000}, color, 2, {21}), text, shape, expected);
    expect_same(RemainderColors(color), text, shape, expected);
  }
  for (const Layout& layout : {Layout{}, other_layout}) {
    expect_same(MaskColorsAtLoad({0x600, 0x1fa000}, 3), text, shape, expected, layout);
    expect_same(RemainderColorsAtLoad(1), text, shape, expected, layout);
    const auto added = std::make_shared<const color::StripedLaw>(color::Stripes{1});
    expect_same(LawColors(added, 1, layout.local_at != other_layout.local_at), text, shape,
                expected, layout);
  }
  expect_same(RemainderPlacesAtLoad(0), text, shape, expected, other_layout);
}

// %rd2 becomes the place of the grid's thread in the output, %r2 its number.
inline const std::string place =
    "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.u32 %r2, %r3, %r4, %r1;\n"
    "mul.wide.u32 %rd2, %r2, 8;\nadd.s64 %rd2, %rd1, %rd2;\n";

inline std::string kernel(const std::string& declarations, const std::string& body) {
  return test::kernel_of(declarations, place + body);
}

}  // namespace demarc::emulate::colored
