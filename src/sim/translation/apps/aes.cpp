// Makes the accesses of AES-256: blocks in place, gathers from the S-box, round keys.
#include "arrays.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct AesSettings {
  std::uint32_t alu = 10;
};

std::uint64_t mix_round(std::uint64_t z) {
  z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdULL;
  z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return z ^ (z >> 33);
}

// 16 bytes per work-item, in place. Per round 16 gathers of 64 bytes from the S-box (256 bytes,
// four lines) and one line of keys. Every GPU has its own S-box and keys, as in the benchmark's
// multi-GPU mode.
class Aes final : public Application {
 public:
  Aes(const Settings& settings, const AesSettings& own)
      : layout_(settings), gpus_(settings.gpus), alu_(own.alu) {
    data_ = layout_.add(data_bytes(settings));
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) tables_.push_back(layout_.add(512));
    kernel_.groups_x = static_cast<std::uint32_t>(data_bytes(settings) / (wave_lanes * 16));
    kernel_.vgprs = 41;
    kernel_.sgprs = 27;
  }
  [[nodiscard]] std::string_view name() const override { return "AES"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::contiguous; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return {&kernel_, 1}; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    constexpr std::uint32_t last = 1 + rounds * 17;
    if (at.index > last) return false;
    out.clear();
    out.wait = true;
    out.alu = alu_;
    if (at.index == 0 || at.index == last) {
      out.store = at.index == last;
      touch_wave(out, data_ + std::uint64_t{at.group} * wave_lanes * 16, 16);
      return true;
    }
    // Contiguous quarters of the groups belong to the GPUs in turn.
    const Address table = tables_[std::uint64_t{at.group} * gpus_ / kernel_.groups_x];
    const std::uint32_t step = (at.index - 1) % 17;
    if (step == 0) {
      out.touch(table + 256 + (at.index - 1) / 17 * 16 % 240);
      return true;
    }
    // 64 random bytes out of 256 touch all four lines but for one time in twenty-five.
    const std::uint64_t random = mix_round((std::uint64_t{at.group} << 16) | at.index);
    const std::uint64_t left_out = random % 25 == 0 ? (random >> 32) % 4 : 4;
    for (std::uint64_t line = 0; line < 4; ++line) {
      if (line != left_out) out.touch(table + line * line_bytes);
    }
    return true;
  }

 private:
  static constexpr std::uint32_t rounds = 14;
  ArrayLayout layout_;
  std::uint32_t gpus_;
  std::uint32_t alu_;
  Address data_;
  std::vector<Address> tables_;
  KernelShape kernel_;
};

}  // namespace

ApplicationInfo aes() {
  return {"AES",
          "AES-256 in place (Hetero-Mark)",
          make<Aes, AesSettings>,
          {number("aes_alu", "AES: vector instructions before a memory instruction", "0..10000",
                  &AesSettings::alu)}};
}

}  // namespace demarc::sim::translation
