// While one of these lives, calls of the driver by this thread are Demarc's own: they are not
// answered or refused as a coloured program's are.
#pragma once

namespace demarc::cuda {

class OwnCalls {
 public:
  OwnCalls() : before_(active_) { active_ = true; }
  ~OwnCalls() { active_ = before_; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

  [[nodiscard]] static bool active() { return active_; }

 private:
  static inline thread_local bool active_ = false;
  bool before_;
};

}  // namespace demarc::cuda
