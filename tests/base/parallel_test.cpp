// Tests that every piece of work is done once, and that a failure ends all threads.
#include "demarc/base/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <set>
#include <stdexcept>
#include <thread>
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

// Every piece waits until all others have begun: with fewer threads it would wait for ever.
TEST(Parallel, as_many_threads_as_asked_for_work_at_once) {
  std::barrier all(4);
  parallel_for(4, 4, [&](std::size_t) { all.arrive_and_wait(); });
  std::set<std::thread::id> threads;
  parallel_for(3, 1, [&](std::size_t) { threads.insert(std::this_thread::get_id()); });
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
  EXPECT_EQ(thread_count(3), 3U);
  EXPECT_GE(thread_count(0), 1U);
}

TEST(Parallel, no_piece_begins_after_a_failure) {
  std::atomic<int> begun{0};
  EXPECT_THROW(parallel_for(100, 1,
                            [&](std::size_t) {
                              ++begun;
                              throw std::runtime_error("first");
                            }),
               std::runtime_error);
  EXPECT_EQ(begun, 1);
}

// A machine does not have a million threads.
TEST(Parallel, no_more_threads_are_made_than_there_are_pieces) {
  std::atomic<int> done{0};
  parallel_for(2, 1'000'000, [&](std::size_t) { ++done; });
  EXPECT_EQ(done, 2);
}

// More pieces than anybody could do.
TEST(Parallel, a_failure_ends_the_work_of_all_threads) {
  EXPECT_THROW(parallel_for(std::size_t{1} << 60U, 2,
                            [](std::size_t i) {
                              if (i == 1000) throw std::runtime_error("1000");
                            }),
               std::runtime_error);
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
