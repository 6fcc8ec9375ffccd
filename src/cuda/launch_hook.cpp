#include "demarc/cuda/launch_hook.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "function_calls.hpp"

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
// In 8-byte elements of the parameters. Where the stream stands is learned, see learn_stream().
constexpr std::size_t descriptor_index = 4;
constexpr std::uint32_t least_params_bytes = 40;
constexpr std::uint32_t most_params_bytes = 256;

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
  const void* graph_stream = nullptr;  // of the graph launch under way
  CuStream wanted_stream = nullptr;    // whose place in the parameters is looked for
  LaunchHook::StreamPlace found_place;
};
// Read in every launch: at a fixed place of the thread's own block, without a call. Such blocks
// have room to spare for libraries that are loaded late.
constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
thread_local std::string thread_probe_error;

const void* object_of(CuStream stream) {
  return *reinterpret_cast<void* const*>(stream);
}

bool is_default(CuStream stream) {
  // 0, 1 and 2 stand for the default streams.
  return reinterpret_cast<std::uintptr_t>(stream) <= 2;
}

// A descriptor farther than this from the start of the stream's object is not a part of it.
constexpr std::ptrdiff_t largest_object = 16384;

LaunchHook::StreamPlace find_stream(const void* params, const char* descriptor, CuStream stream) {
  using Kind = LaunchHook::StreamPlace::Kind;
  const auto* words = static_cast<const void* const*>(params);
  const std::size_t count =
      std::min(*static_cast<const std::uint32_t*>(params), most_params_bytes) / sizeof(void*);
  for (std::size_t i = 1; i < count; ++i) {
    if (i != descriptor_index && words[i] == stream) {
      return {Kind::element, static_cast<std::uint32_t>(i)};
    }
  }
  const std::ptrdiff_t distance = descriptor - static_cast<const char*>(object_of(stream));
  if (distance > 0 && distance < largest_object) {
    return {Kind::in_object, static_cast<std::uint32_t>(distance)};
  }
  return {};
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

Result<LaunchHook*> LaunchHook::install(GetExportTable get_table, const std::string& version,
                                        Scope scope) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  LaunchHook& hook = instance();
  if (!hook.subscribed_) DEMARC_CHECK(hook.subscribe(get_table, version, scope));
  return &hook;
}

Result<void> LaunchHook::subscribe(GetExportTable get_table, const std::string& version,
                                   Scope scope) {
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
  for (const int id : {descriptor_built, launch_complete}) {
    // Only masks of the next launch need to know when that launch is done.
    if (id == launch_complete && scope == Scope::process) continue;
    if (const CuResult code = enable_(1, handle_, launch_domain, id); code != cu_success) {
      return missing_capability("driver {} refuses to enable the launch callback {} (error {})",
                                version, id, code);
    }
  }
  DEMARC_CHECK(watch_functions(stream_and_graph_functions()));
  subscribed_ = true;
  return {};
}

Result<void> LaunchHook::watch_functions(std::span<const int> ids) {
  for (const int id : ids) {
    if (const CuResult code = enable_(1, handle_, function_domain, id); code != cu_success) {
      return missing_capability("the driver refuses the callback of function {} (error {})", id,
                                code);
    }
  }
  return {};
}

Result<void> LaunchHook::count_paths() {
  if (const CuResult code = enable_(1, handle_, launch_domain, graph_node); code != cu_success) {
    return missing_capability("the driver refuses the callback of graph nodes (error {})", code);
  }
  counts_nodes_.store(true);
  return watch_functions(launch_functions());
}

void LaunchHook::use_storage(SharedMask* mask, LaunchCounters* counters) {
  mask_.store(mask);
  counters_.store(counters);
}

