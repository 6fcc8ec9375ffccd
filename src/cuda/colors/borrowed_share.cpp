// Maps what another process has lent, so that rewritten kernels find it by window addresses.
#include <algorithm>
#include <cstring>

#include "demarc/cuda/lent_share.hpp"

namespace demarc::cuda {
namespace {

struct Places {
  AddressRange arena;
  AddressRange window;
  std::uint64_t in_front = 0;  // bytes of the arena's range that its pages leave free
};

// Where an arena may lie if the driver's choice, 0, leaves no room for the window: seldom used, as
// are halves, quarters and eighths of them.
constexpr DevicePointer arena_places[] = {0, 0x4800'0000'0000, 0x6000'0000'0000, 0x6800'0000'0000};

constexpr std::size_t most_masks = 8;  // 256 colours

std::uint64_t whole_pages(std::uint64_t bytes, std::uint64_t page_bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

Result<void> check_pages(const Gpu& gpu, const LentShare& lent) {
  if (lent.card != gpu.uuid()) {
    return invalid_input("a share is lent by card {} and cannot be used on {}, which is {}",
                         lent.card, gpu.name(), gpu.uuid());
  }
  DEMARC_TRY(const std::size_t page_bytes, PhysicalMemory::granularity(gpu));
  if (lent.page_bytes != page_bytes) {
    return invalid_input("a share is lent in pages of {} bytes; those of {} have {}",
                         lent.page_bytes, gpu.name(), page_bytes);
  }
  if (lent.pages == 0 || lent.pages > gpu.total_bytes() / page_bytes) {
    return invalid_input("a share is lent of {} pages; {} has 1 to {}", lent.pages, gpu.name(),
                         gpu.total_bytes() / page_bytes);
  }
  return {};
}

Result<void> check_room(const LentShare& lent, std::uint64_t room) {
  if (lent.bytes > 0 && lent.bytes <= room) return {};
  return invalid_input("a share is lent of {} bytes; its {} pages have room for 1 to {}",
                       lent.bytes, lent.pages, room);
}

Result<void> check_colors(const LentShare& lent, const color::Parities& parities,
                          std::span<const std::byte> table) {
  // What else masks must be is looked at where code is rewritten for them.
  for (const std::uint64_t mask : parities.masks) {
    if (mask >= lent.page_bytes) {
      return invalid_input("a share is lent of mask {:#x}, which reaches beyond a page of {} bytes",
                           mask, lent.page_bytes);
    }
  }
  if (parities.masks.empty() || parities.masks.size() > most_masks) {
    return invalid_input("a share is lent of {} masks; 1 to {} were expected",
                         parities.masks.size(), most_masks);
  }
  if (!table.empty()) {
    return invalid_input("a share whose colours are parities is lent with a table of {} bytes",
                         table.size());
  }
  if (lent.patterns_at || lent.places_at) {
    return invalid_input("a share whose colours are parities is lent with tables of remainders");
  }
  return check_room(lent, lent.pages * lent.page_bytes >> parities.masks.size());
}

// The chunk, counted from position 0 on, as device code computes it.
std::uint64_t chunk_of(const color::RemainderSteps& steps, std::uint64_t v) {
  return v + (v * steps.reciprocal >> 32U >> steps.reciprocal_shift) * steps.skipped;
}

// Whatever a kernel computes leads into the arena, in front of it or into the page behind it:
// chunks do so by their numbers, and the tables leave those of the pages as they are.
Result<void> check_table(const LentShare& lent, const color::RemainderSteps& steps,
                         std::span<const std::byte> table) {
  const std::uint64_t pages = steps.first_page + lent.pages;
  const std::uint64_t expected = steps.pages_at + pages + 1;
  if (table.size() != expected || steps.pages_at < color::remainder_table_of_pages) {
    return invalid_input(
        "the table of a lent share has {} bytes; {} and a place for each of {} pages were expected",
        table.size(), expected, lent.pages);
  }
  const std::uint64_t first = chunk_of(steps, steps.begin) >> steps.page_shift;
  const std::uint64_t behind = chunk_of(steps, steps.end) >> steps.page_shift;
  if (first < steps.first_page || first > pages || behind != pages) {
    return invalid_input(
        "the chunks of a lent share lie on pages {} to {}; {} to {}, which is behind them, were "
        "expected",
        first, behind, steps.first_page, pages);
  }
  for (std::uint64_t at = 0; at < table.size();) {
    const std::size_t bytes = at < color::remainder_table_of_pages ? 2 : 1;
    std::uint16_t pattern = 0;
    std::memcpy(&pattern, table.data() + at, bytes);
    if (pattern >> steps.pattern_bits != 0) {
      return invalid_input("the table of a lent share changes more than {} bits from byte {} on",
                           steps.pattern_bits, at);
    }
    at += bytes;
  }
  return {};
}

Result<void> check_colors(const LentShare& lent, const color::RemainderSteps& steps,
                          std::span<const std::byte> table) {
  if (steps.chunk_shift > 12 || steps.page_shift > 16 || steps.reciprocal_shift > 31 ||
      steps.begin > steps.end || steps.pattern_bits > steps.page_shift ||
      lent.page_bytes != std::uint64_t{1} << (steps.chunk_shift + steps.page_shift)) {
    return invalid_input(
        "a share is lent of chunks {} to {} of 2^{} bytes, 2^{} a page of {}, {} bits of them from "
        "tables, quotients shifted by {}: these do not fit",
        steps.begin, steps.end, steps.chunk_shift, steps.page_shift, lent.page_bytes,
        steps.pattern_bits, steps.reciprocal_shift);
  }
  DEMARC_CHECK(check_room(lent, std::uint64_t{steps.end - steps.begin} << steps.chunk_shift));
  return check_table(lent, steps, table);
}

// The text of a rewritten kernel makes the arena's address out of that of its window.
Result<Places> reserve(const GpuPointer& gpu, const LentShare& lent,
                       const color::Parities& parities) {
  const std::uint64_t alignment = lent.page_bytes << parities.masks.size();
  for (const DevicePointer place : arena_places) {
    DEMARC_TRY(AddressRange arena,
               AddressRange::reserve(gpu, lent.pages * lent.page_bytes, alignment, place));
    const DevicePointer wanted = color::colored_pointer(arena.address(), 0, parities);
    DEMARC_TRY(AddressRange window,
               AddressRange::reserve(gpu, whole_pages(lent.bytes, lent.page_bytes), lent.page_bytes,
                                     wanted));
    if (window.address() == wanted) return Places{std::move(arena), std::move(window)};
  }
  return missing_capability(
      "{}: the driver gives no addresses for the window of a lent share of {} bytes: those of its "
      "arena divided by {} are taken, at {} places",
      gpu->name(), lent.bytes, 1U << parities.masks.size(), std::size(arena_places));
}

// With the addresses that what is not of the colour leads to (color::RemainderSteps).
Result<Places> reserve(const GpuPointer& gpu, const LentShare& lent,
                       const color::RemainderSteps& steps) {
  const std::uint64_t pages = steps.first_page + lent.pages + 1;
  DEMARC_TRY(AddressRange arena,
             AddressRange::reserve(gpu, pages * lent.page_bytes, lent.page_bytes));
  DEMARC_TRY(AddressRange window,
             AddressRange::reserve(gpu, whole_pages(lent.bytes, lent.page_bytes), lent.page_bytes));
  return Places{std::move(arena), std::move(window), steps.first_page * lent.page_bytes};
}

Result<void> map_page(const GpuPointer& gpu, AddressRange& arena, std::uint64_t page,
                      std::uint64_t offset, std::uint64_t page_bytes, const OwnedFile& lent) {
  Result<void> mapped = [&]() -> Result<void> {
    DEMARC_TRY(const PhysicalMemory memory, PhysicalMemory::borrow(gpu, lent, page_bytes));
    return arena.map(offset, memory);
  }();
  if (mapped) return {};
  return tl::unexpected(Error{mapped.error().kind, fmt::format("page {} of a lent share: {}", page,
                                                               mapped.error().message)});
}

}  // namespace

Result<BorrowedShare> BorrowedShare::open(GpuPointer gpu, const LentShare& lent,
                                          std::span<const std::byte> table, Lender lender) {
  DEMARC_CHECK(check_pages(*gpu, lent));
  DEMARC_CHECK(std::visit([&](const auto& colors) { return check_colors(lent, colors, table); },
                          lent.colors));
  DEMARC_TRY(
      Places places,
      std::visit([&](const auto& colors) { return reserve(gpu, lent, colors); }, lent.colors));
  BorrowedShare share(gpu, lent, std::move(lender), std::move(places.arena),
                      std::move(places.window), places.in_front);
  if (lent.patterns_at || lent.places_at) DEMARC_CHECK(share.borrow_tables(table));
  if (!table.empty() && (!lent.patterns_at || !lent.places_at)) {
    DEMARC_TRY(DeviceBuffer on_card, DeviceBuffer::allocate(gpu, table.size()));
    DEMARC_CHECK(on_card.upload(table.data(), table.size()));
    share.table_.emplace(std::move(on_card));
  }
  return share;
}

// What lies there has to be what the table holds, which was looked at.
Result<void> BorrowedShare::borrow_tables(std::span<const std::byte> table) {
  const auto& steps = std::get<color::RemainderSteps>(lent_.colors);
  DEMARC_TRY(const std::vector<OwnedFile> lent, lender_(lent_.pages, 1));
  if (lent.size() != 1) {
    return invalid_input("of the page with the tables of a share there came {} descriptors",
                         lent.size());
  }
  DEMARC_TRY(const PhysicalMemory memory,
             PhysicalMemory::borrow(gpu_, lent.front(), lent_.page_bytes));
  DEMARC_TRY(AddressRange range, AddressRange::reserve(gpu_, lent_.page_bytes, lent_.page_bytes));
  DEMARC_CHECK(range.map(0, memory));
  DEMARC_CHECK(range.allow(0, lent_.page_bytes, AddressRange::Access::read));
  // `in_front`: bytes that may be read in front of them.
  const auto compare = [&](std::string_view what, std::optional<std::uint32_t> at,
                           std::uint64_t in_front,
                           std::span<const std::byte> wanted) -> Result<void> {
    if (!at) return {};
    if (*at < in_front || *at + wanted.size() > lent_.page_bytes) {
      return invalid_input("a share is lent with {} at {} of a page of {} bytes", what, *at,
                           lent_.page_bytes);
    }
    std::vector<std::byte> found(wanted.size());
    DEMARC_CHECK(
        gpu_->check(gpu_->api().cuMemcpyDtoH_v2(found.data(), range.address() + *at, found.size()),
                    "read the tables of a lent share"));
    if (std::equal(found.begin(), found.end(), wanted.begin())) return {};
    return invalid_input("the {} of a lent share are not those of its table", what);
  };
  DEMARC_CHECK(
      compare("patterns", lent_.patterns_at, 0, table.first(color::remainder_table_of_pages)));
  DEMARC_CHECK(compare("places", lent_.places_at, steps.first_page,
                       table.subspan(steps.pages_at + steps.first_page)));
  lent_tables_.emplace(std::move(range));
  return {};
}

std::vector<std::pair<DevicePointer, std::uint64_t>> BorrowedShare::tables() const {
  std::vector<std::pair<DevicePointer, std::uint64_t>> all;
  if (table_) all.emplace_back(table_->address(), table_->bytes());
  if (lent_tables_) all.emplace_back(lent_tables_->address(), lent_tables_->bytes());
  return all;
}

// Of the arena, in which pages follow each other as the bytes of each colour do.
std::uint64_t BorrowedShare::page_of(std::uint64_t linear) const {
  if (const auto* parities = std::get_if<color::Parities>(&lent_.colors)) {
    return (linear << parities->masks.size()) / lent_.page_bytes;
  }
  const auto& steps = std::get<color::RemainderSteps>(lent_.colors);
  const std::uint64_t chunk = chunk_of(steps, (linear >> steps.chunk_shift) + steps.begin);
  return (chunk >> steps.page_shift) - steps.first_page;
}

Result<void> BorrowedShare::map(std::uint64_t first, std::uint64_t bytes) {
  if (bytes == 0 || first >= lent_.bytes || bytes > lent_.bytes - first) {
    return invalid_input("{} bytes from {} on of a lent share of {}", bytes, first, lent_.bytes);
  }
  const std::uint64_t end = page_of(first + bytes - 1) + 1;
  for (std::uint64_t page = page_of(first); page < end;) {
    std::uint64_t behind = page;
    while (behind < end && !mapped_[behind]) ++behind;
    if (behind > page) DEMARC_CHECK(map_pages(page, behind));
    page = behind + 1;
  }
  return {};
}

Result<void> BorrowedShare::map_pages(std::uint64_t first, std::uint64_t end) {
  while (first < end) {
    DEMARC_TRY(const std::vector<OwnedFile> batch, lender_(first, end - first));
    if (batch.empty() || batch.size() > end - first) {
      return invalid_input("of {} pages of a lent share from page {} on there came {} descriptors",
                           end - first, first, batch.size());
    }
    DEMARC_CHECK(map_batch(first, batch));
    first += batch.size();
  }
  return {};
}

// All of them, or none.
Result<void> BorrowedShare::map_batch(std::uint64_t first, const std::vector<OwnedFile>& batch) {
  std::uint64_t page = first;
  Result<void> mapped = [&]() -> Result<void> {
    for (const OwnedFile& descriptor : batch) {
      DEMARC_CHECK(map_page(gpu_, arena_, page, offset_of(page), lent_.page_bytes, descriptor));
      ++page;
    }
    return arena_.allow(offset_of(first), batch.size() * lent_.page_bytes);
  }();
  if (!mapped) {
    while (page-- > first) {
      static_cast<void>(arena_.unmap(offset_of(page), lent_.page_bytes));
    }
    return mapped;
  }
  for (page = first; page < first + batch.size(); ++page) mapped_[page] = true;
  return {};
}

ColoredCode BorrowedShare::code() const {
  if (const auto* parities = std::get_if<color::Parities>(&lent_.colors)) {
    return {window(), *parities, gpu_->compute_capability()};
  }
  const auto& steps = std::get<color::RemainderSteps>(lent_.colors);
  const auto number = static_cast<std::uint32_t>(window() >> steps.chunk_shift);
  const auto in_lent_page = [this](std::uint32_t at) { return lent_tables_->address() + at; };
  return {window(),
          color::RemainderAddressing{
              {.chunk_shift = steps.chunk_shift,
               .page_shift = steps.page_shift,
               .pattern_bits = steps.pattern_bits},
              {.arena = arena_.address(),
               .table = lent_.patterns_at ? in_lent_page(*lent_.patterns_at) : table_->address(),
               .pages = lent_.places_at ? in_lent_page(*lent_.places_at) - steps.first_page
                                        : table_->address() + steps.pages_at,
               .before = number - steps.begin,
               .end = steps.end,
               .reciprocal = steps.reciprocal,
               .reciprocal_shift = steps.reciprocal_shift,
               .skipped = steps.skipped}},
          gpu_->compute_capability()};
}

}  // namespace demarc::cuda
