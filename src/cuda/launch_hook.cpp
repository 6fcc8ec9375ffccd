#include "demarc/cuda/launch_hook.hpp"

#include <iterator>
#include <mutex>

namespace demarc::cuda {
namespace {

constexpr CuUuid callback_table_id = {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd,
                                       0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b}};
// Domain 0xb, ids: 1 a descriptor was built; 3 a kept descriptor of a graph is about to be used; 2
// the launch is complete.
constexpr int launch_domain = 0xb;
constexpr int descriptor_built = 1;
constexpr int launch_complete = 2;
constexpr int graph_node = 3;
constexpr std::size_t descriptor_index = 4;  // in 8-byte elements of the parameters
constexpr std::uint32_t least_params_bytes = 40;

// Domain 6: entry to and exit from the driver's functions, numbered as in CUPTI's
// cupti_driver_cbid.h. Element 7 of the parameters points to the function's arguments, element 10
// holds the number and, above, 0 on entry and 1 on exit (seen on CUDA 13.0).
constexpr int function_domain = 6;
constexpr std::size_t arguments_index = 7;
constexpr std::size_t site_index = 10;
constexpr std::uint32_t least_function_params_bytes = 88;
constexpr int plain_launches[] = {307, 442, 477, 478};  // cuLaunchKernel, cooperative, and _ptsz
constexpr int extended_launches[] = {652, 653};         // cuLaunchKernelEx
constexpr int graph_launches[] = {514, 515};            // cuGraphLaunch
constexpr std::size_t stream_of_plain_launch = 40;      // bytes into the arguments
constexpr std::size_t stream_of_config = 32;            // bytes into CUlaunchConfig

constexpr std::size_t subscribe_entry = 3;
constexpr std::size_t enable_entry = 6;

using Callback = void (*)(void* user, int domain, int id, const void* params);
using SubscribeFunction = CuResult (*)(std::uint32_t* handle, Callback callback, void* user);

// One launching thread's share of the hook. Trivial, so that reading it inside the callback costs
// no initialisation.
struct ThreadState {
  HardwareMask next;
  HardwareMask last;
  gpu::ComputeCapability capability;
  std::uint32_t launches = 0;
  LaunchPath path = LaunchPath::unknown;
  bool counts = true;
  bool next_set = false;
  bool last_enabled = false;
  bool probing = false;
  bool probe_unknown = false;
  const DescriptorLayout* probed = nullptr;
};
constinit thread_local ThreadState thread_state;
thread_local std::string thread_probe_error;

bool is_one_of(int id, const int* begin, const int* end) {
  for (; begin != end; ++begin) {
    if (*begin == id) return true;
  }
  return false;
}

LaunchPath path_of_stream(const char* at) {
  // 0, 1 and 2 stand for the default streams.
  const auto stream = reinterpret_cast<std::uintptr_t>(*reinterpret_cast<void* const*>(at));
  return stream <= 2 ? LaunchPath::default_stream : LaunchPath::stream;
}

void note_function(int id, const void* params) {
  if (*static_cast<const std::uint32_t*>(params) < least_function_params_bytes) return;
  const bool leaving = (static_cast<const std::uint64_t*>(params)[site_index] >> 32) != 0;
  if (leaving) {
    thread_state.path = LaunchPath::unknown;
    return;
  }
  const auto* arguments = static_cast<const char* const*>(params)[arguments_index];
  if (arguments == nullptr) return;
  if (is_one_of(id, std::begin(graph_launches), std::end(graph_launches))) {
    thread_state.path = LaunchPath::graph;
  } else if (is_one_of(id, std::begin(plain_launches), std::end(plain_launches))) {
    thread_state.path = path_of_stream(arguments + stream_of_plain_launch);
  } else if (const char* config = *reinterpret_cast<const char* const*>(arguments)) {
    thread_state.path = path_of_stream(config + stream_of_config);
  }
}

void add_to(std::array<std::atomic<std::uint64_t>, launch_paths>& counters,
            std::uint64_t count = 1) {
  if (!thread_state.counts) return;
  counters[static_cast<std::size_t>(thread_state.path)].fetch_add(count, std::memory_order_relaxed);
}

}  // namespace

const char* to_string(LaunchPath path) {
  switch (path) {
    case LaunchPath::default_stream:
      return "default stream";
    case LaunchPath::stream:
      return "stream";
    case LaunchPath::graph:
      return "graph";
    case LaunchPath::unknown:
      break;
  }
  return "unknown";
}

