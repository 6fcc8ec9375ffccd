// The one state of the stand-in, and how a test sets it up.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fake_state.hpp"

namespace demarc::fake {

thread_local CuContext current_context = nullptr;

FakeStream::FakeStream() : storage(4096, 0) {
  object = storage.data();
  // Fields of other meaning, so that not every place reads as an unused mask.
  for (std::size_t i = 0; i < storage.size(); i += 4) {
    if (i % 64 < 24) storage[i] = static_cast<char>(i / 64 + 1);
  }
}

FakeGpu& FakeGpu::get() {
  static FakeGpu gpu;
  return gpu;
}

void FakeGpu::call_back(int domain, int id, const void* params) {
  if (callback != nullptr && enabled.count({domain, id}) != 0) {
    callback(callback_user, domain, id, params);
  }
}

std::uint32_t FakeGpu::shown_sms() const {
  if (config.client == 0 || config.client_hidden) return sms();
  return static_cast<std::uint32_t>(std::popcount(config.client)) * config.sms_per_tpc;
}

bool FakeGpu::fits(DevicePointer address, std::size_t bytes) const {
  auto next = allocated.upper_bound(address);
  if (next != allocated.begin()) {
    --next;
    if (address - next->first < next->second) return bytes <= next->first + next->second - address;
  }
  const DevicePointer first = address / fake_page * fake_page;
  for (DevicePointer page = first; page < address + bytes; page += fake_page) {
    if (accessible.count(page) == 0) return page == first;
  }
  return true;
}

std::optional<FakePiece> FakeGpu::piece_at(DevicePointer address) const {
  auto next = pieces.upper_bound(address);
  if (next == pieces.begin()) return std::nullopt;
  --next;
  const std::uint64_t into = address - next->first;
  if (into >= next->second.bytes) return std::nullopt;
  FakePiece found = next->second;
  found.offset += into;
  return found;
}

bool FakeGpu::is_written(DevicePointer address, std::size_t bytes, CuStream reader) const {
  for (auto next = unfinished.lower_bound(address);
       next != unfinished.end() && next->first < address + bytes; ++next) {
    if (next->second != reader) return true;
  }
  return false;
}

void FakeGpu::finished(CuStream stream) {
  for (auto at = unfinished.begin(); at != unfinished.end();) {
    at = at->second == stream ? unfinished.erase(at) : std::next(at);
  }
}

namespace {

CuResult subscribe(std::uint32_t* handle, Callback callback, void* user) {
  FakeGpu& gpu = FakeGpu::get();
  if (gpu.callback != nullptr) return 210;
  gpu.callback = callback;
  gpu.callback_user = user;
  *handle = 1;
  return cuda::cu_success;
}

CuResult enable(std::uint32_t on, std::uint32_t handle, int domain, int id) {
  FakeGpu& gpu = FakeGpu::get();
  if (on > 1 || handle != 1 || id < 1) return error_invalid;
  if (domain == 6 && (id > gpu.config.functions || id == gpu.config.unwatched_function)) {
    return error_invalid;
  }
  if (on != 0) {
    gpu.enabled.insert({domain, id});
  } else {
    gpu.enabled.erase({domain, id});
  }
  return cuda::cu_success;
}

}  // namespace

void clear_stream_field(FakeStream& stream) {
  std::memset(stream.object + FakeGpu::get().config.stream_offset, 0, 20);
}

const void* callback_table() {
  static const void* table[] = {reinterpret_cast<const void*>(std::uintptr_t{96}),
                                nullptr,
                                nullptr,
                                reinterpret_cast<const void*>(&subscribe),
                                nullptr,
                                nullptr,
                                reinterpret_cast<const void*>(&enable)};
  return table;
}

void configure_from_environment(FakeConfig& config) {
  config.callback = std::getenv("DEMARC_FAKE_WITHOUT_CALLBACK") == nullptr;
  if (std::getenv("DEMARC_FAKE_SHORT_CALLBACK") != nullptr) config.function_params = Params::short_;
  if (const char* id = std::getenv("DEMARC_FAKE_UNWATCHED")) {
    config.unwatched_function = std::atoi(id);
  }
  if (const char* client = std::getenv("DEMARC_FAKE_MPS")) {
    const char* folder = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
    const bool inside = folder != nullptr && std::string_view(folder).ends_with(client);
    config.mps_attribute = *client == '.' ? static_cast<int>(inside) : std::atoi(client);
  }
  if (std::getenv("DEMARC_FAKE_AMPERE") != nullptr) {
    config.capability_major = 8;
    config.descriptor_version = 0x30;
  }
  config.kernels_launch |= std::getenv("DEMARC_FAKE_LAUNCHERS") != nullptr;
  const char* text = std::getenv("DEMARC_FAKE_GPU");
  if (text == nullptr) return;
  unsigned tpcs = 0;
  const int read = std::sscanf(text, "version=%d,offset=%u,client=%x", &config.cuda_version,
                               &config.stream_offset, &tpcs);
  if (read < 3) return;
  std::snprintf(config.name, sizeof config.name, "NVIDIA H100 80GB HBM3");
  config.client = tpcs;
  config.virtual_sms = tpcs != 0;
}

FakeStream* stream_of(CuStream stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return &FakeGpu::get().default_stream;
  return reinterpret_cast<FakeStream*>(stream);
}

}  // namespace demarc::fake

