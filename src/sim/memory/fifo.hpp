// Queues threaded through pools: no allocation when something waits.
#pragma once

#include <type_traits>

#include "slots.hpp"

namespace demarc::sim::memory {

template <class Key>
struct Fifo {
  Key head = none;
  Key tail = none;
  std::uint32_t size = 0;
};

template <class Key, class Pool>
void push_back(Fifo<Key>& fifo, Pool& pool, Key index) {
  pool[index].next = none;
  if (fifo.tail == none) {
    fifo.head = index;
  } else {
    pool[fifo.tail].next = index;
  }
  fifo.tail = index;
  ++fifo.size;
}

// `before` is the element in front of the one removed; none: the head is removed.
template <class Key, class Pool>
void remove_after(Fifo<Key>& fifo, Pool& pool, std::type_identity_t<Key> before) {
  const Key index = before == none ? fifo.head : pool[before].next;
  const Key next = pool[index].next;
  (before == none ? fifo.head : pool[before].next) = next;
  if (next == none) fifo.tail = before;
  --fifo.size;
}

}  // namespace demarc::sim::memory
