// How kernels that know nothing of colours reach a share of a pool: what is to be done to their PTX
// and what they get as pointers (ptx/colored.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "demarc/cuda/colored_memory.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::cuda {

class ColoredCode {
 public:
  using Addressing = std::variant<ptx::ColoredAddressing, ptx::RemainderAddressing>;
  // `window`: what a kernel gets as the address of linear byte 0, as `addressing` translates it.
  // `card`: the one that the code runs on.
  ColoredCode(DevicePointer window, Addressing addressing, gpu::ComputeCapability card)
      : window_(window), addressing_(std::move(addressing)), card_(card) {}
  // The pool must have one region (PoolPages::one_region): positions alone decide colours then.
  static Result<ColoredCode> of(const ColoredPool& pool, std::size_t share);

  // The module with all memory of its kernels in the share. With ptx::PlacesAtLoad the text serves
  // every share of these colours, wherever it lies: remainders are then in constants() too. But
  // that of a share so small that its quotients need no shift serves such shares alone. The card is
  // set in the options.
  [[nodiscard]] Result<ptx::ColoredModule> rewrite(const ptx::Module& module,
                                                   ptx::ColoredOptions options = {}) const;
  // For the variable `demarc_colors` of a module that was rewritten with ptx::PlacesAtLoad.
  [[nodiscard]] std::vector<std::byte> constants(const ptx::ColoredPlaces& places) const;
  // What a kernel gets as the address of byte `linear` of the share, such as
  // ColoredBuffer::first().
  [[nodiscard]] std::uint64_t pointer(std::uint64_t linear) const { return window_ + linear; }

 private:
  DevicePointer window_;
  Addressing addressing_;
  gpu::ComputeCapability card_;
};

}  // namespace demarc::cuda
