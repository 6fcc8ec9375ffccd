// A law that the product does not have: every second chunk of 4 KiB, or the others. What is written
// here is all that a new law is; tests use it wherever laws are used.
#pragma once

#include "demarc/color/law.hpp"
#include "demarc/ptx/constant_operands.hpp"

namespace demarc::color {

struct Stripes {
  std::uint64_t color = 0;  // 0 or 1
};
template <class Fields>
void fields(Fields& to, Stripes& value) {
  to.member("color", value.color);
}

class StripedLaw : public Law {
 public:
  static constexpr std::uint64_t chunk = 4096;

  explicit StripedLaw(Stripes stripes) : stripes_(stripes) {}
  static LawPtr read(FieldReader& from, const char* name) {
    Stripes stripes;
    from.member(name, stripes);
    return std::make_shared<const StripedLaw>(stripes);
  }

  std::uint64_t granule() const override { return chunk; }
  std::uint64_t bytes(const Arena& arena) const override {
    return arena.pages * arena.page_bytes / 2;
  }
  PageRun pages_of(const Extent& extent, std::uint64_t page_bytes) const override {
    const std::uint64_t first = extent.first.raw() * 2 / page_bytes;
    return {ArenaPage(first), (extent.end() - 1).raw() * 2 / page_bytes - first + 1};
  }
  ArenaByte position(LinearByte linear, std::span<const std::byte>) const override {
    return ArenaByte((linear.raw() / chunk * 2 + stripes_.color) * chunk + linear.raw() % chunk);
  }
  Result<void> check(const Arena&, std::span<const std::byte>) const override {
    if (stripes_.color < 2) return {};
    return invalid_input("there is no stripe {}", stripes_.color);
  }
  ArenaRoom room(const Arena& arena) const override { return {.alignment = arena.page_bytes}; }

  Result<ptx::Translation> translation(const ptx::Module&, const SharePlace& place) const override {
    return text(ptx::ConstantOperands<Numbers>(numbers(place), 0));
  }
  Result<ptx::Translation> translation(const ptx::Module&) const override {
    return text(ptx::ConstantOperands<Numbers>(std::nullopt, sizeof(ptx::ColoredPlaces)));
  }
  std::vector<std::byte> constants(const SharePlace& place) const override {
    const Numbers all = numbers(place);
    const auto bytes = std::as_bytes(std::span(&all, 1));
    return {bytes.begin(), bytes.end()};
  }
  DeviceNumbers device_numbers() const override { return {}; }
  void write(FieldWriter& to) const override { to.member("stripes", stripes_); }

 private:
  struct Numbers {
    std::uint64_t window = 0;
    std::uint64_t first = 0;  // address of the colour's first chunk
  };
  [[nodiscard]] Numbers numbers(const SharePlace& place) const {
    return {place.window.raw(), (place.arena + stripes_.color * chunk).raw()};
  }
  static ptx::Translation text(const ptx::ConstantOperands<Numbers>& numbers) {
    return {.prologue = numbers.loads(&Numbers::window, &Numbers::first),
            .declarations = "\t.reg .b64 %demarc_a, %demarc_h;\n",
            .arithmetic =
                fmt::format("\tsub.s64 \t%demarc_a, %demarc_a, {};\n"
                            "\tand.b64 \t%demarc_h, %demarc_a, -4096;\n"
                            "\tadd.s64 \t%demarc_a, %demarc_a, %demarc_h;\n"
                            "\tadd.s64 \t%demarc_a, %demarc_a, {};\n",
                            numbers.operand(&Numbers::window), numbers.operand(&Numbers::first)),
            .granule = chunk,
            .constant_bytes = numbers.known() ? 0 : sizeof(Numbers)};
  }
  Stripes stripes_;
};

}  // namespace demarc::color
