// Reads what the system says of a process that asks.
#include "asker.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace demarc::serve {

Result<std::string> control_of(const std::string& control, pid_t process) {
  const auto refused = [&] {
    return invalid_input(
        "control '{}': /proc/PID/fd/N#TOKEN was expected, a file of the process "
        "that asks",
        control);
  };
  std::string_view rest = control;
  const auto skip = [&](std::string_view word) {
    const bool there = rest.starts_with(word);
    if (there) rest.remove_prefix(word.size());
    return there;
  };
  const auto digits = [&] {
    const std::string_view found = rest.substr(0, rest.find_first_not_of("0123456789"));
    rest.remove_prefix(found.size());
    return found;
  };
  if (!skip("/proc/") || digits().empty() || !skip("/fd/")) return refused();
  const std::string_view file = digits();
  if (file.empty() || !rest.starts_with('#')) return refused();
  return fmt::format("/proc/{}/fd/{}{}", process, file, rest);
}

bool in_container(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return std::distance(std::istream_iterator<pid_t>(words), {}) != 1;
  }
  return true;
}

}  // namespace demarc::serve
