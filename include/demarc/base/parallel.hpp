// Spreads independent pieces of work over the cores. The pieces must not depend on each other, so
// the result does not depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace demarc {

// Number of threads to use if the caller asks for `requested` (0 = all cores of this machine).
[[nodiscard]] unsigned thread_count(unsigned requested = 0);

// Calls work(i) once for each i in [0, count), in no particular order, from up to `threads` threads
// (0 = all cores). The first exception thrown by `work` is rethrown here after all threads have
// stopped.
void parallel_for(std::size_t count, unsigned threads,
                  const std::function<void(std::size_t)>& work);

}  // namespace demarc
