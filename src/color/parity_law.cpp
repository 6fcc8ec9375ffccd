// The law of colours that are parities of address bits.
#include <algorithm>
#include <bit>

#include "demarc/color/coloring.hpp"
#include "law_readers.hpp"
#include "parity_arithmetic.hpp"

namespace demarc::color {

template <class Fields>
void fields(Fields& to, Parities& value) {
  to.member("masks", value.masks);
  to.member("color", value.color);
  to.member("pivots", value.pivots);
}

namespace {

constexpr std::size_t max_lent_masks = 8;  // 256 colours

class ParityLaw : public Law {
 public:
  explicit ParityLaw(Parities parities) : parities_(std::move(parities)) {
    if (!parities_.pivots.empty() && parities_.pivots.size() != parities_.masks.size()) return;
    for (std::size_t i = 0; i < parities_.masks.size(); ++i) pivots_.push_back(parities_.pivot(i));
  }

  std::uint64_t granule() const override { return granule_of(parities_.masks); }
  std::uint64_t bytes(const Arena& arena) const override {
    return arena.pages * arena.page_bytes >> parities_.masks.size();
  }
  PageRun pages_of(const Extent& extent, std::uint64_t page_bytes) const override {
    const ArenaByte least = bounds_under(parities_, extent.first).first;
    const ArenaByte most = bounds_under(parities_, extent.end() - 1).second;
    const ArenaPage first(least.raw() / page_bytes);
    return {first, most.raw() / page_bytes - first.raw() + 1};
  }
  ArenaByte position(LinearByte linear, std::span<const std::byte>) const override {
    return position_under(parities_, linear);
  }

  Result<void> check(const Arena& arena, std::span<const std::byte>) const override {
    if (parities_.masks.empty() || parities_.masks.size() > max_lent_masks) {
      return invalid_input("a share is lent of {} masks; 1 to {} were expected",
                           parities_.masks.size(), max_lent_masks);
    }
    DEMARC_CHECK(check_parities(parities_));
    // Pages are numbered in groups in which every combination of the bits above a page occurs.
    const bool within = highest_bit() < arena.pages * arena.page_bytes;
    if (!within || arena.pages % (group_bytes(arena.page_bytes) / arena.page_bytes) != 0) {
      return invalid_input(
          "a share is lent of {} pages of {} bytes with masks that reach up to {:#x}: the pages "
          "are "
          "no whole groups",
          arena.pages, arena.page_bytes, highest_bit());
    }
    return {};
  }
  ArenaRoom room(const Arena& arena) const override {
    return {.alignment = std::max(arena.page_bytes << parities_.masks.size(),
                                  group_bytes(arena.page_bytes))};
  }
  // The text of a rewritten kernel makes the arena's address out of that of its window.
  std::optional<DeviceAddress> window(DeviceAddress arena) const override {
    return colored_pointer(arena, {}, parities_);
  }

  Result<ptx::Translation> translation(const ptx::Module&, const SharePlace&) const override {
    return translation_of(parities_);
  }
  Result<ptx::Translation> translation(const ptx::Module&) const override {
    return translation_of(parities_);
  }
  DeviceNumbers device_numbers() const override {
    return {.masks = parities_.masks, .pivots = pivots_, .color = parities_.color};
  }
  void write(FieldWriter& to) const override { to.member("parities", parities_); }

 private:
  [[nodiscard]] std::uint64_t highest_bit() const {
    std::uint64_t any = 0;
    for (const std::uint64_t mask : parities_.masks) any |= mask;
    return std::bit_floor(any);
  }
  // From a multiple of them on the bits of masks that lie above a page take every value.
  [[nodiscard]] std::uint64_t group_bytes(std::uint64_t page_bytes) const {
    return std::max(page_bytes, highest_bit() << 1U);
  }

  Parities parities_;
  std::vector<std::uint32_t> pivots_;
};

}  // namespace

LawPtr make_law(Parities parities) {
  return std::make_shared<const ParityLaw>(std::move(parities));
}

LawPtr read_parities(FieldReader& from, const char* name) {
  Parities parities;
  from.member(name, parities);
  return make_law(std::move(parities));
}

}  // namespace demarc::color
