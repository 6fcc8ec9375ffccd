// How kernels that know nothing of colours reach a share of a pool: how their PTX is rewritten and
// what they get as pointers (ptx/colored.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "demarc/color/translation.hpp"
#include "demarc/cuda/colored_memory.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::cuda {

class ColoredCode {
 public:
  using Addressing = std::variant<color::Parities, color::RemainderAddressing>;
  // `window`: the address of linear byte 0 that a kernel gets and `addressing` translates. `card`:
  // the card on which the code runs.
  ColoredCode(DevicePointer window, Addressing addressing, gpu::ComputeCapability card)
      : window_(window), addressing_(std::move(addressing)), card_(card) {}
  // The pool must have one region (PoolPages::one_region), because then positions alone decide
  // colours.
  static Result<ColoredCode> of(const ColoredPool& pool, std::size_t share);

  // The module with all memory of its kernels in the share. With ptx::PlacesAtLoad the text serves
  // every share of these colours, wherever it lies; remainders are then also in constants(). If the
  // share is so small that its quotients need no shift, the text serves only such shares. This sets
  // the card in the options.
  [[nodiscard]] Result<ptx::ColoredModule> rewrite(const ptx::Module& module,
                                                   ptx::ColoredOptions options = {}) const;
  // The content of the variable `demarc_colors` of a module that was rewritten with
  // ptx::PlacesAtLoad.
  [[nodiscard]] std::vector<std::byte> constants(const ptx::ColoredPlaces& places) const;
  // The address that a kernel gets for byte `linear` of the share, such as ColoredBuffer::first().
  [[nodiscard]] std::uint64_t pointer(std::uint64_t linear) const { return window_ + linear; }

 private:
  [[nodiscard]] Result<ptx::Translation> translation_for(const ptx::Module& module,
                                                         const ptx::ColoredOptions& options) const;
  DevicePointer window_;
  Addressing addressing_;
  gpu::ComputeCapability card_;
};

}  // namespace demarc::cuda
