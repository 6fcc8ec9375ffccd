// The driver's launch callback: sees every task descriptor after it is built and before it is
// uploaded, and can put a mask into it.
//
// HAZARDS. An undocumented debug interface of the driver, reached by cuGetExportTable; there is one
// subscription in a process. The callback runs inside the launching call, on the launching thread,
// with locks of the driver held: it must not call the driver. A mask that leaves only units that do
// not exist hangs the launch; masks come from to_hardware(), which refuses that.
// Seen to work: driver 580.159.04 (CUDA 13.0) on H100. install() checks the table and a first
// launch and refuses anything it does not recognise.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "demarc/cuda/descriptor.hpp"
#include "demarc/cuda/driver.hpp"

namespace demarc::cuda {

// A mask that other threads, or other processes through shared memory, may replace while launches
// read it. Plain data: lives in shared memory as it is. A reader that meets a write in progress
// tries again.
class SharedMask {
 public:
  void store(const HardwareMask& mask, bool active);
  // False when no mask is active.
  bool load(HardwareMask& mask) const;

 private:
  std::atomic<std::uint32_t> version_{0};  // odd while being written
  std::atomic<std::uint32_t> active_{0};
  std::array<std::atomic<std::uint32_t>, 4> words_{};
};

// What the callback saw: each descriptor counts once. Plain data, may live in shared memory.
struct LaunchCounters {
  std::atomic<std::uint64_t> unmasked{0};        // passed with no mask wanted
  std::atomic<std::uint64_t> process_masked{0};  // got the process mask
  std::atomic<std::uint64_t> next_masked{0};     // got a next-launch mask
  std::atomic<std::uint64_t> stream_masked{0};   // came with a mask of their stream
  std::atomic<std::uint64_t> refused{0};         // of an unknown version: left as they were

  [[nodiscard]] std::uint64_t seen() const {
    return unmasked + process_masked + next_masked + stream_masked + refused;
  }
};

class LaunchHook {
 public:
  // The hook of this process; subscribes on first use. missing_capability when the driver does not
  // offer the callback.
  static Result<LaunchHook*> install(const Driver& driver);
  // Where the process mask and the counters live; by default inside the hook. Both must outlive
  // the process's launches.
  void use_storage(SharedMask* mask, LaunchCounters* counters);

  // Learns the layout from the next launch that this thread makes on a card of that capability:
  // call begin_probe(), launch anything, then end_probe().
  void begin_probe(gpu::ComputeCapability capability);
  // An error when no descriptor passed (launches bypass the callback) or its version is unknown.
  Result<void> end_probe();
  [[nodiscard]] const DescriptorLayout* layout() const { return layout_.load(); }
  void set_layout(const DescriptorLayout* layout) { layout_.store(layout); }

  // Applies to launches whose stream brings no mask of its own.
  void set_process_mask(const std::optional<HardwareMask>& mask);
  [[nodiscard]] std::optional<HardwareMask> process_mask() const;
  // Applies to the next launch of the calling thread, whatever its stream says.
  void set_next_mask(const std::optional<HardwareMask>& mask);
  [[nodiscard]] bool next_mask_pending() const;

  // The mask that the descriptor of this thread's last launch carried when the driver had built
  // it, before the hook changed it; nothing when there was none since clear_last().
  struct Seen {
    HardwareMask mask;
    bool enabled = false;
    std::uint32_t launches = 0;  // since clear_last()
  };
  void clear_last();
  [[nodiscard]] std::optional<Seen> last() const;

  [[nodiscard]] const LaunchCounters& counters() const { return *counters_.load(); }
  // Called, inside the callback, when a descriptor of unknown version passes while a mask is
  // wanted.
  void set_refusal_handler(void (*handler)(const char* message)) { refusal_.store(handler); }

 private:
  LaunchHook() = default;
  static LaunchHook& instance();
  static void callback(void* user, int domain, int id, const void* params);
  void on_launch(void* descriptor);
  static void learn_layout(const void* descriptor);
  void refuse(LaunchCounters& counters, bool process_mask_wanted);
  Result<void> subscribe(const Driver& driver);

  SharedMask own_mask_;
  LaunchCounters own_counters_;
  std::atomic<SharedMask*> mask_{&own_mask_};
  std::atomic<LaunchCounters*> counters_{&own_counters_};
  std::atomic<const DescriptorLayout*> layout_{nullptr};
  std::atomic<void (*)(const char*)> refusal_{nullptr};
  std::uint32_t handle_ = 0;
  bool subscribed_ = false;
};

}  // namespace demarc::cuda
