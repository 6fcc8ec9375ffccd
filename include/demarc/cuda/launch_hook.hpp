// The driver's launch callback: sees every task descriptor after it is built and before it is
// uploaded, and can put a mask into it.
//
// HAZARDS. An undocumented debug interface of the driver, reached by cuGetExportTable; there is one
// subscription in a process. The callback runs inside the launching call, on the launching thread,
// with locks of the driver held: it must not call the driver. A mask that leaves only units that do
// not exist hangs the launch; masks come from to_hardware(), which refuses that.
// Seen to work: driver 580.159.04 (CUDA 13.0) on H100. install() checks the table and a first
// launch and refuses anything it does not recognise. While a hook is installed that driver refuses
// to create green contexts (error 801), and a second hook in the process (error 210).
//
// Graphs: their descriptors are built, masked and uploaded at the first launch of the executable
// graph; later launches show them again (id 3) but edits come too late, and neither an update nor
// an upload of the executable graph builds them anew (all seen). So a graph keeps the mask of its
// first launch; launches of a graph whose kept mask is not the wanted one are counted as stale.
// Launches by kernels (dynamic parallelism) pass no callback and ignore masks (seen).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "demarc/cuda/descriptor.hpp"
#include "demarc/cuda/driver.hpp"
#include "demarc/cuda/shared_mask.hpp"
#include "demarc/cuda/stream_table.hpp"

namespace demarc::cuda {

// How a descriptor came to the hardware.
enum class LaunchPath : std::uint32_t { default_stream, stream, graph, unknown };
inline constexpr std::size_t launch_paths = 4;
[[nodiscard]] const char* to_string(LaunchPath path);

// What the callback saw. Plain data, may live in shared memory. Launches are counted by path while
// count_paths() is on, else as `unknown`; nodes of graphs at each launch while it is on, else once,
// when they are built.
struct LaunchCounters {
  std::array<std::atomic<std::uint64_t>, launch_paths> unmasked{};  // passed with no mask wanted
  std::array<std::atomic<std::uint64_t>, launch_paths> masked{};    // left with a mask of any level
  std::array<std::atomic<std::uint64_t>, launch_paths> refused{};   // unknown version: not confined
  std::array<std::atomic<std::uint64_t>, launch_paths> masked_blocks{};
  std::atomic<std::uint64_t> unsafe_clusters{0};  // clusters that the mask could not have hosted
  std::atomic<std::uint64_t> launchers{0};     // kernels that may launch kernels, unconfined ones
  std::atomic<std::uint64_t> graphs{0};        // launches of graphs
  std::atomic<std::uint64_t> stale_graphs{0};  // of those, under another mask than is wanted now

  [[nodiscard]] std::uint64_t seen() const;
};

using GetExportTable = CuResult (*)(const void** table, const CuUuid* id);

class LaunchHook {
 public:
  // The hook of this process; subscribes on first use. missing_capability when the driver does not
  // offer the callback.
  static Result<LaunchHook*> install(const Driver& driver);
  // The same where only the driver's cuGetExportTable may be called, as during its start.
  // Scope::process: masks of the next launch will not be used, which saves a callback a launch.
  enum class Scope { process, all };
  static Result<LaunchHook*> install(GetExportTable get_table, const std::string& version,
                                     Scope scope = Scope::all);
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

  // How a launch shows its stream: by an 8-byte element of the callback's parameters that is the
  // stream's handle, or by the descriptor, which lies in the driver's stream object, so and so many
  // bytes from its start (seen: 1728, for kernels of all kinds, fills and copies).
  struct alignas(8) StreamPlace {  // atomic without locks
    enum class Kind : std::uint32_t { unknown, element, in_object };
    Kind kind = Kind::unknown;
    std::uint32_t value = 0;  // number of the element, or bytes
    friend bool operator==(const StreamPlace&, const StreamPlace&) = default;
  };
  // Looks for `stream` in this thread's next launch, which goes into it.
  void begin_learning_streams(CuStream stream);
  [[nodiscard]] StreamPlace end_learning_streams();
  void use_stream_place(StreamPlace place) { stream_place_.store(place); }
  [[nodiscard]] StreamPlace stream_place() const { return stream_place_.load(); }
  // Whether launches of this stream show it at the place in use: not all do (seen on an H200: 12
  // of 120 elsewhere in the object, 12 not in it). Nothing: not looked at since it was created.
  [[nodiscard]] std::optional<bool> shows(CuStream stream) const;
  void remember_shows(CuStream stream, bool shows);
  [[nodiscard]] bool knows_streams() const {
    return stream_place_.load().kind != StreamPlace::Kind::unknown;
  }

