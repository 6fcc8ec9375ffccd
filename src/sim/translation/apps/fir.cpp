// Makes the accesses of an FIR filter of 16 taps.
#include "arrays.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct FirSettings {
  std::uint32_t alu = 6;
};

class Fir final : public Application {
 public:
  Fir(const Settings& settings, const FirSettings& own) : layout_(settings), alu_(own.alu) {
    const std::uint64_t elements = data_bytes(settings) / 8;
    in_ = layout_.add(elements * 4 + history_bytes);
    out_ = layout_.add(elements * 4);
    kernel_.groups_x = static_cast<std::uint32_t>(elements / (wave_lanes * waves));
    kernel_.waves_per_group = waves;
    kernel_.vgprs = 10;
    kernel_.sgprs = 22;
  }
  [[nodiscard]] std::string_view name() const override { return "FIR"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::contiguous; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return {&kernel_, 1}; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    if (at.index > taps) return false;
    out.clear();
    out.wait = true;
    out.alu = alu_;
    const std::uint64_t first = (std::uint64_t{at.group} * waves + at.wave) * wave_lanes * 4;
    if (at.index < taps) {
      // The history of 16 samples lies in front of the input.
      touch_wave(out, in_ + history_bytes + first - 4ULL * at.index, 4);
    } else {
      out.store = true;
      touch_wave(out, out_ + first, 4);
    }
    return true;
  }

 private:
  static constexpr std::uint32_t taps = 16;
  static constexpr std::uint32_t waves = 4;
  static constexpr std::uint64_t history_bytes = 64;
  ArrayLayout layout_;
  std::uint32_t alu_;
  Address in_;
  Address out_;
  KernelShape kernel_;
};

}  // namespace

ApplicationInfo fir() {
  return {"FIR",
          "FIR filter of 16 taps (Hetero-Mark)",
          make<Fir, FirSettings>,
          {number("fir_alu", "FIR: vector instructions before a memory instruction", "0..10000",
                  &FirSettings::alu)}};
}

}  // namespace demarc::sim::translation
