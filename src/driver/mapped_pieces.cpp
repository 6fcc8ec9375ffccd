// Maps physical pieces of one size, of this card or of a peer, side by side.
#include "demarc/driver/mapped_pieces.hpp"

namespace demarc::cuda {

Result<void> check_reach(const Gpu& gpu, const Gpu& peer) {
  if (gpu.handle() == peer.handle()) return {};
  const auto can_access = gpu.api().cuDeviceCanAccessPeer;
  if (can_access == nullptr) {
    return missing_capability("{}: the driver does not say whether cards reach each other",
                              gpu.driver().origin());
  }
  DEMARC_TRY(const int reaches,
             gpu.ask("cannot ask for peer access", can_access, gpu.handle(), peer.handle()));
  if (reaches != 0) return {};
  return missing_capability(
      "{} (cuda:{}) does not reach the memory of {} (cuda:{}): the driver gives no peer access",
      gpu.name(), gpu.index(), peer.name(), peer.index());
}

Result<void> check_atomics(const Gpu& gpu, const Gpu& peer) {
  if (gpu.handle() == peer.handle()) return {};
  const auto read = gpu.api().cuDeviceGetP2PAttribute;
  if (read == nullptr) {
    return missing_capability("{}: the driver does not say whether links carry atomics",
                              gpu.driver().origin());
  }
  DEMARC_TRY(const int carried, gpu.ask("cannot ask for atomics over the link", read,
                                        peer_attribute_atomics, gpu.handle(), peer.handle()));
  if (carried != 0) return {};
  return missing_capability("the link between {} (cuda:{}) and {} (cuda:{}) carries no atomics",
                            gpu.name(), gpu.index(), peer.name(), peer.index());
}

Result<void> check_host_atomics(const Gpu& gpu) {
  DEMARC_TRY(const int carried, gpu.attribute(attribute_host_atomics));
  if (carried != 0) return {};
  return missing_capability("the bus between {} (cuda:{}) and the host carries no atomics",
                            gpu.name(), gpu.index());
}

namespace {

Result<void> check_piece_size(const Gpu& owner, std::uint64_t piece_bytes) {
  DEMARC_TRY(const std::size_t least, PhysicalMemory::granularity(owner));
  if (piece_bytes % least == 0) return {};
  return missing_capability("{}: the driver maps no pieces of {} KiB, but multiples of {} KiB",
                            owner.name(), piece_bytes >> 10U, least >> 10U);
}

}  // namespace

Result<void> check_pieces(const std::vector<GpuPointer>& gpus, std::uint64_t piece_bytes) {
  for (const GpuPointer& gpu : gpus) {
    DEMARC_CHECK(check_piece_size(*gpu, piece_bytes));
    for (const GpuPointer& other : gpus) DEMARC_CHECK(check_reach(*gpu, *other));
  }
  return {};
}

template <class OwnerOf>
Result<MappedPieces> MappedPieces::map_pieces(GpuPointer gpu, std::uint64_t piece_bytes,
                                              std::uint64_t count, OwnerOf owner_of) {
  std::vector<PhysicalMemory> memory;
  memory.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    DEMARC_TRY(PhysicalMemory piece, PhysicalMemory::create(owner_of(i), piece_bytes));
    memory.push_back(std::move(piece));
  }
  DEMARC_TRY(AddressRange range,
             AddressRange::reserve(std::move(gpu), piece_bytes * count, piece_bytes));
  for (std::uint64_t i = 0; i < count; ++i) DEMARC_CHECK(range.map(i * piece_bytes, memory[i]));
  return MappedPieces(std::move(memory), std::move(range));
}

Result<MappedPieces> MappedPieces::create(GpuPointer gpu, GpuPointer owner,
                                          std::uint64_t piece_bytes, std::uint64_t count) {
  if (piece_bytes == 0 || count == 0) {
    return invalid_input("mapping {} pieces of {} bytes: this maps nothing", count, piece_bytes);
  }
  DEMARC_CHECK(check_reach(*gpu, *owner));
  DEMARC_CHECK(check_piece_size(*owner, piece_bytes));
  DEMARC_TRY(auto mapped, map_pieces(std::move(gpu), piece_bytes, count,
                                     [&](std::uint64_t) -> const GpuPointer& { return owner; }));
  DEMARC_CHECK(mapped.range_.allow(0, mapped.bytes()));
  return mapped;
}

Result<MappedPieces> MappedPieces::create(const std::vector<GpuPointer>& gpus,
                                          std::span<const std::uint32_t> owners,
                                          std::uint64_t piece_bytes) {
  if (gpus.empty() || owners.empty() || piece_bytes == 0) {
    return invalid_input("mapping {} pieces of {} bytes for {} cards: this maps nothing",
                         owners.size(), piece_bytes, gpus.size());
  }
  for (const std::uint32_t owner : owners) {
    if (owner < gpus.size()) continue;
    return invalid_input("a piece of card {} of {}: cards are numbered from 0", owner, gpus.size());
  }
  DEMARC_CHECK(check_pieces(gpus, piece_bytes));
  DEMARC_TRY(auto mapped, map_pieces(gpus.front(), piece_bytes, owners.size(),
                                     [&](std::uint64_t i) { return gpus.at(owners[i]); }));
  for (const GpuPointer& gpu : gpus) {
    DEMARC_CHECK(mapped.range_.allow_for(*gpu, 0, mapped.bytes()));
  }
  return mapped;
}

}  // namespace demarc::cuda
