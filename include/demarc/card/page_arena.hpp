// Physical pages under one range of virtual addresses, in an order that can be changed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "demarc/color/place.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::cuda {

// Pages of addresses beside those of an arena that are kept free of memory. An access that goes
// beyond the arena by at most so many pages faults.
struct GuardPages {
  std::uint64_t in_front = 0;
  std::uint64_t behind = 0;
};

class PageArena {
 public:
  // `pages` pages of the driver's granularity (2 MiB on the cards seen), mapped one after the
  // other, filled with zeros.
  static Result<PageArena> create(GpuPointer gpu, std::uint64_t pages,
                                  Lending lending = Lending::none);

  [[nodiscard]] DevicePointer address() const {
    return range_.address() + guards_.in_front * page_bytes_;
  }
  [[nodiscard]] GuardPages guards() const { return guards_; }
  [[nodiscard]] std::uint64_t page_bytes() const { return page_bytes_; }
  [[nodiscard]] std::uint64_t pages() const { return memory_.size(); }
  [[nodiscard]] const GpuPointer& gpu() const { return gpu_; }
  [[nodiscard]] Lending lending() const { return lending_; }

  // A file descriptor with which another process maps page `page`, counted in their order now
  // (PhysicalMemory::lend()). Page pages() is the one that is kept aside.
  [[nodiscard]] Result<OwnedFile> lend_page(color::ArenaPage page) const;

  // Page order[i] comes to place i; pages that `order` leaves out go back to the driver. Contents
  // stay with the pages. The address of the arena changes.
  // Page `aside`, which is not in the order, is kept beside the arena at an address of its own. The
  // pages in front of the arena, or its first one, begin at a multiple of `aligned_to` pages.
  [[nodiscard]] Result<void> arrange(std::span<const std::uint32_t> order, GuardPages guards = {},
                                     std::optional<std::uint32_t> aside = {},
                                     std::uint64_t aligned_to = 1);
  // The address of the page that is kept aside; 0: there is none.
  [[nodiscard]] DevicePointer aside() const { return aside_ ? aside_->range.address() : 0; }
  // Writes bytes of that page from `at` on. Kernels can only read it.
  [[nodiscard]] Result<void> fill_aside(std::uint64_t at, std::span<const std::byte> bytes) const;

 private:
  struct Aside {
    PhysicalMemory memory;
    AddressRange range;
  };
  PageArena(GpuPointer gpu, std::vector<PhysicalMemory> memory, AddressRange range,
            std::uint64_t page_bytes, Lending lending)
      : gpu_(std::move(gpu)),
        memory_(std::move(memory)),
        range_(std::move(range)),
        page_bytes_(page_bytes),
        lending_(lending) {}
  GpuPointer gpu_;
  std::vector<PhysicalMemory> memory_;
  AddressRange range_;
  GuardPages guards_;
  std::optional<Aside> aside_;
  std::uint64_t page_bytes_ = 0;
  Lending lending_ = Lending::none;
};

}  // namespace demarc::cuda
