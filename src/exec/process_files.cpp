// Reads /proc and the memory of other processes.
#include "process_files.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace demarc::cuda {
namespace {

struct Stat {
  pid_t process{};
  pid_t parent{};
  std::uint64_t start_time{};
};

std::optional<Stat> stat_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text, '\0');
  // The name, in brackets, may hold anything; fields 3 and later follow it.
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(bracket));
  Stat stat;
  stat.process = process;
  std::string skipped;
  fields >> skipped >> skipped >> stat.parent;  // after the bracket and the state
  for (int field = 5; field < 22; ++field) fields >> skipped;
  fields >> stat.start_time;
  if (!fields) return std::nullopt;
  return stat;
}

std::vector<Stat> all_processes() {
  std::vector<Stat> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    // 0, which is not a process, where the name is not a number.
    const auto number = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (const auto stat = stat_of(number)) all.push_back(*stat);
  }
  return all;
}

}  // namespace

Result<void> check_process_folder() {
  std::error_code missing;
  const auto self = std::filesystem::read_symlink("/proc/self", missing);
  if (missing) {
    return missing_capability(
        "/proc cannot be read ({}): demarc exec follows the program's processes there; mount it "
        "(mount -t proc proc /proc)",
        missing.message());
  }
  if (self == std::to_string(::getpid())) return {};
  return missing_capability(
      "/proc is that of another process namespace: this process is {} there and {} here; mount the "
      "one of this namespace (unshare --pid --fork --mount-proc)",
      self.string(), ::getpid());
}

std::string variable_of(pid_t process, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return {};
}

std::optional<pid_t> process_of(pid_t thread) {
  constexpr std::string_view name = "Tgid:";
  std::ifstream file(fmt::format("/proc/{}/status", thread));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) {
      return static_cast<pid_t>(std::atoi(line.c_str() + name.size()));
    }
  }
  return std::nullopt;
}

std::optional<ImageMark> image_mark(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/auxv", process), std::ios::binary);
  Elf64_auxv_t entry{};
  while (file.read(reinterpret_cast<char*>(&entry), sizeof entry)) {
    ImageMark mark{};
    if (entry.a_type == AT_RANDOM &&
        read_memory(process, entry.a_un.a_val, mark.data(), sizeof mark)) {
      return mark;
    }
  }
  return std::nullopt;
}

std::string name_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name.empty() ? "of unknown name" : name;
}

bool read_memory(pid_t process, std::uint64_t address, void* target, std::size_t bytes) {
  iovec here{target, bytes};
  iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT: an address elsewhere
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool may_be_device(pid_t thread, int file, const std::string& name) {
  const std::string path = fmt::format("/proc/{}/fd/{}", thread, file);
  std::error_code ignored;
  struct stat status {};
  return std::filesystem::read_symlink(path, ignored).filename() == name ||
         ::stat(path.c_str(), &status) != 0 || S_ISCHR(status.st_mode);
}

std::optional<std::uint64_t> start_time_of(pid_t process) {
  const auto stat = stat_of(process);
  if (!stat) return std::nullopt;
  return stat->start_time;
}

std::vector<pid_t> family_since(std::uint64_t start_time) {
  const std::vector<Stat> all = all_processes();
  std::vector<pid_t> family;
  for (const Stat& process : all) {
    if (process.parent == ::getpid() && process.start_time >= start_time) {
      family.push_back(process.process);
    }
  }
  for (std::size_t i = 0; i < family.size(); ++i) {
    for (const Stat& process : all) {
      const bool known = std::find(family.begin(), family.end(), process.process) != family.end();
      if (process.parent == family.at(i) && !known) family.push_back(process.process);
    }
  }
  return family;
}

}  // namespace demarc::cuda
