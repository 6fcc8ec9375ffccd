// What the filter shows and what it lets pass, on every instruction set; the kernel of this machine
// could carry out only its own.
#include "demarc/guest/seccomp_filter.hpp"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "not_run.hpp"

namespace demarc::cuda {
namespace {

std::uint32_t carry_out(std::uint32_t set, int call, std::uint64_t command) {
  seccomp_data data{};
  data.arch = set;
  data.nr = call;
  data.args[1] = command;
  static const auto code = filter_instructions();
  std::uint32_t word = 0;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const sock_filter& step = code[at];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&word, reinterpret_cast<const char*>(&data) + step.k, sizeof word);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += word == step.k ? step.jt : step.jf;
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        word &= step.k;
        break;
      default:
        return step.k;
    }
  }
  return 0;
}

TEST(SeccompFilter, shows_ioctl_with_its_commands_however_it_is_called_and_nothing_else) {
  struct Way {
    std::uint32_t set;
    int ioctl;
    int other;
  };
  for (const Way& way :
       {Way{AUDIT_ARCH_X86_64, 16, 59}, Way{AUDIT_ARCH_X86_64, 0x40000000 + 514, 0x40000000 + 16},
        Way{AUDIT_ARCH_I386, 54, 16}, Way{AUDIT_ARCH_AARCH64, 29, 16},
        Way{AUDIT_ARCH_ARM, 54, 29}}) {
    for (const std::uint64_t shown :
         {std::uint64_t{25}, std::uint64_t{0x100000019}, std::uint64_t{0x44656d00},
          std::uint64_t{0x44656d01}, std::uint64_t{0x44656d02}}) {
      EXPECT_EQ(carry_out(way.set, way.ioctl, shown), SECCOMP_RET_USER_NOTIF) << way.set << shown;
    }
    for (const std::uint64_t passed :
         {std::uint64_t{24}, std::uint64_t{27}, std::uint64_t{0x30000001},
          std::uint64_t{0x44656cff}, std::uint64_t{0x44656d04}}) {
      EXPECT_EQ(carry_out(way.set, way.ioctl, passed), SECCOMP_RET_ALLOW) << way.set << passed;
    }
    EXPECT_EQ(carry_out(way.set, way.other, 25), SECCOMP_RET_ALLOW) << way.set;
  }
}

TEST(SeccompFilter, shows_no_other_call_whatever_its_number) {
  struct Shown {
    std::uint32_t set;
    std::vector<int> ioctls;
  };
  constexpr int x32 = 0x40000000;
  for (const Shown& shown :
       {Shown{AUDIT_ARCH_X86_64, {16, x32 + 514}}, Shown{AUDIT_ARCH_I386, {54}},
        Shown{AUDIT_ARCH_AARCH64, {29}}, Shown{AUDIT_ARCH_ARM, {54}}}) {
    for (int call = 0; call < 600; ++call) {
      for (const int number : {call, x32 + call}) {
        const bool one = std::count(shown.ioctls.begin(), shown.ioctls.end(), number) != 0;
        ASSERT_EQ(carry_out(shown.set, number, 25),
                  one ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW)
            << shown.set << " " << number;
      }
    }
  }
}

// An error of an earlier call is none of this one, and an error of this one is not tried again.
TEST(SeccompFilter, is_installed_once_and_a_second_one_is_refused) {
  for (const int earlier : {EACCES, EINVAL}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);  // who is not root can install it, too
      errno = earlier;
      const int first = install_filter();
      errno = earlier;
      const int second = install_filter();  // a process has one listener
      ::_exit(first >= 0 && second < 0 && errno == EBUSY ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << earlier;
  }
}

TEST(SeccompFilter, an_error_that_rights_do_not_mend_leaves_the_process_its_rights) {
  if (::geteuid() != 0) DEMARC_NOT_RUN("no root");
  const pid_t child = ::fork();
  if (child == 0) {
    if (install_filter() < 0 || install_filter() >= 0) ::_exit(1);
    ::_exit(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SeccompFilter, ends_processes_of_an_instruction_set_it_does_not_know) {
  EXPECT_EQ(carry_out(AUDIT_ARCH_RISCV64, 29, 25), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(carry_out(AUDIT_ARCH_RISCV64, 1, 0), SECCOMP_RET_KILL_PROCESS);
}

}  // namespace
}  // namespace demarc::cuda
