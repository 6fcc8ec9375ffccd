// Processes of a test that do something and stay until they are killed.
#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace demarc::test {

// Returns once the process has done `work`. A process that fails in it is not waited for, and one
// whose test fails ends with the test.
inline pid_t staying_process(const std::function<void()>& work) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t process = ::fork();
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    if (::testing::Test::HasFailure()) ::_exit(99);
    static_cast<void>(!::write(ready[1], "x", 1));
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "the process has failed";
  ::close(ready[0]);
  return process;
}

inline void end_process(pid_t process) {
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

}  // namespace demarc::test
