// Arrays of megabytes that are accessed everywhere. They are aligned to a line of the processor's
// cache and lie on large pages if the system offers these.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "demarc/base/rounding.hpp"

namespace demarc {

// Tells the system that the bytes from `start` on may lie on large pages. It has no effect if there
// are no large pages, nor on parts of a large page at either end.
void ask_large_pages(void* start, std::size_t bytes);

template <class T>
struct LargeAllocator {
  using value_type = T;
  static constexpr std::size_t line = 64;
  static constexpr std::size_t page = std::size_t{2} << 20U;

  LargeAllocator() = default;
  template <class U>
  explicit LargeAllocator(const LargeAllocator<U>&) {}
  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= page ? page : line};
  }
  T* allocate(std::size_t count) {
    std::size_t bytes = count * sizeof(T);
    if (bytes >= page) bytes = round_up(bytes, page);
    void* const start = ::operator new(bytes, alignment(bytes));
    if (bytes >= page) ask_large_pages(start, bytes);
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

}  // namespace demarc
