// Launches the kernels that time reads, streams and crowds of readers, and reads their times.
#include "demarc/card/memory_timer.hpp"

#include <algorithm>

#include "demarc/card/probe_kernels.hpp"
#include "demarc/device/embedded_ptx.hpp"
#include "demarc/driver/sync_domain.hpp"
#include "memory_kernels_ptx.hpp"

namespace demarc::cuda {
namespace {

// The kernels' argument of the same name, field by field.
struct DeviceStream {
  std::uint64_t base;
  DevicePointer chunks;
  std::uint32_t count;
  std::uint32_t chunk_shift;
  std::uint32_t rounds;
  std::uint32_t writes;
  std::uint32_t latency;
  std::uint32_t workers;
};

constexpr std::uint64_t stream_limit_ns = 3'000'000'000;
constexpr float chained_loads = 8;
// Blocks of a launch start within microseconds where SMs are free.
constexpr std::uint64_t gather_ns = 300'000;
constexpr std::uint32_t longest_traffic = 1024;  // times what rounds_of() says: seconds
constexpr std::uint64_t launch_limit_ns = 10'000'000'000;

Result<DeviceBuffer> upload_words(const GpuPointer& gpu, std::span<const std::uint32_t> words) {
  DEMARC_TRY(DeviceBuffer buffer,
             DeviceBuffer::allocate<std::uint32_t>(gpu, std::max<std::size_t>(words.size(), 1)));
  if (!words.empty()) DEMARC_CHECK(buffer.upload(words.data(), words.size_bytes()));
  return buffer;
}

// The kernels' unit of offsets.
std::vector<std::uint32_t> in_lines(std::span<const std::uint64_t> offsets) {
  std::vector<std::uint32_t> lines;
  lines.reserve(offsets.size());
  for (const auto offset : offsets) lines.push_back(static_cast<std::uint32_t>(offset / 128));
  return lines;
}

// About 2 GB for a stream and 20000 loads for a chase: a few milliseconds.
std::uint32_t rounds_of(const TimedStream& stream) {
  if (stream.latency) return 20000;
  const std::uint64_t bytes = static_cast<std::uint64_t>(stream.chunks.size())
                              << stream.chunk_shift;
  constexpr std::uint64_t wanted = 2'000'000'000;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted / bytes, 2, 4096));
}

}  // namespace

SmRoles alternating_roles(const Gpu& gpu) {
  const auto capability = gpu.compute_capability();
  const std::uint32_t per_tpc = gpu::sms_per_tpc(capability.major, capability.minor);
  SmRoles roles(gpu.sm_count());
  for (const gpu::SmIndex sm : roles.keys()) roles[sm] = sm.raw() / per_tpc % 2 == 0 ? 1 : 2;
  return roles;
}

Result<MemoryTimer> MemoryTimer::create(GpuPointer gpu) {
  const auto capability = gpu->compute_capability();
  const gpu::EmbeddedPtx* image =
      gpu::find_ptx(embedded::memory_kernels(), "timed_memory", capability.number());
  if (image == nullptr) {
    return missing_capability("{}: no memory kernels for compute capability {}.{}", gpu->name(),
                              capability.major, capability.minor);
  }
  DEMARC_TRY(Module module, Module::load(gpu, std::string(image->text), "timed_memory.ptx"));
  DEMARC_TRY(Function latency, module.function("demarc_hit_latency"));
  DEMARC_TRY(Function streams, module.function("demarc_streams"));
  DEMARC_TRY(Stream stream, Stream::create(gpu));
  return MemoryTimer(std::move(module), std::move(latency), std::move(streams), std::move(stream));
}

Result<gpu::LatencyMatrix> MemoryTimer::hit_latencies(DevicePointer base,
                                                      std::span<const std::uint64_t> offsets,
                                                      std::span<const gpu::SmIndex> sms,
                                                      std::uint32_t together,
                                                      std::uint32_t repeats) const {
  const GpuPointer& gpu = stream_.gpu();
  const auto lines = in_lines(offsets);
  const auto count = static_cast<std::uint32_t>(lines.size());
  together = std::max(together, 1U);
  DEMARC_TRY(const DeviceBuffer list, upload_words(gpu, lines));
  DEMARC_TRY(const DeviceBuffer slots, DeviceBuffer::allocate<std::uint32_t>(gpu, gpu->sm_count()));
  DEMARC_TRY(const DeviceBuffer taken,
             DeviceBuffer::allocate(gpu, 2ULL * std::max(count, 1U) * together));
  DEMARC_TRY(const std::uint32_t shared, whole_sm_shared_bytes(latency_));
  LaunchShape shape = LaunchShape::line(gpu->sm_count(), 32);
  shape.shared_bytes = shared;
  gpu::LatencyMatrix matrix;
  matrix.dimensions = static_cast<std::uint32_t>(sms.size());
  matrix.values.resize(offsets.size() * sms.size());
  for (std::size_t first = 0; first < sms.size(); first += together) {
    const auto group = sms.subspan(first, std::min<std::size_t>(together, sms.size() - first));
    PerIndex<gpu::SmIndex, std::int32_t> slot_of_sm(gpu->sm_count(), -1);
    for (std::size_t k = 0; k < group.size(); ++k) {
      slot_of_sm.at(group[k]) = static_cast<std::int32_t>(k);
    }
    DEMARC_CHECK(slots.upload(slot_of_sm.data(), slot_of_sm.size() * 4));
    DEMARC_CHECK(taken.fill(0));
    DEMARC_CHECK(launch(stream_, latency_, shape, base, list.address(), count, slots.address(),
                        static_cast<std::uint32_t>(group.size()), repeats, taken.address(),
                        std::uint32_t{0}));
    DEMARC_CHECK(stream_.wait());
    DEMARC_TRY(const auto raw, taken.read<std::uint16_t>(count * group.size()));
    for (std::size_t k = 0; k < group.size(); ++k) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint16_t cycles = raw[k * count + i];
        if (cycles == 0) {
          return missing_capability(
              "no block of the latency kernel reached SM {}: is the card shared or partitioned?",
              group[k]);
        }
        matrix.values[i * sms.size() + first + k] = static_cast<float>(cycles) / chained_loads;
      }
    }
  }
  return matrix;
}

