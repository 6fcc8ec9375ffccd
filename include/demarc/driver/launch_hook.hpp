// The driver's launch callback: sees every task descriptor after it is built and before it is
// uploaded, and can put a mask into it.
//
// HAZARDS. This is an undocumented debug interface of the driver, reached by cuGetExportTable.
// There is one subscription per process. The callback runs inside the launching call, on the
// launching thread, with locks of the driver held. It must not call the driver. A mask that leaves
// only units that do not exist hangs the launch; masks come from to_hardware(), which refuses that.
// Seen to work: driver 580.159.04 (CUDA 13.0) on H100. install() checks the table and a first
// launch and refuses anything it does not recognise. While a hook is installed that driver refuses
// to create green contexts (error 801), and a second hook in the process (error 210).
//
// Graphs: their descriptors are built, masked and uploaded at the first launch of the executable
// graph; later launches show them again (id 3) but edits come too late, and neither an update nor
// an upload of the executable graph builds them anew (all seen). So a graph keeps the mask of its
// first launch; launches of a graph whose kept mask is not the wanted one are counted as stale.
// Launches by kernels (dynamic parallelism) pass no callback and ignore masks (seen).
//
// Nothing passes silently. What the hook does not understand is counted. If a mask is wanted, it is
// also reported to the refusal handler, which under `demarc exec` ends the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "demarc/driver/callback_table.hpp"
#include "demarc/driver/descriptor.hpp"
#include "demarc/driver/driver.hpp"
#include "demarc/driver/graph_masks.hpp"
#include "demarc/driver/launch_counters.hpp"
#include "demarc/driver/launch_streams.hpp"
#include "demarc/driver/mask_history.hpp"
#include "demarc/driver/shared_mask.hpp"

namespace demarc::cuda {

class DriverCall;

class LaunchHook {
 public:
  // The hook of this process; it subscribes on first use. missing_capability if the driver does not
  // offer the callback.
  static Result<LaunchHook*> install(const Driver& driver);
  // The same if only the driver's cuGetExportTable may be called, as during its start.
  // Scope::process: masks of the next launch will not be used, which saves a callback per launch.
  enum class Scope { process, all };
  static Result<LaunchHook*> install(GetExportTable get_table, const std::string& version,
                                     Scope scope = Scope::all);
  // Where the process mask and the counters live; nullptr: inside the hook. Both must outlive the
  // process's launches.
  void use_storage(SharedMask* mask, LaunchCounters* counters);
  // No launch leaves this mask, whatever the levels below say. A launch with a mask of its own (or
  // the driver's) gets what both leave. If that is nothing, the launch is reported to the refusal
  // handler. The mask must outlive the process's launches; nullptr: none. So must `history`, in
  // which launches under it are counted by its numbers.
  void use_ceiling(const SharedMask* ceiling, MaskHistory* history = nullptr) {
    history_.store(history);
    ceiling_.store(ceiling);
  }

  // Learns the layout from the next launch that this thread makes on a card of that capability:
  // call begin_probe(), launch anything, then end_probe().
  void begin_probe(gpu::ComputeCapability capability);
  // An error if no descriptor passed (launches bypass the callback) or if its version is unknown.
  Result<void> end_probe();
  [[nodiscard]] const DescriptorLayout* layout() const { return layout_.load(); }
  void set_layout(const DescriptorLayout* layout) { layout_.store(layout); }

  // Masks by stream, and how launches show their streams.
  [[nodiscard]] LaunchStreams& streams() { return streams_; }

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
    std::optional<std::uint32_t> domain;  // nothing where descriptors do not tell
    std::uint32_t launches = 0;           // since clear_last()
  };
  void clear_last();
  [[nodiscard]] std::optional<Seen> last() const;

