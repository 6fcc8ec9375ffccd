// What a neighbour that can be preempted asks before each slice of its work.
#pragma once

#include <atomic>
#include <cstdint>

namespace demarc::study {

// The victim takes the right of way while it has work; a neighbour's slices begin while nothing
// has it. A slice that has begun runs to its end.
class RightOfWay {
 public:
  class Holder {
   public:
    // Takes the right of way until the end of this object. Null: there is none to take.
    explicit Holder(RightOfWay* way) : way_(way) {
      if (way_ != nullptr) way_->taken_ = 1;
    }
    ~Holder() {
      if (way_ == nullptr) return;
      way_->taken_ = 0;
      way_->taken_.notify_all();
    }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    RightOfWay* way_;
  };

  // Returns while nothing has the right of way.
  void give_way() const { taken_.wait(1); }
  [[nodiscard]] bool is_taken() const { return taken_ != 0; }

 private:
  std::atomic<std::uint32_t> taken_{0};
};

}  // namespace demarc::study
