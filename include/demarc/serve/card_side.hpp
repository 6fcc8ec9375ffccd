// What the server needs from the card that it divides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/device/tpc_set.hpp"
#include "demarc/lease/share.hpp"

namespace demarc::serve {

// Only one thread uses it. A set of colours names a share.
class CardSide {
 public:
  CardSide() = default;
  virtual ~CardSide() = default;
  CardSide(const CardSide&) = delete;
  CardSide& operator=(const CardSide&) = delete;

  [[nodiscard]] virtual const std::string& uuid() const = 0;
  [[nodiscard]] virtual std::uint64_t pages() const = 0;  // of the arena, in order
  [[nodiscard]] virtual std::uint64_t page_bytes() const = 0;
  // invalid_input for colours that the arena was not divided into.
  [[nodiscard]] virtual Result<lease::Share> share(const color::ColorSet& colors) const = 0;
  // What clients need to find the bytes of their colours; empty for parities.
  [[nodiscard]] virtual std::vector<std::byte> table() const = 0;
  // Descriptors of pages of the arena, in order. Page pages() is the one with
  // lease::Share::patterns_at.
  [[nodiscard]] virtual Result<std::vector<OwnedFile>> lend(const color::PageRun& run) const = 0;
  // Fills bytes of a share with zeros and waits until this is done.
  [[nodiscard]] virtual Result<void> scrub(const color::ColorSet& colors,
                                           const color::Extent& extent) = 0;
  // The card's words if it was reset, or if the context on it died: nothing can be relied on then.
  [[nodiscard]] virtual Result<void> check_alive() const = 0;
  // Proves with a probe kernel that a mask of these TPCs confines launches to them.
  [[nodiscard]] virtual Result<void> prove(const gpu::TpcSet& tpcs) = 0;
  // The mask of TPCs that were proved.
  [[nodiscard]] virtual Result<lease::ProvedMask> mask(const gpu::TpcSet& tpcs) const = 0;
  // Gives a program these TPCs, its first ones or others. The text names the program as
  // cuda::Control::open() takes it.
  [[nodiscard]] virtual Result<void> move(const std::string& control, const gpu::TpcSet& tpcs) = 0;
};

}  // namespace demarc::serve