using namespace demarc::fake;  // NOLINT: the exported symbols below are not in a namespace
using demarc::cuda::cu_success;

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE void fake_configure(const FakeConfig* config) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  gpu.config = *config;
  for (FakeStream* stream : gpu.destroyed) delete stream;
  gpu.destroyed.clear();
  gpu.launches = 0;
  gpu.streams_made = 0;
  gpu.copies = 0;
  // The same pages and the same noise for a test, whichever ran before it in the process.
  gpu.pages_made = 0;
  gpu.small_pieces = 0;
  gpu.random.seed(1);
  gpu.hanging = 0;
  gpu.fail_next = cu_success;
  gpu.broken = cu_success;
  gpu.unfinished.clear();
  gpu.default_stream.hangs = false;
  gpu.default_stream.capture.reset();
  gpu.captures.clear();
  gpu.watched.clear();
  clear_stream_field(gpu.default_stream);
}
FAKE std::uint64_t fake_launch_count() {
  const auto lock = locked();
  return FakeGpu::get().launches;
}
FAKE int fake_early_launches() {
  const auto lock = locked();
  return FakeGpu::get().early_launches;
}
FAKE std::uint64_t fake_hanging_launches() {
  return FakeGpu::get().hanging;
}
// Bit p: CUlibraryOption p came with the last library.
FAKE std::uint64_t fake_library_options() {
  const auto lock = locked();
  return FakeGpu::get().library_options;
}
FAKE int fake_launch_priority() {
  const auto lock = locked();
  return FakeGpu::get().launch_priority;
}
FAKE std::uint64_t fake_async_copies(int to_card) {
  const auto lock = locked();
  return FakeGpu::get().async_copies[to_card != 0 ? 1 : 0];
}
FAKE std::uint64_t fake_allocated_bytes() {
  const auto lock = locked();
  std::uint64_t sum = 0;
  for (const auto& [address, bytes] : FakeGpu::get().allocated) sum += bytes;
  return sum;
}
FAKE std::uint64_t fake_copy_count() {
  return FakeGpu::get().copies;
}
FAKE std::uint32_t fake_last_domain() {
  return FakeGpu::get().last_domain;
}
FAKE std::int64_t fake_live_objects() {
  const auto lock = locked();
  const FakeGpu& gpu = FakeGpu::get();
  const std::size_t counted =
      gpu.modules.size() + gpu.streams.size() + gpu.allocated.size() + gpu.mapped.size();
  return gpu.contexts + static_cast<std::int64_t>(counted) + gpu.others_alive;
}
FAKE void fake_describe_as(int version) {
  const auto lock = locked();
  FakeGpu::get().config.descriptor_version = static_cast<std::uint8_t>(version);
}
FAKE void fake_fail_next_launch(int code) {
  FakeGpu::get().fail_next = code;
}
