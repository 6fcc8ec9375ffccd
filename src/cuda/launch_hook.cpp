#include "demarc/cuda/launch_hook.hpp"

#include <mutex>

namespace demarc::cuda {
namespace {

constexpr CuUuid callback_table_id = {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd,
                                       0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b}};
constexpr int launch_domain = 0xb;
constexpr int before_upload_id = 1;
constexpr std::size_t descriptor_index = 4;  // in 8-byte elements of the parameters
constexpr std::uint32_t least_params_bytes = 40;
constexpr std::size_t subscribe_entry = 3;
constexpr std::size_t enable_entry = 6;

using Callback = void (*)(void* user, int domain, int id, const void* params);
using SubscribeFunction = CuResult (*)(std::uint32_t* handle, Callback callback, void* user);
using EnableFunction = CuResult (*)(std::uint32_t on, std::uint32_t handle, int domain, int id);

// One launching thread's share of the hook. Trivial, so that reading it inside the callback costs
// no initialisation.
struct ThreadState {
  HardwareMask next;
  HardwareMask last;
  gpu::ComputeCapability capability;
  std::uint32_t launches = 0;
  bool next_set = false;
  bool last_enabled = false;
  bool probing = false;
  bool probe_unknown = false;
  const DescriptorLayout* probed = nullptr;
};
constinit thread_local ThreadState thread_state;
thread_local std::string thread_probe_error;

void add_one(std::atomic<std::uint64_t>& counter) {
  counter.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

void SharedMask::store(const HardwareMask& mask, bool active) {
  // One writer at a time: the odd version is taken by compare-and-swap.
  std::uint32_t version = version_.load(std::memory_order_relaxed);
  do {
    version &= ~std::uint32_t{1};
  } while (!version_.compare_exchange_weak(version, version + 1, std::memory_order_acq_rel));
  active_.store(active ? 1 : 0, std::memory_order_release);
  for (std::size_t i = 0; i < 4; ++i) words_[i].store(mask.disabled[i], std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

bool SharedMask::load(HardwareMask& mask) const {
  if (active_.load(std::memory_order_acquire) == 0 &&
      (version_.load(std::memory_order_acquire) & 1U) == 0) {
    return false;
  }
  while (true) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    const bool active = active_.load(std::memory_order_acquire) != 0;
    for (std::size_t i = 0; i < 4; ++i) {
      mask.disabled[i] = words_[i].load(std::memory_order_acquire);
    }
    if ((before & 1U) == 0 && version_.load(std::memory_order_acquire) == before) return active;
  }
}

LaunchHook& LaunchHook::instance() {
  static LaunchHook hook;
  return hook;
}

Result<LaunchHook*> LaunchHook::install(const Driver& driver) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  LaunchHook& hook = instance();
  if (!hook.subscribed_) DEMARC_CHECK(hook.subscribe(driver));
  return &hook;
}

Result<void> LaunchHook::subscribe(const Driver& driver) {
  const void* table = nullptr;
  if (driver.api().cuGetExportTable(&table, &callback_table_id) != cu_success || table == nullptr) {
    return missing_capability(
        "driver {} does not offer the launch callback that masks need; use --mode green",
        driver.driver_version());
  }
  // Entry 0 of an export table is its size in bytes.
  const auto bytes = *static_cast<const std::size_t*>(table);
  if (bytes < (enable_entry + 1) * sizeof(void*) || bytes > 4096) {
    return missing_capability(
        "driver {}: the callback table has {} bytes, which is not a layout known to Demarc; use "
        "--mode green",
        driver.driver_version(), bytes);
  }
  const auto* entries = static_cast<void* const*>(table);
  const auto subscribe = reinterpret_cast<SubscribeFunction>(entries[subscribe_entry]);
  const auto enable = reinterpret_cast<EnableFunction>(entries[enable_entry]);
  if (const CuResult code = subscribe(&handle_, &LaunchHook::callback, this); code != cu_success) {
    return missing_capability(
        "driver {} refuses the launch callback (error {}); another tool, such as a profiler, may "
        "hold it",
        driver.driver_version(), code);
  }
  if (const CuResult code = enable(1, handle_, launch_domain, before_upload_id);
      code != cu_success) {
    return missing_capability("driver {} refuses to enable the launch callback (error {})",
                              driver.driver_version(), code);
  }
  subscribed_ = true;
  return {};
}

void LaunchHook::use_storage(SharedMask* mask, LaunchCounters* counters) {
  mask_.store(mask);
  counters_.store(counters);
}

void LaunchHook::callback(void* user, int domain, int id, const void* params) {
  if (domain != launch_domain || id != before_upload_id || params == nullptr) return;
  if (*static_cast<const std::uint32_t*>(params) < least_params_bytes) return;
  void* descriptor = static_cast<void* const*>(params)[descriptor_index];
  if (descriptor != nullptr) static_cast<LaunchHook*>(user)->on_launch(descriptor);
}

void LaunchHook::on_launch(void* descriptor) {
  ThreadState& state = thread_state;
  LaunchCounters& counters = *counters_.load(std::memory_order_relaxed);
  ++state.launches;
  if (state.probing) {
    learn_layout(descriptor);
    return;
  }
  const DescriptorLayout* layout = layout_.load(std::memory_order_acquire);
  HardwareMask wanted;
  const bool process = mask_.load(std::memory_order_relaxed)->load(wanted);
  if (layout == nullptr || !version_matches(*layout, descriptor)) {
    refuse(counters, process);
    return;
  }
  state.last = read_mask(*layout, descriptor);
  state.last_enabled = mask_enabled(*layout, descriptor);
  if (state.next_set) {
    write_mask(*layout, descriptor, state.next);
    state.next_set = false;
    add_one(counters.next_masked);
  } else if (state.last.any()) {
    add_one(counters.stream_masked);
  } else if (process) {
    write_mask(*layout, descriptor, wanted);
    add_one(counters.process_masked);
  } else {
    add_one(counters.unmasked);
  }
}

void LaunchHook::learn_layout(const void* descriptor) {
  ThreadState& state = thread_state;
  const auto found = find_layout(descriptor, state.capability);
  state.probed = found ? *found : nullptr;
  state.probe_unknown = !found;
  if (!found) thread_probe_error = found.error().message;
  state.probing = false;
}

void LaunchHook::refuse(LaunchCounters& counters, bool process_mask_wanted) {
  if (!thread_state.next_set && !process_mask_wanted) {
    add_one(counters.unmasked);
    return;
  }
  thread_state.next_set = false;
  add_one(counters.refused);
  if (auto* handler = refusal_.load()) {
    handler("a launch with a task descriptor of an unknown version cannot be confined");
  }
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
