// Launches the kernels of page_walk.cu and reads what they measured.
#include "demarc/card/page_timer.hpp"

#include <algorithm>
#include <bit>

#include "demarc/card/probe_kernels.hpp"
#include "demarc/device/embedded_ptx.hpp"
#include "page_kernels_ptx.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t line_bytes = 128;
constexpr std::uint32_t walking_sm = 0;
constexpr std::uint32_t traffic_threads = 1024;
constexpr std::uint32_t accesses_per_batch = 4;
constexpr std::uint32_t walk_vector_bytes = 16;
constexpr std::uint32_t word_bytes = 4;
constexpr std::uint64_t least_page_bytes = 4096;
constexpr std::uint64_t max_places = std::uint64_t{1} << 32U;
constexpr std::uint64_t warm_up_ns = 500'000;

bool is_wide(PageTraffic::Kind kind) {
  return kind == PageTraffic::Kind::read || kind == PageTraffic::Kind::write;
}

Result<void> check_range(const PageRange& range) {
  if (range.pages != 0 && std::has_single_bit(range.page_bytes) &&
      range.page_bytes >= least_page_bytes && range.pages < max_places) {
    return {};
  }
  return invalid_input(
      "timing {} pages of {} bytes: give at least one page, with a power of two of at least {} "
      "bytes",
      range.pages, range.page_bytes, least_page_bytes);
}

Result<void> check_traffic(const Gpu& gpu, const PageRange& range, const PageTraffic& traffic) {
  DEMARC_CHECK(check_range(range));
  const std::uint32_t bytes = traffic.access_bytes;
  const bool right = is_wide(traffic.kind)
                         ? std::has_single_bit(bytes) && bytes >= walk_vector_bytes && bytes <= 4096
                         : bytes == word_bytes;
  if (!right) {
    return invalid_input(
        "accesses of {} bytes: reads and writes have a power of two from {} to 4096 bytes, others "
        "have {}",
        bytes, walk_vector_bytes, word_bytes);
  }
  if (traffic.kind != PageTraffic::Kind::page && traffic.kind != PageTraffic::Kind::word &&
      range.pages * range.page_bytes / bytes >= max_places) {
    return invalid_input("accesses of {} bytes in {} GiB: at most {} places can be drawn", bytes,
                         range.pages * range.page_bytes >> 30U, max_places);
  }
  if (traffic.sms == 0 || traffic.sms > gpu.sm_count()) {
    return invalid_input("accesses from {} SMs: {} has {}", traffic.sms, gpu.name(),
                         gpu.sm_count());
  }
  return {};
}

}  // namespace

Result<PageTimer> PageTimer::create(GpuPointer gpu) {
  const auto capability = gpu->compute_capability();
  const gpu::EmbeddedPtx* image =
      gpu::find_ptx(embedded::page_kernels(), "page_walk", capability.number());
  if (image == nullptr) {
    return missing_capability("{}: no kernels that time pages for compute capability {}.{}",
                              gpu->name(), capability.major, capability.minor);
  }
  DEMARC_TRY(Module module, Module::load(gpu, std::string(image->text), "page_walk.ptx"));
  DEMARC_TRY(Function ring, module.function("demarc_page_ring"));
  DEMARC_TRY(Function walk, module.function("demarc_page_walk"));
  DEMARC_TRY(Function traffic, module.function("demarc_page_traffic"));
  DEMARC_TRY(Stream stream, Stream::create(gpu));
  return PageTimer(std::move(module), std::move(ring), std::move(walk), std::move(traffic),
                   std::move(stream));
}

