// Finds the processes of MPS by their names and environments, and kills them by their numbers.
#include "mps_processes.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "demarc/base/numbers.hpp"
#include "demarc/base/split.hpp"

namespace demarc::serve {
namespace {

// nvidia-cuda-mps-control and nvidia-cuda-mps-server, as the kernel cuts them.
constexpr std::string_view process_name = "nvidia-cuda-mps";
constexpr std::string_view folder_variable = "CUDA_MPS_PIPE_DIRECTORY=";
constexpr const char* default_folder = "/tmp/nvidia-mps";

// Empty: it has no such file any more, or it may not be read.
std::string text_of(const std::filesystem::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // reports as a state what an iterator throws: the process has ended
  return text.str();
}

// Empty: the environment cannot be read, or the process has ended.
std::string folder_in(const std::string& environment) {
  std::string folder;
  for (const std::string_view entry : split_at(environment, '\0')) {
    if (entry.starts_with(folder_variable)) folder = entry.substr(folder_variable.size());
  }
  if (folder.empty() && !environment.empty()) folder = default_folder;
  return folder;
}

// "PID (NAME) STATE PARENT ...", of which the name may hold anything.
pid_t parent_in(const std::string& facts) {
  char state{};
  pid_t parent{};  // stays 0 where nothing can be read any more
  std::istringstream(facts.substr(facts.rfind(')') + 1)) >> state >> parent;
  return parent;
}

}  // namespace

std::vector<MpsProcess> mps_processes() {
  std::vector<MpsProcess> all;
  std::error_code ended;
  for (std::filesystem::directory_iterator entry("/proc", ended), none; !ended && entry != none;
       entry.increment(ended)) {
    const auto process = parse_u64(entry->path().filename().string(), "process");
    if (!process) continue;
    // Of others nothing is read: where its environment lies is a process's own to say, and so
    // whether reading it returns.
    struct stat facts {};
    if (::stat(entry->path().c_str(), &facts) != 0 || facts.st_uid != ::geteuid()) continue;
    if (!text_of(entry->path() / "comm").starts_with(process_name)) continue;
    const std::string folder = folder_in(text_of(entry->path() / "environ"));
    if (folder.empty()) continue;
    all.push_back(
        {static_cast<pid_t>(*process), parent_in(text_of(entry->path() / "stat")), folder});
  }
  return all;
}

std::vector<pid_t> mps_processes_of(const std::string& folder, std::vector<MpsProcess> all) {
  std::erase_if(all, [&](const MpsProcess& one) { return one.folder != folder; });
  const auto is_child = [&](const MpsProcess& one) {
    return std::any_of(all.begin(), all.end(),
                       [&](const MpsProcess& other) { return other.process == one.parent; });
  };
  std::vector<pid_t> found;
  for (const bool children : {false, true}) {
    for (const MpsProcess& one : all) {
      if (is_child(one) == children) found.push_back(one.process);
    }
  }
  return found;
}

bool kill_mps(const std::string& folder, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (bool some = false;; some = true) {
    const auto left = mps_processes_of(folder);
    if (left.empty()) return some;
    for (const pid_t process : left) ::kill(process, SIGKILL);
    if (Clock::now() >= until) return true;
    ::usleep(10'000);
  }
}

}  // namespace demarc::serve
