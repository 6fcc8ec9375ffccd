// Memory of cards, in physical pieces of one size, under one range of addresses. It is memory of
// one card for another or for itself, to measure reaches of TLBs; or of several cards for all of
// them, if a launch is split over cards.
#pragma once

#include <span>
#include <vector>

#include "demarc/driver/memory.hpp"

namespace demarc::cuda {

class MappedPieces {
 public:
  // `count` pieces of `piece_bytes` of the memory of `owner`, mapped one after the other for `gpu`
  // at an address that is a multiple of piece_bytes. What they hold is not known. invalid_input
  // when there is none; missing_capability where the driver maps no pieces so small, where `gpu`
  // does not reach the memory of `owner`, or without virtual memory management.
  static Result<MappedPieces> create(GpuPointer gpu, GpuPointer owner, std::uint64_t piece_bytes,
                                     std::uint64_t count);
  // Piece i is memory of the card gpus[owners[i]]; all of them reach it. Errors as above.
  static Result<MappedPieces> create(const std::vector<GpuPointer>& gpus,
                                     std::span<const std::uint32_t> owners,
                                     std::uint64_t piece_bytes);

  [[nodiscard]] DevicePointer address() const { return range_.address(); }
  [[nodiscard]] std::uint64_t bytes() const { return range_.bytes(); }

 private:
  // Without access yet.
  template <class OwnerOf>
  static Result<MappedPieces> map_pieces(GpuPointer gpu, std::uint64_t piece_bytes,
                                         std::uint64_t count, OwnerOf owner_of);
  MappedPieces(std::vector<PhysicalMemory> memory, AddressRange range)
      : memory_(std::move(memory)), range_(std::move(range)) {}
  std::vector<PhysicalMemory> memory_;
  AddressRange range_;
};

// missing_capability if one of the cards cannot reach the memory of another, or maps no pieces of
// that size.
[[nodiscard]] Result<void> check_pieces(const std::vector<GpuPointer>& gpus,
                                        std::uint64_t piece_bytes);
// missing_capability, with the reason, if kernels of `gpu` cannot reach the memory of `peer`.
[[nodiscard]] Result<void> check_reach(const Gpu& gpu, const Gpu& peer);
// The same if the link between them carries no atomics, and if the bus to the host carries none.
[[nodiscard]] Result<void> check_atomics(const Gpu& gpu, const Gpu& peer);
[[nodiscard]] Result<void> check_host_atomics(const Gpu& gpu);

}  // namespace demarc::cuda
