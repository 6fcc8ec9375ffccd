// The ways in which memory is coloured and kernels are rewritten for it, for tests on the emulator.
#pragma once

#include <fmt/ranges.h>

#include <cstring>
#include <string>
#include <vector>

#include "demarc/color/coloring.hpp"
#include "demarc/color/law.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"
#include "remainder_addressing.hpp"
#include "rewritten_by_colors.hpp"

namespace demarc::emulate::colored {

inline constexpr std::uint64_t page = std::uint64_t{2} << 20U;
inline constexpr std::byte untouched{0xa5};

// One of the ways in which memory is coloured: where a byte of the colour lies, what kernels get as
// its address, and how they are rewritten.
class Colors {
 public:
  explicit Colors(std::uint64_t pages) : pages_(pages) {}
  virtual ~Colors() = default;
  [[nodiscard]] std::uint64_t pages() const { return pages_; }  // of the arena
  // The arena's address is a multiple of it. It is never less than a page.
  [[nodiscard]] virtual std::uint64_t alignment() const { return page; }
  [[nodiscard]] std::uint64_t first_from(std::uint64_t address) const {
    return (address + alignment() - 1) / alignment() * alignment();
  }
  [[nodiscard]] virtual std::uint64_t position(std::uint64_t linear) const = 0;
  [[nodiscard]] virtual std::uint64_t pointer(std::uint64_t arena, std::uint64_t linear) const = 0;
  // What the code needs in memory beside the arena.
  [[nodiscard]] virtual std::vector<std::byte> table() const { return std::vector<std::byte>(8); }
  [[nodiscard]] virtual Result<ptx::ColoredModule> rewrite(
      const ptx::Module& module, std::uint64_t arena, std::uint64_t table,
      const ptx::ColoredPlaces& given) const = 0;
  // Bytes that follow each other, from a multiple of them on.
  [[nodiscard]] virtual std::uint64_t granule() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;  // of the colour

 private:
  std::uint64_t pages_;
};

// Sets the constant variable of a module, as a loader does.
inline Result<ptx::ColoredModule> loaded_with(ptx::ColoredModule made,
                                              const std::vector<std::byte>& constants) {
  std::vector<std::uint64_t> words(constants.size() / 8);
  std::memcpy(words.data(), constants.data(), constants.size());
  std::string text = *made.module.text;
  const std::string declared =
      fmt::format(".b8 {}[{}];", ptx::colored_constants_name, constants.size());
  const std::size_t at = text.find(declared);
  if (at == std::string::npos) return invalid_input("there is no {}", declared);
  text.replace(at, declared.size(),
               fmt::format(".b64 {}[{}] = {{{}}};", ptx::colored_constants_name, words.size(),
                           fmt::join(words, ", ")));
  DEMARC_TRY(made.module, ptx::parse_whole(text, made.module.source_name));
  return made;
}

class MaskColors : public Colors {
 public:
  MaskColors(std::vector<std::uint64_t> masks, std::uint32_t color, std::uint64_t pages = 1,
             std::vector<std::uint32_t> pivots = {})
      : Colors(pages), addressing_{std::move(masks), color, std::move(pivots)} {}
  std::uint64_t position(std::uint64_t linear) const override {
    return color::position_under(addressing_, color::LinearByte(linear)).raw();
  }
  std::uint64_t alignment() const override { return law()->room({page, pages()}).alignment; }
  std::uint64_t pointer(std::uint64_t arena, std::uint64_t linear) const override {
    return color::colored_pointer(color::DeviceAddress(arena), color::LinearByte(linear),
                                  addressing_)
        .raw();
  }
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t, std::uint64_t,
                                     const ptx::ColoredPlaces& given) const override {
    return color::rewrite_parities(module, addressing_, {.places = given});
  }
  std::uint64_t granule() const override { return law()->granule(); }
  std::uint64_t bytes() const override { return law()->bytes({page, pages()}); }

 protected:
  [[nodiscard]] const color::Parities& addressing() const { return addressing_; }

 private:
  [[nodiscard]] color::LawPtr law() const { return color::make_law(addressing_); }
  color::Parities addressing_;
};

// The text knows its colour, and no places.
class MaskColorsAtLoad : public MaskColors {
 public:
  using MaskColors::MaskColors;
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t, std::uint64_t,
                                     const ptx::ColoredPlaces& given) const override {
    DEMARC_TRY(auto made,
               color::rewrite_parities(module, addressing(), {.places = ptx::PlacesAtLoad{}}));
    return loaded_with(std::move(made), ptx::colored_constants(given));
  }
};

