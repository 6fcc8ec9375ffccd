// The law under which the bytes of one share lie in an arena: a value of numbers that mean the same
// in every process. Everything that uses a share asks its law; nothing else tells laws apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/json_fields.hpp"
#include "demarc/base/result.hpp"
#include "demarc/color/place.hpp"
#include "demarc/color/remainder_coloring.hpp"
#include "demarc/color/translation.hpp"

namespace demarc::color {

// Pages of physical memory that follow each other.
struct Arena {
  std::uint64_t page_bytes = 0;
  std::uint64_t pages = 0;
};

// What the addresses of an arena must be like.
struct ArenaRoom {
  std::uint64_t alignment = 0;  // bytes
  std::uint64_t in_front = 0;   // pages in front of the arena in which nothing may be mapped
  std::uint64_t behind = 0;     // and behind it
};

// A law's table consists of patterns, from byte 0 on, and of places of pages, which may lie apart.
struct TableParts {
  std::uint64_t pattern_bytes = 0;
  std::uint64_t places_at = 0;        // byte of the table with the place of the arena's first page
  std::uint64_t places_in_front = 0;  // bytes in front of it that code may read
};

// What device code computes with (cuda/colored.cuh): masks, or the steps of remainders.
struct DeviceNumbers {
  std::span<const std::uint64_t> masks = {};
  std::uint32_t color = 0;  // bit i is the parity under masks[i]
  const RemainderSteps* steps = nullptr;
};

class Law {
 public:
  virtual ~Law() = default;

  // Bytes that follow each other at consecutive addresses, from a multiple of them on.
  [[nodiscard]] virtual std::uint64_t granule() const = 0;
  // What is another one from granule to granule, in words.
  [[nodiscard]] virtual const char* what_changes() const { return "colours"; }
  // Linear bytes that such an arena has room for. The law and the arena must fit (check()).
  [[nodiscard]] virtual std::uint64_t bytes(const Arena& arena) const = 0;
  // The page that a byte lies on. It needs no table.
  [[nodiscard]] virtual ArenaPage page_of(LinearByte linear, std::uint64_t page_bytes) const = 0;
  // `table` is the one that the law was made with.
  [[nodiscard]] virtual ArenaByte position(LinearByte linear,
                                           std::span<const std::byte> table) const = 0;

  // invalid_input if what another process says of its share does not fit together, so that code
  // could reach what is not of the share. The table is empty if the law has none.
  [[nodiscard]] virtual Result<void> check(const Arena& arena,
                                           std::span<const std::byte> table) const = 0;
  [[nodiscard]] virtual ArenaRoom room(const Arena& arena) const = 0;
  // The one window that fits an arena at this address; nothing: any does.
  [[nodiscard]] virtual std::optional<DeviceAddress> window(DeviceAddress /*arena*/) const {
    return std::nullopt;
  }
  // Nothing: the law has no table.
  [[nodiscard]] virtual std::optional<TableParts> table_parts() const { return std::nullopt; }

  // The translation for a text that is used at `place` alone.
  [[nodiscard]] virtual Result<ptx::Translation> translation(const ptx::Module& module,
                                                             const SharePlace& place) const = 0;
  // The translation for a text that is used at any place; it reads that place's constants().
  [[nodiscard]] virtual Result<ptx::Translation> translation(const ptx::Module& module) const = 0;
  // Translation::constant_bytes of them.
  [[nodiscard]] virtual std::vector<std::byte> constants(const SharePlace& /*place*/) const {
    return {};
  }
  [[nodiscard]] virtual DeviceNumbers device_numbers() const = 0;

  // Adds the member that read_law() reads.
  virtual void write(FieldWriter& to) const = 0;
};
using LawPtr = std::shared_ptr<const Law>;

[[nodiscard]] LawPtr make_law(Parities parities);
[[nodiscard]] LawPtr make_law(const RemainderSteps& steps);

// A law in messages: the name of its member, and what reads it.
struct LawKind {
  const char* name;
  LawPtr (*read)(FieldReader& from, const char* name);
};
// To add a law, write its class and add a row here.
[[nodiscard]] std::span<const LawKind> law_kinds();
// Takes the one member that names a law. An error is left in `from`; the law must then not be used,
// and is nullptr unless exactly one law is named.
[[nodiscard]] LawPtr read_law(FieldReader& from, std::span<const LawKind> kinds = law_kinds());

// {"parities": {"masks": [802816], "color": 1}}
[[nodiscard]] std::string to_text(const Law& law);

}  // namespace demarc::color
