// The launch callback: subscription, and what each callback does to a descriptor and the counters.
#include "demarc/driver/launch_hook.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <vector>

#include "callback_params.hpp"
#include "demarc/driver/driver_call.hpp"
#include "demarc/driver/function_calls.hpp"
#include "demarc/driver/functions.hpp"
#include "masks/mask_choice.hpp"

namespace demarc::cuda {
namespace {

// Domain 0xb, ids: 1 a descriptor was built; 3 a kept descriptor of a graph is about to be used; 2
// the launch is complete.
constexpr int launch_domain = 0xb;
constexpr int descriptor_built = 1;
constexpr int launch_complete = 2;
constexpr int graph_node = 3;

// One launching thread's share of the hook. Trivial, so that reading it inside the callback costs
// no initialisation.
struct ThreadState {
  HardwareMask next;
  HardwareMask last;
  gpu::ComputeCapability capability;
  std::uint32_t launches = 0;
  LaunchPath path = LaunchPath::unknown;
  bool counts{};
  bool only_builds{};  // a graph, for later launches
  bool next_set = false;
  bool last_enabled{};
  std::optional<std::uint32_t> last_domain;
  bool probing = false;
  const DescriptorLayout* probed = nullptr;
  const void* graph_stream = nullptr;  // the stream into which a graph is launched or uploaded now
  HardwareMask graph_mask;             // the graph has this mask if it is built now
  // The outermost call of the driver that is under way, if all are watched; 0: none.
  int call = 0;
  const void* call_arguments = nullptr;
  std::uint32_t call_launches = 0;  // `launches` as it began
};
// Read in every launch: at a fixed place of the thread's own block, without a call. Such blocks
// have room to spare for libraries that are loaded late.
constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));
thread_local std::string thread_probe_error;

void add_to(std::array<std::atomic<std::uint64_t>, launch_paths>& counters,
            std::uint64_t count = 1) {
  if (!thread_state.counts) return;
  counters[static_cast<std::size_t>(thread_state.path)].fetch_add(count, std::memory_order_relaxed);
}

bool launches_nothing(const DescriptorLayout& layout, const void* descriptor) {
  return layout.grid_offset >= 0 && launch_size(layout, descriptor).blocks == 0;
}