void LaunchHook::callback(void* user, int domain, int id, const void* params) {
  if (params == nullptr) return;
  auto* hook = static_cast<LaunchHook*>(user);
  if (domain == function_domain) {
    hook->on_function(id, params);
    return;
  }
  if (domain != launch_domain) return;
  if (id == launch_complete) {
    thread_state.next_set = false;
    return;
  }
  const auto bytes = *static_cast<const std::uint32_t*>(params);
  if (bytes < least_params_bytes) return;
  const auto* words = static_cast<void* const*>(params);
  void* descriptor = words[descriptor_index];
  if (descriptor == nullptr) return;
  if (id == graph_node) {
    hook->on_graph_node(descriptor);
    return;
  }
  if (thread_state.wanted_stream != nullptr) {
    thread_state.found_place =
        find_stream(params, static_cast<const char*>(descriptor), thread_state.wanted_stream);
    thread_state.wanted_stream = nullptr;
  }
  // A graph's descriptor passes when it is built and, where nodes are counted, again before it is
  // used.
  thread_state.counts = thread_state.path != LaunchPath::graph || !hook->counts_nodes_.load();
  hook->on_launch(descriptor, thread_state.path == LaunchPath::graph
                                  ? thread_state.graph_stream
                                  : hook->stream_of(params, static_cast<char*>(descriptor)));
}

const void* LaunchHook::stream_of(const void* params, const char* descriptor) const {
  const StreamPlace place = stream_place_.load(std::memory_order_relaxed);
  switch (place.kind) {
    case StreamPlace::Kind::in_object:
      return descriptor - place.value;
    case StreamPlace::Kind::element:
      if (place.value < *static_cast<const std::uint32_t*>(params) / sizeof(void*)) {
        return static_cast<const void* const*>(params)[place.value];
      }
      return nullptr;
    case StreamPlace::Kind::unknown:
      break;
  }
  return nullptr;
}

void LaunchHook::on_function(int id, const void* params) {
  const FunctionCall call = read_function_call(id, params);
  ThreadState& state = thread_state;
  switch (call.kind) {
    case FunctionCall::Kind::stream_gone:
      // The driver gives the same object to a later stream, with what was written into it.
      forget_stream(call.stream);
      return;
    case FunctionCall::Kind::graph_gone:
      graphs_.erase(call.graph);
      return;
    case FunctionCall::Kind::launch:
      state.path = is_default(call.stream) ? LaunchPath::default_stream : LaunchPath::stream;
      if (call.leaving) state.path = LaunchPath::unknown;
      return;
    case FunctionCall::Kind::graph_launch:
      state.path = call.leaving ? LaunchPath::unknown : LaunchPath::graph;
      if (!call.leaving) on_graph_launch(call.graph, call.stream);
      return;
    case FunctionCall::Kind::other:
      return;
  }
}

// A graph that is launched for the first time is built now, under the mask wanted now.
void LaunchHook::on_graph_launch(const void* graph, CuStream stream) {
  thread_state.graph_stream = is_default(stream) ? nullptr : key_of(stream);
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  counters.graphs.fetch_add(1, std::memory_order_relaxed);
  HardwareMask wanted;
  HardwareMask kept;
  bool of_process = false;
  if (!find_mask(thread_state.graph_stream, wanted, of_process)) wanted = HardwareMask{};
  if (!graphs_.find(graph, kept)) {
    graphs_.set(graph, wanted);
  } else if (kept != wanted) {
    counters.stale_graphs.fetch_add(1, std::memory_order_relaxed);
  }
}

const void* LaunchHook::key_of(CuStream stream) const {
  const bool in_object =
      stream_place_.load(std::memory_order_relaxed).kind == StreamPlace::Kind::in_object;
  return in_object ? object_of(stream) : stream;
}

void LaunchHook::forget_stream(CuStream stream) {
  if (is_default(stream)) return;
  streams_.erase(key_of(stream));
  {
    const std::scoped_lock lock(shown_mutex_);
    shown_.erase(stream);
  }
  if (auto* handler = stream_gone_.load(std::memory_order_acquire)) handler(stream);
}

void LaunchHook::begin_learning_streams(CuStream stream) {
  thread_state.wanted_stream = stream;
  thread_state.found_place = {};
}

LaunchHook::StreamPlace LaunchHook::end_learning_streams() {
  thread_state.wanted_stream = nullptr;
  return thread_state.found_place;
}

std::optional<bool> LaunchHook::shows(CuStream stream) const {
  const std::scoped_lock lock(shown_mutex_);
  const auto found = shown_.find(stream);
  if (found == shown_.end()) return std::nullopt;
  return found->second;
}

