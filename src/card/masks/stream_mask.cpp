// Masks of streams through the driver's stream object, and the search for the place in it.
#include "demarc/card/stream_mask.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "demarc/base/rounding.hpp"
#include "demarc/driver/driver_version.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::cuda {
namespace {

struct KnownOffset {
  int cuda_version;
  std::uint32_t offset;
};

#if defined(__x86_64__)
constexpr KnownOffset known_offsets[] = {
    {8000, 0xec},   {9000, 0x130},  {9010, 0x130},  {9020, 0x140},  {10000, 0x244}, {10010, 0x244},
    {10020, 0x244}, {11000, 0x274}, {11010, 0x2c4}, {11020, 0x37c}, {11030, 0x37c}, {11040, 0x37c},
    {11050, 0x37c}, {11060, 0x38c}, {11070, 0x3c4}, {11080, 0x47c}, {12000, 0x4cc}, {12010, 0x4cc},
    {12020, 0x4e4}, {12030, 0x49c}, {12040, 0x4ac}, {12050, 0x4ec}, {12060, 0x4ec}, {12070, 0x4fc},
    {12080, 0x4fc}, {13000, 0x51c}, {13030, 0x5fc}};
#elif defined(__aarch64__)
// Jetson drivers; server drivers of the same version on aarch64 may differ and fail
// verify_offset().
constexpr KnownOffset known_offsets[] = {{9000, 0x128},  {10020, 0x24c}, {11040, 0x394},
                                         {12020, 0x50c}, {12040, 0x4c4}, {12050, 0x50c},
                                         {12060, 0x514}, {13000, 0x53c}};
#else
constexpr std::array<KnownOffset, 0> known_offsets = {};
#endif

// The field in use; offset 0, where the object keeps something else: none.
std::atomic<StreamField> field_in_use{StreamField{}};

char* stream_object(CuStream stream) {
  return *reinterpret_cast<char**>(stream);
}

// Reads that may lie outside the object: the kernel copies, so a bad address is an error and not a
// crash.
bool read_safely(const void* from, void* to, std::size_t bytes) {
  iovec local{to, bytes};
  iovec remote{const_cast<void*>(from), bytes};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

using LogicalMask = std::array<std::uint32_t, 4>;  // a set bit disables

// As drivers from CUDA 12.0 on keep it; those before have two words, the higher TPCs first.
struct WideField {
  std::uint32_t on{};
  LogicalMask mask{};
  friend bool operator==(const WideField&, const WideField&) = default;
};

// Over the full width, whatever number of TPCs the driver shows: inside an MPS partition it shows
// fewer than a launch can reach (seen on an H100).
LogicalMask disable_all_but(const gpu::TpcSet& enabled) {
  const auto& words = enabled.words();
  return {static_cast<std::uint32_t>(~words[0]), static_cast<std::uint32_t>(~words[0] >> 32),
          static_cast<std::uint32_t>(~words[1]), static_cast<std::uint32_t>(~words[1] >> 32)};
}

void write_field(CuStream stream, const StreamField& field, bool on, const LogicalMask& mask) {
  char* at = stream_object(stream) + field.offset;
  if (field.wide) {
    const WideField wide{on ? 1U : 0U, mask};
    std::memcpy(at, &wide, sizeof wide);
  } else {
    const std::array<std::uint32_t, 2> words = {mask[1], mask[0]};
    std::memcpy(at, words.data(), sizeof words);
  }
}

// The driver gives a destroyed stream's object to a later stream, mask included (seen).
void clear_gone_stream(CuStream stream) {
  const StreamField field = field_in_use.load();
  if (field.offset != 0) write_field(stream, field, false, LogicalMask{});
}

// How launches show their stream: the same way for two streams, for a kernel and for a fill.
Result<StreamPlace> learn_stream_place(const GpuPointer& gpu, LaunchHook& hook,
                                       const Function& idle) {
  DEMARC_TRY(const DeviceBuffer buffer, DeviceBuffer::allocate(gpu, 1000));
  DEMARC_TRY(const Stream first, Stream::create(gpu));
  DEMARC_TRY(const Stream second, Stream::create(gpu));
  std::optional<StreamPlace> same;
  for (const Stream* stream : {&first, &second}) {
    for (const bool fill : {false, true}) {
      hook.clear_last();
      hook.streams().begin_learning(stream->handle());
      const auto launched = fill ? gpu->check(gpu->api().cuMemsetD8Async(buffer.address() + 1, 1,
                                                                         999, stream->handle()),
                                              "cannot fill a buffer")
                                 : launch(*stream, idle, LaunchShape::line(1, 1));
      const StreamPlace place = hook.streams().end_learning();
      DEMARC_CHECK(launched);
      DEMARC_CHECK(stream->wait());
      if (!hook.last()) continue;  // a fill need not be a launch
      if (same && *same != place) return StreamPlace{};
      same = place;
    }
  }
  return same.value_or(StreamPlace{});
}

Result<HardwareMask> mask_of_launch(const Stream& stream, LaunchHook& hook, const Function& idle) {
  hook.clear_last();
  DEMARC_CHECK(launch(stream, idle, LaunchShape::line(1, 1)));
  DEMARC_CHECK(stream.wait());
  const auto seen = hook.last();
  if (!seen) return missing_capability("a launch did not pass the driver's callback");
  return seen->enabled ? seen->mask : HardwareMask{};
}

std::uint32_t bit_count(const HardwareMask& mask) {
  int bits = 0;
  for (const std::uint32_t word : mask.disabled) bits += std::popcount(word);
  return static_cast<std::uint32_t>(bits);
}

std::uint32_t tpcs_of(const Gpu& gpu) {
  const auto capability = gpu.compute_capability();
  const std::uint32_t per_tpc = gpu::sms_per_tpc(capability.major, capability.minor);
  return ceil_div(gpu.sm_count(), per_tpc);
}

}  // namespace

std::optional<StreamField> known_stream_field(int cuda_version) {
  // 13010 is CUDA 13.1; the last digit counts patches that never moved the field.
  const int version = cuda_version / 10 * 10;
  for (const KnownOffset& known : known_offsets) {
    if (known.cuda_version == version) return StreamField{known.offset, version >= 12000};
  }
  return std::nullopt;
}

Result<std::uint32_t> hardware_bit_of(const Stream& stream, const StreamField& field,
                                      LaunchHook& hook, const Function& idle, gpu::TpcIndex tpc) {
  LogicalMask one{};
  one[tpc.raw() / 32] = std::uint32_t{1} << (tpc.raw() % 32);
  write_field(stream.handle(), field, true, one);
  const auto seen = mask_of_launch(stream, hook, idle);
  write_field(stream.handle(), field, false, LogicalMask{});
  if (!seen) return tl::unexpected(seen.error());
  if (bit_count(*seen) != 1) {
    return missing_capability(
        "a stream mask without TPC {} turned into a descriptor mask of {} bits instead of one", tpc,
        bit_count(*seen));
  }
  for (std::uint32_t bit = 0; bit < 128; ++bit) {
    if (seen->disables(bit)) return bit;
  }
  return missing_capability("TPC {} has no bit in the descriptor", tpc);
}

Result<EdgeBits> verify_offset(const GpuPointer& gpu, LaunchHook& hook, const Function& idle,
                               const StreamField& field) {
  DEMARC_TRY(const Stream stream, Stream::create(gpu));
  const gpu::TpcIndex first(0);
  const gpu::TpcIndex last(tpcs_of(*gpu) - 1);
  if (last == first)
    return missing_capability("{} has a single TPC: nothing to divide", gpu->name());
  DEMARC_TRY(const std::uint32_t first_bit, hardware_bit_of(stream, field, hook, idle, first));
  DEMARC_TRY(const std::uint32_t last_bit, hardware_bit_of(stream, field, hook, idle, last));
  if (first_bit == last_bit) {
    return missing_capability("TPC 0 and TPC {} turned into the same descriptor bit {}", last,
                              first_bit);
  }
  DEMARC_TRY(const HardwareMask cleared, mask_of_launch(stream, hook, idle));
  if (cleared.any()) {
    return missing_capability("a cleared stream mask still disables TPCs");
  }
  return EdgeBits{first_bit, last_bit};
}

Result<StreamMasks> StreamMasks::open(GpuPointer gpu, LaunchHook& hook, const Function& idle,
                                      std::optional<StreamField> remembered) {
  const int version = gpu->driver().cuda_version();
  std::optional<StreamField> field = known_stream_field(version);
  if (!field) field = remembered;
  if (!field) {
    return missing_capability(
        "CUDA {}: it is not known where this driver keeps the mask of a stream; run demarc topo "
        "--refresh once to find it, or use --mode green",
        cuda_version_text(version));
  }
  const auto bits = verify_offset(gpu, hook, idle, *field);
  if (!bits) {
    if (bits.error().kind == ErrorKind::check_failed) return tl::unexpected(bits.error());
    return missing_capability(
        "CUDA {}: offset {:#x} does not hold a stream's mask on this driver ({}); use --mode green",
        cuda_version_text(version), field->offset, bits.error().message);
  }
  field_in_use.store(*field);
  hook.streams().set_gone_handler(&clear_gone_stream);
  DEMARC_TRY(const StreamPlace place, learn_stream_place(gpu, hook, idle));
  DEMARC_CHECK(hook.streams().use_place(place));
  return StreamMasks(*field, *bits, tpcs_of(*gpu), idle);
}

void StreamMasks::use_hook(LaunchHook& hook, const gpu::Topology& topology) {
  const bool bits_known = std::all_of(topology.tpcs.begin(), topology.tpcs.end(),
                                      [](const gpu::Tpc& tpc) { return tpc.bit.has_value(); });
  if (!hook.streams().known() || !bits_known || !fits(*hook.layout(), topology)) return;
  hook_ = &hook;
  topology_ = topology;
}

Result<void> StreamMasks::set(CuStream stream, const gpu::TpcSet& enabled) const {
  if (is_default_stream(stream)) {
    return invalid_input("the default stream has no mask of its own; set the process mask");
  }
  if ((enabled & gpu::TpcSet::first(tpcs_)).empty()) {
    return invalid_input("a mask without any of the GPU's {} TPCs would hang every launch", tpcs_);
  }
  if (hook_ != nullptr && hook_sees(stream)) {
    DEMARC_TRY(const HardwareMask mask, to_hardware(topology_, enabled));
    return hook_->streams().set_mask(stream, mask);
  }
  write_field(stream, field_, true, disable_all_but(enabled));
  return {};
}

bool StreamMasks::hook_sees(CuStream stream) const {
  if (const auto known = hook_->streams().shows(stream)) return *known;
  // The launch would use up a mask that waits for another one, or become a node of a graph.
  const DriverApi& api = idle_.gpu()->api();
  int capturing = 0;
  if (api.cuStreamIsCapturing == nullptr ||
      api.cuStreamIsCapturing(stream, &capturing) != cu_success) {
    return false;
  }
  if (capturing != 0 || hook_->next_mask_pending()) return false;
  hook_->streams().begin_learning(stream);
  const CuResult code =
      api.cuLaunchKernel(idle_.handle(), 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  const bool sees =
      hook_->streams().end_learning() == hook_->streams().place() && code == cu_success;
  hook_->streams().remember_shows(stream, sees);
  return sees;
}

Result<void> StreamMasks::clear(CuStream stream) const {
  if (is_default_stream(stream)) return {};
  if (hook_ != nullptr) hook_->streams().clear_mask(stream);
  write_field(stream, field_, false, LogicalMask{});
  return {};
}

std::optional<gpu::TpcSet> StreamMasks::get(CuStream stream) const {
  if (is_default_stream(stream)) return std::nullopt;
  if (hook_ != nullptr) {
    if (const auto kept = hook_->streams().mask(stream)) return enabled_tpcs(topology_, *kept);
  }
  const char* at = stream_object(stream) + field_.offset;
  LogicalMask mask{};
  if (field_.wide) {
    WideField wide;
    std::memcpy(&wide, at, sizeof wide);
    if (wide.on == 0) return std::nullopt;
    mask = wide.mask;
  } else {
    std::array<std::uint32_t, 2> words{};
    std::memcpy(words.data(), at, sizeof words);
    std::copy(words.rbegin(), words.rend(), mask.begin());
    if (mask == LogicalMask{}) return std::nullopt;
  }
  gpu::TpcSet enabled;
  for (const auto tpc : indices<gpu::TpcIndex>(tpcs_)) {
    if (((mask[tpc.raw() / 32] >> (tpc.raw() % 32)) & 1U) == 0) enabled.insert(tpc);
  }
  return enabled;
}

Result<StreamField> calibrate(const GpuPointer& gpu, LaunchHook& hook, const Function& idle,
                              std::uint32_t limit, std::span<const std::uint32_t> skip,
                              const std::function<void(std::uint32_t)>& trying) {
  for (std::uint32_t offset = 0; offset < limit; offset += 4) {
    if (std::find(skip.begin(), skip.end(), offset) != skip.end()) continue;
    // A fresh stream for each candidate: a wrong write harms no other.
    DEMARC_TRY(const Stream stream, Stream::create(gpu));
    WideField there;
    if (!read_safely(stream_object(stream.handle()) + offset, &there, sizeof there) ||
        there != WideField{}) {
      continue;
    }
    trying(offset);
    const StreamField field{offset, true};
    const auto bit = hardware_bit_of(stream, field, hook, idle, gpu::TpcIndex(0));
    if (bit && verify_offset(gpu, hook, idle, field)) return field;
    if (gpu->stuck()) {
      return check_failed("the mask tried at {:#x} of the stream object hangs the GPU", offset);
    }
  }
  return missing_capability(
      "CUDA {}: no place in the driver's stream object below {:#x} acts as a TPC mask; masks are "
      "refused, use --mode green",
      cuda_version_text(gpu->driver().cuda_version()), limit);
}

}  // namespace demarc::cuda
