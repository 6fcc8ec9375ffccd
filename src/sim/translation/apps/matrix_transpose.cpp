// Makes the accesses of a matrix transposition in tiles of 64 x 64 elements.
#include "arrays.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct MatrixTransposeSettings {
  std::uint32_t alu = 8;
  std::uint32_t multiple = 256;
};

// Each work-item moves 4x4 elements; a work-group of 16x16 items a 64x64 tile. Group (gx, gy) reads
// block row gx, block column (gx + gy) mod n, and writes it transposed.
class MatrixTranspose final : public Application {
 public:
  MatrixTranspose(const Settings& settings, const MatrixTransposeSettings& own)
      : layout_(settings), alu_(own.alu) {
    width_ = square_side(data_bytes(settings), 8, own.multiple);
    in_ = layout_.add(width_ * width_ * 4);
    out_ = layout_.add(width_ * width_ * 4);
    kernel_.groups_x = kernel_.groups_y = static_cast<std::uint32_t>(width_ / 64);
    kernel_.waves_per_group = 4;
    kernel_.vgprs = 23;
    kernel_.sgprs = 18;
    kernel_.lds_bytes = 16384;
  }
  [[nodiscard]] std::string_view name() const override { return "MT"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::contiguous; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return {&kernel_, 1}; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    if (at.index >= 8) return false;
    out.clear();
    out.store = at.index >= 4;
    out.barrier = at.index == 4;
    out.wait = true;
    out.alu = alu_;
    const std::uint64_t blocks = width_ / 64;
    const std::uint64_t gx = at.group % blocks;
    const std::uint64_t diagonal = (gx + at.group / blocks) % blocks;
    const std::uint64_t block_row = out.store ? diagonal : gx;
    const std::uint64_t block_column = out.store ? gx : diagonal;
    // Item row r of the group holds rows 4r .. 4r+3; a wave is four item rows, and step i their
    // i-th element row.
    for (std::uint64_t r = 0; r < 4; ++r) {
      const std::uint64_t row = block_row * 64 + at.wave * 16 + r * 4 + at.index % 4;
      out.touch_range((out.store ? out_ : in_) + (row * width_ + block_column * 64) * 4, 256);
    }
    return true;
  }

 private:
  ArrayLayout layout_;
  std::uint32_t alu_;
  std::uint64_t width_ = 0;
  Address in_;
  Address out_;
  KernelShape kernel_;
};

}  // namespace

ApplicationInfo matrix_transpose() {
  return {
      "MT",
      "matrix transpose, 64x64 tiles (AMD APP SDK)",
      make<MatrixTranspose, MatrixTransposeSettings>,
      {number("mt_alu", "MT: vector instructions before a memory instruction", "0..10000",
              &MatrixTransposeSettings::alu),
       power_of_two("mt_multiple", "MT: the matrix's side is a multiple of this, a power of two",
                    "64..256", &MatrixTransposeSettings::multiple)}};
}

}  // namespace demarc::sim::translation
