// Opens a card and reads what the driver tells of it.
#include "demarc/driver/gpu.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace demarc::cuda {
namespace {

struct Identity {
  std::string uuid;
  bool mig;
};

std::string uuid_text(const CuUuid& uuid, bool mig) {
  std::string text = mig ? "MIG-" : "GPU-";
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

// The second version tells a MIG instance's own UUID, the first its card's. The name of an instance
// says so too: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
Result<Identity> identity_of(const Gpu& gpu) {
  const DriverApi& api = gpu.api();
  CuUuid of_card{};
  CuUuid own{};
  const auto newer = api.cuDeviceGetUuid_v2;
  const auto older = api.cuDeviceGetUuid;
  if (newer == nullptr && older == nullptr) {
    return missing_capability("{}: the driver tells no UUID", gpu.driver().origin());
  }
  if (older != nullptr)
    DEMARC_CHECK(gpu.check(older(&of_card, gpu.handle()), "cannot read the UUID"));
  if (newer != nullptr) DEMARC_CHECK(gpu.check(newer(&own, gpu.handle()), "cannot read the UUID"));
  const bool differ = older != nullptr && newer != nullptr &&
                      std::memcmp(own.bytes, of_card.bytes, sizeof own.bytes) != 0;
  const bool mig = differ || gpu.name().find(" MIG ") != std::string::npos;
  return Identity{uuid_text(newer != nullptr ? own : of_card, mig), mig};
}

}  // namespace

std::string mps_pipe_folder() {
  const char* folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  return folder == nullptr ? "/tmp/nvidia-mps" : folder;
}

bool mps_daemon_runs() {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(mps_pipe_folder()) / "control", ignored);
}

Result<std::shared_ptr<Gpu>> Gpu::open(std::shared_ptr<const Driver> driver, std::uint32_t index) {
  DEMARC_TRY(std::shared_ptr<Gpu> gpu, find(std::move(driver), index));
  DEMARC_TRY(gpu->context_, gpu->ask(fmt::format("cannot open GPU cuda:{}", index),
                                     gpu->api().cuDevicePrimaryCtxRetain, gpu->device_));
  DEMARC_CHECK(gpu->make_current());
  return gpu;
}

Result<std::shared_ptr<Gpu>> Gpu::find(std::shared_ptr<const Driver> driver, std::uint32_t index) {
  DEMARC_TRY(const std::uint32_t count, driver->device_count());
  if (index >= count) {
    return missing_capability("there is no GPU cuda:{}; this machine has {}", index, count);
  }
  std::shared_ptr<Gpu> gpu(new Gpu);
  gpu->driver_ = std::move(driver);
  gpu->index_ = index;
  const DriverApi& api = gpu->api();
  DEMARC_CHECK(gpu->check(api.cuDeviceGet(&gpu->device_, static_cast<int>(index)), "cuDeviceGet"));

  std::array<char, 256> name{};
  DEMARC_CHECK(
      gpu->check(api.cuDeviceGetName(name.data(), 255, gpu->device_), "cannot read the name"));
  gpu->name_ = name.data();
  DEMARC_TRY(Identity identity, identity_of(*gpu));
  gpu->uuid_ = std::move(identity.uuid);
  gpu->mig_ = identity.mig;
  DEMARC_TRY(const int major, gpu->attribute(attribute_capability_major));
  DEMARC_TRY(const int minor, gpu->attribute(attribute_capability_minor));
  gpu->capability_ = {static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor)};
  DEMARC_TRY(const int sms, gpu->attribute(attribute_sm_count));
  gpu->sm_count_ = static_cast<std::uint32_t>(sms);
  DEMARC_TRY(gpu->total_bytes_,
             gpu->ask("cannot read the memory size", api.cuDeviceTotalMem_v2, gpu->device_));
  return gpu;
}

Gpu::~Gpu() {
  if (context_ != nullptr && !stuck_) api().cuDevicePrimaryCtxRelease_v2(device_);
}

Result<int> Gpu::attribute(CuDeviceAttribute attribute) const {
  return ask(fmt::format("cannot read device attribute {}", static_cast<int>(attribute)),
             api().cuDeviceGetAttribute, attribute, device_);
}

Result<void> Gpu::check_whole() const {
  if (!mig_) return {};
  return missing_capability(
      "{} ({}) is a MIG instance, but masks, colours and topologies need a whole card; switch MIG "
      "off (nvidia-smi -mig 0) or name a whole card with --device",
      name_, uuid_);
}

bool Gpu::under_mps() const {
  const auto says = attribute(attribute_mps_enabled);
  return says ? *says != 0 : mps_daemon_runs();
}

Result<std::uint64_t> Gpu::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  DEMARC_CHECK(check(api().cuMemGetInfo_v2(&free, &total), "cannot read the free memory"));
  return free;
}

Result<void> Gpu::make_current() const {
  return check(api().cuCtxSetCurrent(context_), "cannot make the GPU current");
}

std::string source_of(const Gpu& gpu) {
  return fmt::format("driver {} on {}", gpu.driver().driver_version(), gpu.uuid());
}

Result<gpu::Device> describe(const Gpu& gpu) {
  gpu::Device device;
  device.name = gpu.name();
  device.source = source_of(gpu);
  device.compute_capability = gpu.compute_capability();
  const auto read = [&gpu](CuDeviceAttribute attribute) { return gpu.attribute(attribute); };
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  DEMARC_TRY(const int sm_khz, read(attribute_clock_khz));
  DEMARC_TRY(const int memory_khz, read(attribute_memory_clock_khz));
  DEMARC_TRY(const int bus_bits, read(attribute_memory_bus_bits));
  DEMARC_TRY(const int l2, read(attribute_l2_bytes));
  DEMARC_TRY(const int threads, read(attribute_max_threads_per_sm));
  DEMARC_TRY(const int block_threads, read(attribute_max_threads_per_block));
  DEMARC_TRY(const int blocks, read(attribute_max_blocks_per_sm));
  DEMARC_TRY(const int registers, read(attribute_registers_per_sm));
  DEMARC_TRY(const int shared, read(attribute_shared_bytes_per_sm));
  DEMARC_TRY(const int shared_block, read(attribute_shared_bytes_per_block_optin));
  DEMARC_TRY(const int reserved, read(attribute_reserved_shared_bytes));
  device.sm_clock_hz = 1e3 * sm_khz;
  device.memory_clock_hz = 1e3 * memory_khz;
  device.sm.threads = u32(threads);
  device.sm.threads_per_block = u32(block_threads);
  device.sm.blocks = u32(blocks);
  device.sm.registers = u32(registers);
  device.sm.shared_bytes = u32(shared);
  device.sm.shared_block_bytes = u32(shared_block);
  device.sm.shared_reserved_bytes = u32(reserved);
  device.l2.size_bytes = static_cast<std::uint64_t>(l2);
  device.dram.size_bytes = gpu.total_bytes();
  // Two transfers a clock.
  device.dram.bandwidth_bytes_per_s = 2e3 * memory_khz * bus_bits / 8;
  const auto capability = gpu.compute_capability();
  const std::uint32_t per_tpc = gpu::sms_per_tpc(capability.major, capability.minor);
  const gpu::SmIndex end(gpu.sm_count());
  for (gpu::SmIndex sm; sm < end;) {
    gpu::Tpc tpc;
    for (; tpc.sms.size() < per_tpc && sm < end; ++sm) tpc.sms.push_back(sm);
    device.topology.tpcs.push_back(std::move(tpc));
  }
  return device;
}

}  // namespace demarc::cuda
