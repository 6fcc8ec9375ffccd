// The law of colours that are runs of remainders.
#include <algorithm>
#include <cstring>

#include "law_readers.hpp"

namespace demarc::color {

template <class Fields>
void fields(Fields& to, RemainderSteps& value) {
  to.member("chunk_shift", value.chunk_shift);
  to.member("page_shift", value.page_shift);
  to.member("pattern_bits", value.pattern_bits);
  to.member("begin", value.begin);
  to.member("end", value.end);
  to.member("reciprocal", value.reciprocal);
  to.member("reciprocal_shift", value.reciprocal_shift);
  to.member("skipped", value.skipped);
  to.member("first_page", value.first_page);
  to.member("pages_at", value.pages_at);
}

namespace {

class RemainderLaw : public Law {
 public:
  explicit RemainderLaw(const RemainderSteps& steps) : steps_(steps) {}

  std::uint64_t granule() const override { return std::uint64_t{1} << steps_.chunk_shift; }
  const char* what_changes() const override { return "slices"; }
  std::uint64_t bytes(const Arena&) const override {
    return std::uint64_t{steps_.end - steps_.begin} << steps_.chunk_shift;
  }
  ArenaPage page_of(LinearByte linear, std::uint64_t) const override {
    const std::uint64_t chunk = chunk_of((linear.raw() >> steps_.chunk_shift) + steps_.begin);
    return ArenaPage(chunk >> steps_.page_shift) - steps_.first_page;
  }
  ArenaByte position(LinearByte linear, std::span<const std::byte> table) const override {
    const std::uint64_t chunk = chunk_of(
        std::min<std::uint64_t>((linear.raw() >> steps_.chunk_shift) + steps_.begin, steps_.end));
    const auto entry = [&](std::uint64_t at, std::size_t bytes) {
      std::uint16_t pattern = 0;
      std::memcpy(&pattern, table.subspan(at, bytes).data(), bytes);
      return std::uint64_t{pattern};
    };
    const std::uint64_t low = entry(chunk % 256 * 2, 2) ^
                              entry(remainder_table_of_pages / 2 + chunk / 256 % 256 * 2, 2) ^
                              entry(steps_.pages_at + (chunk >> steps_.page_shift), 1);
    const std::uint64_t kept = chunk >> steps_.pattern_bits << steps_.pattern_bits;
    return ArenaByte(((kept ^ low) << steps_.chunk_shift) + linear.raw() % granule()) -
           in_front_bytes();
  }

  Result<void> check(const Arena& arena, std::span<const std::byte> table) const override {
    if (steps_.chunk_shift > 12 || steps_.page_shift > 16 || steps_.reciprocal_shift > 31 ||
        steps_.begin > steps_.end || steps_.pattern_bits > steps_.page_shift ||
        arena.page_bytes != page_bytes()) {
      return invalid_input(
          "a share is lent of chunks {} to {} of 2^{} bytes, 2^{} a page of {}, {} bits of them "
          "from tables, quotients shifted by {}: these do not fit",
          steps_.begin, steps_.end, steps_.chunk_shift, steps_.page_shift, arena.page_bytes,
          steps_.pattern_bits, steps_.reciprocal_shift);
    }
    return check_table(arena, table);
  }
  // With the addresses that what is not of the colour leads to (RemainderSteps).
  ArenaRoom room(const Arena& arena) const override {
    return {.alignment = arena.page_bytes, .in_front = steps_.first_page, .behind = 1};
  }
  std::optional<TableParts> table_parts() const override {
    return TableParts{.pattern_bytes = remainder_table_of_pages,
                      .places_at = std::uint64_t{steps_.pages_at} + steps_.first_page,
                      .places_in_front = steps_.first_page};
  }

