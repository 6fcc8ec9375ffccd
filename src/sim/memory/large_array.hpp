// Arrays of megabytes that are touched all over: aligned to a line of the host's cache and, where
// the system offers it, on large pages.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace demarc::sim::memory {

inline constexpr std::size_t host_line = 64;
inline constexpr std::size_t large_page = std::size_t{2} << 20U;

// Says that `bytes` from `start` on may lie on large pages. No effect where there are none.
void ask_large_pages(void* start, std::size_t bytes);

// Asks the host for the line at `address`, which will be read and written soon. The empty assembly
// keeps GCC from taking a function that does nothing else for free of effects and dropping it.
inline void prefetch(const void* address) {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  explicit LargeAllocator(const LargeAllocator<U>&) {}
  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= large_page ? large_page : host_line};
  }
  T* allocate(std::size_t count) {
    std::size_t bytes = count * sizeof(T);
    if (bytes >= large_page) bytes = (bytes + large_page - 1) / large_page * large_page;
    void* const start = ::operator new(bytes, alignment(bytes));
    if (bytes >= large_page) ask_large_pages(start, bytes);
    return static_cast<T*>(start);
  }
  void deallocate(T* start, std::size_t count) {
    ::operator delete(start, alignment(count * sizeof(T)));
  }
  template <class U>
  bool operator==(const LargeAllocator<U>&) const {
    return true;
  }
};

template <class T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

}  // namespace demarc::sim::memory
