// The heart of the discrete-event simulators: events by time, equal times in the order they were
// scheduled. A wheel of buckets serves the near future in constant time; a heap holds what lies
// beyond it.
//
// Buckets are lists of small chunks from one pool. The chunk that was freed last is taken first. So
// the queue touches no more memory than its events need.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "demarc/sim/units.hpp"

namespace demarc::sim {

template <class Event>
class EventQueue {
  static_assert(std::is_trivially_copyable_v<Event> && sizeof(Event) <= 128);

 public:
  static constexpr Cycles never{~std::uint64_t{0}};

  EventQueue() = default;
  // It points into itself, so it is not copied.
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;
  ~EventQueue() = default;

  [[nodiscard]] Cycles now() const { return now_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }

  // `at` must not lie in the past.
  [[gnu::always_inline]] void schedule(Cycles at, const Event& event) {
    ++count_;
    if ((at - now_).raw() - 1 < wheel_size - 1) {
      put(at, event);
    } else {
      put_elsewhere(at, event);
    }
  }

  // Time of the next event; `never` when there is none.
  [[nodiscard]] Cycles next_time() const {
    if (read_ != end_) return now_;
    const Cycles near = next_in_wheel();
    return near != never || far_.empty() ? near : far_.front().at;
  }

  // Some of the `count` events that come after the next `skip` ones, as far as they were known at
  // the last pop(). For looking ahead at what will be needed.
  [[nodiscard]] std::span<const Event> ahead(std::size_t skip, std::size_t count) const {
    const auto left = static_cast<std::size_t>(end_ - read_);
    if (skip < left) return {read_ + skip, std::min(count, left - skip)};
    const std::size_t beyond = skip - left;
    if (beyond >= following_size_) return {};
    return {&chunks_[following_][beyond], std::min(count, following_size_ - beyond)};
  }

  // Visits every event that is to come, in no particular order.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const Event* event = read_; event != end_; ++event) visit(*event);
    for (const Bucket& bucket : wheel_) {
      std::uint32_t chunk = bucket.head;
      for (std::uint32_t i = 0; i < bucket.size; ++i) {
        visit(chunks_[chunk][i % chunk_events]);
        if ((i + 1) % chunk_events == 0) chunk = next_chunk_[chunk];
      }
    }
    for (const Far& far : far_) visit(far.event);
  }

  // Advances the clock to the next event and removes it. The queue must not be empty.
  [[gnu::always_inline]] Event pop() {
    if (read_ == end_) open(next_time());
    --count_;
    return *read_++;
  }

 private:
  static constexpr std::size_t wheel_size = 4096;
  static constexpr std::uint32_t no_chunk = ~std::uint32_t{0};
  static constexpr auto chunk_events =
      static_cast<std::uint32_t>(std::bit_floor(128 / sizeof(Event)));
  using Chunk = std::array<Event, chunk_events>;
  struct Bucket {
    std::uint32_t head = no_chunk;
    std::uint32_t tail = no_chunk;
    std::uint32_t size = 0;
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

  static std::size_t slot(Cycles at) {
    return static_cast<std::size_t>(at.raw() & (wheel_size - 1));
  }

  // Time of the first bucket that holds something.
  [[nodiscard]] Cycles next_in_wheel() const {
    const std::size_t start = slot(now_);
    std::size_t word = start / 64;
    std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (start % 64));
    for (std::size_t looked = 0; bits == 0; ++looked) {
      if (looked == occupied_.size()) return never;
      word = (word + 1) % occupied_.size();
      bits = occupied_[word];
    }
    const std::size_t found = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    return now_ + Cycles((found - start) & (wheel_size - 1));
  }

  [[gnu::always_inline]] void put(Cycles at, const Event& event) {
    Bucket& bucket = wheel_[slot(at)];
    const std::uint32_t place = bucket.size++ % chunk_events;
    if (place == 0) grow(bucket, at);
    chunks_[bucket.tail][place] = event;
  }

  // Now, or beyond the wheel.
  [[gnu::noinline]] void put_elsewhere(Cycles at, const Event& event) {
    if (at == now_) {
      const std::ptrdiff_t done = read_ - current_.data();
      current_.push_back(event);
      read_ = current_.data() + done;
      end_ = current_.data() + current_.size();
      return;
    }
    far_.push_back({at, sequence_++, event});
    std::push_heap(far_.begin(), far_.end(), Later{});
  }

  [[gnu::noinline]] void grow(Bucket& bucket, Cycles at) {
    std::uint32_t chunk = free_chunk_;
    if (chunk == no_chunk) {
      chunk = static_cast<std::uint32_t>(chunks_.size());
      chunks_.emplace_back();
      next_chunk_.push_back(no_chunk);
    } else {
      free_chunk_ = next_chunk_[chunk];
    }
    (bucket.size == 1 ? bucket.head : next_chunk_[bucket.tail]) = chunk;
    bucket.tail = chunk;
    occupied_[slot(at) / 64] |= std::uint64_t{1} << (slot(at) % 64);
  }

  // Moves the clock to `at` and the events of that time to where pop() takes them.
  [[gnu::noinline]] void open(Cycles at) {
    now_ = at;
    while (!far_.empty() && (far_.front().at - now_).raw() < wheel_size) {
      std::pop_heap(far_.begin(), far_.end(), Later{});
      put(far_.back().at, far_.back().event);
      far_.pop_back();
    }
    current_.clear();
    Bucket& bucket = wheel_[slot(at)];
    std::uint32_t chunk = bucket.head;
    for (std::uint32_t left = bucket.size; left > 0;) {
      const std::uint32_t count = std::min(left, chunk_events);
      const Chunk& from = chunks_[chunk];
      current_.insert(current_.end(), from.begin(), from.begin() + count);
      left -= count;
      const std::uint32_t next = next_chunk_[chunk];
      next_chunk_[chunk] = free_chunk_;
      free_chunk_ = chunk;
      chunk = next;
    }
    read_ = current_.data();
    end_ = read_ + current_.size();
    bucket.size = 0;
    occupied_[slot(at) / 64] &= ~(std::uint64_t{1} << (slot(at) % 64));
    const Cycles then = next_in_wheel();
    following_size_ = 0;
    if (then != never) {
      following_ = wheel_[slot(then)].head;
      following_size_ = std::min(wheel_[slot(then)].size, chunk_events);
    }
  }

  std::vector<Bucket> wheel_ = std::vector<Bucket>(wheel_size);
  std::array<std::uint64_t, wheel_size / 64> occupied_{};
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> next_chunk_;  // in a bucket, or of those that are free
  std::uint32_t free_chunk_ = no_chunk;
  std::vector<Event> current_;   // events of the time now
  const Event* read_ = nullptr;  // of them, those to come
  const Event* end_ = nullptr;
  std::uint32_t following_ = no_chunk;  // first events of the time after, when `now` was reached
  std::size_t following_size_ = 0;
  std::vector<Far> far_;
  Cycles now_;
  std::uint64_t sequence_ = 0;
  std::size_t count_ = 0;
};

}  // namespace demarc::sim