  Result<ptx::Translation> translation(const ptx::Module& module,
                                       const SharePlace& place) const override {
    return translation_of(RemainderAddressing{shape(), numbers(place)}, module);
  }
  // If the share is so small that its quotients need no shift, the text serves only such shares.
  Result<ptx::Translation> translation(const ptx::Module& module) const override {
    return translation_of(shape(), module);
  }
  std::vector<std::byte> constants(const SharePlace& place) const override {
    const RemainderConstants all = numbers(place);
    const auto bytes = std::as_bytes(std::span(&all, 1));
    return {bytes.begin(), bytes.end()};
  }
  DeviceNumbers device_numbers() const override { return {.steps = &steps_}; }
  void write(FieldWriter& to) const override { to.member("remainders", steps_); }

 private:
  [[nodiscard]] std::uint64_t page_bytes() const {
    return std::uint64_t{1} << (steps_.chunk_shift + steps_.page_shift);
  }
  [[nodiscard]] std::uint64_t in_front_bytes() const { return steps_.first_page * page_bytes(); }
  // The chunk, counted from position 0 on, as device code computes it.
  [[nodiscard]] std::uint64_t chunk_of(std::uint64_t v) const {
    return v + (v * steps_.reciprocal >> 32U >> steps_.reciprocal_shift) * steps_.skipped;
  }
  [[nodiscard]] RemainderShape shape() const {
    return {.chunk_shift = steps_.chunk_shift,
            .page_shift = steps_.page_shift,
            .pattern_bits = steps_.pattern_bits,
            .shifts_quotients = steps_.reciprocal_shift != 0};
  }
  [[nodiscard]] RemainderConstants numbers(const SharePlace& place) const {
    return {.arena = (place.arena - in_front_bytes()).raw(),
            .table = place.patterns.raw(),
            .pages = (place.places - steps_.first_page).raw(),
            .before = static_cast<std::uint32_t>((place.window.raw() >> steps_.chunk_shift) -
                                                 steps_.begin),
            .end = steps_.end,
            .reciprocal = steps_.reciprocal,
            .reciprocal_shift = steps_.reciprocal_shift,
            .skipped = steps_.skipped};
  }
  // Whatever a kernel computes leads into the arena, in front of it or into the page behind it:
  // chunks do so by their numbers, and the tables leave those of the pages as they are.
  [[nodiscard]] Result<void> check_table(const Arena& arena,
                                         std::span<const std::byte> table) const {
    const std::uint64_t pages = steps_.first_page + arena.pages;
    const std::uint64_t expected = steps_.pages_at + pages + 1;
    if (table.size() != expected || steps_.pages_at < remainder_table_of_pages) {
      return invalid_input(
          "the table of a lent share has {} bytes; {} and a place for each of {} pages were "
          "expected",
          table.size(), expected, arena.pages);
    }
    const std::uint64_t first = chunk_of(steps_.begin) >> steps_.page_shift;
    const std::uint64_t behind = chunk_of(steps_.end) >> steps_.page_shift;
    if (first < steps_.first_page || first > pages || behind != pages) {
      return invalid_input(
          "the chunks of a lent share lie on pages {} to {}; {} to {}, which is behind them, were "
          "expected",
          first, behind, steps_.first_page, pages);
    }
    for (std::uint64_t at = 0; at < table.size();) {
      const std::size_t bytes = at < remainder_table_of_pages ? 2 : 1;
      std::uint16_t pattern = 0;
      std::memcpy(&pattern, table.data() + at, bytes);
      if (pattern >> steps_.pattern_bits != 0) {
        return invalid_input("the table of a lent share changes more than {} bits from byte {} on",
                             steps_.pattern_bits, at);
      }
      at += bytes;
    }
    return {};
  }

  RemainderSteps steps_;
};

}  // namespace

LawPtr make_law(const RemainderSteps& steps) {
  return std::make_shared<const RemainderLaw>(steps);
}

LawPtr read_remainders(FieldReader& from, const char* name) {
  RemainderSteps steps;
  from.member(name, steps);
  return make_law(steps);
}

}  // namespace demarc::color