  [[nodiscard]] const LaunchCounters& counters() const { return *counters_.load(); }
  // Also tells launches of the default stream, of other streams and of graphs apart, at the cost of
  // two more callbacks per launch and one per node of a graph (about 120 ns per node, seen).
  Result<void> count_paths();
  // Clusters of more blocks than this are reported to the refusal handler before they hang under
  // the process mask or the ceiling; 0: not looked at. Only where the descriptor's cluster field is
  // known (V04_00).
  void set_largest_cluster(std::uint32_t blocks) { own_largest_cluster_.store(blocks); }
  // Reads that number from elsewhere, for as long as the process lives.
  void share_largest_cluster(std::atomic<std::uint32_t>* blocks) { largest_cluster_.store(blocks); }
  // What is loaded is looked at, and no kernel of it launches others: descriptors need not tell.
  void know_launchers(bool known) { launchers_known_.store(known); }
  // Every launch gets this memory synchronisation domain (0 to 3), whatever its stream or program
  // asks for; those that cannot are counted. Nothing: launches keep theirs.
  void set_sync_domain(std::optional<std::uint32_t> domain) {
    sync_domain_.store(domain.value_or(no_sync_domain));
  }
  // Learns the layout from the first descriptor that passes, of a card of this capability.
  void expect(gpu::ComputeCapability capability);
  // `watch` sees every call of the driver's functions, inside the callback, at its entry, where it
  // may answer it, and as it leaves. Where a call cannot be shown, the refusal handler is called.
  // So it is for a launch that no such call announced, and for one that a call made unseen.
  // missing_capability where the driver would not show a call of a known function.
  Result<void> watch_calls(void (*watch)(const DriverCall& call));
  // The same of those functions alone that do one of these (driver/functions.hpp).
  Result<void> watch_some_calls(void (*watch)(const DriverCall& call), std::uint32_t one_of);
  // Called, inside the callback, if a launch cannot be confined although a mask is wanted. If the
  // handler returns, a launch with an empty mask goes on under the ceiling alone, and other
  // launches go on unconfined.
  void set_refusal_handler(void (*handler)(const char* message)) { refusal_.store(handler); }
  // Called, inside the callback, with the first launch under each further mask of the ceiling;
  // threads that launch at the same time may call it more than once.
  void set_new_mask_handler(void (*handler)()) { new_mask_.store(handler); }

 private:
  LaunchHook() = default;
  static LaunchHook& instance();
  static void callback(void* user, int domain, int id, const void* params);
  void on_function(int id, const void* params);
  bool show_call(int id, const void* params);
  void on_built(void* descriptor, const void* params);
  void on_launch(void* descriptor, const void* stream);
  void on_graph_node(const void* descriptor);
  void on_graph_launch(const void* graph);
  [[nodiscard]] HardwareMask mask_of_graph() const;
  void put_mask(const DescriptorLayout& layout, void* descriptor, const void* stream,
                LaunchCounters& counters);
  void put_domain(const DescriptorLayout& layout, void* descriptor, LaunchCounters& counters);
  void check_clusters(const DescriptorLayout& layout, const void* descriptor,
                      LaunchCounters& counters);
  bool find_ceiling(HardwareMask& mask, std::uint32_t* number = nullptr) const;
  void count_masked_launch(std::uint32_t mask_number);
  void look_for_call();
  void note_call(int id, const DriverCall& call);
  // The masks of a launch. They are kept together because WantedMasks points to them.
  struct Found;
  void find_set(const void* stream, Found& found) const;  // all but the driver's own
  [[nodiscard]] bool has_set(const void* stream) const;
  void find_wanted(const DescriptorLayout& layout, const void* descriptor, const void* stream,
                   Found& found) const;
  void not_understood(const char* what);
  const DescriptorLayout* layout_for(const void* descriptor);
  void report(const char* message);
  Result<void> subscribe(GetExportTable get_table, const std::string& version, Scope scope);

  SharedMask own_mask_;
  LaunchCounters own_counters_;
  LaunchStreams streams_;
  GraphMasks graphs_;
  std::atomic<SharedMask*> mask_{&own_mask_};
  std::atomic<const SharedMask*> ceiling_{nullptr};
  std::atomic<MaskHistory*> history_{nullptr};
  std::atomic<LaunchCounters*> counters_{&own_counters_};
  std::atomic<const DescriptorLayout*> layout_{nullptr};
  std::atomic<void (*)(const char*)> refusal_{nullptr};
  std::atomic<void (*)()> new_mask_{nullptr};
  std::atomic<std::uint32_t> last_mask_{1};  // number of the last one that a launch had
  std::atomic<void (*)(const DriverCall&)> watch_{nullptr};
  static constexpr std::uint32_t no_sync_domain = ~std::uint32_t{0};
  std::atomic<std::uint32_t> sync_domain_{no_sync_domain};
  std::atomic<std::uint32_t> own_largest_cluster_{0};
  std::atomic<std::atomic<std::uint32_t>*> largest_cluster_{&own_largest_cluster_};
  std::atomic<bool> watches_all_{false};
  std::atomic<bool> any_capture_{false};  // of all calls that were watched
  std::atomic<bool> learning_{false};
  std::atomic<bool> counts_nodes_{false};
  std::atomic<bool> launchers_known_{false};
  gpu::ComputeCapability expected_;
  CallbackTable table_;
  bool subscribed_ = false;
};

}  // namespace demarc::cuda
