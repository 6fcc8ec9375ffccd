// Makes the accesses of ReLU: one load and one store of each element.
#include "arrays.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct ReluSettings {
  std::uint32_t alu = 4;
};

class Relu final : public Application {
 public:
  Relu(const Settings& settings, const ReluSettings& own) : layout_(settings), alu_(own.alu) {
    const std::uint64_t elements = data_bytes(settings) / 8;
    in_ = layout_.add(elements * 4);
    out_ = layout_.add(elements * 4);
    kernel_.groups_x = static_cast<std::uint32_t>(elements / wave_lanes);
    kernel_.vgprs = 5;
    kernel_.sgprs = 11;
  }
  [[nodiscard]] std::string_view name() const override { return "RL"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::contiguous; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return {&kernel_, 1}; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    if (at.index >= 2) return false;
    out.clear();
    out.store = at.index == 1;
    out.wait = out.store;
    out.alu = alu_;
    touch_wave(out, (out.store ? out_ : in_) + std::uint64_t{at.group} * wave_lanes * 4, 4);
    return true;
  }

 private:
  ArrayLayout layout_;
  std::uint32_t alu_;
  Address in_;
  Address out_;
  KernelShape kernel_;
};

}  // namespace

ApplicationInfo relu() {
  return {"RL",
          "ReLU (DNNMark): one load and one store per element, no reuse",
          make<Relu, ReluSettings>,
          {number("rl_alu", "RL: vector instructions before a memory instruction", "0..10000",
                  &ReluSettings::alu)}};
}

}  // namespace demarc::sim::translation