std::uint64_t LaunchCounters::seen() const {
  std::uint64_t sum = 0;
  for (std::size_t p = 0; p < launch_paths; ++p) sum += unmasked[p] + masked[p] + refused[p];
  return sum;
}

LaunchHook& LaunchHook::instance() {
  static LaunchHook hook;
  return hook;
}

Result<LaunchHook*> LaunchHook::install(const Driver& driver) {
  return install(driver.api().cuGetExportTable, driver.driver_version());
}

Result<LaunchHook*> LaunchHook::install(GetExportTable get_table, const std::string& version) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  LaunchHook& hook = instance();
  if (!hook.subscribed_) DEMARC_CHECK(hook.subscribe(get_table, version));
  return &hook;
}

Result<void> LaunchHook::subscribe(GetExportTable get_table, const std::string& version) {
  const void* table = nullptr;
  if (get_table == nullptr || get_table(&table, &callback_table_id) != cu_success ||
      table == nullptr) {
    return missing_capability(
        "driver {} does not offer the launch callback that masks need; use --mode green", version);
  }
  // Entry 0 of an export table is its size in bytes (0x60 on CUDA 13.0).
  const auto bytes = *static_cast<const std::size_t*>(table);
  if (bytes < (enable_entry + 1) * sizeof(void*) || bytes > 4096) {
    return missing_capability(
        "driver {}: the callback table has {} bytes, which is not a layout known to Demarc; use "
        "--mode green",
        version, bytes);
  }
  const auto* entries = static_cast<void* const*>(table);
  const auto subscribe = reinterpret_cast<SubscribeFunction>(entries[subscribe_entry]);
  enable_ = reinterpret_cast<EnableFunction>(entries[enable_entry]);
  if (const CuResult code = subscribe(&handle_, &LaunchHook::callback, this); code != cu_success) {
    return missing_capability(
        "driver {} refuses the launch callback (error {}); another tool, such as a profiler, may "
        "hold it",
        version, code);
  }
  for (const int id : {descriptor_built, launch_complete, graph_node}) {
    if (const CuResult code = enable_(1, handle_, launch_domain, id); code != cu_success) {
      return missing_capability("driver {} refuses to enable the launch callback {} (error {})",
                                version, id, code);
    }
  }
  subscribed_ = true;
  return {};
}

Result<void> LaunchHook::count_paths() {
  const auto enable_all = [this](const int* begin, const int* end) -> Result<void> {
    for (; begin != end; ++begin) {
      if (const CuResult code = enable_(1, handle_, function_domain, *begin); code != cu_success) {
        return missing_capability("the driver refuses the callback of function {} (error {})",
                                  *begin, code);
      }
    }
    return {};
  };
  DEMARC_CHECK(enable_all(std::begin(plain_launches), std::end(plain_launches)));
  DEMARC_CHECK(enable_all(std::begin(extended_launches), std::end(extended_launches)));
  return enable_all(std::begin(graph_launches), std::end(graph_launches));
}

void LaunchHook::use_storage(SharedMask* mask, LaunchCounters* counters) {
  mask_.store(mask);
  counters_.store(counters);
}

void LaunchHook::callback(void* user, int domain, int id, const void* params) {
  if (params == nullptr) return;
  if (domain == function_domain) {
    note_function(id, params);
    return;
  }
  if (domain != launch_domain) return;
  if (id == launch_complete) {
    thread_state.next_set = false;
    return;
  }
  if (*static_cast<const std::uint32_t*>(params) < least_params_bytes) return;
  void* descriptor = static_cast<void* const*>(params)[descriptor_index];
  if (descriptor == nullptr) return;
  auto* hook = static_cast<LaunchHook*>(user);
  if (id == graph_node) {
    hook->on_graph_node(descriptor);
    return;
  }
  // A graph's descriptor passes when it is built and again before it is used: counted then.
  thread_state.counts = thread_state.path != LaunchPath::graph;
  hook->on_launch(descriptor);
}

const DescriptorLayout* LaunchHook::layout_for(const void* descriptor) {
  ThreadState& state = thread_state;
  if (state.probing || learning_.load(std::memory_order_relaxed)) {
    const auto found = find_layout(descriptor, state.probing ? state.capability : expected_);
    if (state.probing) {
      state.probed = found ? *found : nullptr;
      state.probe_unknown = !found;
      if (!found) thread_probe_error = found.error().message;
      state.probing = false;
      return state.probed;
    }
    if (found) {
      layout_.store(*found, std::memory_order_release);
      learning_.store(false);
    }
  }
  const DescriptorLayout* layout = layout_.load(std::memory_order_acquire);
  return layout != nullptr && version_matches(*layout, descriptor) ? layout : nullptr;
}