Result<MemoryTimer::Field> MemoryTimer::make_field(const SmRoles& roles) const {
  const GpuPointer& gpu = stream_.gpu();
  const std::uint32_t sms = gpu->sm_count();
  Field field;
  field.roles = roles;
  field.roles.resize(sms);
  for (const std::uint8_t role : field.roles) {
    field.ranks.push_back(static_cast<std::uint16_t>(field.workers.at(role)++));
  }
  if (field.workers[1] == 0) return invalid_input("no SM has the role of the victim");
  DEMARC_TRY(auto state, DeviceBuffer::allocate(gpu, 16 + sms * 11ULL));
  field.state.emplace(std::move(state));
  field.shape = LaunchShape::line(sms, 1024);
  DEMARC_TRY(field.shape.shared_bytes, whole_sm_shared_bytes(streams_));
  return field;
}

Result<void> MemoryTimer::start(const Stream& stream, const Field& field, DevicePointer base,
                                const PlacedStream& victim, const PlacedStream& aggressor) const {
  const std::size_t sms = field.roles.size();
  const DeviceBuffer& state = *field.state;
  const std::uint64_t times = state.address() + 16;
  const std::uint64_t ranks = times + sms * 8;
  const std::uint64_t roles = ranks + sms * 2;
  DEMARC_CHECK(state.fill(0));
  DEMARC_CHECK(state.upload(field.ranks.data(), sms * 2, 16 + sms * 8));
  DEMARC_CHECK(state.upload(field.roles.data(), sms, 16 + sms * 10));
  const auto described = [&](const PlacedStream& placed, std::uint32_t workers) {
    return DeviceStream{base,
                        placed.list->address(),
                        static_cast<std::uint32_t>(placed.stream.chunks.size()),
                        placed.stream.chunk_shift,
                        placed.rounds,
                        placed.stream.writes ? 1U : 0U,
                        placed.stream.latency ? 1U : 0U,
                        workers};
  };
  return launch(stream, streams_, field.shape, described(victim, field.workers[1]),
                described(aggressor, field.workers[2]), roles, ranks, state.address(),
                stream_limit_ns, times, state.address() + 8);
}

