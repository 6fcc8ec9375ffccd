// What the kernel sees of the driver: a device file that is asked for each context, and one that
// maps memory.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "demarc/driver/import_slot.hpp"
#include "fake_state.hpp"

namespace demarc::fake {
namespace {

constexpr unsigned long map_command = 33;
constexpr std::uint32_t own_client = 0xc1d00001;
constexpr std::uint32_t status_no_more = 0x1a;
constexpr std::uint32_t status_invalid_address = 0x1e;
constexpr std::uint32_t status_invalid = 0x1f;
constexpr unsigned long unmap_command = 66;
constexpr std::uint32_t read_only = 3;
constexpr std::uint64_t smallest_page = 4096;

// uvm_ioctl.h and uvm_types.h of versions from 555 on.
struct MapParameters {
  struct Attributes {
    cuda::CuUuid processor;
    std::uint32_t mapping, caching, format, element_bits, compression;
  };
  std::uint64_t address, bytes, offset;
  Attributes attributes[256];
  std::uint64_t processors;
  std::int32_t control_file;
  std::uint32_t client, memory, status;
};
static_assert(sizeof(MapParameters) == 9264);

int mapping_file() {
  static const int file = ::memfd_create("nvidia-uvm", MFD_CLOEXEC);
  return file;
}

struct UnmapParameters {
  std::uint64_t address, bytes;
  cuda::CuUuid processor;
  std::uint32_t status;
};

// Page tables have pages of three sizes; the largest that fits is taken.
std::uint64_t page_for(std::uint64_t alignments) {
  for (const std::uint64_t bytes : {fake_page, std::uint64_t{64} << 10U}) {
    if (alignments % bytes == 0) return bytes;
  }
  return smallest_page;
}

// A mapping is divided between its pages alone.
bool divides(const FakeGpu& gpu, DevicePointer address) {
  const auto piece = gpu.piece_at(address);
  return !piece || address % page_for(piece->alignments) == 0;
}

// Those behind and in front of the bytes stay.
void cut_out(FakeGpu& gpu, DevicePointer address, std::uint64_t bytes) {
  const DevicePointer end = address + bytes;
  auto next = gpu.pieces.lower_bound(address);
  if (next != gpu.pieces.begin()) {
    auto& [first, before] = *std::prev(next);
    const DevicePointer before_end = first + before.bytes;
    if (before_end > end) {
      FakePiece behind = before;
      behind.bytes = before_end - end;
      behind.offset += end - first;
      gpu.pieces.emplace(end, behind);
    }
    before.bytes = std::min<std::uint64_t>(before.bytes, address - first);
  }
  while (next != gpu.pieces.end() && next->first < end) {
    FakePiece behind = next->second;
    const DevicePointer piece_end = next->first + behind.bytes;
    const DevicePointer first = next->first;
    next = gpu.pieces.erase(next);
    if (piece_end <= end) continue;
    behind.bytes = piece_end - end;
    behind.offset += end - first;
    gpu.pieces.emplace(end, behind);
  }
}

// Parts of a mapping that others were laid over are one.
std::size_t mappings_of(const FakeGpu& gpu) {
  std::set<std::uint64_t> all;
  for (const auto& [address, piece] : gpu.pieces) all.insert(piece.mapping);
  return all.size();
}

// Whatever else is mapped there: the range must be one that the driver has made.
std::uint32_t map(MapParameters& given) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  const auto memory = gpu.memory.find(given.memory);
  if ((given.address | given.bytes | given.offset) % smallest_page != 0 || given.bytes == 0 ||
      given.processors != 1 || given.client != own_client || memory == gpu.memory.end() ||
      given.offset > memory->second.bytes || given.bytes > memory->second.bytes - given.offset) {
    return status_invalid;
  }
  const std::uint64_t last = given.address + given.bytes - 1;
  for (const std::uint64_t one : {given.address, last}) {
    if (!gpu.by_kernel.contains(one / fake_page * fake_page)) return status_invalid;
  }
  if (!divides(gpu, given.address) || !divides(gpu, last + 1)) return status_invalid_address;
  const std::size_t most = gpu.config.max_pieces;
  if (gpu.pieces.size() >= most && mappings_of(gpu) >= most) return status_no_more;
  std::uint64_t leads_to = given.offset;
  // What is misled leads to other bytes of its page.
  const std::uint32_t misled_from = gpu.config.misled_from;
  if (given.bytes < fake_page && ++gpu.small_pieces >= misled_from && misled_from != 0) {
    leads_to = given.offset == 0 ? smallest_page : 0;
  }
  void* const target = reinterpret_cast<void*>(given.address);  // NOLINT
  const int rights = given.attributes[0].mapping == read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  const auto offset = static_cast<off_t>(leads_to);
  if (::mmap(target, given.bytes, rights, MAP_SHARED | MAP_FIXED, memory->second.file, offset) !=
      target) {
    return status_no_more;
  }
  cut_out(gpu, given.address, given.bytes);
  gpu.pieces[given.address] = {given.bytes, leads_to, memory->second.physical,
                               given.address | given.bytes | given.offset, ++gpu.mappings_made};
  return 0;
}

// For one range that the driver has made.
std::uint32_t unmap(const UnmapParameters& given) {
  const auto lock = locked();
  FakeGpu& gpu = FakeGpu::get();
  const DevicePointer page = given.address / fake_page * fake_page;
  const bool one_range = given.bytes <= page + fake_page - given.address;
  if (!one_range || !gpu.by_kernel.contains(page) || !divides(gpu, given.address) ||
      !divides(gpu, given.address + given.bytes)) {
    return status_invalid_address;
  }
  unmap_pieces(gpu, given.address, given.bytes);
  return 0;
}

int kernel_of_the_stand_in(int file, unsigned long command, void* argument) {
  if (file == mapping_file() && command == map_command) {
    auto& given = *static_cast<MapParameters*>(argument);
    given.status = map(given);
  } else if (file == mapping_file() && command == unmap_command) {
    auto& given = *static_cast<UnmapParameters*>(argument);
    given.status = unmap(given);
  } else {
    return static_cast<int>(::syscall(SYS_ioctl, file, command, argument));
  }
  return 0;
}

// The driver's calls reach the kernel by the word that holds the address of ioctl().
[[maybe_unused]] const bool has_kernel = [] {
  const auto slot = cuda::ImportSlot::find(reinterpret_cast<const void*>(&mapping_file), "ioctl");
  return slot && slot->set(reinterpret_cast<const void*>(&kernel_of_the_stand_in));
}();

}  // namespace

