// Watches libcuda's ioctls while it maps memory, and makes such ioctls of its own.
#include "demarc/driver/page_mappings.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>

#include "demarc/driver/import_slot.hpp"

namespace demarc::cuda {
namespace {

using Ioctl = int (*)(int file, unsigned long command, void* argument);

// UVM_MAP_EXTERNAL_ALLOCATION, a plain number where other files of the driver have numbers with
// directions and sizes in them.
constexpr unsigned long map_command = 33;
constexpr unsigned long unmap_command = 66;  // UVM_UNMAP_EXTERNAL
constexpr std::uint32_t status_ok = 0;
constexpr std::uint32_t status_no_more = 0x1a;  // NV_ERR_INSUFFICIENT_RESOURCES

// UvmGpuMappingAttributes.
struct Attributes {
  CuUuid processor;
  std::uint32_t mapping, caching, format, element_bits, compression;
};
static_assert(sizeof(Attributes) == 36);

// UVM_MAP_EXTERNAL_ALLOCATION_PARAMS is Front, Attributes of each processor, Back.
struct Front {
  std::uint64_t address, bytes, offset;
};
struct Back {
  std::uint64_t processors;
  MappedMemory memory;
  std::uint32_t status;
};
static_assert(sizeof(Front) == 24 && sizeof(MappedMemory) == 12 && sizeof(Back) == 24);

// UVM_UNMAP_EXTERNAL_PARAMS.
struct Unmap {
  std::uint64_t address, bytes;
  CuUuid processor;
  std::uint32_t status;
  std::uint32_t unused;
};
static_assert(sizeof(Unmap) == 40);

struct KnownVersions {
  unsigned first, last;  // 580 of 580.159.04
  std::size_t processors;
};
constexpr KnownVersions known_versions[] = {{515, 550, 32}, {555, 595, 256}};

std::size_t parameter_bytes(std::size_t processors) {
  return sizeof(Front) + processors * sizeof(Attributes) + sizeof(Back);
}

template <class Part>
Part part_at(const std::vector<std::byte>& parameters, std::size_t at) {
  Part part;
  std::memcpy(&part, parameters.data() + at, sizeof part);
  return part;
}

template <class Part>
void put_part(std::vector<std::byte>& parameters, std::size_t at, const Part& part) {
  std::memcpy(parameters.data() + at, &part, sizeof part);
}

Back back_of(const std::vector<std::byte>& parameters) {
  return part_at<Back>(parameters, parameters.size() - sizeof(Back));
}

// What libcuda asked for while a thread recorded.
struct Recording {
  std::size_t bytes = 0;  // bytes of a call's parameters
  std::vector<std::vector<std::byte>> calls;
  int file = -1;
};
thread_local Recording* recording = nullptr;

std::atomic<Ioctl> kernel_module{nullptr};

int watched_ioctl(int file, unsigned long command, void* argument) {
  const int result = kernel_module.load(std::memory_order_relaxed)(file, command, argument);
  const int error = errno;
  if (recording != nullptr && command == map_command && argument != nullptr) {
    const auto* first = static_cast<const std::byte*>(argument);
    recording->calls.emplace_back(first, first + recording->bytes);
    recording->file = file;
  }
  errno = error;
  return result;
}

// "580.159.04" of ".../libcuda.so.580.159.04"; empty where the name has none.
std::string version_of(const void* inside) {
  Dl_info library{};
  if (::dladdr(inside, &library) == 0 || library.dli_fname == nullptr) return {};
  std::error_code error;
  const auto path = std::filesystem::canonical(library.dli_fname, error);
  const std::string name = error ? std::string() : path.filename().string();
  constexpr std::string_view before = "libcuda.so.";
  return name.starts_with(before) ? name.substr(before.size()) : std::string();
}

}  // namespace

std::size_t mapped_processors(std::string_view version) {
  unsigned major = 0;
  const auto read = std::from_chars(version.data(), version.data() + version.size(), major);
  if (read.ec != std::errc() || read.ptr == version.data() + version.size() || *read.ptr != '.') {
    return 0;
  }
  for (const KnownVersions& known : known_versions) {
    if (major >= known.first && major <= known.last) return known.processors;
  }
  return 0;
}

Result<PageMappings*> PageMappings::install(const DriverApi& api) {
  static std::mutex mutex;
  static std::unique_ptr<PageMappings> installed;
  const std::lock_guard lock(mutex);
  if (installed != nullptr) return installed.get();
  const auto* inside = reinterpret_cast<const void*>(api.cuInit);
  const std::string version = version_of(inside);
  const std::size_t processors = mapped_processors(version);
  if (processors == 0) {
    return missing_capability(
        "libcuda {}: it is not known how this version maps memory by pages; versions 515 to 595 "
        "are: windows are refused, and programs with PTX need none",
        version.empty() ? "without a version in its file's name" : version);
  }
  DEMARC_TRY(const ImportSlot slot, ImportSlot::find(inside, "ioctl"));
  kernel_module.store(reinterpret_cast<Ioctl>(const_cast<void*>(slot.function())));
  DEMARC_CHECK(slot.set(reinterpret_cast<const void*>(&watched_ioctl)));
  installed.reset(new PageMappings(processors));
  return installed.get();
}

Result<MappedMemory> PageMappings::record(DevicePointer address, std::uint64_t bytes,
                                          const CuUuid& card,
                                          const std::function<Result<void>()>& map) {
  Recording seen;
  seen.bytes = parameter_bytes(processors_);
  recording = &seen;
  const Result<void> mapped = map();
  recording = nullptr;
  if (!mapped) return tl::unexpected(mapped.error());
  if (seen.calls.size() != 1) {
    return check_failed("the driver mapped memory by {} calls of the kernel module, not by one",
                        seen.calls.size());
  }
  const std::vector<std::byte>& call = seen.calls.front();
  const auto front = part_at<Front>(call, 0);
  const auto attributes = part_at<Attributes>(call, sizeof(Front));
  const Back back = back_of(call);
  if (front.address != address || front.bytes != bytes || front.offset != 0 ||
      back.processors != 1 || back.status != status_ok ||
      std::memcmp(&attributes.processor, &card, sizeof card) != 0) {
    return check_failed(
        "the driver maps memory by calls that are not laid out as known: {} bytes at {:#x} from "
        "{:#x} on for {} processors, status {:#x}",
        front.bytes, front.address, front.offset, back.processors, back.status);
  }
  const std::lock_guard lock(mutex_);
  like_ = call;
  file_ = seen.file;
  return back.memory;
}

Result<void> PageMappings::clear(DevicePointer address, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (like_.empty()) return check_failed("no mapping of the driver was recorded");
  Unmap given{address, bytes, part_at<Attributes>(like_, sizeof(Front)).processor, status_ok, 0};
  if (kernel_module.load()(file_, unmap_command, &given) != 0) {
    return missing_capability("the kernel module takes no calls of ours: {}", std::strerror(errno));
  }
  if (given.status == status_ok) return {};
  return check_failed("the kernel module did not unmap {} bytes at {:#x}: status {:#x}", bytes,
                      address, given.status);
}

Result<void> PageMappings::map(DevicePointer address, std::uint64_t bytes, std::uint64_t offset,
                               const MappedMemory& memory) {
  const std::lock_guard lock(mutex_);
  if (like_.empty()) return check_failed("no mapping of the driver was recorded");
  put_part(like_, 0, Front{address, bytes, offset});
  Back back = back_of(like_);
  back.memory = memory;
  back.status = status_ok;
  put_part(like_, like_.size() - sizeof back, back);
  const int result = kernel_module.load()(file_, map_command, like_.data());
  if (result != 0) {
    return missing_capability("the kernel module takes no calls of ours: {}", std::strerror(errno));
  }
  back = back_of(like_);
  if (back.status == status_ok) return {};
  if (back.status == status_no_more) {
    return missing_capability(
        "the kernel module has no more mappings: {} are all that the programs of this machine can "
        "have at a time",
        max_mapped_pieces);
  }
  return check_failed("the kernel module did not map {} bytes at {:#x}: status {:#x}", bytes,
                      address, back.status);
}

}  // namespace demarc::cuda