void LaunchHook::on_launch(void* descriptor) {
  ++thread_state.launches;
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  if (const DescriptorLayout* layout = layout_for(descriptor)) {
    put_mask(*layout, descriptor, counters);
    return;
  }
  HardwareMask ignored;
  if (!thread_state.next_set && !mask_.load(std::memory_order_relaxed)->load(ignored)) {
    add_to(counters.unmasked);
    return;
  }
  add_to(counters.refused);
  report("a launch with a task descriptor of an unknown version cannot be confined");
}

void LaunchHook::put_mask(const DescriptorLayout& layout, void* descriptor,
                          LaunchCounters& counters) {
  ThreadState& state = thread_state;
  state.last = read_mask(layout, descriptor);
  state.last_enabled = mask_enabled(layout, descriptor);
  HardwareMask process;
  const bool of_stream = state.last.any() && !state.last.ours();
  if (state.next_set) {
    write_mask(layout, descriptor, state.next);
  } else if (of_stream) {
    // The stream's own mask is finer than the process's.
  } else if (mask_.load(std::memory_order_relaxed)->load(process)) {
    const std::uint32_t largest = largest_cluster_.load()->load(std::memory_order_relaxed);
    if (largest != 0 && launch_size(layout, descriptor).cluster_blocks > largest) {
      counters.unsafe_clusters.fetch_add(1, std::memory_order_relaxed);
      report(
          "a launch with thread-block clusters that no GPC of the partition can host would hang; "
          "give the partition more TPCs of one GPC");
    }
    write_mask(layout, descriptor, process);
  } else {
    if (state.last.any()) clear_mask(layout, descriptor);
    add_to(counters.unmasked);
    return;
  }
  add_to(counters.masked);
  add_to(counters.masked_blocks, launch_size(layout, descriptor).blocks);
}

// The hardware has its copy already: nothing can be changed here, only looked at.
void LaunchHook::on_graph_node(const void* descriptor) {
  thread_state.counts = thread_state.path == LaunchPath::graph;
  const DescriptorLayout* layout = layout_for(descriptor);
  if (layout == nullptr) return;
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  const HardwareMask kept = read_mask(*layout, descriptor);
  HardwareMask process;
  const bool wanted = mask_.load(std::memory_order_relaxed)->load(process);
  const bool inside =
      kept.any() && (!kept.ours() || thread_state.next_set || (wanted && kept == process));
  add_to(inside ? counters.masked : counters.unmasked);
  if (inside) add_to(counters.masked_blocks, launch_size(*layout, descriptor).blocks);
}

void LaunchHook::report(const char* message) {
  if (auto* handler = refusal_.load()) handler(message);
}

void LaunchHook::expect(gpu::ComputeCapability capability) {
  expected_ = capability;
  learning_.store(true);
}

void LaunchHook::begin_probe(gpu::ComputeCapability capability) {
  thread_state.capability = capability;
  thread_state.probed = nullptr;
  thread_state.probe_unknown = false;
  thread_state.probing = true;
}

Result<void> LaunchHook::end_probe() {
  ThreadState& state = thread_state;
  if (state.probing) {
    state.probing = false;
    return missing_capability(
        "launches do not pass the driver's callback here, so masks cannot be set; use --mode "
        "green");
  }
  if (state.probe_unknown) return missing_capability("{}", thread_probe_error);
  layout_.store(state.probed, std::memory_order_release);
  return {};
}

void LaunchHook::set_process_mask(const std::optional<HardwareMask>& mask) {
  mask_.load()->store(mask.value_or(HardwareMask{}), mask.has_value());
}

std::optional<HardwareMask> LaunchHook::process_mask() const {
  HardwareMask mask;
  if (!mask_.load()->load(mask)) return std::nullopt;
  return mask;
}

void LaunchHook::set_next_mask(const std::optional<HardwareMask>& mask) {
  thread_state.next_set = mask.has_value();
  if (mask) thread_state.next = *mask;
}

bool LaunchHook::next_mask_pending() const {
  return thread_state.next_set;
}

void LaunchHook::clear_last() {
  thread_state.launches = 0;
}

std::optional<LaunchHook::Seen> LaunchHook::last() const {
  if (thread_state.launches == 0) return std::nullopt;
  return Seen{thread_state.last, thread_state.last_enabled, thread_state.launches};
}

}  // namespace demarc::cuda
