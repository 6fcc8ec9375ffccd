// While one of these lives, calls of the driver by this thread are Demarc's own: they are not
// answered or refused as a coloured program's are.
#pragma once

namespace demarc::cuda {

class OwnCalls {
 public:
  OwnCalls() : before_(inside) { inside = true; }
  ~OwnCalls() { inside = before_; }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

  [[nodiscard]] static bool active() { return inside; }

 private:
  static inline thread_local bool inside = false;
  bool before_;
};

}  // namespace demarc::cuda
