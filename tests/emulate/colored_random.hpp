// Random kernels of address arithmetic in plain and in coloured memory. A failure names the seed of
// the kernel and prints what it needs at least to fail.
#pragma once

#include "colored_launch.hpp"
#include "random_program.hpp"

namespace demarc::emulate::colored {

// Random programs that make up a module, and the colours that it runs in.
struct Batch {
  std::uint64_t first_seed = 0;
  std::uint64_t colors_seed = 0;
  std::uint64_t programs = 50;
};
// Those of a batch that run, each in its own window of the same memory.
struct Chosen {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  int statements = RandomProgram::max_statements;
};

// One warp, which runs the same whatever the number of its instructions; blocks in their order.
inline Options in_order() {
  Options options;
  options.threads = 1;
  options.check_uninitialised = false;
  options.check_races = false;
  return options;
}

// A module of random kernels, and a launch of each in a window of its own.
struct Programs {
  ptx::Module module;
  gpu::Launch launch;

  [[nodiscard]] gpu::Memory contents(std::span<const std::uint64_t> addresses) const {
    return gpu::initial_memory(launch, addresses).value();
  }
};

inline Result<Programs> programs_of(const Batch& batch, const Chosen& chosen) {
  constexpr std::uint64_t stride = RandomProgram::window_bytes + 256;
  Programs made;
  made.launch.seed = batch.first_seed;
  gpu::Buffer& windows = made.launch.buffers.emplace_back();
  windows.bytes = batch.programs * stride;
  windows.fill.kind = gpu::FillKind::random;
  gpu::Buffer& pointers = made.launch.buffers.emplace_back();
  pointers.bytes = batch.programs * 8;
  pointers.element = gpu::ScalarType::u64;
  pointers.fill.kind = gpu::FillKind::pointers;
  pointers.fill.stride = stride;
  std::string text = RandomProgram::preamble();
  for (std::uint64_t i = chosen.from; i < chosen.to; ++i) {
    const RandomProgram program(batch.first_seed + i, chosen.statements);
    text += program.text();
    gpu::KernelLaunch& kernel = made.launch.kernels.emplace_back();
    kernel.kernel = program.name();
    kernel.grid.x = RandomProgram::blocks;
    kernel.block.x = RandomProgram::threads;
    const auto number = static_cast<std::int64_t>(batch.first_seed + i);
    kernel.arguments = {gpu::BufferUse{0, i * stride}, gpu::BufferUse{1, i * 8},
                        gpu::make_scalar(gpu::ScalarType::u32, number)};
  }
  DEMARC_TRY(made.module, ptx::parse_whole(text, "random.ptx"));
  return made;
}

// Masks of random bits, of which no lowest bit is in another, and a colour of theirs.
inline std::unique_ptr<Colors> random_parities(std::uint64_t seed, std::uint64_t pages) {
  Random random(seed);
  constexpr std::uint32_t lowest = 5;
  constexpr std::uint32_t bits = 21;  // bits of an offset in a page
  std::vector<std::uint32_t> pivots;
  const std::uint64_t count = 1 + random.below(3);
  while (pivots.size() < count) {
    const auto pivot = static_cast<std::uint32_t>(lowest + random.below(12));
    if (std::find(pivots.begin(), pivots.end(), pivot) == pivots.end()) pivots.push_back(pivot);
  }
  std::sort(pivots.begin(), pivots.end());
  std::vector<std::uint64_t> masks;
  for (const std::uint32_t pivot : pivots) {
    std::uint64_t mask = random.below(std::uint64_t{1} << bits) >> pivot << pivot;
    for (const std::uint32_t other : pivots) mask &= ~(std::uint64_t{1} << other);
    masks.push_back(mask | std::uint64_t{1} << pivot);
  }
  const auto color = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << count));
  if (seed % 3 == 0) {
    // Bits above the page are inserted instead, so that the arena consists of groups of pages.
    for (std::uint32_t i = 0; i < count; ++i) {
      pivots[i] = bits + i;
      masks[i] |= std::uint64_t{1} << pivots[i];
    }
    return std::make_unique<MaskColors>(masks, color, pages << count, pivots);
  }
  if (seed % 2 == 0) return std::make_unique<MaskColors>(masks, color, pages << count);
  return std::make_unique<MaskColorsAtLoad>(masks, color, pages << count);
}

inline std::unique_ptr<Colors> random_remainders(std::uint64_t seed, std::uint64_t pages) {
  Random random(seed);
  std::vector<std::uint32_t> constants(pages * 47 / 8);
  for (std::uint32_t& constant : constants) constant = static_cast<std::uint32_t>(random.below(64));
  const color::RemainderColoring::Window window{static_cast<std::uint32_t>(random.below(47)),
                                                static_cast<std::uint32_t>(10 + random.below(38))};
  const auto coloring =
      color::RemainderColoring::make(color::h200_remainders(), {window}, constants).value();
  switch (seed % 3) {
    case 0:
      return std::make_unique<RemainderColors>(0, coloring);
    case 1:
      return std::make_unique<RemainderColorsAtLoad>(0, coloring);
    default:
      return std::make_unique<RemainderPlacesAtLoad>(0, coloring);
  }
}

// In plain memory, in parities and in remainders.
inline Result<void> check_programs(const Batch& batch, const Chosen& chosen) {
  DEMARC_TRY(const Programs programs, programs_of(batch, chosen));
  const auto contents = [&](auto addresses) { return programs.contents(addresses); };
  const auto addresses = gpu::default_addresses(programs.launch);
  DEMARC_TRY(auto plain, run_on(programs.module, programs.launch, contents(addresses), in_order()));
  if (!plain.findings.empty()) return check_failed("{}", describe(plain.findings[0], "plain"));
  DEMARC_TRY(const auto needs, ptx::find_colored_needs(programs.module));
  const std::uint64_t pages = LaunchPlaces(programs.launch, needs).bytes() / page + 1;
  for (const auto& colors :
       {random_parities(batch.colors_seed, pages), random_remainders(batch.colors_seed, pages)}) {
    DEMARC_CHECK(check_same_in(*colors, programs.module, programs.launch, contents, plain.buffers,
                               in_order()));
  }
  return {};
}

// The first program that fails alone, with as few statements as it needs to.
inline std::string first_failure(const Batch& batch) {
  for (std::uint64_t i = 0; i < batch.programs; ++i) {
    if (check_programs(batch, {i, i + 1})) continue;
    for (int statements = 0; statements <= RandomProgram::max_statements; ++statements) {
      const auto checked = check_programs(batch, {i, i + 1, statements});
      if (checked) continue;
      return fmt::format("seed {}, of the batch {}, colours {}, {} statements: {}\n{}",
                         batch.first_seed + i, batch.first_seed, batch.colors_seed, statements,
                         checked.error().message,
                         RandomProgram(batch.first_seed + i, statements).text());
    }
  }
  return "none of them fails alone";
}

inline void expect_same_everywhere(const Batch& batch) {
  const auto checked = check_programs(batch, {0, batch.programs});
  EXPECT_TRUE(checked) << checked.error().message << "\n" << first_failure(batch);
}

}  // namespace demarc::emulate::colored
