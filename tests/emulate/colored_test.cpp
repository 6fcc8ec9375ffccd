// Coloured kernels on the emulator: the results are those of the plain ones, and every byte of the
// arena that is not theirs is left alone. Masks and remainders.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "demarc/gpu/address_map.hpp"
#include "demarc/ptx/colored.hpp"
#include "harness.hpp"
#include "remainder_addressing.hpp"

namespace demarc::emulate {
namespace {

constexpr std::uint64_t page = std::uint64_t{2} << 20U;
constexpr std::uint64_t pages = 1;
constexpr std::byte untouched{0xa5};

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
Result<ptx::ColoredModule> loaded_with(ptx::ColoredModule made,
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
constexpr std::uint64_t output_at = 0x4100;
struct Layout {
  std::uint64_t variables_at = 0x9000;
  std::uint64_t local_at = 0x20000;
  std::uint64_t spare_threads = 0;  // that local memory has room for beyond those of the launch
};
constexpr Layout other_layout{0x31040, 0x6080, 13};

struct Shape {
  std::uint32_t grid = 3;
  std::uint32_t block = 40;
  std::uint64_t words = 3 * 40;            // of 8 bytes, of the output
  std::vector<std::uint64_t> arguments{};  // behind the output's address
};

Options one_thread() {
  Options options;
  options.threads = 1;
  return options;
}

gpu::Launch launch_of(const Shape& shape) {
  gpu::Launch launch = test::launch_of(shape.grid, shape.block, shape.words * 8);
  for (const std::uint64_t value : shape.arguments) {
    launch.kernels[0].arguments.emplace_back(
        gpu::make_scalar(gpu::ScalarType::u64, static_cast<std::int64_t>(value)));
  }
  return launch;
}

std::vector<std::byte> plain_result(const std::string& text, const Shape& shape) {
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
Result<ColoredRun> run_colored(const Colors& colors, const std::string& text, const Shape& shape,
                               std::uint64_t threads, const Layout& layout = {}) {
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

void expect_same(const Colors& colors, const std::string& text, const Shape& shape,
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

void expect_contained(const std::string& text, const Shape& shape = {}) {
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
const std::string place =
    "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.u32 %r2, %r3, %r4, %r1;\n"
    "mul.wide.u32 %rd2, %r2, 8;\nadd.s64 %rd2, %rd1, %rd2;\n";

std::string kernel(const std::string& declarations, const std::string& body) {
  return test::kernel_of(declarations, place + body);
}

TEST(ColoredEmulation, loads_stores_and_atomics_of_global_memory) {
  expect_contained(kernel("", R"(
    st.global.u64 [%rd2], 7;
    ld.global.u32 %r5, [%rd2];
    add.u32 %r5, %r5, %r2;
    st.global.v2.u32 [%rd2], {%r5, %r2};
    atom.global.add.u32 %r6, [%rd2+4], 1000;
    red.global.add.u32 [%rd2], %r6;
    prefetch.global.L2 [%rd2];
  )"));
}

TEST(ColoredEmulation, variables_of_the_module_read_and_written) {
  expect_contained(
      kernel(".global .align 4 .u32 table[6] = {11, 22, 33, 44, 55, 66};\n"
             ".global .align 8 .u64 sums[120];\n.const .u32 fixed = 5;\n",
             R"(
    rem.u32 %r5, %r2, 6;
    mul.wide.u32 %rd3, %r5, 4;
    mov.u64 %rd4, table;
    add.s64 %rd4, %rd4, %rd3;
    ld.global.nc.u32 %r6, [%rd4];
    ld.global.u32 %r7, [table+8];
    mul.wide.u32 %rd5, %r2, 8;
    cvta.global.u64 %rd6, sums;
    add.s64 %rd6, %rd6, %rd5;
    st.u32 [%rd6+4], %r6;
    red.add.u32 [%rd6+4], %r7;
    ld.global.u64 %rd7, [%rd6];
    ld.const.u32 %r8, [fixed];
    cvt.u64.u32 %rd8, %r8;
    add.s64 %rd7, %rd7, %rd8;
    st.global.u64 [%rd2], %rd7;
  )"));
}

TEST(ColoredEmulation, addresses_in_initialisers_lead_to_the_block) {
  expect_contained(
      kernel(".global .align 4 .u32 table[4] = {11, 22, 33, 44};\n"
             ".global .align 8 .u64 second = generic(table)+4;\n"
             ".global .align 8 .u64 chain[2] = {second, table};\n",
             R"(
    ld.global.u64 %rd3, [chain];
    ld.u64 %rd4, [%rd3];
    ld.u32 %r5, [%rd4];
    ld.global.u64 %rd5, [chain+8];
    ld.u32 %r6, [%rd5+12];
    st.global.v2.u32 [%rd2], {%r5, %r6};
  )"));
}

TEST(ColoredEmulation, local_variables_of_every_thread) {
  expect_contained(kernel("", R"(
    .local .align 16 .b8 depot[40];
    .local .align 4 .u32 more;
    mov.b64 %rd3, depot;
    cvta.local.u64 %rd4, %rd3;
    st.local.u32 [%rd3+4], %r2;
    st.local.u32 [more], 500;
    rem.u32 %r5, %r2, 5;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd6, %rd4, %rd5;
    st.u32 [%rd6+8], %r5;
    cvta.to.local.u64 %rd7, %rd6;
    ld.local.u32 %r6, [%rd7+8];
    ld.u32 %r7, [%rd4+4];
    ld.local.u32 %r8, [more];
    add.u32 %r6, %r6, %r8;
    st.global.v2.u32 [%rd2], {%r6, %r7};
  )"));
}

const std::string called = R"(
  .func (.param .b32 sum) leaf(.param .b32 x) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    .local .align 4 .b8 own[12];
    mov.b64 %rd1, own;
    ld.param.u32 %r1, [x];
    st.local.u32 [%rd1+8], %r1;
    ld.local.u32 %r2, [%rd1+8];
    mul.lo.u32 %r2, %r2, 3;
    st.param.b32 [sum], %r2;
    ret;
  }
  .func (.param .b32 sum) middle(.param .b32 x) {
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    .local .align 4 .b8 own[8];
    mov.b64 %rd1, own;
    ld.param.u32 %r1, [x];
    st.local.u32 [%rd1], %r1;
    add.u32 %r2, %r1, 1;
    {
      .param .b32 x;
      .param .b32 s;
      st.param.b32 [x], %r2;
      call.uni (s), leaf, (x);
      ld.param.b32 %r3, [s];
    }
    ld.local.u32 %r4, [%rd1];
    add.u32 %r3, %r3, %r4;
    st.param.b32 [sum], %r3;
    ret;
  }
)";

TEST(ColoredEmulation, local_variables_of_functions_that_call_each_other) {
  expect_contained(kernel(called, R"(
    .local .align 4 .u32 kept;
    st.local.u32 [kept], %r2;
    {
      .param .b32 x;
      .param .b32 s;
      st.param.b32 [x], %r2;
      call.uni (s), middle, (x);
      ld.param.b32 %r5, [s];
    }
    {
      .param .b32 x;
      .param .b32 s;
      st.param.b32 [x], %r5;
      call.uni (s), leaf, (x);
      ld.param.b32 %r6, [s];
    }
    ld.local.u32 %r7, [kept];
    add.u32 %r6, %r6, %r7;
    st.global.v2.u32 [%rd2], {%r5, %r6};
  )"));
}

TEST(ColoredEmulation, generic_addresses_of_four_memories_told_apart) {
  expect_contained(
      kernel(".shared .align 4 .u32 tile[64];\n.const .align 4 .u32 fixed[2] = {9, 8};\n"
             ".global .align 4 .u32 table[2] = {70, 80};\n",
             R"(
    .local .align 8 .u64 own;
    mov.u64 %rd3, tile;
    cvta.shared.u64 %rd4, %rd3;
    mul.wide.u32 %rd5, %r1, 4;
    add.s64 %rd4, %rd4, %rd5;
    st.u32 [%rd4], %r2;
    mov.u64 %rd6, fixed;
    cvta.const.u64 %rd6, %rd6;
    mov.u64 %rd7, own;
    cvta.local.u64 %rd7, %rd7;
    st.u64 [%rd7], 3;
    mov.u64 %rd8, table;
    and.b32 %r5, %r2, 1;
    setp.ne.u32 %p1, %r5, 0;
    and.b32 %r5, %r2, 2;
    setp.ne.u32 %p2, %r5, 0;
    setp.eq.u32 %p3, %r3, 2;
    selp.b64 %rd9, %rd7, %rd8, %p1;
    selp.b64 %rd9, %rd4, %rd9, %p2;
    selp.b64 %rd9, %rd6, %rd9, %p3;
    ld.u32 %r6, [%rd9];
    st.global.u64 [%rd2], %rd4;
    ld.global.u64 %rd11, [%rd2];
    atom.add.u32 %r7, [%rd11], 6;
    ld.u32 %r8, [%rd11];
    add.u32 %r8, %r8, %r7;
    st.v2.u32 [%rd2], {%r6, %r8};
  )"));
}

TEST(ColoredEmulation, a_thread_beyond_the_local_memory_stops_its_kernel) {
  const std::string text = kernel("", R"(
    .local .align 4 .u32 own;
    st.local.u32 [own], %r2;
    st.global.u32 [%rd2], 1;
  )");
  const MaskColors known({0xc4000}, 1);
  const MaskColorsAtLoad at_load({0xc4000}, 1);
  for (const Colors* colors :
       {static_cast<const Colors*>(&known), static_cast<const Colors*>(&at_load)}) {
    const auto findings = [&](std::uint64_t threads) {
      return run_colored(*colors, text, {}, threads).value().findings;
    };
    EXPECT_TRUE(findings(120).empty());
    const auto beyond = findings(119);
    ASSERT_EQ(beyond.size(), 1U);
    EXPECT_EQ(beyond[0].kind, FindingKind::trap);
  }
}

// Nobody has written the constant variable: no place is taken for granted.
TEST(ColoredEmulation, a_module_whose_places_are_not_set_touches_nothing_of_the_arena) {
  const auto findings = [](const std::string& text) {
    const ptx::ParseResult parsed = ptx::parse(text, "t.ptx");
    gpu::Launch launch = launch_of({});
    launch.buffers[0].bytes = page;
    const auto made =
        ptx::rewrite_colored(parsed.module, {{0xc4000}, 1}, {.places = ptx::PlacesAtLoad{}});
    const auto outcome = run_on(made.value().module, launch,
                                {std::vector<std::byte>(page, untouched)}, one_thread());
    const auto& bytes = outcome.value().buffers[0];
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), untouched), std::ssize(bytes));
    return outcome->findings;
  };
  const auto variable = findings(kernel(".global .u32 v;\n", "st.global.u32 [v], 1;"));
  ASSERT_FALSE(variable.empty());
  EXPECT_EQ(variable[0].kind, FindingKind::out_of_bounds);
  const auto local = findings(kernel("", ".local .u32 own;\nst.local.u32 [own], 1;"));
  ASSERT_FALSE(local.empty());
  EXPECT_EQ(local[0].kind, FindingKind::trap);
}

}  // namespace
}  // namespace demarc::emulate
