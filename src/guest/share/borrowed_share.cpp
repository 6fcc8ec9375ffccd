// Maps what another process has lent, so that rewritten kernels find it by window addresses.
#include <algorithm>
#include <cstring>

#include "demarc/base/rounding.hpp"
#include "demarc/guest/lent_share.hpp"

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

color::Arena arena_of(const LentShare& lent) {
  return {lent.page_bytes, lent.pages};
}

Result<void> check_colors(const LentShare& lent, std::span<const std::byte> table) {
  if (!lent.law->table_parts() && (!table.empty() || lent.patterns_at || lent.places_at)) {
    return invalid_input("a share is lent with a table, but its law has none: {}",
                         color::to_text(*lent.law));
  }
  DEMARC_CHECK(lent.law->check(arena_of(lent), table));
  const std::uint64_t room = lent.law->bytes(arena_of(lent));
  if (lent.bytes > 0 && lent.bytes <= room) return {};
  return invalid_input("a share is lent of {} bytes; its {} pages have room for 1 to {}",
                       lent.bytes, lent.pages, room);
}

// Some laws fit any window, others one alone.
Result<Places> reserve(const GpuPointer& gpu, const LentShare& lent) {
  const color::ArenaRoom room = lent.law->room(arena_of(lent));
  const std::uint64_t bytes = (room.in_front + lent.pages + room.behind) * lent.page_bytes;
  const std::uint64_t in_front = room.in_front * lent.page_bytes;
  for (const DevicePointer place : arena_places) {
    DEMARC_TRY(AddressRange arena, AddressRange::reserve(gpu, bytes, room.alignment, place));
    const auto wanted = lent.law->window(color::DeviceAddress(arena.address()) + in_front);
    DEMARC_TRY(AddressRange window,
               AddressRange::reserve(gpu, round_up(lent.bytes, lent.page_bytes), lent.page_bytes,
                                     wanted.value_or(color::DeviceAddress()).raw()));
    if (!wanted || color::DeviceAddress(window.address()) == *wanted) {
      return Places{std::move(arena), std::move(window), in_front};
    }
  }
  return missing_capability(
      "{}: the driver gives no addresses for the window of a lent share of {} bytes: those of its "
      "arena divided by {} are taken, at {} places",
      gpu->name(), lent.bytes, room.alignment / lent.page_bytes, std::size(arena_places));
}

Result<void> map_page(const GpuPointer& gpu, AddressRange& arena, color::ArenaPage page,
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
  DEMARC_CHECK(check_colors(lent, table));
  DEMARC_TRY(Places places, reserve(gpu, lent));
  BorrowedShare share(gpu, lent, std::move(lender), std::move(places.arena),
                      std::move(places.window), places.in_front);
  share.law_table_.assign(table.begin(), table.end());
  DEMARC_TRY(share.card_, share.gpu_->ask("cannot read the card's UUID",
                                          share.gpu_->api().cuDeviceGetUuid, share.gpu_->handle()));
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
  const color::TableParts parts = *lent_.law->table_parts();
  DEMARC_TRY(const std::vector<OwnedFile> lent, lender_({color::ArenaPage(lent_.pages), 1}));
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
  DEMARC_CHECK(compare("patterns", lent_.patterns_at, 0, table.first(parts.pattern_bytes)));
  DEMARC_CHECK(
      compare("places", lent_.places_at, parts.places_in_front, table.subspan(parts.places_at)));
  lent_tables_.emplace(std::move(range));
  return {};
}

std::vector<std::pair<DevicePointer, std::uint64_t>> BorrowedShare::tables() const {
  std::vector<std::pair<DevicePointer, std::uint64_t>> all;
  if (table_) all.emplace_back(table_->address(), table_->bytes());
  if (lent_tables_) all.emplace_back(lent_tables_->address(), lent_tables_->bytes());
  return all;
}

Result<void> BorrowedShare::map(const color::Extent& extent) {
  const color::LinearByte behind_share(lent_.bytes);
  if (extent.bytes == 0 || extent.first >= behind_share ||
      extent.bytes > behind_share - extent.first) {
    return invalid_input("{} bytes from {} on of a lent share of {}", extent.bytes, extent.first,
                         lent_.bytes);
  }
  const color::PageRun run = pages_of(extent);
  const color::ArenaPage end = run.first + run.count;
  for (color::ArenaPage page = run.first; page < end;) {
    color::ArenaPage behind = page;
    while (behind < end && !mapped_[behind.raw()]) ++behind;
    if (behind > page) DEMARC_CHECK(map_pages({page, behind - page}));
    page = behind + 1;
  }
  return {};
}

Result<void> BorrowedShare::map_pages(color::PageRun run) {
  while (run.count != 0) {
    DEMARC_TRY(const std::vector<OwnedFile> batch, lender_(run));
    if (batch.empty() || batch.size() > run.count) {
      return invalid_input("of {} pages of a lent share from page {} on there came {} descriptors",
                           run.count, run.first, batch.size());
    }
    DEMARC_CHECK(map_batch(run.first, batch));
    run = {run.first + batch.size(), run.count - batch.size()};
  }
  return {};
}

// All of them, or none.
Result<void> BorrowedShare::map_batch(color::ArenaPage first, const std::vector<OwnedFile>& batch) {
  color::ArenaPage page = first;
  Result<void> mapped = [&]() -> Result<void> {
    for (const OwnedFile& descriptor : batch) {
      DEMARC_CHECK(map_page(gpu_, arena_, page, offset_of(page), lent_.page_bytes, descriptor));
      ++page;
    }
    return allow(first, batch.size());
  }();
  if (!mapped) {
    while (page > first) {
      page = page - 1;
      static_cast<void>(arena_.unmap(offset_of(page), lent_.page_bytes));
    }
    return mapped;
  }
  for (page = first; page < first + batch.size(); ++page) mapped_[page.raw()] = true;
  return {};
}

ColoredCode BorrowedShare::code() const {
  color::SharePlace place{.arena = arena(), .window = window()};
  if (const auto parts = lent_.law->table_parts()) {
    const auto address = [&](std::optional<std::uint32_t> in_lent_page, std::uint64_t in_table) {
      return color::DeviceAddress(in_lent_page ? lent_tables_->address() + *in_lent_page
                                               : table_->address() + in_table);
    };
    place.patterns = address(lent_.patterns_at, 0);
    place.places = address(lent_.places_at, parts->places_at);
  }
  return {place, lent_.law, gpu_->compute_capability()};
}

}  // namespace demarc::cuda
