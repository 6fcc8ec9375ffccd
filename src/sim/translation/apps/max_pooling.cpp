// Makes the accesses of 3 x 3 max pooling over a square image.
#include "arrays.hpp"
#include "demarc/base/rounding.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct MaxPoolingSettings {
  std::uint32_t alu = 6;
  std::uint32_t multiple = 64;
  Split split = Split::contiguous;
};

// Forward pass on one square image: output (y, x) is the maximum of a 3x3 window, its position goes
// to a mask.
class MaxPooling final : public Application {
 public:
  MaxPooling(const Settings& settings, const MaxPoolingSettings& own)
      : layout_(settings), alu_(own.alu), native_split_(own.split) {
    // Input, output and mask of side s and s - 2 fill the data size.
    side_ = square_side(data_bytes(settings), 12, own.multiple);
    out_side_ = side_ - 2;
    in_ = layout_.add(side_ * side_ * 4);
    top_ = layout_.add(out_side_ * out_side_ * 4);
    mask_ = layout_.add(out_side_ * out_side_ * 4);
    kernel_.groups_x = static_cast<std::uint32_t>(ceil_div(out_side_ * out_side_, wave_lanes));
    kernel_.vgprs = 17;
    kernel_.sgprs = 38;
  }
  [[nodiscard]] std::string_view name() const override { return "MP"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  // Assumed: its tensors were not in unified memory, so every GPU had its own part of the image.
  [[nodiscard]] Split native_split() const override { return native_split_; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return {&kernel_, 1}; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    if (at.index >= 11) return false;
    out.clear();
    out.wait = at.index > 0;
    out.alu = alu_;
    const std::uint64_t first = std::uint64_t{at.group} * wave_lanes;
    const std::uint64_t last = std::min(first + wave_lanes, out_side_ * out_side_) - 1;
    if (at.index >= 9) {
      out.store = true;
      out.touch_range((at.index == 9 ? top_ : mask_) + first * 4, (last - first + 1) * 4);
      return true;
    }
    const std::uint64_t down = at.index / 3;
    const std::uint64_t right = at.index % 3;
    // A wave may run over the end of an output row.
    for (std::uint64_t row = first / out_side_; row <= last / out_side_; ++row) {
      const std::uint64_t from = std::max(first, row * out_side_) - row * out_side_;
      const std::uint64_t to = std::min(last, (row + 1) * out_side_ - 1) - row * out_side_;
      out.touch_range(in_ + ((row + down) * side_ + from + right) * 4, (to - from + 1) * 4);
    }
    return true;
  }

 private:
  ArrayLayout layout_;
  std::uint32_t alu_;
  Split native_split_;
  std::uint64_t side_ = 0;
  std::uint64_t out_side_ = 0;
  Address in_;
  Address top_;
  Address mask_;
  KernelShape kernel_;
};

}  // namespace

ApplicationInfo max_pooling() {
  return {"MP",
          "3x3 max pooling, stride 1 (DNNMark)",
          make<MaxPooling, MaxPoolingSettings>,
          {number("mp_alu", "MP: vector instructions before a memory instruction", "0..10000",
                  &MaxPoolingSettings::alu),
           power_of_two("mp_multiple", "MP: the image's side is a multiple of this, a power of two",
                        "1..256", &MaxPoolingSettings::multiple),
           choice("mp_split", "MP: what split=native means", "roundrobin|contiguous|dim0",
                  &MaxPoolingSettings::split, Split::roundrobin)}};
}

}  // namespace demarc::sim::translation
