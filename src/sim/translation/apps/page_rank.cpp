// Makes the accesses of PageRank on a random graph, with one wave for each row.
#include <cmath>

#include "arrays.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/base/rounding.hpp"
#include "translation/setting_rows.hpp"

namespace demarc::sim::translation {
namespace {

struct PageRankSettings {
  std::uint32_t alu = 6;
  std::uint32_t iterations = 1;
  std::uint32_t density = 1;
};

// CSR with a fixed number of non-zeros per row; the columns of a row are
// ascending and spread uniformly at random, one in each of as many equal stretches of the row, so
// that nothing needs to be stored.
class PageRank final : public Application {
 public:
  PageRank(const Settings& settings, const PageRankSettings& own)
      : layout_(settings), alu_(own.alu) {
    // n * (n * density) non-zeros of 8 bytes fill the data size.
    nodes_ = static_cast<std::uint64_t>(
        std::sqrt(static_cast<double>(data_bytes(settings)) / 8.0 * 1000.0 / own.density));
    degree_ = std::max<std::uint64_t>(1, nodes_ * own.density / 1000);
    offsets_ = layout_.add((nodes_ + 1) * 4);
    columns_ = layout_.add(nodes_ * degree_ * 4);
    values_ = layout_.add(nodes_ * degree_ * 4);
    ranks_[0] = layout_.add(nodes_ * 4);
    ranks_[1] = layout_.add(nodes_ * 4);
    KernelShape kernel;
    kernel.groups_x = static_cast<std::uint32_t>(nodes_);
    kernel.vgprs = 15;
    kernel.sgprs = 18;
    kernel.lds_bytes = 256;
    kernels_.assign(iterations_of(settings, own.iterations), kernel);
  }
  [[nodiscard]] std::string_view name() const override { return "PR"; }
  [[nodiscard]] std::uint64_t bytes() const override { return layout_.bytes(); }
  [[nodiscard]] Split native_split() const override { return Split::roundrobin; }
  [[nodiscard]] std::span<const KernelShape> kernels() const override { return kernels_; }

  [[nodiscard]] bool instruction(const WavePosition& at, MemoryInstruction& out) const override {
    const std::uint64_t row = at.group;
    const Address x = ranks_[at.kernel % 2];
    const Address y = ranks_[1 - at.kernel % 2];
    const auto chunks = static_cast<std::uint32_t>(ceil_div(degree_, wave_lanes));
    const std::uint32_t last = 2 + 3 * chunks;
    if (at.index > last) return false;
    out.clear();
    out.alu = alu_;
    if (at.index == 0 || at.index == last) {
      out.store = true;
      out.wait = at.index == last;
      out.touch(y + row * 4);
      return true;
    }
    if (at.index == 1) {
      out.touch_range(offsets_ + row * 4, 8);
      return true;
    }
    const std::uint64_t chunk = (at.index - 2) / 3;
    const std::uint64_t first = chunk * wave_lanes;
    const std::uint64_t count = std::min<std::uint64_t>(wave_lanes, degree_ - first);
    const std::uint32_t step = (at.index - 2) % 3;
    out.wait = step != 2;  // the gather follows the load of the values at once
    if (step == 0) {
      out.touch_range(columns_ + (row * degree_ + first) * 4, count * 4);
    } else if (step == 1) {
      out.touch_range(values_ + (row * degree_ + first) * 4, count * 4);
    } else {
      for (std::uint64_t j = first; j < first + count; ++j) out.touch(x + column(row, j) * 4);
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t column(std::uint64_t row, std::uint64_t j) const {
    const std::uint64_t low = j * nodes_ / degree_;
    const std::uint64_t high = (j + 1) * nodes_ / degree_;
    return low + stirred(row * 0x9e3779b97f4a7c15ULL + j) % (high - low);
  }

  ArrayLayout layout_;
  std::uint32_t alu_;
  std::uint64_t nodes_ = 0;
  std::uint64_t degree_ = 0;
  Address offsets_;
  Address columns_;
  Address values_;
  Address ranks_[2];
  std::vector<KernelShape> kernels_;
};

}  // namespace

ApplicationInfo page_rank() {
  return {"PR",
          "PageRank on a random graph, one wave per row (Hetero-Mark)",
          make<PageRank, PageRankSettings>,
          {number("pr_alu", "PR: vector instructions before a memory instruction", "0..10000",
                  &PageRankSettings::alu),
           number("pr_iterations", "PR: iterations", "1..1000", &PageRankSettings::iterations),
           number("pr_density", "PR: non-zeros of a row, per mille of its length", "1..1000",
                  &PageRankSettings::density)}};
}

}  // namespace demarc::sim::translation
