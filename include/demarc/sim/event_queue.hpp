// The heart of the discrete-event simulators: events by time, equal times in the order they were
// scheduled. A wheel of buckets serves the near future in constant time; a heap holds what lies
// beyond it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace demarc::sim {

using Cycles = std::uint64_t;

template <class Event>
class EventQueue {
 public:
  static constexpr Cycles never = ~Cycles{0};

  [[nodiscard]] Cycles now() const { return now_; }
  [[nodiscard]] bool empty() const { return near_ == 0 && far_.empty(); }

  // `at` must not lie in the past.
  void schedule(Cycles at, const Event& event) {
    if (at - now_ < wheel_size) {
      put(at, event);
    } else {
      far_.push_back({at, sequence_++, event});
      std::push_heap(far_.begin(), far_.end(), Later{});
    }
  }

  // Time of the next event; `never` when there is none.
  [[nodiscard]] Cycles next_time() const {
    if (near_ == 0) return far_.empty() ? never : far_.front().at;
    const std::size_t start = slot(now_);
    std::size_t word = start / 64;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start % 64));
    while (bits == 0) {
      word = (word + 1) % occupied_.size();
      bits = occupied_[word];
    }
    const std::size_t found = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    return now_ + ((found - start) & (wheel_size - 1));
  }

  // The event that comes `count` events after the next one, where it lies at the time of the last
  // pop(); none else. For looking ahead at what will be needed.
  [[nodiscard]] const Event* ahead(std::size_t count) const {
    const Bucket& bucket = wheel_[slot(now_)];
    return bucket.read + count < bucket.events.size() ? &bucket.events[bucket.read + count]
                                                      : nullptr;
  }

  // Advances the clock to the next event and removes it. The queue must not be empty.
  Event pop() {
    const Cycles at = next_time();
    now_ = at;
    while (!far_.empty() && far_.front().at - now_ < wheel_size) {
      std::pop_heap(far_.begin(), far_.end(), Later{});
      put(far_.back().at, far_.back().event);
      far_.pop_back();
    }
    Bucket& bucket = wheel_[slot(at)];
    const Event event = bucket.events[bucket.read++];
    --near_;
    if (bucket.read == bucket.events.size()) {
      bucket.events.clear();
      bucket.read = 0;
      occupied_[slot(at) / 64] &= ~(std::uint64_t{1} << (slot(at) % 64));
    }
    return event;
  }

 private:
  static constexpr std::size_t wheel_size = 4096;
  struct Bucket {
    std::vector<Event> events;
    std::size_t read = 0;
  };
  struct Far {
    Cycles at;
    std::uint64_t sequence;
    Event event;
  };
  struct Later {
    bool operator()(const Far& a, const Far& b) const {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };

  static std::size_t slot(Cycles at) { return static_cast<std::size_t>(at & (wheel_size - 1)); }
  void put(Cycles at, const Event& event) {
    wheel_[slot(at)].events.push_back(event);
    occupied_[slot(at) / 64] |= std::uint64_t{1} << (slot(at) % 64);
    ++near_;
  }

  std::vector<Bucket> wheel_ = std::vector<Bucket>(wheel_size);
  std::array<std::uint64_t, wheel_size / 64> occupied_{};
  std::vector<Far> far_;
  Cycles now_ = 0;
  std::uint64_t sequence_ = 0;
  std::size_t near_ = 0;
};

}  // namespace demarc::sim