void count_other_domain(LaunchCounters& counters) {
  if (thread_state.counts) counters.other_domains.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// For ever: launches may come from the destructors of others.
LaunchHook& LaunchHook::instance() {
  static LaunchHook& hook = *new LaunchHook;
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
  DEMARC_CHECK(table_.subscribe(get_table, version, &LaunchHook::callback, this));
  // Only masks of the next launch need to know when that launch is done.
  constexpr int ids[] = {descriptor_built, launch_complete};
  DEMARC_CHECK(table_.enable(launch_domain, std::span(ids, scope == Scope::process ? 1U : 2U)));
  DEMARC_CHECK(table_.enable_existing(stream_and_graph_functions()));
  subscribed_ = true;
  return {};
}

Result<void> LaunchHook::count_paths() {
  constexpr int ids[] = {graph_node};
  DEMARC_CHECK(table_.enable(launch_domain, ids));
  counts_nodes_.store(true);
  return table_.enable(function_domain, launch_functions());
}

Result<void> LaunchHook::watch_calls(void (*watch)(const DriverCall& call)) {
  watch_.store(watch);
  watches_all_.store(watch != nullptr);
  return table_.enable_functions();
}

Result<void> LaunchHook::watch_some_calls(void (*watch)(const DriverCall& call),
                                          std::uint32_t one_of) {
  watch_.store(watch);
  return table_.enable_existing(numbers_of_functions(one_of));
}

void LaunchHook::use_storage(SharedMask* mask, LaunchCounters* counters) {
  mask_.store(mask == nullptr ? &own_mask_ : mask);
  counters_.store(counters == nullptr ? &own_counters_ : counters);
}

// The masks that WantedMasks points to.
struct LaunchHook::Found {
  HardwareMask own;
  HardwareMask driver;
  HardwareMask ceiling;
  std::uint32_t ceiling_number = 0;
  WantedMasks wanted;
};

void LaunchHook::callback(void* user, int domain, int id, const void* params) {
  auto* hook = static_cast<LaunchHook*>(user);
  if (domain == function_domain) hook->on_function(id, params);
  if (domain != launch_domain) return;
  if (id == launch_complete) {
    thread_state.next_set = false;
    return;
  }
  if (params == nullptr || params_bytes(params) < least_params_bytes) {
    hook->not_understood("a launch whose callback has unknown parameters");
    return;
  }
  void* descriptor = static_cast<void* const*>(params)[descriptor_index];
  if (descriptor == nullptr) {
    hook->not_understood("a launch whose callback shows no task descriptor");
  } else if (id == graph_node) {
    hook->on_graph_node(descriptor);
  } else {
    hook->on_built(descriptor, params);
  }
}

void LaunchHook::on_built(void* descriptor, const void* params) {
  look_for_call();
  streams_.look(params, static_cast<const char*>(descriptor));
  const bool of_graph = thread_state.path == LaunchPath::graph;
  const void* stream = thread_state.graph_stream;
  if (!of_graph && !streams_.key_of_launch(params, static_cast<const char*>(descriptor), stream)) {
    not_understood("a launch whose callback does not show its stream");
  }
  // A graph's descriptor passes when it is built and, where nodes are counted, again before it is
  // used.
  thread_state.counts = !of_graph || !counts_nodes_.load();
  on_launch(descriptor, stream);
}

void LaunchHook::not_understood(const char* what) {
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  counters.misunderstood.fetch_add(1, std::memory_order_relaxed);
  if (!has_set(nullptr) && !streams_.any()) return;
  char message[160];
  std::snprintf(message, sizeof message, "%s: it cannot be confined", what);
  report(message);
}

// A launch by a private table of the driver's, or by a function whose calls are not shown: no call
// of the program was judged.
void LaunchHook::look_for_call() {
  if (!watches_all_.load(std::memory_order_relaxed) || thread_state.call != 0) return;
  counters_.load(std::memory_order_relaxed)->unannounced.fetch_add(1, std::memory_order_relaxed);
  report("a launch that no call of the driver announced: nothing says what it runs");
}

// Calls within others are their business: tools and the driver itself make them.
void LaunchHook::note_call(int id, const DriverCall& call) {
  ThreadState& state = thread_state;
  if (call.does(does::begins_capture)) any_capture_.store(true, std::memory_order_relaxed);
  if (!call.leaving()) {
    if (state.call != 0) return;
    state.call = id;
    state.call_arguments = call.arguments();
    state.call_launches = state.launches;
  } else if (state.call == id && state.call_arguments == call.arguments()) {
    state.call = 0;
    // Captured launches make no descriptors, and nothing here tells which these are.
    const bool launched = call.does(does::launches) && call.result() == cu_success &&
                          !any_capture_.load(std::memory_order_relaxed);
    if (launched && state.launches == state.call_launches) {
      counters_.load(std::memory_order_relaxed)->unseen.fetch_add(1, std::memory_order_relaxed);
      report("a launch whose descriptor the hook did not see: something has switched it off");
    }
  }
}

// True where it was answered: the driver carries nothing out.
bool LaunchHook::show_call(int id, const void* params) {
  auto* watch = watch_.load(std::memory_order_relaxed);
  if (watch == nullptr) return false;
  const auto call = DriverCall::read(params);
  if (!call) {
    if (!watches_all_.load(std::memory_order_relaxed)) return false;
    report("a call of the driver whose callback has unknown parameters");
    return false;
  }
  const bool all = watches_all_.load(std::memory_order_relaxed);
  if (all) note_call(id, *call);
  watch(*call);
  if (call->leaving() || !call->answered()) return call->answered();
  if (all && thread_state.call == id && thread_state.call_arguments == call->arguments()) {
    thread_state.call = 0;  // the driver does not tell that it is left
  }
  return true;
}

void LaunchHook::on_function(int id, const void* params) {
  if (show_call(id, params)) return;
  const FunctionCall call = read_function_call(id, params);
  ThreadState& state = thread_state;
  using Kind = FunctionCall::Kind;
  if (call.kind == Kind::unreadable) {
    not_understood("a call of the driver whose callback has unknown parameters");
  } else if (call.kind == Kind::stream_gone) {
    // The driver gives the same object to a later stream, with what was written into it.
    streams_.forget(call.stream);
  } else if (call.kind == Kind::graph_gone) {
    graphs_.forget(call.graph);
  } else if (call.kind == Kind::launch) {
    state.path = is_default_stream(call.stream) ? LaunchPath::default_stream : LaunchPath::stream;
    if (call.leaving) state.path = LaunchPath::unknown;
  } else if (call.kind == Kind::copy_or_fill) {
    state.path = call.leaving ? LaunchPath::unknown : LaunchPath::copy_or_fill;
  } else if (call.kind == Kind::graph_launch || call.kind == Kind::graph_upload) {
    const bool uploads = call.kind == Kind::graph_upload;
    state.path = call.leaving ? LaunchPath::unknown : LaunchPath::graph;
    state.only_builds = !call.leaving && uploads;
    const bool was_built = call.leaving && uploads && call.graph != nullptr;
    if (was_built) static_cast<void>(graphs_.at_launch(call.graph, state.graph_mask));
    if (call.leaving) return;
    state.graph_stream = is_default_stream(call.stream) ? nullptr : streams_.key_of(call.stream);
    state.graph_mask = mask_of_graph();
    if (uploads) counters_.load()->uploads.fetch_add(1, std::memory_order_relaxed);
    if (!uploads && call.graph != nullptr) on_graph_launch(call.graph);
  }
}

HardwareMask LaunchHook::mask_of_graph() const {
  Found found;
  find_set(thread_state.graph_stream, found);
  return choose_mask(found.wanted).mask;
}

// A graph that is launched for the first time, and was not uploaded, is built now.
void LaunchHook::on_graph_launch(const void* graph) {
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  counters.graphs.fetch_add(1, std::memory_order_relaxed);
  const HardwareMask& wanted = thread_state.graph_mask;
  const GraphMasks::Kept kept = graphs_.at_launch(graph, wanted);
  // Under a ceiling a graph may keep less than it would get now.
  HardwareMask ceiling;
  const bool holds = find_ceiling(ceiling) ? kept.mask.covers(ceiling) : kept.mask == wanted;
  if (!kept.known || !holds) counters.stale_graphs.fetch_add(1, std::memory_order_relaxed);
}

const DescriptorLayout* LaunchHook::layout_for(const void* descriptor) {
  ThreadState& state = thread_state;
  if (state.probing || learning_.load(std::memory_order_relaxed)) {
    const auto found = find_layout(descriptor, state.probing ? state.capability : expected_);
    if (state.probing) {
      state.probed = found ? *found : nullptr;
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

bool LaunchHook::find_ceiling(HardwareMask& mask, std::uint32_t* number) const {
  const SharedMask* ceiling = ceiling_.load(std::memory_order_relaxed);
  return ceiling != nullptr && ceiling->load(mask, number);
}

// In the block of its kind, and in that of its mask; 0: it was under no ceiling.
void LaunchHook::count_masked_launch(std::uint32_t mask_number) {
  add_to(counters_.load(std::memory_order_relaxed)->masked);
  MaskHistory* history = history_.load(std::memory_order_relaxed);
  if (history != nullptr && mask_number != 0 && thread_state.counts) history->count(mask_number);
  if (mask_number == 0 || mask_number == last_mask_.load(std::memory_order_relaxed)) return;
  last_mask_.store(mask_number, std::memory_order_relaxed);
  if (auto* const handler = new_mask_.load()) handler();
}

// The mask of the finest level that has one, the driver's own of streams aside, and the ceiling.
void LaunchHook::find_set(const void* stream, Found& found) const {
  const bool is_next = thread_state.next_set;
  if (is_next) found.own = thread_state.next;
  const bool is_finer = is_next || (stream != nullptr && streams_.find(stream, found.own));
  found.wanted.own_of_process = !is_finer;
  if (is_finer || mask_.load(std::memory_order_relaxed)->load(found.own)) {
    found.wanted.own = &found.own;
  }
  if (find_ceiling(found.ceiling, &found.ceiling_number)) found.wanted.ceiling = &found.ceiling;
}

bool LaunchHook::has_set(const void* stream) const {
  Found found;
  find_set(stream, found);
  return found.wanted.own != nullptr || found.wanted.ceiling != nullptr;
}

void LaunchHook::find_wanted(const DescriptorLayout& layout, const void* descriptor,
                             const void* stream, Found& found) const {
  find_set(stream, found);
  found.driver = read_mask(layout, descriptor);
  const bool of_driver = found.driver.any() && !found.driver.ours();
  if (of_driver && mask_enabled(layout, descriptor)) found.wanted.driver = &found.driver;
}

void LaunchHook::on_launch(void* descriptor, const void* stream) {
  ++thread_state.launches;
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  if (const DescriptorLayout* layout = layout_for(descriptor)) {
    put_domain(*layout, descriptor, counters);
    put_mask(*layout, descriptor, stream, counters);
    return;
  }
  if (sync_domain_.load(std::memory_order_relaxed) != no_sync_domain) count_other_domain(counters);
  if (!has_set(stream)) {
    add_to(counters.unmasked);
    return;
  }
  add_to(counters.refused);
  report("a launch with a task descriptor of an unknown version cannot be confined");
}

void LaunchHook::put_mask(const DescriptorLayout& layout, void* descriptor, const void* stream,
                          LaunchCounters& counters) {
  ThreadState& state = thread_state;
  if (launches_nothing(layout, descriptor)) state.counts = false;
  Found found;
  find_wanted(layout, descriptor, stream, found);
  if (may_launch(layout, descriptor)) {
    counters.launchers.fetch_add(1, std::memory_order_relaxed);
    if (found.wanted.ceiling != nullptr) {
      report("a kernel that may launch kernels, which would run outside of the partition");
    }
  }
  state.last = found.driver;
  state.last_enabled = mask_enabled(layout, descriptor);
  const MaskChoice choice = choose_mask(found.wanted);
  if (choice.kind == MaskChoice::Kind::none) {
    if (state.last.any()) clear_mask(layout, descriptor);
    add_to(counters.unmasked);
    return;
  }
  if (choice.kind != MaskChoice::Kind::keep) {
    if (found.wanted.ceiling != nullptr || found.wanted.own_of_process) {
      check_clusters(layout, descriptor, counters);
    }
    write_mask(layout, descriptor, choice.mask);
  }
  if (choice.kind == MaskChoice::Kind::empty) {
    counters.empty_masks.fetch_add(1, std::memory_order_relaxed);
    report("a launch has a mask of its own without any TPC of the partition");
  }
  if (!tells_launchers(layout) && !launchers_known_.load(std::memory_order_relaxed)) {
    counters.launchers_unknown.fetch_add(1, std::memory_order_relaxed);
  }
  count_masked_launch(found.ceiling_number);
  add_to(counters.masked_blocks, launch_size(layout, descriptor).blocks);
}

void LaunchHook::put_domain(const DescriptorLayout& layout, void* descriptor,
                            LaunchCounters& counters) {
  thread_state.last_domain = read_domain(layout, descriptor);
  const std::uint32_t domain = sync_domain_.load(std::memory_order_relaxed);
  if (domain == no_sync_domain) return;
  if (!write_domain(layout, descriptor, domain)) count_other_domain(counters);
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
  thread_state.counts = thread_state.path == LaunchPath::graph && !thread_state.only_builds;
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  const DescriptorLayout* layout = layout_for(descriptor);
  if (layout == nullptr) {
    add_to(counters.refused);
    return;
  }
  if (launches_nothing(*layout, descriptor)) thread_state.counts = false;
  Found found;
  find_wanted(*layout, descriptor, thread_state.graph_stream, found);
  const WantedMasks& wanted = found.wanted;
  const HardwareMask& kept = found.driver;
  const std::uint32_t domain = sync_domain_.load(std::memory_order_relaxed);
  if (domain != no_sync_domain && read_domain(*layout, descriptor) != domain) {
    count_other_domain(counters);
  }
  const bool enabled = mask_enabled(*layout, descriptor);
  const bool inside = wanted.ceiling != nullptr ? enabled && kept.covers(*wanted.ceiling)
                      : wanted.driver != nullptr
                          ? wanted.own == nullptr || wanted.own_of_process
                          : wanted.own != nullptr && enabled && kept == *wanted.own;
  if (!inside) {
    add_to(counters.unmasked);
    return;
  }
  count_masked_launch(found.ceiling_number);
  add_to(counters.masked_blocks, launch_size(*layout, descriptor).blocks);
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
  if (state.probed == nullptr) return missing_capability("{}", thread_probe_error);
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
  return Seen{thread_state.last, thread_state.last_enabled, thread_state.last_domain,
              thread_state.launches};
}

}  // namespace demarc::cuda
