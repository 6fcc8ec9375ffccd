// Arrays that only one kind of index can access, and the indices of an array in order.
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

#include "demarc/base/strong.hpp"

namespace demarc {

// 0, 1, ... count - 1, for a loop:  for (const GpuIndex gpu : indices<GpuIndex>(gpus)) ...
template <class Key>
class Indices {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Key;
    using difference_type = std::ptrdiff_t;
    using pointer = const Key*;
    using reference = Key;

    Iterator() = default;
    explicit Iterator(Key at) : at_(at) {}
    [[gnu::always_inline]] Key operator*() const { return at_; }
    [[gnu::always_inline]] Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    [[gnu::always_inline]] friend bool operator==(Iterator a, Iterator b) { return a.at_ == b.at_; }

   private:
    Key at_;
  };
  explicit Indices(std::size_t count) : end_(count) {}
  [[nodiscard]] Iterator begin() const { return Iterator(Key{}); }
  [[nodiscard]] Iterator end() const { return Iterator(end_); }

 private:
  Key end_;
};
template <class Key>
[[nodiscard]] Indices<Key> indices(std::size_t count) {
  return Indices<Key>(count);
}

// A vector with a T for each Key: PerIndex<GpuIndex, Gpu> gpus;  gpus[page] does not compile.
template <class Key, class T, class Allocator = std::allocator<T>>
class PerIndex : private std::vector<T, Allocator> {
  using Base = std::vector<T, Allocator>;

 public:
  using Base::assign;
  using Base::back;
  using Base::Base;
  using Base::begin;
  using Base::clear;
  using Base::data;
  using Base::emplace_back;
  using Base::empty;
  using Base::end;
  using Base::front;
  using Base::operator=;
  using Base::push_back;
  using Base::reserve;
  using Base::resize;
  using Base::size;
  using typename Base::const_iterator;
  using typename Base::iterator;
  using typename Base::size_type;
  using typename Base::value_type;

  [[gnu::always_inline]] T& operator[](Key key) { return Base::operator[](key.raw()); }
  [[gnu::always_inline]] const T& operator[](Key key) const { return Base::operator[](key.raw()); }
  [[nodiscard]] T& at(Key key) { return Base::at(key.raw()); }
  [[nodiscard]] const T& at(Key key) const { return Base::at(key.raw()); }
  [[nodiscard]] Indices<Key> keys() const { return Indices<Key>(size()); }
  // The key that the next push_back() fills.
  [[nodiscard]] Key next_key() const { return Key(size()); }

  friend bool operator==(const PerIndex& a, const PerIndex& b) {
    return static_cast<const Base&>(a) == static_cast<const Base&>(b);
  }
};

}  // namespace demarc
