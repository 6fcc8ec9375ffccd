// Attaches a process to its tenant's lease and has its calls answered.
#include "process/tenant_process.hpp"

#include <pthread.h>

#include <utility>

#include "calls/device_calls.hpp"
#include "calls/own_calls.hpp"
#include "calls/relaxed_capture.hpp"
#include "calls/stack_figure.hpp"
#include "demarc/driver/driver_errors.hpp"
#include "demarc/guest/gpu_by_uuid.hpp"
#include "demarc/guest/mps_client.hpp"
#include "process/machine_code.hpp"

namespace demarc::cuda {
namespace {

// A process that was forked off has its parent's connection and tables, and a driver that works no
// more.
std::atomic<bool> forked_off{false};

void note_forks() {
  static const int noted = ::pthread_atfork(nullptr, nullptr, [] { forked_off.store(true); });
  static_cast<void>(noted);
}

// The context that a program has current stays so.
class KeptContext {
 public:
  explicit KeptContext(const DriverApi& api) : api_(api) { api_.cuCtxGetCurrent(&context_); }
  ~KeptContext() { api_.cuCtxSetCurrent(context_); }
  KeptContext(const KeptContext&) = delete;
  KeptContext& operator=(const KeptContext&) = delete;

 private:
  const DriverApi& api_;
  CuContext context_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<TenantProcess>> TenantProcess::attach(ControlBlock& block, Tell tell) {
  note_forks();
  DEMARC_TRY(lease::LeaseClient client, lease::LeaseClient::connect(block.lease_socket));
  DEMARC_TRY(lease::Attachment attachment, client.attach(block.lease_token));
  auto process = std::unique_ptr<TenantProcess>(
      new TenantProcess(std::move(client), std::move(attachment), block, std::move(tell)));
  if (block.allow_plain != 0) process->allow_plain();
  return process;
}

void TenantProcess::allow_plain() {
  const auto found = machine_code_in_process(block_.capability.number());
  if (!found) return;
  tell_(*found + ": it runs on memory without a colour");
  block_.counters.colored.plain.fetch_add(1);
  plain_.emplace(block_.record);
}

Result<lease::Extent> TenantProcess::take(std::uint64_t bytes) {
  const std::lock_guard lock(lent_);
  auto taken = client_.take(bytes);
  if (!taken) {
    // The program sees what it sees where memory is used up, and would not know why.
    if (client_.lost()) tell_(taken.error().message);
    return taken;
  }
  const OwnCalls own;
  const RelaxedStreamCapture relaxed(gpu_->api());
  if (auto mapped = map_taken(*taken); !mapped) {
    tell_(mapped.error().message);
    share_->hide(*taken);
    if (block_.windows == WindowUse::always) {
      if (auto left = share_->leave_arena(*taken); !left) tell_(left.error().message);
    }
    give_back(taken->first);
    return tl::unexpected(mapped.error());
  }
  block_.record.note_bytes(bytes_.fetch_add(taken->bytes) + taken->bytes);
  return taken;
}

void TenantProcess::give(const lease::Extent& stretch) {
  bytes_.fetch_sub(stretch.bytes);
  const std::lock_guard lock(lent_);
  const OwnCalls own;
  taken_.erase(stretch.first);
  others_may_write_.erase(stretch.first);
  in_window_.erase(stretch.first);
  share_->hide(stretch);  // it may be shown though the rest was not
  give_back(stretch.first);
}

Result<std::string> TenantProcess::lend(color::LinearByte first, std::uint64_t place) {
  const std::lock_guard lock(lent_);
  DEMARC_TRY(std::string key, client_.lend(first, place));
  others_may_write_.insert(first);
  return key;
}

void TenantProcess::withdraw(color::LinearByte first, std::uint64_t place) {
  const std::lock_guard lock(lent_);
  if (auto done = client_.withdraw(first, place); !done) tell_(done.error().message);
}

// Content that another process may change at any time cannot be compared, so windows are refused.
Result<lease::Extent> TenantProcess::borrow(const std::string& key) {
  const std::lock_guard lock(lent_);
  if (shown_) {
    return missing_capability(
        "this process runs code in windows, which show no memory of other processes");
  }
  DEMARC_TRY(const lease::Extent range, client_.borrow(key));
  if (taken_.contains(range.first)) return range;
  const OwnCalls own;
  const RelaxedStreamCapture relaxed(gpu_->api());
  if (auto mapped = share_->map(range); !mapped) {
    give_back(range.first);
    return tl::unexpected(mapped.error());
  }
  borrowed_.insert(range.first);
  return range;
}

void TenantProcess::give_borrowed(color::LinearByte first) {
  const std::lock_guard lock(lent_);
  borrowed_.erase(first);
  give_back(first);
}

Result<void> TenantProcess::map_taken(const lease::Extent& stretch) {
  DEMARC_CHECK(share_->map(stretch));
  if (shown_) DEMARC_CHECK(show(stretch, Content::nothing));
  taken_.emplace(stretch.first, stretch);
  return {};
}

// The server keeps count of what the kernel module can map.
Result<void> TenantProcess::show(const lease::Extent& stretch, Content content) {
  DEMARC_CHECK(client_.show(stretch.first));
  DEMARC_CHECK(share_->show(stretch));
  const DevicePointer first = (share_->window() + stretch.first.raw()).raw();
  const WindowProof& proof = opened_.load()->proof();
  DEMARC_CHECK(content == Content::nothing ? proof.number(first, stretch.bytes)
                                           : proof.compare(first, stretch.bytes));
  in_window_.insert(stretch.first);
  block_.record.note_window(share_->shown_bytes(), share_->pieces());
  return block_.windows == WindowUse::always ? share_->leave_arena(stretch) : Result<void>();
}

Result<void> TenantProcess::show_window() {
  const OwnCalls own;
  const RelaxedStreamCapture relaxed(gpu_->api());
  const std::lock_guard lock(lent_);
  if (shown_) return {};
  if (!why_not_shown_.empty()) return missing_capability("{}", why_not_shown_);
  if (!borrowed_.empty()) {
    return missing_capability(
        "this process uses memory of other processes (cuIpcOpenMemHandle), which windows do not "
        "show");
  }
  if (!others_may_write_.empty()) {
    return missing_capability(
        "this process has lent memory to other processes (cuIpcGetMemHandle), whose content cannot "
        "be compared");
  }
  for (const auto& [first, stretch] : taken_) {
    if (auto done = show(stretch, Content::program); !done) {
      share_->hide(stretch);
      in_window_.erase(first);
      return done;
    }
  }
  shown_ = true;
  return {};
}

// Where all code is as it is, arithmetic reaches the bytes only while they are mapped for it, and
// the memory of other tenants with them.
Result<void> TenantProcess::compare(const lease::Extent& stretch) {
  const DevicePointer first = (share_->window() + stretch.first.raw()).raw();
  const bool unmapped = block_.windows == WindowUse::always;
  Result<void> same;
  if (unmapped) same = share_->map(stretch);
  if (!same) same = missing_capability("the window could not be read: {}", same.error().message);
  if (same) same = opened_.load()->proof().compare(first, stretch.bytes);
  if (!unmapped) return same;
  if (auto left = share_->leave_arena(stretch); !left) {
    return check_failed("memory of all tenants stays mapped after a window was read: {}",
                        left.error().message);
  }
  return same;
}

Result<void> TenantProcess::prove_again() {
  if (leaves_colors_.load(std::memory_order_acquire)) return check_failed("{}", why_it_leaves_);
  const auto is_asked = [&] {
    const std::uint64_t asked = block_.proof.load(std::memory_order_relaxed);
    return asked != 0 && asked != proved_.load(std::memory_order_relaxed);
  };
  if (!is_asked()) return {};
  const OwnCalls own;
  CuContext context = nullptr;
  if (gpu_->api().cuCtxGetCurrent(&context) != cu_success || context == nullptr) return {};
  const RelaxedStreamCapture relaxed(gpu_->api());
  const std::lock_guard lock(lent_);
  if (leaves_colors_.load()) return check_failed("{}", why_it_leaves_);
  if (!is_asked()) return {};
  const std::uint64_t asked = block_.proof.load();
  std::uint64_t bytes = 0;
  Result<void> sound;
  // To the last one, unless one leads elsewhere: what is unclear of one says nothing of the others.
  for (const auto& [first, stretch] : taken_) {
    if (!in_window_.contains(first)) continue;
    bytes += stretch.bytes;
    auto same = compare(stretch);
    if (same) continue;
    const bool elsewhere = same.error().kind == ErrorKind::check_failed;
    if (sound || elsewhere) sound = std::move(same);
    if (elsewhere) break;
  }
  const std::string failure = sound ? std::string() : sound.error().message;
  if (auto done = client_.proved(asked, bytes, failure); !done) tell_(done.error().message);
  proved_.store(asked);
  if (sound || sound.error().kind != ErrorKind::check_failed) return {};
  // Threads that wait for the lock must not go on, either.
  why_it_leaves_ = failure;
  leaves_colors_.store(true, std::memory_order_release);
  return sound;
}

void TenantProcess::give_back(color::LinearByte first) {
  if (auto given = client_.give(first); !given) tell_(given.error().message);
}

// Whether the daemon lives, and is found, is each process's own matter: a child may have another
// environment.
Result<void> TenantProcess::check_mps() {
  if (attachment_.lease.mps.empty() || mps_checked_.load(std::memory_order_acquire)) return {};
  const OwnCalls own;
  DEMARC_TRY(const auto driver, Driver::load());
  CuDevice device{};
  DEMARC_CHECK(driver->check(driver->api().cuDeviceGet(&device, 0), "cuDeviceGet"));
  DEMARC_CHECK(check_mps_client(driver->api(), device, attachment_.lease.mps));
  mps_checked_.store(true, std::memory_order_release);
  return {};
}

Result<void> TenantProcess::open() {
  const std::lock_guard lock(opening_);
  if (opened_.load() != nullptr) return {};
  const OwnCalls own;
  DEMARC_TRY(const auto driver, Driver::load());
  const KeptContext kept(driver->api());
  DEMARC_TRY(const std::uint32_t index, index_of_uuid(driver, attachment_.lease.card));
  DEMARC_TRY(const GpuPointer gpu, Gpu::open(driver, index));
  const LentShare lent{attachment_.lease.share, attachment_.lease.card};
  DEMARC_TRY(auto share,
             BorrowedShare::open(gpu, lent, attachment_.table,
                                 [this](const color::PageRun& run) { return client_.pages(run); }));
  DEMARC_CHECK(check_stack_figure(gpu->api()));
  if (block_.windows != WindowUse::never) {
    auto ready = share.prepare_showing();
    if (ready && attachment_.lease.window_bytes == 0) {
      ready = missing_capability(
          "the server gives tenant '{}' no windows (windows = \"...\" in its configuration)",
          attachment_.lease.tenant);
    }
    if (!ready) {
      if (block_.windows == WindowUse::always) return ready;
      why_not_shown_ = ready.error().message;
    }
  }
  DEMARC_CHECK(share.map({{}, 1}));  // before anything of the program relies on it
  shown_ = block_.windows == WindowUse::always;
  if (shown_) DEMARC_CHECK(share.leave_arena({{}, 1}));
  share_.emplace(std::move(share));
  gpu_ = gpu;
  std::vector<AddressSpan> not_theirs{{share_->arena().raw(), share_->arena_bytes()}};
  for (const auto& [address, bytes] : share_->tables()) not_theirs.push_back({address, bytes});
  DEMARC_TRY(
      calls_,
      ColoredCalls::create(
          {gpu->api(),
           share_->code(),
           share_->bytes(),
           {[this](std::uint64_t bytes) { return take(bytes); },
            [this](const lease::Extent& stretch) { give(stretch); },
            [this](color::LinearByte first, std::uint64_t place) { withdraw(first, place); }},
           gpu->compute_capability(),
           block_.counters.colored,
           block_.record,
           tell_,
           {.printing = block_.silence_printf != 0 ? ptx::ColoredPrinting::silenced
                                                   : ptx::ColoredPrinting::refused,
            .overlapped = block_.overlap != 0},
           block_.allow_spills,
           &host_memory_,
           std::move(not_theirs),
           {block_.windows, [this] { return show_window(); }},
           {[this](color::LinearByte first, std::uint64_t place) { return lend(first, place); },
            [this](const std::string& key) { return borrow(key); },
            [this](color::LinearByte first) { give_borrowed(first); }}}));
  opened_.store(calls_.get());
  return {};
}

Result<void> TenantProcess::serve(const DriverCall& call) {
  if (OwnCalls::active()) return {};
  const bool passes = needs_no_share(call.rule());
  const bool forked = forked_off.load(std::memory_order_relaxed);
  if ((!passes || call.does(does::makes_context)) && !forked) DEMARC_CHECK(check_mps());
  if (plain_) {
    plain_->watch(call);
    return {};
  }
  if (call.does(does::pins_host_memory)) host_memory_.store(true, std::memory_order_relaxed);
  if (call.rule() == Rule::told && !forked) {
    const bool windows = block_.windows != WindowUse::never && attachment_.lease.window_bytes != 0;
    if (const CallAnswer answer = tell_of_card(call, windows)) call.answer(*answer);
  }
  if (passes) return {};
  if (forked) {
    constexpr CuResult not_initialized = 3;  // what the driver says there
    call.answer(not_initialized);
    return {};
  }
  ColoredCalls* calls = opened_.load(std::memory_order_acquire);
  if (calls == nullptr) {
    if (call.does(does::ends_context)) return {};
    DEMARC_CHECK(open());
    calls = opened_.load();
  }
  DEMARC_CHECK(prove_again());
  calls->serve(call);
  return {};
}

void TenantProcess::note_result(const DriverCall& call) {
  if (OwnCalls::active()) return;
  const char* why = end_of_context(call.result());
  if (why == nullptr) return;
  const std::string name = fmt::format("error {}", call.result());
  block_.record.counter(Recorded::ended_context, name, why).fetch_add(1);
  if (end_told_.exchange(true)) return;
  tell_(
      fmt::format("{} returned {}, {}: this context has ended, and each further call in it fails; "
                  "under MPS the error may be another program's on this card",
                  call.name(), name, why));
}

}  // namespace demarc::cuda