Result<WalkTimes> PageTimer::walk(const PageRange& range, std::span<const std::uint32_t> lines,
                                  bool atomics, const std::optional<PageTraffic>& between) const {
  DEMARC_CHECK(check_range(range));
  if (lines.empty()) return invalid_input("a walk over no lines cannot be timed");
  const std::uint64_t most = range.pages * range.page_bytes / line_bytes;
  for (const std::uint32_t line : lines) {
    if (line >= most) return invalid_input("line {} of a walk: the pages have {}", line, most);
  }
  if (between && between->kind != PageTraffic::Kind::read &&
      between->kind != PageTraffic::Kind::page) {
    return invalid_input("traffic between making a ring and walking it: only reads leave it whole");
  }
  const GpuPointer& gpu = stream_.gpu();
  const auto count = static_cast<std::uint32_t>(lines.size());
  DEMARC_TRY(const DeviceBuffer list, DeviceBuffer::allocate<std::uint32_t>(gpu, count));
  DEMARC_CHECK(list.upload(lines.data(), lines.size_bytes()));
  DEMARC_TRY(const DeviceBuffer state, DeviceBuffer::allocate<std::uint64_t>(gpu, 4));
  DEMARC_CHECK(state.fill(0));
  DEMARC_CHECK(launch(stream_, ring_, LaunchShape::line((count + 255) / 256, 256), range.base,
                      list.address(), count));
  if (between) DEMARC_CHECK(accesses_per_second(range, *between));
  // A block that finds no SM free comes later: twice as many reach every SM.
  LaunchShape shape = LaunchShape::line(2 * gpu->sm_count(), 32);
  DEMARC_TRY(shape.shared_bytes, whole_sm_shared_bytes(walk_));
  const DevicePointer start = range.base + std::uint64_t{lines.front()} * line_bytes;
  DEMARC_CHECK(launch(stream_, walk_, shape, start, count, atomics ? 1U : 0U, walking_sm,
                      state.address(), state.address() + 8, std::uint64_t{0}));
  DEMARC_CHECK(stream_.wait());
  DEMARC_TRY(const auto measured, state.read<std::uint64_t>(4));
  if (measured[0] == 0) {
    return missing_capability(
        "no block of the walk reached SM {}: is the card shared or partitioned?", walking_sm);
  }
  if (measured[3] != start) {
    return check_failed("a walk over {} lines ended at {:#x} instead of {:#x}, where it began",
                        count, measured[3], start);
  }
  return WalkTimes{static_cast<double>(measured[1]) / count,
                   static_cast<double>(measured[2]) / count};
}

Result<double> PageTimer::accesses_per_second(const PageRange& range,
                                              const PageTraffic& traffic) const {
  const GpuPointer& gpu = stream_.gpu();
  DEMARC_CHECK(check_traffic(*gpu, range, traffic));
  LaunchShape shape = LaunchShape::line(traffic.sms, traffic_threads);
  DEMARC_TRY(shape.shared_bytes, whole_sm_shared_bytes(traffic_));
  const std::size_t words = std::size_t{3} * traffic.sms;
  DEMARC_TRY(const DeviceBuffer results, DeviceBuffer::allocate<std::uint64_t>(gpu, words + 1));
  const auto lasts_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(traffic.lasts).count());
  std::uint32_t seed = 1;
  for (const std::uint64_t duration_ns : {std::min(warm_up_ns, lasts_ns), lasts_ns}) {
    DEMARC_CHECK(results.fill(0));
    DEMARC_CHECK(launch(stream_, traffic_, shape, range.base,
                        static_cast<std::uint32_t>(range.pages),
                        static_cast<std::uint32_t>(std::countr_zero(range.page_bytes)),
                        static_cast<std::uint32_t>(traffic.kind),
                        static_cast<std::uint32_t>(std::countr_zero(traffic.access_bytes)), seed++,
                        duration_ns, results.address(), results.address() + 8 * words));
    DEMARC_CHECK(stream_.wait());
  }
  DEMARC_TRY(const auto measured, results.read<std::uint64_t>(words));
  std::uint64_t batches = 0;
  std::uint64_t begin = ~std::uint64_t{0};
  std::uint64_t end = 0;
  for (std::size_t block = 0; block < traffic.sms; ++block) {
    batches += measured[3 * block];
    begin = std::min(begin, ~measured[3 * block + 1]);
    end = std::max(end, measured[3 * block + 2]);
  }
  if (batches == 0 || end <= begin) {
    return check_failed("{} blocks made {} batches of accesses in {} ns", traffic.sms, batches,
                        static_cast<std::int64_t>(end - begin));
  }
  const std::uint32_t threads_per_access =
      is_wide(traffic.kind) ? traffic.access_bytes / walk_vector_bytes : 1;
  return static_cast<double>(batches) * accesses_per_batch / threads_per_access /
         (static_cast<double>(end - begin) * 1e-9);
}

}  // namespace demarc::cuda
