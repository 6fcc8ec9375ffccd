// How kernels that know nothing of colours reach a share of a pool: how their PTX is rewritten and
// what they get as pointers (ptx/colored.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "demarc/color/law.hpp"
#include "demarc/device/device.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::cuda {

class ColoredCode {
 public:
  // `place`: where the share is used. `card`: the card on which the code runs.
  ColoredCode(const color::SharePlace& place, color::LawPtr law, gpu::ComputeCapability card)
      : place_(place), law_(std::move(law)), card_(card) {}

  // The module with all memory of its kernels in the share. With ptx::PlacesAtLoad the text serves
  // every share of these colours, wherever it lies, with its constants(). This sets the card in the
  // options.
  [[nodiscard]] Result<ptx::ColoredModule> rewrite(const ptx::Module& module,
                                                   ptx::ColoredOptions options = {}) const;
  // The content of the variable `demarc_colors` of a module that was rewritten with
  // ptx::PlacesAtLoad.
  [[nodiscard]] std::vector<std::byte> constants(const ptx::ColoredPlaces& places) const;
  // The address that a kernel gets for a byte of the share, such as ColoredBuffer::first().
  [[nodiscard]] color::DeviceAddress pointer(color::LinearByte linear) const {
    return place_.pointer(linear);
  }

 private:
  color::SharePlace place_;
  color::LawPtr law_;
  gpu::ComputeCapability card_;
};

}  // namespace demarc::cuda
