// Makes the accesses of 512-point transforms in place, pass by pass.
#include "arrays.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct FftSettings {
  std::uint32_t alu = 2;
  std::uint32_t transform_alu = 400;
  std::uint32_t iterations = 2;
};

// A work-group transforms 512 complex numbers, 4096 bytes, in place; every pass does so once.
class Fft final : public Application {
 public:
  Fft(const Settings& settings, const FftSettings& own)
      : layout_(settings), alu_(own.alu), transform_alu_(own.transform_alu) {
    data_ = layout_.add(data_bytes(settings));
    KernelShape shape;
    shape.groups_x = static_cast<std::uint32_t>(data_bytes(settings) / block_bytes);
    shape.vgprs = 87;
    shape.sgprs = 35;
    shape.lds_bytes = 4608;
    kernels_.assign(iterations_of(settings, own.iterations), shape);
  }
  [[nodiscard]] std::string_view name() const override { return "FFT"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::roundrobin; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return kernels_; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    if (at.index >= 16) return false;
    out.clear();
    out.store = at.index >= 8;
    out.wait = at.index == 8;
    out.alu = at.index == 8 ? transform_alu_ : alu_;
    touch_wave(out, data_ + std::uint64_t{at.group} * block_bytes + at.index % 8 * 512, 8);
    return true;
  }

 private:
  static constexpr std::uint32_t block_bytes = 4096;
  ArrayLayout layout_;
  std::uint32_t alu_;
  std::uint32_t transform_alu_;
  Address data_;
  std::vector<KernelShape> kernels_;
};

}  // namespace

ApplicationInfo fft() {
  return {
      "FFT",
      "512-point transforms in place (SHOC)",
      make<Fft, FftSettings>,
      {number("fft_alu", "FFT: vector instructions before a memory instruction", "0..10000",
              &FftSettings::alu),
       number("fft_transform_alu", "FFT: vector instructions of a transform", "0..10000",
              &FftSettings::transform_alu),
       number("fft_iterations", "FFT: passes over the data", "1..1000", &FftSettings::iterations)}};
}

}  // namespace demarc::sim::translation