CuResult map_by_kernel(DevicePointer address, std::size_t bytes, cuda::AllocationHandle handle,
                       bool writes) {
  MapParameters call{};
  call.address = address;
  call.bytes = bytes;
  call.attributes[0].processor = card_uuid(FakeGpu::get().memory.at(handle).card);
  call.attributes[0].mapping = writes ? 0 : read_only;
  call.processors = 1;
  call.control_file = mapping_file();
  call.client = own_client;
  call.memory = static_cast<std::uint32_t>(handle);
  for (int i = 0; i < FakeGpu::get().config.map_calls; ++i) {
    if (::ioctl(mapping_file(), map_command, &call) != 0 || call.status != 0) return 2;
  }
  return cuda::cu_success;
}

void unmap_pieces(FakeGpu& gpu, DevicePointer address, std::size_t bytes) {
  cut_out(gpu, address, bytes);
  void* const first = reinterpret_cast<void*>(address);  // NOLINT
  ::mmap(first, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

CuResult register_context(const cuda::CuUuid& card) {
  constexpr unsigned long register_card = 25;
  constexpr CuResult error_not_permitted = 800;
  std::string folder = (std::filesystem::temp_directory_path() / "demarc-fake-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return error_not_permitted;
  const std::string path = folder + "/nvidia-uvm";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // An ordinary file refuses every such call; what counts is who else does.
  const bool kept_off =
      ::ioctl(file, register_card, &card) != 0 && (errno == EPERM || errno == ENOSYS);
  ::close(file);
  std::filesystem::remove_all(folder);
  return kept_off ? error_not_permitted : cuda::cu_success;
}

cuda::CuUuid card_uuid(int device) {
  const char* chosen = std::getenv("DEMARC_FAKE_CARD");
  cuda::CuUuid uuid{};
  const long first =
      chosen == nullptr ? FakeGpu::get().config.uuid : std::strtol(chosen, nullptr, 16);
  const auto byte = static_cast<char>(first - device);
  std::fill_n(uuid.bytes, sizeof uuid.bytes, byte);
  return uuid;
}

}  // namespace demarc::fake
