// Applications written out by hand: every instruction of every wave is given.
#pragma once

#include <string>
#include <vector>

#include "demarc/sim/translation/application.hpp"

namespace demarc::sim::translation {

// groups[g][w] lists the instructions of a wave, the same in each of `launches` kernels.
class TinyApplication final : public Application {
 public:
  using Waves = std::vector<std::vector<MemoryInstruction>>;
  TinyApplication(std::vector<Waves> groups, std::uint64_t bytes, std::size_t launches = 1)
      : groups_(std::move(groups)), bytes_(bytes), shapes_(launches) {
    for (KernelShape& shape : shapes_) {
      shape.groups_x = static_cast<std::uint32_t>(groups_.size());
      shape.waves_per_group = static_cast<std::uint32_t>(groups_.front().size());
    }
  }
  KernelShape& shape() { return shapes_.front(); }

  [[nodiscard]] std::string_view name() const override { return "tiny"; }
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] Split native_split() const override { return Split::roundrobin; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return shapes_; }
  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    const auto& wave = groups_[at.group][at.wave];
    if (at.index >= wave.size()) return false;
    out = wave[at.index];
    return true;
  }

 private:
  std::vector<Waves> groups_;
  std::uint64_t bytes_;
  std::vector<KernelShape> shapes_;
};

// A load of one line of each of these pages of 4 KiB, issued when earlier loads have returned.
inline MemoryInstruction load_pages(std::initializer_list<std::uint32_t> pages) {
  MemoryInstruction instruction;
  instruction.wait = true;
  for (const std::uint32_t page : pages)
    instruction.line[instruction.lines++] = LineNumber(page * 64);
  return instruction;
}

}  // namespace demarc::sim::translation
