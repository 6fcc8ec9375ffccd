// A share of a coloured pool that other processes use. The owner takes the memory, finds the
// colours and lends every page by a file descriptor; a borrower maps all pages in the owner's order
// and needs no measurement. Pages hold all colours: it is the borrower's code that keeps to one
// share, so that a borrower may run rewritten kernels alone.
//
// What kernels get as pointers are addresses of a window: reserved, as long as the share, and never
// mapped. Rewritten kernels translate them; a kernel or a copy that knows nothing of colours
// faults. As the driver gave the window away, no memory of the process lies there, nor do the
// windows that the GPU has for shared and local memory.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/cuda/colored_code.hpp"
#include "demarc/lease/share.hpp"

namespace demarc::cuda {

// ColoredPool::lend(): numbers that mean the same in every process.
struct LentShare : lease::Share {
  std::string card;  // UUID, as Gpu::uuid() says it
};

// Of the process that borrows. Owns the mappings: they end with it, and the owner keeps the pages.
class BorrowedShare {
 public:
  // `table` is ColoredPool::table(). `next_pages` is called until it has given every page's
  // descriptor, in their order, at least one a call; those of a call are closed before the next.
  // Errors, after which nothing is left behind: invalid_input where what is lent is of another
  // card, does not fit together, or where descriptors lack, are too many or are no memory;
  // missing_capability where the driver gives no addresses that fit; errors of `next_pages`.
  static Result<BorrowedShare> open(
      GpuPointer gpu, const LentShare& lent, std::span<const std::byte> table,
      const std::function<Result<std::vector<OwnedFile>>()>& next_pages);

  // What a kernel gets as the address of linear byte 0; bytes() of them may be used.
  [[nodiscard]] DevicePointer window() const { return window_.address(); }
  [[nodiscard]] std::uint64_t bytes() const { return lent_.bytes; }
  // Where the pages are mapped: for rewritten code alone.
  [[nodiscard]] DevicePointer arena() const { return arena_.address(); }
  [[nodiscard]] std::uint64_t arena_bytes() const { return arena_.bytes(); }
  // Of remainders; 0: none.
  [[nodiscard]] DevicePointer table() const { return table_ ? table_->address() : 0; }
  // For kernels that knew nothing of colours.
  [[nodiscard]] ColoredCode code() const;

 private:
  BorrowedShare(LentShare lent, AddressRange arena, AddressRange window)
      : lent_(std::move(lent)), arena_(std::move(arena)), window_(std::move(window)) {}
  LentShare lent_;
  AddressRange arena_;
  AddressRange window_;
  std::optional<DeviceBuffer> table_;  // of remainders
};

}  // namespace demarc::cuda
