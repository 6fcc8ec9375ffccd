// Has the page table lead addresses of the window to the share's bytes, for code that knows nothing
// of colours.
#include "demarc/color/page_pieces.hpp"
#include "demarc/guest/lent_share.hpp"

namespace demarc::cuda {

Result<void> BorrowedShare::prepare_showing() {
  // Whether pages can divide the colours at all is known by one of them.
  DEMARC_TRY(const auto pieces, color::page_pieces(*lent_.law, law_table_,
                                                   {{}, lent_.law->granule()}, lent_.page_bytes));
  if (std::find(mapped_.begin(), mapped_.end(), true) != mapped_.end()) {
    return check_failed("pages of a lent share are mapped already, unseen");
  }
  DEMARC_TRY(mappings_, PageMappings::install(gpu_->api()));
  memory_.resize(lent_.pages);
  return {};
}

// The driver gives access to pages one at a time where what it asks of the kernel module is noted.
Result<void> BorrowedShare::allow(color::ArenaPage first, std::uint64_t count) {
  if (mappings_ == nullptr) return arena_.allow(offset_of(first), count * lent_.page_bytes);
  for (color::ArenaPage page = first; page < first + count; ++page) {
    DEMARC_TRY(memory_[page.raw()],
               mappings_->record(arena_.address() + offset_of(page), lent_.page_bytes, card_,
                                 [&] { return arena_.allow(offset_of(page), lent_.page_bytes); }));
  }
  return {};
}

Result<void> BorrowedShare::show(const color::Extent& extent) {
  if (mappings_ == nullptr) return check_failed("the window was not prepared to show bytes");
  const std::uint64_t page_bytes = lent_.page_bytes;
  if (extent.first.raw() % page_bytes != 0 || extent.bytes % page_bytes != 0) {
    return invalid_input("{} bytes from {} on are no whole pages of {} bytes", extent.bytes,
                         extent.first, page_bytes);
  }
  for (std::uint64_t offset = extent.first.raw(); offset < extent.end().raw();
       offset += page_bytes) {
    if (shown_.contains(offset)) continue;
    if (auto done = show_page(offset); !done) {
      hide(extent);
      return done;
    }
  }
  return {};
}

// The driver maps a page there first, one of the arena's, so that it knows the addresses.
Result<void> BorrowedShare::show_page(std::uint64_t offset) {
  const std::uint64_t page_bytes = lent_.page_bytes;
  const color::Extent whole{color::LinearByte(offset), page_bytes};
  DEMARC_TRY(const auto pieces, color::page_pieces(*lent_.law, law_table_, whole, page_bytes));
  for (const color::PagePiece& piece : pieces) {
    if (mapped_[piece.at.raw() / page_bytes]) continue;
    return invalid_input("bytes of a lent share are to be shown that are not mapped, from {} on",
                         piece.linear);
  }
  const color::ArenaPage first(pieces.front().at.raw() / page_bytes);
  DEMARC_TRY(const std::vector<OwnedFile> lent, lender_({first, 1}));
  if (lent.empty()) {
    return invalid_input("no descriptor of page {} of a lent share came", first);
  }
  {
    DEMARC_TRY(const PhysicalMemory memory, PhysicalMemory::borrow(gpu_, lent.front(), page_bytes));
    DEMARC_CHECK(window_.map(offset, memory));
  }
  shown_.emplace(offset, 0);
  const DevicePointer address = window_.address() + offset;
  const auto known = mappings_->record(address, page_bytes, card_,
                                       [&] { return window_.allow(offset, page_bytes); });
  if (!known) return tl::unexpected(known.error());
  DEMARC_CHECK(mappings_->clear(address, page_bytes));
  for (const color::PagePiece& piece : pieces) {
    DEMARC_CHECK(mappings_->map(window_.address() + piece.linear.raw(), piece.bytes,
                                piece.at.raw() % page_bytes, memory_[piece.at.raw() / page_bytes]));
    ++shown_[offset];
    ++pieces_;
  }
  return {};
}

Result<void> BorrowedShare::leave_arena(const color::Extent& extent) {
  const color::PageRun run = pages_of(extent);
  Result<void> all;
  for (color::ArenaPage page = run.first; page < run.first + run.count; ++page) {
    if (!mapped_[page.raw()]) continue;
    if (auto done = arena_.unmap(offset_of(page), lent_.page_bytes); !done) {
      all = std::move(done);
    } else {
      mapped_[page.raw()] = false;
    }
  }
  return all;
}

void BorrowedShare::hide(const color::Extent& extent) {
  for (std::uint64_t offset = extent.first.raw(); offset < extent.end().raw();
       offset += lent_.page_bytes) {
    const auto found = shown_.find(offset);
    if (found == shown_.end()) continue;
    static_cast<void>(window_.unmap(offset, lent_.page_bytes));
    pieces_ -= found->second;
    shown_.erase(found);
  }
}

}  // namespace demarc::cuda
