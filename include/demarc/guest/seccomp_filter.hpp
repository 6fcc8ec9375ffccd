// The kernel's part of `demarc exec`: a filter in the program and all that it starts, which shows
// the supervisor the calls by which a process makes a context on a GPU, and what the library inside
// tells. Nothing else is looked at, so launches cost nothing more.
//
// Seen of driver 580.159.04 on an H200, with and without MPS: making a context on a card calls
// ioctl 25 (UVM_REGISTER_GPU_VASPACE) on /dev/nvidia-uvm, whose parameters begin with the card's
// UUID; when that fails with EPERM, making the context fails with CUDA error 800. NVML never calls
// it.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace demarc::cuda {

inline constexpr std::uint32_t make_context_command = 25;

// What the library inside tells: ioctl on the file -1, by numbers of our own.
enum class OwnCommand : std::uint32_t {
  present = 0x44656d00,  // asks whether there is a supervisor
  hooked,                // all launches of this process pass the hook
  stopped,               // this process ends, because it cannot be confined
};
// 0 when the supervisor agrees; EBADF when there is none, ENOSYS when it is gone, else its refusal.
[[nodiscard]] int tell_supervisor(OwnCommand command, std::uint64_t token = 0);

// What the kernel carries out at each call of the filtered processes.
[[nodiscard]] std::vector<sock_filter> filter_instructions();
// Puts the filter on the calling process, for good. Returns the file by which it is served, or -1
// with errno. Where the process may not do so otherwise, it gives up gaining rights by setuid
// programs.
[[nodiscard]] int install_filter();

// A call that waits for an answer.
struct FilteredCall {
  std::uint64_t id = 0;
  pid_t thread = 0;  // 0: of a process that cannot be seen from here
  std::uint32_t command = 0;
  int file = -1;
  std::uint64_t argument = 0;
};

// The serving end of the filter. Its poll() reports POLLHUP once no process has the filter any
// more.
class FilterListener {
 public:
  explicit FilterListener(int file);
  ~FilterListener();
  FilterListener(FilterListener&& other) noexcept;
  FilterListener& operator=(FilterListener&&) = delete;

  [[nodiscard]] int file() const { return file_; }
  // Nothing when the caller gave up meanwhile.
  [[nodiscard]] std::optional<FilteredCall> receive();
  // Both are false when the caller is gone. When they are true it was there all the while, so that
  // what /proc said of its numbers since receive() was of the caller.
  bool let_pass(const FilteredCall& call);
  bool answer(const FilteredCall& call, int error);  // 0: done

 private:
  bool send(const FilteredCall& call, int error, std::uint32_t flags);
  int file_;
  std::vector<unsigned char> received_;  // as large as the running kernel's structs
  std::vector<unsigned char> sent_;
};

}  // namespace demarc::cuda
