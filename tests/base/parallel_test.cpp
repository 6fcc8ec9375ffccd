#include "demarc/base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace demarc {
namespace {

TEST(Parallel, every_piece_is_done_exactly_once) {
  for (const unsigned threads : {0U, 1U, 2U, 7U}) {
    std::vector<std::atomic<int>> done(1000);
    parallel_for(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    for (const auto& count : done) EXPECT_EQ(count, 1);
  }
}

TEST(Parallel, an_exception_reaches_the_caller) {
  EXPECT_THROW(parallel_for(100, 4,
                            [](std::size_t i) {
                              if (i == 50) throw std::runtime_error("50");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace demarc
