// The law of colours that are parities of address bits.
#include "demarc/color/coloring.hpp"
#include "law_readers.hpp"

namespace demarc::color {

template <class Fields>
void fields(Fields& to, Parities& value) {
  to.member("masks", value.masks);
  to.member("color", value.color);
}

namespace {

constexpr std::size_t max_lent_masks = 8;  // 256 colours

class ParityLaw : public Law {
 public:
  explicit ParityLaw(Parities parities) : parities_(std::move(parities)) {}

  std::uint64_t granule() const override {
    return parities_.masks.front() & -parities_.masks.front();
  }
  std::uint64_t bytes(const Arena& arena) const override {
    return arena.pages * arena.page_bytes >> parities_.masks.size();
  }
  ArenaPage page_of(LinearByte linear, std::uint64_t page_bytes) const override {
    return ArenaPage((linear.raw() << parities_.masks.size()) / page_bytes);
  }
  ArenaByte position(LinearByte linear, std::span<const std::byte>) const override {
    return position_under(parities_.masks, linear, parities_.color);
  }

  Result<void> check(const Arena& arena, std::span<const std::byte>) const override {
    // What else masks must be is looked at where code is rewritten for them.
    for (const std::uint64_t mask : parities_.masks) {
      if (mask >= arena.page_bytes) {
        return invalid_input(
            "a share is lent of mask {:#x}, which reaches beyond a page of {} bytes", mask,
            arena.page_bytes);
      }
    }
    if (parities_.masks.empty() || parities_.masks.size() > max_lent_masks) {
      return invalid_input("a share is lent of {} masks; 1 to {} were expected",
                           parities_.masks.size(), max_lent_masks);
    }
    return {};
  }
  ArenaRoom room(const Arena& arena) const override {
    return {.alignment = arena.page_bytes << parities_.masks.size()};
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
    return {.masks = parities_.masks, .color = parities_.color};
  }
  void write(FieldWriter& to) const override { to.member("parities", parities_); }

 private:
  Parities parities_;
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