void LaunchHook::remember_shows(CuStream stream, bool shows) {
  const std::scoped_lock lock(shown_mutex_);
  shown_[stream] = shows;
}

Result<void> LaunchHook::set_stream_mask(CuStream stream, const HardwareMask& mask) {
  if (streams_.set(key_of(stream), mask)) return {};
  return missing_capability("{} streams have a mask already", StreamTable::most_streams);
}

void LaunchHook::clear_stream_mask(CuStream stream) {
  streams_.erase(key_of(stream));
}

std::optional<HardwareMask> LaunchHook::stream_mask(CuStream stream) const {
  HardwareMask mask;
  if (!streams_.find(key_of(stream), mask)) return std::nullopt;
  return mask;
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

// The mask of the finest level that has one, the driver's own of streams aside.
bool LaunchHook::find_mask(const void* stream, HardwareMask& mask, bool& of_process) const {
  of_process = false;
  if (thread_state.next_set) {
    mask = thread_state.next;
    return true;
  }
  if (stream != nullptr && streams_.find(stream, mask)) return true;
  of_process = true;
  return mask_.load(std::memory_order_relaxed)->load(mask);
}

void LaunchHook::on_launch(void* descriptor, const void* stream) {
  ++thread_state.launches;
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  if (const DescriptorLayout* layout = layout_for(descriptor)) {
    put_mask(*layout, descriptor, stream, counters);
    return;
  }
  HardwareMask ignored;
  bool of_process = false;
  if (!find_mask(stream, ignored, of_process)) {
    add_to(counters.unmasked);
    return;
  }
  add_to(counters.refused);
  report("a launch with a task descriptor of an unknown version cannot be confined");
}

void LaunchHook::put_mask(const DescriptorLayout& layout, void* descriptor, const void* stream,
                          LaunchCounters& counters) {
  ThreadState& state = thread_state;
  if (may_launch(layout, descriptor)) counters.launchers.fetch_add(1, std::memory_order_relaxed);
  state.last = read_mask(layout, descriptor);
  state.last_enabled = mask_enabled(layout, descriptor);
  HardwareMask wanted;
  bool of_process = false;
  const bool found = find_mask(stream, wanted, of_process);
  // The mask the driver knows of the stream is finer than the process's.
  const bool of_driver = state.last.any() && !state.last.ours() && (!found || of_process);
  if (found && !of_driver) {
    if (of_process) check_clusters(layout, descriptor, counters);
    write_mask(layout, descriptor, wanted);
  } else if (!of_driver) {
    if (state.last.any()) clear_mask(layout, descriptor);
    add_to(counters.unmasked);
    return;
  }
  if (!counts_masked_.load(std::memory_order_relaxed)) return;
  add_to(counters.masked);
  add_to(counters.masked_blocks, launch_size(layout, descriptor).blocks);
}

void LaunchHook::check_clusters(const DescriptorLayout& layout, const void* descriptor,
                                LaunchCounters& counters) {
  const std::uint32_t largest = largest_cluster_.load()->load(std::memory_order_relaxed);
  if (largest == 0) return;
  const std::uint32_t blocks = launch_size(layout, descriptor).cluster_blocks;
  if (blocks <= largest) return;
  counters.unsafe_clusters.fetch_add(1, std::memory_order_relaxed);
  char message[200];
  std::snprintf(message, sizeof message,
                "a launch with thread-block clusters of %u blocks would hang: no GPC of the "
                "partition has more than %u SMs; take whole GPCs (--gpcs)",
                blocks, largest);
  report(message);
}

// The hardware has its copy already: nothing can be changed here, only looked at.
void LaunchHook::on_graph_node(const void* descriptor) {
  thread_state.counts = thread_state.path == LaunchPath::graph;
  const DescriptorLayout* layout = layout_for(descriptor);
  if (layout == nullptr) return;
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  const HardwareMask kept = read_mask(*layout, descriptor);
  HardwareMask wanted;
  bool of_process = false;
  const bool found = find_mask(thread_state.graph_stream, wanted, of_process);
  const bool of_driver = kept.any() && !kept.ours();
  const bool inside = of_driver ? !found || of_process : found && kept == wanted;
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
