// A parsed module keeps its instructions in a pool: a few large blocks instead of thousands of
// small allocations. The system is asked for many pages at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

namespace demarc::ptx {

// Memory that is freed all at once. Two threads must not allocate from it at the same time. After
// seal() it gives nothing more. Any thread may call everything else.
class Pool {
 public:
  explicit Pool(std::size_t block_bytes) : block_bytes_(block_bytes) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Aligned to 16 bytes; nullptr after seal().
  [[nodiscard]] void* allocate(std::size_t bytes);
  void seal() { sealed_ = true; }
  [[nodiscard]] bool owns(const void* p) const;

 private:
  struct Block {
    std::byte* first;
    std::size_t size;
  };
  void add_block(std::size_t at_least);

  std::size_t block_bytes_;
  std::vector<Block> blocks_;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  std::byte* filled_ = nullptr;  // the pages of the newest block are there up to here
  bool sealed_ = false;
};

// Allocates from a pool as long as that gives something, else from the heap. It keeps the pool
// alive. A copy of a container is on the heap; what is moved stays where it is.
template <class T>
class PoolAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  PoolAllocator() = default;
  PoolAllocator(const PoolAllocator&) = default;  // also moves: what is moved from stays equal
  PoolAllocator& operator=(const PoolAllocator&) = default;
  ~PoolAllocator() = default;
  explicit PoolAllocator(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}
  template <class U>
  explicit PoolAllocator(const PoolAllocator<U>& other) : pool_(other.pool()) {}

  [[nodiscard]] T* allocate(std::size_t count) {
    if (pool_ != nullptr) {
      if (void* storage = pool_->allocate(count * sizeof(T))) return static_cast<T*>(storage);
    }
    return std::allocator<T>{}.allocate(count);
  }
  void deallocate(T* storage, std::size_t count) {
    if (pool_ == nullptr || !pool_->owns(storage)) {
      std::allocator<T>{}.deallocate(storage, count);
    }
  }
  [[nodiscard]] PoolAllocator select_on_container_copy_construction() const { return {}; }
  [[nodiscard]] const std::shared_ptr<Pool>& pool() const { return pool_; }

  friend bool operator==(const PoolAllocator& a, const PoolAllocator& b) {
    return a.pool_ == b.pool_;
  }

 private:
  std::shared_ptr<Pool> pool_;
};

template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

}  // namespace demarc::ptx
