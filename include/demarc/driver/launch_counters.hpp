// What the launch callback counts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace demarc::cuda {

// The path by which a descriptor came to the hardware. Kernels of the driver's own that copy or
// fill memory are a path of their own; in graphs they are nodes like others.
enum class LaunchPath : std::uint32_t { default_stream, stream, graph, unknown, copy_or_fill };
inline constexpr std::size_t launch_paths = 5;
[[nodiscard]] const char* to_string(LaunchPath path);

// What happened to the calls of programs whose memory lies in a share of coloured memory.
struct ColoredCounters {
  std::atomic<std::uint64_t> answered{0};  // in the driver's place
  std::atomic<std::uint64_t> refused{0};   // by name
  std::atomic<std::uint64_t> left_out{0};  // kernels that cannot be coloured, not loaded
  std::atomic<std::uint64_t> plain{0};     // processes that ran on plain memory instead
  // Kernels that Demarc launched for the program's copies and fills; the callback sees them, too.
  std::atomic<std::uint64_t> copies{0};
};

// What the callback saw. Plain data, may live in shared memory. Descriptors without a block launch
// nothing and are not counted: the driver begins a graph of many kernels in a row with one.
// Launches are counted by path while count_paths() is on, else as `unknown`; nodes of
// graphs at each launch while it is on, else once, when they are built.
struct LaunchCounters {
  std::array<std::atomic<std::uint64_t>, launch_paths> unmasked{};  // passed with no mask wanted
  std::array<std::atomic<std::uint64_t>, launch_paths> masked{};    // left with a mask of any level
  std::array<std::atomic<std::uint64_t>, launch_paths> refused{};   // unknown version: not confined
  std::array<std::atomic<std::uint64_t>, launch_paths> masked_blocks{};
  std::atomic<std::uint64_t> unsafe_clusters{0};  // clusters that the mask could not have hosted
  std::atomic<std::uint64_t> launchers{0};     // kernels that may launch kernels, unconfined ones
  std::atomic<std::uint64_t> graphs{0};        // launches of graphs
  std::atomic<std::uint64_t> uploads{0};       // uploads of graphs, which keep their masks then
  std::atomic<std::uint64_t> stale_graphs{0};  // of those, under another mask than is wanted now
  // Launches whose own mask left no TPC of the ceiling. They were reported, and not confined
  // further.
  std::atomic<std::uint64_t> empty_masks{0};
  // Callbacks whose parameters have an unknown layout. What they told is not known, and a launch
  // among them was not confined.
  std::atomic<std::uint64_t> misunderstood{0};
  // Masked launches whose descriptor does not say whether the kernel may launch kernels (all
  // versions but V04_00), and whose module was not looked at: what such kernels launched was
  // neither confined nor counted.
  std::atomic<std::uint64_t> launchers_unknown{0};
  // Launches that should have had the memory synchronisation domain of their program and left with
  // another.
  std::atomic<std::uint64_t> other_domains{0};
  // Launches that no driver call announced, in a program all of whose calls are watched.
  std::atomic<std::uint64_t> unannounced{0};
  // Launches that calls of the driver made and whose descriptors the callback did not see.
  std::atomic<std::uint64_t> unseen{0};
  // Cooperative launches of more blocks than the partition has room for at once: refused.
  std::atomic<std::uint64_t> too_large{0};
  // Refused calls for host memory. They are refused so that no kernel reaches such memory.
  std::atomic<std::uint64_t> host_memory_refused{0};
  ColoredCounters colored;

  [[nodiscard]] std::uint64_t seen() const;
  // Those of the program's own kernels, without `colored.copies`.
  [[nodiscard]] std::uint64_t seen_of_program() const;
  // There are graphs, which keep their masks. Uploads count from their beginning.
  [[nodiscard]] bool has_graphs() const { return graphs != 0 || uploads != 0; }
};

}  // namespace demarc::cuda
