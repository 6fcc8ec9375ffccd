// Forks while every other thread of this process sleeps. A child has the heap's locks as they were,
// and one that a busy thread had taken stays taken for ever: under a sanitizer the child then
// hangs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace demarc::test {

[[nodiscard]] inline bool other_threads_sleep() {
  const std::string self = std::to_string(::gettid());
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (thread.path().filename() == self) continue;
    std::ifstream file(thread.path() / "stat");
    std::string facts;  // "TID (NAME) STATE ..."
    if (!std::getline(file, facts)) continue;
    if (facts.at(facts.rfind(')') + 2) != 'S') return false;
  }
  return true;
}

// A failure of the test, and -1, where a thread does not come to rest within 10 s.
[[nodiscard]] inline pid_t fork_at_rest() {
  for (int i = 0; i < 20'000; ++i) {
    if (other_threads_sleep()) return ::fork();
    ::usleep(500);
  }
  ADD_FAILURE() << "a thread of this process does not come to rest, so it is not forked";
  return -1;
}

}  // namespace demarc::test
