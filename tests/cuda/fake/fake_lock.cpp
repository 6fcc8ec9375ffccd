// The lock of the stand-in.
#include "fake_state.hpp"

namespace demarc::fake {

void FairLock::lock() {
  std::unique_lock guard(mutex_);
  if (depth_ > 0 && owner_ == std::this_thread::get_id()) {
    ++depth_;
    return;
  }
  const std::uint64_t ticket = tickets_++;
  next_.wait(guard, [&] { return served_ == ticket; });
  owner_ = std::this_thread::get_id();
  depth_ = 1;
}

void FairLock::unlock() {
  const std::lock_guard guard(mutex_);
  if (--depth_ > 0) return;
  ++served_;
  next_.notify_all();
}

}  // namespace demarc::fake