  // Applies to launches into the stream, and to graphs first launched into it. Needs
  // knows_streams(), and launches that show the stream, see shows(). Forgotten when the stream is
  // destroyed, whoever does that.
  Result<void> set_stream_mask(CuStream stream, const HardwareMask& mask);
  void clear_stream_mask(CuStream stream);
  [[nodiscard]] std::optional<HardwareMask> stream_mask(CuStream stream) const;
  // Called when a stream is about to be destroyed.
  void set_stream_gone_handler(void (*handler)(CuStream stream)) { stream_gone_.store(handler); }

  // Applies to launches whose stream brings no mask of its own.
  void set_process_mask(const std::optional<HardwareMask>& mask);
  [[nodiscard]] std::optional<HardwareMask> process_mask() const;
  // Applies to the next launch of the calling thread, whatever its stream says; if that is
  // the first launch of a graph, to all its nodes and for good.
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
  // Launches and blocks inside the partition are counted, unless switched off: what bypasses it is
  // counted all the same.
  void count_masked(bool on) { counts_masked_.store(on); }
  // Also tells launches of the default stream, of other streams and of graphs apart, at the cost of
  // two more callbacks a launch and one more a graph's node (about 120 ns a node, seen).
  Result<void> count_paths();
  // Clusters of more blocks than this are reported to the refusal handler before they hang under
  // the process mask; 0: not looked at. Only where the descriptor's cluster field is known
  // (V04_00).
  void set_largest_cluster(std::uint32_t blocks) { own_largest_cluster_.store(blocks); }
  // Reads that number from elsewhere, for as long as the process lives.
  void share_largest_cluster(std::atomic<std::uint32_t>* blocks) { largest_cluster_.store(blocks); }
  // Learns the layout from the first descriptor that passes, of a card of this capability.
  void expect(gpu::ComputeCapability capability);
  // Called, inside the callback, when a launch cannot be confined though a mask is wanted.
  void set_refusal_handler(void (*handler)(const char* message)) { refusal_.store(handler); }

 private:
  using EnableFunction = CuResult (*)(std::uint32_t on, std::uint32_t handle, int domain, int id);
  LaunchHook() = default;
  static LaunchHook& instance();
  static void callback(void* user, int domain, int id, const void* params);
  void on_function(int id, const void* params);
  void on_launch(void* descriptor, const void* stream);
  void on_graph_node(const void* descriptor);
  void put_mask(const DescriptorLayout& layout, void* descriptor, const void* stream,
                LaunchCounters& counters);
  void check_clusters(const DescriptorLayout& layout, const void* descriptor,
                      LaunchCounters& counters);
  bool find_mask(const void* stream, HardwareMask& mask, bool& of_process) const;
  [[nodiscard]] const void* key_of(CuStream stream) const;
  [[nodiscard]] const void* stream_of(const void* params, const char* descriptor) const;
  void forget_stream(CuStream stream);
  void on_graph_launch(const void* graph, CuStream stream);
  Result<void> watch_functions(std::span<const int> ids);
  const DescriptorLayout* layout_for(const void* descriptor);
  void report(const char* message);
  Result<void> subscribe(GetExportTable get_table, const std::string& version, Scope scope);

  SharedMask own_mask_;
  LaunchCounters own_counters_;
  StreamTable streams_;
  StreamTable graphs_;  // executable graphs and the mask they were built with
  std::atomic<StreamPlace> stream_place_{};
  mutable std::mutex shown_mutex_;
  std::unordered_map<CuStream, bool> shown_;
  std::atomic<void (*)(CuStream)> stream_gone_{nullptr};
  std::atomic<SharedMask*> mask_{&own_mask_};
  std::atomic<LaunchCounters*> counters_{&own_counters_};
  std::atomic<const DescriptorLayout*> layout_{nullptr};
  std::atomic<void (*)(const char*)> refusal_{nullptr};
  std::atomic<std::uint32_t> own_largest_cluster_{0};
  std::atomic<std::atomic<std::uint32_t>*> largest_cluster_{&own_largest_cluster_};
  std::atomic<bool> learning_{false};
  std::atomic<bool> counts_nodes_{false};
  std::atomic<bool> counts_masked_{true};
  gpu::ComputeCapability expected_;
  EnableFunction enable_ = nullptr;
  std::uint32_t handle_ = 0;
  bool subscribed_ = false;
};

}  // namespace demarc::cuda
