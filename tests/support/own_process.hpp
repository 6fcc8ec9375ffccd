// Parts of a test that have a process of their own: because they may not end, or because the kernel
// is to refuse calls there.
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <vector>

namespace demarc::test {

// Whether `work` does its part, with no assertion that fails, within 10 s.
inline testing::AssertionResult passes_in_a_process(const std::function<void()>& work) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::alarm(10);
    try {
      work();
    } catch (...) {
      ::_exit(2);
    }
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  if (::waitpid(process, &status, 0) == process && status == 0) return testing::AssertionSuccess();
  if (WIFSIGNALED(status)) {
    return testing::AssertionFailure() << "ended by signal " << WTERMSIG(status);
  }
  return testing::AssertionFailure() << "ended with code " << WEXITSTATUS(status);
}

// From now on the kernel answers these calls of this process with an error. `option`: only those
// whose third argument it is, as in getsockopt().
inline void refuse_calls(std::initializer_list<long> calls, int error, int option = -1) {
  std::vector<sock_filter> code;
  for (const long call : calls) {
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0,
                            static_cast<unsigned char>(option < 0 ? 1 : 3)));
    if (option >= 0) {
      code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])));
      code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(option), 0, 1));
    }
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// From now on this process can open nothing.
inline void allow_no_more_files() {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace demarc::test
