// Makes the accesses of k-means: a transposition, then one kernel for each iteration.
#include "arrays.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct KMeansSettings {
  std::uint32_t transpose_alu = 3;
  std::uint32_t alu = 5;
  std::uint32_t iterations = 5;
};

// Kernel 0 transposes feature[P][F] to swap[F][P]; each further kernel assigns points to clusters.
class KMeans final : public Application {
 public:
  KMeans(const Settings& settings, const KMeansSettings& own)
      : layout_(settings), transpose_alu_(own.transpose_alu), alu_(own.alu) {
    points_ = data_bytes(settings) / (2 * features * 4);
    feature_ = layout_.add(points_ * features * 4);
    swap_ = layout_.add(points_ * features * 4);
    membership_ = layout_.add(points_ * 4);
    KernelShape shape;
    shape.groups_x = static_cast<std::uint32_t>(points_ / wave_lanes);
    shape.vgprs = 8;
    shape.sgprs = 11;
    kernels_.push_back(shape);
    shape.vgprs = 15;
    shape.sgprs = 18;
    kernels_.insert(kernels_.end(), iterations_of(settings, own.iterations), shape);
  }
  [[nodiscard]] std::string_view name() const override { return "KM"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::contiguous; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return kernels_; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    const std::uint64_t first = std::uint64_t{at.group} * wave_lanes;
    if (at.kernel == 0) {
      if (at.index >= 2 * features) return false;
      const std::uint64_t f = at.index / 2;
      out.clear();
      out.store = at.index % 2 == 1;
      out.wait = true;
      out.alu = transpose_alu_;
      if (out.store) {
        touch_wave(out, swap_ + (f * points_ + first) * 4, 4);
      } else {
        for (std::uint64_t lane = 0; lane < wave_lanes; ++lane) {
          out.touch(feature_ + ((first + lane) * features + f) * 4);
        }
      }
      return true;
    }
    if (at.index > clusters * features) return false;
    out.clear();
    out.wait = true;
    out.alu = alu_;
    if (at.index == clusters * features) {
      out.store = true;
      touch_wave(out, membership_ + first * 4, 4);
    } else {
      touch_wave(out, swap_ + (at.index % features * points_ + first) * 4, 4);
    }
    return true;
  }

 private:
  static constexpr std::uint32_t features = 32;
  static constexpr std::uint32_t clusters = 5;
  ArrayLayout layout_;
  std::uint32_t transpose_alu_;
  std::uint32_t alu_;
  std::uint64_t points_ = 0;
  Address feature_;
  Address swap_;
  Address membership_;
  std::vector<KernelShape> kernels_;
};

}  // namespace

ApplicationInfo kmeans() {
  return {"KM",
          "k-means, 32 features, 5 clusters (Hetero-Mark)",
          make<KMeans, KMeansSettings>,
          {number("km_transpose_alu",
                  "KM: vector instructions before a memory instruction, transposing", "0..10000",
                  &KMeansSettings::transpose_alu),
           number("km_alu", "KM: vector instructions before a memory instruction, assigning",
                  "0..10000", &KMeansSettings::alu),
           number("km_iterations", "KM: iterations", "1..1000", &KMeansSettings::iterations)}};
}

}  // namespace demarc::sim::translation
