// The filter's instructions, and the kernel's interface for serving it (seccomp_unotify(2)).
#include "demarc/guest/seccomp_filter.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

namespace demarc::cuda {
namespace {

// How programs may call ioctl: by the kernel's name of their instruction set, the call's number,
// and a second number where that set has one (x32 beside x86-64).
struct CallingWay {
  std::uint32_t set;
  std::uint32_t number;
  std::uint32_t other_number;
};
constexpr CallingWay calling_ways[] = {
    {AUDIT_ARCH_X86_64, 16, 0x40000000 + 514},
    {AUDIT_ARCH_I386, 54, 54},
    {AUDIT_ARCH_AARCH64, 29, 29},
    {AUDIT_ARCH_ARM, 54, 54},
};
constexpr std::size_t way_length = 6;  // instructions

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter jump_if(std::uint32_t value, std::size_t yes, std::size_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, static_cast<unsigned char>(yes),
                  static_cast<unsigned char>(no));
}
sock_filter finish(std::uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}

}  // namespace

std::vector<sock_filter> filter_instructions() {
  std::vector<sock_filter> code;
  constexpr std::size_t ways = std::size(calling_ways);
  for (std::size_t way = 0; way < ways; ++way) {
    const CallingWay& by = calling_ways[way];
    // What follows the ways is one instruction, then the look at the command.
    const std::size_t after = (ways - way - 1) * way_length + 1;
    code.push_back(load(offsetof(seccomp_data, arch)));
    code.push_back(jump_if(by.set, 0, way_length - 2));
    code.push_back(load(offsetof(seccomp_data, nr)));
    code.push_back(jump_if(by.number, 2 + after, 0));
    code.push_back(jump_if(by.other_number, 1 + after, 0));
    code.push_back(finish(SECCOMP_RET_ALLOW));
  }
  code.push_back(finish(SECCOMP_RET_KILL_PROCESS));  // an instruction set of which nothing is known
  // The kernel takes the lower half of the command.
  code.push_back(load(offsetof(seccomp_data, args) + sizeof(std::uint64_t)));
  code.push_back(jump_if(make_context_command, 3, 0));
  code.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~std::uint32_t{3}));
  code.push_back(jump_if(static_cast<std::uint32_t>(OwnCommand::present), 1, 0));
  code.push_back(finish(SECCOMP_RET_ALLOW));
  code.push_back(finish(SECCOMP_RET_USER_NOTIF));
  return code;
}

int tell_supervisor(OwnCommand command, std::uint64_t token) {
  const long result = ::syscall(SYS_ioctl, -1, static_cast<unsigned long>(command), token);
  return result == 0 ? 0 : errno;
}

int install_filter() {
  std::vector<sock_filter> code = filter_instructions();
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  // With the second flag a signal does not break into a call that is being served; kernels before
  // 5.19 lack it.
  constexpr std::uint64_t serve = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  constexpr std::uint64_t undisturbed = serve | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
  const auto install = [&program](std::uint64_t flags) {
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
  };
  const auto try_both = [&install] {
    const int file = install(undisturbed);
    return file < 0 && errno == EINVAL ? install(serve) : file;
  };
  const int file = try_both();
  if (file >= 0 || errno != EACCES) return file;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return try_both();
}

FilterListener::FilterListener(int file) : file_(file) {
  seccomp_notif_sizes sizes{};
  ::syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
  received_.resize(std::max<std::size_t>(sizes.seccomp_notif, sizeof(seccomp_notif)));
  sent_.resize(std::max<std::size_t>(sizes.seccomp_notif_resp, sizeof(seccomp_notif_resp)));
}

FilterListener::~FilterListener() {
  if (file_ >= 0) ::close(file_);
}

FilterListener::FilterListener(FilterListener&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      received_(std::move(other.received_)),
      sent_(std::move(other.sent_)) {}

std::optional<FilteredCall> FilterListener::receive() {
  std::fill(received_.begin(), received_.end(), 0);
  if (::ioctl(file_, SECCOMP_IOCTL_NOTIF_RECV, received_.data()) != 0) return std::nullopt;
  seccomp_notif notice{};
  std::memcpy(&notice, received_.data(), sizeof notice);
  FilteredCall call;
  call.id = notice.id;
  call.thread = static_cast<pid_t>(notice.pid);
  call.file = static_cast<int>(notice.data.args[0]);
  call.command = static_cast<std::uint32_t>(notice.data.args[1]);
  call.argument = notice.data.args[2];
  return call;
}

bool FilterListener::let_pass(const FilteredCall& call) {
  return send(call, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

bool FilterListener::answer(const FilteredCall& call, int error) {
  return send(call, error, 0);
}

bool FilterListener::send(const FilteredCall& call, int error, std::uint32_t flags) {
  seccomp_notif_resp response{};
  response.id = call.id;
  response.error = -error;
  response.flags = flags;
  std::memcpy(sent_.data(), &response, sizeof response);
  return ::ioctl(file_, SECCOMP_IOCTL_NOTIF_SEND, sent_.data()) == 0;
}

}  // namespace demarc::cuda