Result<double> MemoryTimer::stream_seconds(DevicePointer base, const TimedStream& victim,
                                           const TimedStream& aggressor,
                                           const SmRoles& roles) const {
  const GpuPointer& gpu = stream_.gpu();
  if (victim.chunks.empty()) return invalid_input("a stream without chunks cannot be timed");
  SmRoles used = roles;
  if (aggressor.chunks.empty())
    std::replace(used.begin(), used.end(), std::uint8_t{2}, std::uint8_t{0});
  DEMARC_TRY(const Field field, make_field(used));
  DEMARC_TRY(const DeviceBuffer victim_list, upload_words(gpu, victim.chunks));
  DEMARC_TRY(const DeviceBuffer aggressor_list, upload_words(gpu, aggressor.chunks));
  const std::uint32_t rounds = rounds_of(victim);
  for (const std::uint32_t now : {1U, rounds}) {
    TimedStream quiet = aggressor;
    quiet.latency = false;
    DEMARC_CHECK(
        start(stream_, field, base, {victim, &victim_list, now}, {quiet, &aggressor_list, 0}));
    DEMARC_CHECK(stream_.wait());
  }
  DEMARC_TRY(const std::uint64_t slowest, nanoseconds_of(field));
  return static_cast<double>(slowest) * 1e-9 / rounds;
}

// For the slowest SM of the victim.
Result<std::uint64_t> MemoryTimer::nanoseconds_of(const Field& field) {
  PerIndex<gpu::SmIndex, std::uint64_t> taken;
  DEMARC_TRY(taken, field.state->read<std::uint64_t>(field.roles.size(), 16));
  std::uint64_t slowest = 0;
  for (const gpu::SmIndex sm : taken.keys()) {
    if (field.roles[sm] != 1) continue;
    if (taken[sm] == 0) {
      return missing_capability(
          "the stream kernel did not run on SM {}: is the card shared or partitioned?", sm);
    }
    slowest = std::max(slowest, taken[sm]);
  }
  return slowest;
}

Result<double> MemoryTimer::beside(DevicePointer base, const TimedStream& traffic,
                                   const SmRoles& roles,
                                   const std::function<Result<double>()>& work) const {
  if (traffic.chunks.empty()) return invalid_input("a stream without chunks is not traffic");
  DEMARC_TRY(const Field field, make_field(roles));
  DEMARC_TRY(const DeviceBuffer list, upload_words(gpu(), traffic.chunks));
  DEMARC_TRY(const Stream stream, Stream::create(gpu()));
  // A kernel's end waits for the stores of its whole domain, wherever they go.
  if (sync_domain_count(*gpu()) > 1) DEMARC_CHECK(set_sync_domain(*gpu(), stream.handle(), 1));
  for (std::uint32_t longer = 4; longer <= longest_traffic; longer *= 4) {
    DEMARC_CHECK(
        start(stream, field, base, {traffic, &list, longer * rounds_of(traffic)}, {{}, &list, 0}));
    DEMARC_TRY(const double measured, work());
    DEMARC_TRY(const bool ended, stream.done());
    DEMARC_CHECK(stream.wait());
    DEMARC_CHECK(nanoseconds_of(field));
    if (!ended) return measured;
  }
  return check_failed(
      "the traffic that should disturb a measurement ended before the measurement, however long it "
      "was");
}

}  // namespace demarc::cuda
