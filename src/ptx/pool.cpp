// Takes memory of a module from the system in large blocks and frees it all at once.
#include "demarc/ptx/pool.hpp"
#include "demarc/base/rounding.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace demarc::ptx {
namespace {

constexpr std::align_val_t page{4096};
constexpr std::size_t unit = 16;
// Pages are asked for this much at a time: one system call instead of sixteen page faults, little
// enough to stay in the cache until it is written. (Huge pages are no faster: their zeros go out to
// memory and come back.)
constexpr std::size_t step = std::size_t{64} << 10U;

}  // namespace

Pool::~Pool() {
  for (const Block& block : blocks_) ::operator delete(block.first, page);
}

void* Pool::allocate(std::size_t bytes) {
  if (sealed_) return nullptr;
  bytes = round_up(bytes, unit);
  if (static_cast<std::size_t>(end_ - at_) < bytes) add_block(bytes);
  std::byte* storage = at_;
  at_ += bytes;
  while (at_ > filled_ && filled_ + step <= end_) {
#ifdef MADV_POPULATE_WRITE
    ::madvise(filled_, step, MADV_POPULATE_WRITE);  // only a wish: older systems refuse it
#endif
    filled_ += step;
  }
  return storage;
}

void Pool::add_block(std::size_t at_least) {
  const std::size_t size = round_up(std::max(block_bytes_, at_least), unit);
  auto* first = static_cast<std::byte*>(::operator new(size, page));
  blocks_.push_back({first, size});
  at_ = filled_ = first;
  end_ = first + size;
}

bool Pool::owns(const void* p) const {
  const std::less<> before;  // a total order over all pointers
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return !before(p, block.first) && before(p, block.first + block.size);
  });
}

}  // namespace demarc::ptx
