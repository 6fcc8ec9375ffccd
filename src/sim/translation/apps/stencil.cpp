// Makes the accesses of a 9-point stencil in tiles of 16 x 64 elements.
#include "arrays.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct StencilSettings {
  std::uint32_t alu = 4;
  std::uint32_t store_alu = 12;
  std::uint32_t iterations = 5;
  std::uint32_t multiple = 256;
};

// A work-group of one wave covers 16 rows x 64 columns; dimension 0 of the grid runs down the rows.
class Stencil final : public Application {
 public:
  Stencil(const Settings& settings, const StencilSettings& own)
      : layout_(settings), alu_(own.alu), store_alu_(own.store_alu) {
    side_ = square_side(data_bytes(settings), 8, own.multiple);
    pitch_ = (side_ + 2 + 15) / 16 * 16;
    for (auto& array : arrays_) array = layout_.add((side_ + 2) * pitch_ * 4);
    KernelShape shape;
    shape.groups_x = static_cast<std::uint32_t>(side_ / rows);
    shape.groups_y = static_cast<std::uint32_t>(side_ / wave_lanes);
    shape.vgprs = 79;
    shape.sgprs = 22;
    shape.lds_bytes = 4864;
    kernels_.assign(iterations_of(settings, own.iterations), shape);
  }
  [[nodiscard]] std::string_view name() const override { return "ST"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::roundrobin; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return kernels_; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    constexpr std::uint32_t read_rows = rows + 2;
    const std::uint64_t top = std::uint64_t{at.group % (side_ / rows)} * rows;
    const std::uint64_t left = std::uint64_t{at.group / (side_ / rows)} * wave_lanes;
    if (at.index >= 3 * read_rows + rows) return false;
    out.clear();
    out.wait = true;
    out.alu = alu_;
    const Address source = arrays_[at.kernel % 2];
    if (at.index < read_rows) {  // 64 columns of every row, one column in from the halo
      touch_wave(out, source + ((top + at.index) * pitch_ + left + 1) * 4, 4);
    } else if (at.index < 3 * read_rows) {  // lane 0 the left halo, then lane 63 the right one
      const std::uint32_t i = at.index - read_rows;
      const std::uint64_t column = i < read_rows ? left : left + wave_lanes + 1;
      out.touch(source + ((top + i % read_rows) * pitch_ + column) * 4);
    } else {
      const std::uint32_t i = at.index - 3 * read_rows;
      out.store = true;
      out.alu = store_alu_;
      touch_wave(out, arrays_[1 - at.kernel % 2] + ((top + 1 + i) * pitch_ + left + 1) * 4, 4);
    }
    return true;
  }

 private:
  static constexpr std::uint32_t rows = 16;
  ArrayLayout layout_;
  std::uint32_t alu_;
  std::uint32_t store_alu_;
  std::uint64_t side_ = 0;
  std::uint64_t pitch_ = 0;
  Address arrays_[2];
  std::vector<KernelShape> kernels_;
};

}  // namespace

ApplicationInfo stencil() {
  return {
      "ST",
      "9-point stencil, 16x64 tiles (SHOC)",
      make<Stencil, StencilSettings>,
      {number("st_alu", "ST: vector instructions before a load", "0..10000", &StencilSettings::alu),
       number("st_store_alu", "ST: vector instructions before a store", "0..10000",
              &StencilSettings::store_alu),
       number("st_iterations", "ST: iterations", "1..1000", &StencilSettings::iterations),
       power_of_two("st_multiple", "ST: the grid's side is a multiple of this, a power of two",
                    "64..256", &StencilSettings::multiple)}};
}

}  // namespace demarc::sim::translation
