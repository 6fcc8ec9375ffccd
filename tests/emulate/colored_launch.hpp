// Whole launches in coloured memory: what they leave in their buffers is what they leave in plain
// memory, to the byte, and no byte of others is written.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "colors.hpp"
#include "demarc/emulate/emulate.hpp"

namespace demarc::emulate::colored {

// The first content of the buffers, where these are their addresses.
using Contents = std::function<gpu::Memory(std::span<const std::uint64_t>)>;

// What the launch leaves in plain memory.
inline gpu::Memory plain_results(const ptx::Module& module, const gpu::Launch& launch,
                                 const Contents& contents) {
  const auto outcome = run_on(module, launch, contents(gpu::default_addresses(launch)));
  EXPECT_TRUE(outcome) << outcome.error().message;
  if (!outcome) return {};
  EXPECT_TRUE(outcome->findings.empty()) << describe(outcome->findings[0], "plain");
  return outcome->buffers;
}

// Linear bytes of a launch: its buffers, its module's variables and the local memory of its
// threads, one behind the other.
class LaunchPlaces {
 public:
  LaunchPlaces(const gpu::Launch& launch, const ptx::ColoredNeeds& needs) {
    for (const gpu::Buffer& buffer : launch.buffers) {
      buffers_.push_back(take(buffer.bytes, 256));
    }
    variables_ = take(needs.variables.bytes, needs.variables.alignment);
    for (const gpu::KernelLaunch& kernel : launch.kernels) {
      threads_ = std::max(threads_, kernel.grid.count() * kernel.block.count());
    }
    local_ = take(needs.local_bytes * threads_, needs.local_alignment);
  }
  [[nodiscard]] std::uint64_t bytes() const { return end_; }
  [[nodiscard]] std::uint64_t buffer(std::size_t index) const { return buffers_[index]; }
  [[nodiscard]] std::uint64_t variables() const { return variables_; }
  [[nodiscard]] std::uint64_t local() const { return local_; }
  [[nodiscard]] std::uint64_t threads() const { return threads_; }

 private:
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment) {
    const std::uint64_t begin = (end_ + alignment - 1) / alignment * alignment;
    end_ = begin + bytes;
    return begin;
  }

  std::vector<std::uint64_t> buffers_;
  std::uint64_t variables_ = 0;
  std::uint64_t local_ = 0;
  std::uint64_t threads_ = 0;
  std::uint64_t end_ = 0x4100;
};

// The arena of a colour within a buffer.
class ColorArena {
 public:
  ColorArena(const Colors& colors, std::vector<std::byte>& buffer, std::uint64_t begin)
      : colors_(colors), buffer_(buffer), begin_(begin) {}

  // Calls use(bytes of the arena, offset, how many) for each run of the linear bytes.
  template <class Use>
  void for_each_run(std::uint64_t linear, std::uint64_t bytes, const Use& use) {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t at = linear + done;
      const std::uint64_t run = std::min(bytes - done, colors_.granule() - at % colors_.granule());
      use(buffer_.data() + begin_ + colors_.position(at), done, run);
      done += run;
    }
  }
  void put(std::uint64_t linear, const std::vector<std::byte>& content) {
    for_each_run(linear, content.size(), [&](std::byte* to, std::uint64_t from, std::uint64_t n) {
      std::copy_n(content.data() + from, n, to);
    });
  }
  void fill(std::uint64_t linear, std::uint64_t bytes, std::byte with) {
    for_each_run(linear, bytes,
                 [&](std::byte* to, std::uint64_t, std::uint64_t n) { std::fill_n(to, n, with); });
  }
  [[nodiscard]] std::vector<std::byte> get(std::uint64_t linear, std::uint64_t bytes) {
    std::vector<std::byte> content(bytes);
    for_each_run(linear, bytes, [&](const std::byte* from, std::uint64_t to, std::uint64_t n) {
      std::copy_n(from, n, content.data() + to);
    });
    return content;
  }

 private:
  const Colors& colors_;
  std::vector<std::byte>& buffer_;
  std::uint64_t begin_;
};

// Buffers of addresses keep those of coloured memory, which differ from the plain ones.
inline bool holds_addresses(const gpu::Buffer& buffer) {
  return buffer.fill.kind == gpu::FillKind::pointers;
}

