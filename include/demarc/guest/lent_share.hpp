// A share of a coloured pool that other processes use. The owner takes the memory, finds the
// colours and lends pages by file descriptors; a borrower maps those that it uses in the owner's
// order and needs no measurement. Pages hold all colours. The borrower's code keeps to one share,
// so a borrower may run only rewritten kernels.
//
// Pointers of kernels are addresses of a window. It is reserved, as long as the share. Rewritten
// kernels translate them. Nothing is mapped there, so that a kernel or a copy that knows nothing of
// colours faults, unless show() has mapped just the share's own bytes there, each at its address.
// The driver gave the window, so no memory of the process lies there, nor do the windows that the
// GPU has for shared and local memory.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/driver/memory.hpp"
#include "demarc/driver/page_mappings.hpp"
#include "demarc/guest/colored_code.hpp"
#include "demarc/lease/share.hpp"

namespace demarc::cuda {

// ColoredPool::lend(): numbers that mean the same in every process.
struct LentShare : lease::Share {
  std::string card;  // UUID, as Gpu::uuid() says it
};

// The share in the process that borrows. It owns the mappings: they end with it. The lender keeps
// the pages.
class BorrowedShare {
 public:
  // The descriptors of pages of the run, in their order, at least that of the first. They are
  // closed before the next call. The page behind the arena's last is the one with
  // LentShare::patterns_at and places_at.
  using Lender = std::function<Result<std::vector<OwnedFile>>(const color::PageRun& run)>;

  // Maps no page of the arena. `table` is ColoredPool::table(). invalid_input if what is lent is of
  // another card or does not fit together; missing_capability if the driver gives no addresses that
  // fit. An error leaves nothing behind.
  static Result<BorrowedShare> open(GpuPointer gpu, const LentShare& lent,
                                    std::span<const std::byte> table, Lender lender);

  // The extent, of at least one byte, can be used from then on: those of its pages that are not
  // mapped are asked for. invalid_input if the share has no such bytes, or if descriptors are
  // missing, too many or no memory. Errors of the lender and of the driver are also returned. Pages
  // of earlier calls of the lender stay mapped. One thread at a time may call it; kernels may run.
  [[nodiscard]] Result<void> map(const color::Extent& extent);

  // From now on map() notes what show() needs. Before the first map(). missing_capability where the
  // colours change within a page or the driver's version is not known.
  [[nodiscard]] Result<void> prepare_showing();
  // The bytes of whole pages of the window lie at its addresses from then on, so that any code
  // reaches them there. They were given to map(). Errors leave none of them there.
  [[nodiscard]] Result<void> show(const color::Extent& extent);
  // Pages of the arena with bytes of the extent are mapped no more, so that the process reaches
  // these bytes by the window alone, and none of another share. map() maps them again.
  [[nodiscard]] Result<void> leave_arena(const color::Extent& extent);
  // They are taken away there. No kernel uses them.
  void hide(const color::Extent& extent);
  [[nodiscard]] std::uint64_t shown_bytes() const { return shown_.size() * lent_.page_bytes; }
  // Mappings that these take, of max_mapped_pieces.
  [[nodiscard]] std::uint64_t pieces() const { return pieces_; }

  // The address that a kernel gets for linear byte 0; bytes() bytes may be used.
  [[nodiscard]] color::DeviceAddress window() const {
    return color::DeviceAddress(window_.address());
  }
  [[nodiscard]] std::uint64_t bytes() const { return lent_.bytes; }
  // Where the pages are mapped; only for rewritten code.
  [[nodiscard]] color::DeviceAddress arena() const {
    return color::DeviceAddress(arena_.address()) + in_front_;
  }
  [[nodiscard]] std::uint64_t arena_bytes() const { return lent_.pages * lent_.page_bytes; }
  // What else is mapped, as address and bytes: tables of remainders.
  [[nodiscard]] std::vector<std::pair<DevicePointer, std::uint64_t>> tables() const;
  // For kernels that knew nothing of colours.
  [[nodiscard]] ColoredCode code() const;

 private:
  BorrowedShare(GpuPointer gpu, LentShare lent, Lender lender, AddressRange arena,
                AddressRange window, std::uint64_t in_front)
      : gpu_(std::move(gpu)),
        lent_(std::move(lent)),
        lender_(std::move(lender)),
        arena_(std::move(arena)),
        window_(std::move(window)),
        in_front_(in_front),
        mapped_(lent_.pages) {}
  [[nodiscard]] color::PageRun pages_of(const color::Extent& extent) const {
    return lent_.law->pages_of(extent, lent_.page_bytes);
  }
  // For a page in the arena's range.
  [[nodiscard]] std::uint64_t offset_of(color::ArenaPage page) const {
    return in_front_ + page.raw() * lent_.page_bytes;
  }
  [[nodiscard]] Result<void> map_pages(color::PageRun run);
  [[nodiscard]] Result<void> borrow_tables(std::span<const std::byte> table);
  [[nodiscard]] Result<void> map_batch(color::ArenaPage first, const std::vector<OwnedFile>& batch);
  [[nodiscard]] Result<void> allow(color::ArenaPage first, std::uint64_t count);
  [[nodiscard]] Result<void> show_page(std::uint64_t offset);

  GpuPointer gpu_;
  LentShare lent_;
  Lender lender_;
  AddressRange arena_;
  AddressRange window_;
  std::uint64_t in_front_ = 0;  // bytes of the arena's range that its pages leave free
  std::vector<bool> mapped_;    // of the arena's pages
  CuUuid card_ = {};
  PageMappings* mappings_ = nullptr;              // null: nothing can be shown
  std::vector<std::byte> law_table_;              // for show()
  std::vector<MappedMemory> memory_;              // memory of the arena's mapped pages, for show()
  std::map<std::uint64_t, std::uint64_t> shown_;  // offset of a page of the window -> its pieces
  std::uint64_t pieces_ = 0;
  std::optional<AddressRange> lent_tables_;  // tables of remainders: the page with the share's own
  std::optional<DeviceBuffer> table_;        // where one of them is not in that page
};

}  // namespace demarc::cuda
