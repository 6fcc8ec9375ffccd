// Shows that code as it is reaches, at a window's addresses, just the bytes that arithmetic reaches
// there: the page table and the law of the colours lead to the same places.
//
// Every page is asked, by its content. Numbers are written by arithmetic and read through the page
// table, so that a page that leads elsewhere is read and never written. Which colours the places
// have that arithmetic reaches is the owner's proof.
#pragma once

#include <cstdint>
#include <vector>

#include "calls/window_copies.hpp"
#include "demarc/base/result.hpp"
#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

class WindowProof {
 public:
  // Both outlive the object. A context is current where it is used.
  WindowProof(const DriverApi& api, const WindowCopies& copies) : api_(api), copies_(copies) {}

  // For memory that the program does not have yet: each page gets a number of its own, and is zero
  // in the end. `bytes` is a multiple of gpu::smallest_page_bytes. check_failed where a page leads
  // elsewhere.
  [[nodiscard]] Result<void> number(DevicePointer first, std::uint64_t bytes) const;
  // For memory that the program has: words of each page are read both ways. A page that differs is
  // looked at again, because kernels may be writing it. It leads elsewhere where both ways stay as
  // they are; missing_capability where they change and are never the same. Equal content is weaker
  // evidence than numbers.
  [[nodiscard]] Result<void> compare(DevicePointer first, std::uint64_t bytes) const;

 private:
  enum class Way { arithmetic, page_table };
  // Whether a word was the same both ways in some look; unclear: it changed and never was.
  enum class Sameness { seen, unclear, never };
  struct BothWays {
    std::vector<std::uint64_t> by_arithmetic;
    std::vector<std::uint64_t> by_table;
  };
  // The word of each page at the same place in it.
  [[nodiscard]] Result<std::vector<std::uint64_t>> read(Way way, DevicePointer first,
                                                        std::uint64_t pages, CuStream stream) const;
  // At a word that had these values.
  [[nodiscard]] Result<Sameness> look_again(DevicePointer at, std::uint64_t by_arithmetic,
                                            std::uint64_t by_table, CuStream stream) const;
  [[nodiscard]] Result<BothWays> read_both(DevicePointer first, std::uint64_t pages,
                                           CuStream stream) const;

  const DriverApi& api_;
  const WindowCopies& copies_;
};

}  // namespace demarc::cuda