// The remainders of a card that are halves.
inline color::RemainderColoring halves_of(const std::vector<std::uint32_t>& page_constants) {
  return color::RemainderColoring::make(color::h200_remainders(), {{40, 24}, {17, 23}},
                                        page_constants)
      .value();
}

class RemainderColors : public Colors {
 public:
  explicit RemainderColors(std::uint32_t color,
                           const color::RemainderColoring& coloring = halves_of({0x15}))
      : Colors(coloring.pages()), coloring_(coloring), color_(color) {}
  std::uint64_t position(std::uint64_t linear) const override {
    return coloring_.position(color::LinearByte(linear), color_).raw();
  }
  std::uint64_t pointer(std::uint64_t arena, std::uint64_t linear) const override {
    return arena + linear;
  }
  std::vector<std::byte> table() const override { return coloring_.table(); }
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t arena,
                                     std::uint64_t table,
                                     const ptx::ColoredPlaces& given) const override {
    return color::rewrite_remainders(module, addressing(arena, table), {.places = given});
  }
  std::uint64_t granule() const override {
    return std::uint64_t{1} << coloring_.hash().chunk_shift;
  }
  std::uint64_t bytes() const override { return coloring_.color_bytes(color_); }

 protected:
  [[nodiscard]] virtual color::RemainderAddressing addressing(std::uint64_t arena,
                                                              std::uint64_t table) const {
    return demarc::test::addressing_of(coloring_, color_, arena, table);
  }

 private:
  color::RemainderColoring coloring_;
  std::uint32_t color_;
};

// The text knows no colours and no places.
class RemainderColorsAtLoad : public RemainderColors {
 public:
  using RemainderColors::RemainderColors;
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t arena,
                                     std::uint64_t table,
                                     const ptx::ColoredPlaces& given) const override {
    const auto [shape, constants] = addressing(arena, table);
    DEMARC_TRY(auto made, color::rewrite_remainders(module, shape));
    return loaded_with(std::move(made),
                       ptx::colored_constants(given, std::as_bytes(std::span(&constants, 1))));
  }
};

// The text knows its colours, and no places.
class RemainderPlacesAtLoad : public RemainderColors {
 public:
  using RemainderColors::RemainderColors;
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t arena,
                                     std::uint64_t table,
                                     const ptx::ColoredPlaces& given) const override {
    DEMARC_TRY(auto made, color::rewrite_remainders(module, addressing(arena, table),
                                                    {.places = ptx::PlacesAtLoad{}}));
    return loaded_with(std::move(made), ptx::colored_constants(given));
  }
};

// Any law without a table, by text for one place, or for all.
class LawColors : public Colors {
 public:
  LawColors(color::LawPtr law, std::uint64_t pages, bool at_load)
      : Colors(pages), law_(std::move(law)), at_load_(at_load) {}
  std::uint64_t position(std::uint64_t linear) const override {
    return law_->position(color::LinearByte(linear), {}).raw();
  }
  std::uint64_t pointer(std::uint64_t arena, std::uint64_t linear) const override {
    const color::DeviceAddress begin(arena);
    return (law_->window(begin).value_or(begin) + linear).raw();
  }
  Result<ptx::ColoredModule> rewrite(const ptx::Module& module, std::uint64_t arena, std::uint64_t,
                                     const ptx::ColoredPlaces& given) const override {
    const color::SharePlace place{.arena = color::DeviceAddress(arena),
                                  .window = color::DeviceAddress(pointer(arena, 0))};
    if (!at_load_) {
      DEMARC_TRY(const auto translation, law_->translation(module, place));
      return ptx::rewrite_colored(module, translation, {.places = given});
    }
    DEMARC_TRY(const auto translation, law_->translation(module));
    DEMARC_TRY(auto made,
               ptx::rewrite_colored(module, translation, {.places = ptx::PlacesAtLoad{}}));
    return loaded_with(std::move(made), ptx::colored_constants(given, law_->constants(place)));
  }
  std::uint64_t granule() const override { return law_->granule(); }
  std::uint64_t bytes() const override { return law_->bytes({page, pages()}); }

 private:
  color::LawPtr law_;
  bool at_load_;
};

}  // namespace demarc::emulate::colored
