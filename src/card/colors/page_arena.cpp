// Maps physical pages side by side in a chosen order, with guard pages beside them.
#include "demarc/card/page_arena.hpp"

namespace demarc::cuda {
namespace {

Result<AddressRange> map_pages(const GpuPointer& gpu, const std::vector<PhysicalMemory>& memory,
                               std::uint64_t page_bytes, GuardPages guards,
                               std::uint64_t aligned_to = 1) {
  const std::uint64_t pages = guards.in_front + memory.size() + guards.behind;
  // Aligned to a page, so that offsets in the arena and in a page agree.
  DEMARC_TRY(AddressRange range,
             AddressRange::reserve(gpu, pages * page_bytes, page_bytes * aligned_to));
  for (std::size_t i = 0; i < memory.size(); ++i) {
    DEMARC_CHECK(range.map((guards.in_front + i) * page_bytes, memory[i]));
  }
  DEMARC_CHECK(range.allow(guards.in_front * page_bytes, memory.size() * page_bytes));
  return range;
}

}  // namespace

Result<PageArena> PageArena::create(GpuPointer gpu, std::uint64_t pages, Lending lending) {
  if (pages == 0) return invalid_input("an arena needs at least one page");
  DEMARC_TRY(const std::size_t page_bytes, PhysicalMemory::granularity(*gpu));
  std::vector<PhysicalMemory> memory;
  memory.reserve(pages);
  for (std::uint64_t i = 0; i < pages; ++i) {
    DEMARC_TRY(PhysicalMemory page, PhysicalMemory::create(gpu, page_bytes, lending));
    memory.push_back(std::move(page));
  }
  DEMARC_TRY(AddressRange range, map_pages(gpu, memory, page_bytes, {}));
  DEMARC_CHECK(gpu->check(gpu->api().cuMemsetD8_v2(range.address(), 0, page_bytes * pages),
                          "clear an arena"));
  return PageArena(std::move(gpu), std::move(memory), std::move(range), page_bytes, lending);
}

Result<OwnedFile> PageArena::lend_page(color::ArenaPage page) const {
  if (lending_ == Lending::none) return invalid_input("the pages of this arena cannot be lent");
  const color::ArenaPage behind(memory_.size());
  if (aside_ && page == behind) return aside_->memory.lend();
  if (page >= behind) {
    return invalid_input("lending page {} of an arena: it has {}", page, memory_.size());
  }
  return memory_[page.raw()].lend();
}

Result<void> PageArena::fill_aside(std::uint64_t at, std::span<const std::byte> bytes) const {
  if (!aside_ || at > page_bytes_ || bytes.size() > page_bytes_ - at) {
    return invalid_input("{} bytes at {} of a page that an arena keeps aside: it has {}",
                         bytes.size(), at, aside_ ? page_bytes_ : 0);
  }
  DEMARC_CHECK(aside_->range.allow(0, page_bytes_));
  DEMARC_CHECK(gpu_->check(
      gpu_->api().cuMemcpyHtoD_v2(aside_->range.address() + at, bytes.data(), bytes.size()),
      "fill a page beside an arena"));
  return aside_->range.allow(0, page_bytes_, AddressRange::Access::read);
}

Result<void> PageArena::arrange(std::span<const std::uint32_t> order, GuardPages guards,
                                std::optional<std::uint32_t> aside, std::uint64_t aligned_to) {
  std::vector<bool> taken(memory_.size(), false);
  const auto take = [&](std::uint32_t page) -> Result<void> {
    if (page >= memory_.size() || taken[page]) {
      return invalid_input("arranging an arena: page {} is {}", page,
                           page >= memory_.size() ? "not there" : "named twice");
    }
    taken[page] = true;
    return {};
  };
  for (const auto page : order) DEMARC_CHECK(take(page));
  if (aside) {
    DEMARC_CHECK(take(*aside));
    DEMARC_TRY(AddressRange range, AddressRange::reserve(gpu_, page_bytes_, page_bytes_));
    DEMARC_CHECK(range.map(0, memory_[*aside]));
    DEMARC_CHECK(range.allow(0, page_bytes_, AddressRange::Access::read));
    aside_.emplace(Aside{std::move(memory_[*aside]), std::move(range)});
  }
  std::vector<PhysicalMemory> arranged;
  arranged.reserve(order.size());
  for (const auto page : order) arranged.push_back(std::move(memory_[page]));
  memory_ = std::move(arranged);
  DEMARC_TRY(range_, map_pages(gpu_, memory_, page_bytes_, guards, aligned_to));
  guards_ = guards;
  return {};
}

}  // namespace demarc::cuda