// The launch with the addresses of its buffers in the colour.
inline gpu::Launch with_pointers(gpu::Launch launch, std::span<const std::uint64_t> pointers) {
  for (gpu::KernelLaunch& kernel : launch.kernels) {
    for (gpu::Argument& argument : kernel.arguments) {
      const auto* use = std::get_if<gpu::BufferUse>(&argument);
      if (use == nullptr) continue;
      argument = gpu::make_scalar(gpu::ScalarType::u64,
                                  static_cast<std::int64_t>(pointers[use->buffer] + use->offset));
    }
  }
  return launch;
}

// `first`: of the buffers at their places in the colour. `expected`: afterwards.
inline Result<void> compare_results(const LaunchPlaces& places, const gpu::Launch& launch,
                                    ColorArena& arena, const gpu::Memory& first,
                                    const gpu::Memory& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& wanted = holds_addresses(launch.buffers[i]) ? first[i] : expected[i];
    const auto found = arena.get(places.buffer(i), wanted.size());
    const auto differs = std::mismatch(found.begin(), found.end(), wanted.begin()).first;
    if (differs != found.end()) {
      return check_failed("buffer {}: byte {} of {} differs", i, differs - found.begin(),
                          found.size());
    }
    arena.fill(places.buffer(i), wanted.size(), untouched);
  }
  return {};
}

inline Result<void> check_same_in(const Colors& colors, const ptx::Module& module,
                                  const gpu::Launch& launch, const Contents& contents,
                                  const gpu::Memory& expected, const Options& options = {}) {
  DEMARC_TRY(const auto needs, ptx::find_colored_needs(module));
  const LaunchPlaces places(launch, needs);
  if (places.bytes() > colors.bytes()) return check_failed("the colour has no room for it");

  gpu::Memory memory(2);
  memory[0].resize(colors.pages() * page + colors.alignment(), untouched);
  memory[1] = colors.table();
  gpu::Launch placed;
  for (const auto& content : memory) placed.buffers.emplace_back().bytes = content.size();
  const auto addresses = gpu::default_addresses(placed);
  const std::uint64_t base = colors.first_from(addresses[0]);
  const ptx::ColoredPlaces given{colors.pointer(base, places.variables()),
                                 colors.pointer(base, places.local()), places.threads()};
  DEMARC_TRY(const auto made, colors.rewrite(module, base, addresses[1], given));
  DEMARC_CHECK(ptx::check_accepted(made.kernels, module.source_name));

  std::vector<std::uint64_t> pointers;
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    pointers.push_back(colors.pointer(base, places.buffer(i)));
  }
  ColorArena arena(colors, memory[0], base - addresses[0]);
  const gpu::Memory first = contents(pointers);
  for (std::size_t i = 0; i < first.size(); ++i) arena.put(places.buffer(i), first[i]);
  const auto variables = needs.variables.content(given.variables);
  arena.fill(places.variables(), needs.variables.bytes, std::byte{0});
  const auto* begin = reinterpret_cast<const std::byte*>(variables.data());
  arena.put(places.variables(), {begin, begin + variables.size()});

  gpu::Launch colored = with_pointers(launch, pointers);
  colored.buffers = placed.buffers;
  DEMARC_TRY(auto outcome, run_on(made.module, colored, std::move(memory), options));
  if (!outcome.findings.empty()) {
    return check_failed("{}", describe(outcome.findings[0], "coloured"));
  }

  auto& after = outcome.buffers[0];
  ColorArena results(colors, after, base - addresses[0]);
  DEMARC_CHECK(compare_results(places, launch, results, first, expected));
  results.fill(places.variables(), needs.variables.bytes, untouched);
  results.fill(places.local(), needs.local_bytes * places.threads(), untouched);
  if (std::count(after.begin(), after.end(), untouched) != std::ssize(after)) {
    return check_failed("bytes of others were written");
  }
  if (outcome.buffers[1] != colors.table()) return check_failed("the table was written");
  return {};
}

inline void expect_same_in(const Colors& colors, const ptx::Module& module,
                           const gpu::Launch& launch, const Contents& contents,
                           const gpu::Memory& expected) {
  const auto same = check_same_in(colors, module, launch, contents, expected);
  EXPECT_TRUE(same) << same.error().message;
}

}  // namespace demarc::emulate::colored
