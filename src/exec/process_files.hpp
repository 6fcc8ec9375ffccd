// What /proc says of other processes.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::cuda {

// missing_capability if /proc is not there, or is that of another process namespace, whose numbers
// mean other processes.
[[nodiscard]] Result<void> check_process_folder();

// The process of a thread; nothing when it is gone.
[[nodiscard]] std::optional<pid_t> process_of(pid_t thread);
// Random bytes that the kernel gives a process at each exec: two programs of one process differ in
// them. Nothing when they may not be read.
using ImageMark = std::array<std::uint64_t, 2>;
[[nodiscard]] std::optional<ImageMark> image_mark(pid_t process);
// A variable of the environment that its program began with; empty: it had none.
[[nodiscard]] std::string variable_of(pid_t process, const std::string& name);
// The name of its program, for messages.
[[nodiscard]] std::string name_of(pid_t process);
[[nodiscard]] bool read_memory(pid_t process, std::uint64_t address, void* target,
                               std::size_t bytes);
// Whether the thread's open file may be a device: a character device or a file of that name, or one
// that cannot be looked at.
[[nodiscard]] bool may_be_device(pid_t thread, int file, const std::string& name);
// In the kernel's ticks since its start.
[[nodiscard]] std::optional<std::uint64_t> start_time_of(pid_t process);
// This process's children that started then or later, and all below them, parents first. Orphans
// are among them where this process is their reaper.
[[nodiscard]] std::vector<pid_t> family_since(std::uint64_t start_time);

}  // namespace demarc::cuda
