// Asks the system for large pages.
#include "demarc/base/large_array.hpp"

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace demarc {

void ask_large_pages([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  if (bytes < LargeAllocator<char>::page) return;
  // The system wants the start of a small page.
  constexpr std::uintptr_t small_page = 4096;
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t skip = (small_page - first % small_page) % small_page;
  // A hint: without it all works as well.
  (void)madvise(static_cast<char*>(start) + skip, bytes - skip, MADV_HUGEPAGE);
#endif
}

}  // namespace demarc
