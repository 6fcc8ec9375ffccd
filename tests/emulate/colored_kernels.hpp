// Coloured kernels on the emulator: the results are those of the plain ones, and every byte of the
// arena that is not theirs is left alone. Masks and remainders.
#pragma once

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "demarc/gpu/address_map.hpp"
#include "demarc/ptx/colored.hpp"
#include "harness.hpp"
#include "remainder_addressing.hpp"

namespace demarc::emulate::colored {

inline constexpr std::uint64_t page = std::uint64_t{2} << 20U;
inline constexpr std::uint64_t pages = 1;
inline constexpr std::byte untouched{0xa5};

// One of the ways in which memory is coloured: where a byte of the colour lies, what kernels get as
// its address, and how they are rewritten.
class Colors {
 public:
  virtual ~Colors() = default;
  [[nodiscard]] virtual std::uint64_t position(std::uint64_t linear) const = 0;
  [[nodiscard]] virtual std::uint64_t pointer(std::uint64_t arena, std::uint64_t linear) const = 0;
  // What the code needs in memory beside the arena.
  [[nodiscard]] virtual std::vector<std::byte> table() const { return std::vector<std::byte>(8); }
  [[nodiscard]] virtual Result<ptx::ColoredModule> rewrite(
      const ptx::Module& module, std::uint64_t arena, std::uint64_t table,
      const ptx::ColoredPlaces& given) const = 0;
};

// Sets the constant variable of a module, as whoever loads one does.
inline Result<ptx::ColoredModule> loaded_with(ptx::ColoredModule made,
                                              const std::vector<std::byte>& constants) {
  std::vector<std::uint64_t> words(constants.size() / 8);
  std::memcpy(words.data(), constants.data(), constants.size());
  std::string text = *made.module.text;
  const std::string declared =
      fmt::format(".b8 {}[{}];", ptx::colored_constants_name, constants.size());
  const std::size_t at = text.find(declared);
  if (at == std::string::npos) return invalid_input("there is no {}", declared);
  text.replace(at, declared.size(),
               fmt::format(".b64 {}[{}] = {{{}}};", ptx::colored_constants_name, words.size(),
                           fmt::join(words, ", ")));
  DEMARC_TRY(made.module, ptx::parse_whole(text, made.module.source_name));
  return made;
}

class MaskColors : public Colors {
 public:
  MaskColors(std::vector<std::uint64_t> masks, std::uint32_t color)
      : coloring_(gpu::Coloring::make(masks, page).value()), addressing_{masks, color} {}
  std::uint64_t position(std::uint64_t linear) const override {
    return coloring_.position(linear, addressing_.color);
  }
  std::uint64_t pointer(std::uint64_t arena, std::uint64_t linear) const override {
    return ptx::colored_pointer(arena, linear, addressing_);
  }
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t, std::uint64_t,
                                     const ptx::ColoredPlaces& given) const override {
    return ptx::rewrite_colored(module, addressing_, {.places = given});
  }

 protected:
  [[nodiscard]] const ptx::ColoredAddressing& addressing() const { return addressing_; }

 private:
  gpu::Coloring coloring_;
  ptx::ColoredAddressing addressing_;
};

// The text knows its colour, and no places.
class MaskColorsAtLoad : public MaskColors {
 public:
  using MaskColors::MaskColors;
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t, std::uint64_t,
                                     const ptx::ColoredPlaces& given) const override {
    DEMARC_TRY(auto made,
               ptx::rewrite_colored(module, addressing(), {.places = ptx::PlacesAtLoad{}}));
    return loaded_with(std::move(made), ptx::colored_constants(given));
  }
};

class RemainderColors : public Colors {
 public:
  explicit RemainderColors(std::uint32_t color)
      : coloring_(gpu::RemainderColoring::make(gpu::h200_remainders(), {{40, 24}, {17, 23}},
                                               std::vector<std::uint32_t>{0x15})
                      .value()),
        color_(color) {}
  std::uint64_t position(std::uint64_t linear) const override {
    return coloring_.position(linear, color_);
  }
  std::uint64_t pointer(std::uint64_t arena, std::uint64_t linear) const override {
    return arena + linear;
  }
  std::vector<std::byte> table() const override { return coloring_.table(); }
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t arena,
                                     std::uint64_t table,
                                     const ptx::ColoredPlaces& given) const override {
    return ptx::rewrite_remainders(module, addressing(arena, table), {.places = given});
  }

 protected:
  [[nodiscard]] ptx::RemainderAddressing addressing(std::uint64_t arena,
                                                    std::uint64_t table) const {
    return demarc::test::addressing_of(coloring_, color_, arena, table);
  }

 private:
  gpu::RemainderColoring coloring_;
  std::uint32_t color_;
};

// The text knows no colours and no places.
class RemainderColorsAtLoad : public RemainderColors {
 public:
  using RemainderColors::RemainderColors;
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t arena,
                                     std::uint64_t table,
                                     const ptx::ColoredPlaces& given) const override {
    DEMARC_TRY(auto made, ptx::rewrite_remainders(module, ptx::RemainderShape{8, 13}));
    const auto constants = addressing(arena, table).constants;
    return loaded_with(std::move(made), ptx::colored_constants(given, &constants));
  }
};

// The text knows its colours, and no places.
class RemainderPlacesAtLoad : public RemainderColors {
 public:
  using RemainderColors::RemainderColors;
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t arena,
                                     std::uint64_t table,
                                     const ptx::ColoredPlaces& given) const override {
    DEMARC_TRY(auto made, ptx::rewrite_remainders(module, addressing(arena, table),
                                                  {.places = ptx::PlacesAtLoad{}}));
    return loaded_with(std::move(made), ptx::colored_constants(given));
  }
};

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
  std::uint64_t words = 3 * 40;            // of 8 bytes, of the output
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
  launch.buffers[0].bytes = (pages + 1) * page;  // room to begin at a whole page
  launch.buffers[1].bytes = table.size();
  const auto addresses = gpu::default_addresses(launch);
  const std::uint64_t arena = (addresses[0] + page - 1) / page * page;
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
    expect_same(RemainderColors(color), text, shape, expected);
  }
  for (const Layout& layout : {Layout{}, other_layout}) {
    expect_same(MaskColorsAtLoad({0x600, 0x1fa000}, 3), text, shape, expected, layout);
    expect_same(RemainderColorsAtLoad(1), text, shape, expected, layout);
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
