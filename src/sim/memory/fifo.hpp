// Queues threaded through pools: no allocation when something waits.
#pragma once

#include "engine.hpp"

namespace demarc::sim::memory {

template <class Pool>
void push_back(Fifo& fifo, Pool& pool, std::uint32_t index) {
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
template <class Pool>
void remove_after(Fifo& fifo, Pool& pool, std::uint32_t before) {
  const std::uint32_t index = before == none ? fifo.head : pool[before].next;
  const std::uint32_t next = pool[index].next;
  (before == none ? fifo.head : pool[before].next) = next;
  if (next == none) fifo.tail = before;
  --fifo.size;
}

}  // namespace demarc::sim::memory
