// Reads the mappings, descriptors and locks of other processes in /proc.
#include "claim_holders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"

namespace demarc::lease {
namespace {

namespace fs = std::filesystem;

std::vector<pid_t> other_processes() {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const auto number = parse_u64(entry.path().filename().string(), "a process");
    if (number && static_cast<pid_t>(*number) != ::getpid()) {
      found.push_back(static_cast<pid_t>(*number));
    }
  }
  return found;
}

// "7f00-7f01 ---s 20054726ef000 fd:01 1234    /usr/lib/libcuda.so.1 (deleted)"
std::optional<KeptPage> page_of_line(pid_t process, const std::string& line) {
  if (line.find(" ---s ") == std::string::npos) return std::nullopt;
  std::istringstream words(line);
  KeptPage page;
  page.process = process;
  std::string access, device;
  words >> page.range >> access >> std::hex >> page.address >> device >> std::dec >> page.file >>
      std::ws;
  std::getline(words, page.path);
  constexpr std::string_view gone = " (deleted)";
  if (page.path.ends_with(gone)) page.path.resize(page.path.size() - gone.size());
  return page;
}

// "lock:   1: OFDLCK ADVISORY  READ -1 fd:01:1234 4096 8191"
bool locks(const std::string& line, const LockedRange& range) {
  std::istringstream words(line);
  std::string begin, number, kind, advice, access, process, file, last;
  std::int64_t first = 0;
  words >> begin >> number >> kind >> advice >> access >> process >> file >> first >> last;
  if (begin != "lock:" || (kind == "FLOCK") != range.whole) return false;
  return range.whole || (first <= range.last && (last == "EOF" || range.first <= std::stoll(last)));
}

// The descriptors of a process that are one of these files.
std::vector<std::string> descriptors_of(pid_t process, const std::vector<ino_t>& files) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", process), ignored)) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) == 0 &&
        std::find(files.begin(), files.end(), status.st_ino) != files.end()) {
      found.push_back(entry.path().filename());
    }
  }
  return found;
}

void add_pages_of(pid_t process, std::vector<KeptPage>& to) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  for (std::string line; std::getline(maps, line);) {
    if (auto page = page_of_line(process, line)) to.push_back(*std::move(page));
  }
}

bool is_kept_still(const KeptPage& page) {
  std::vector<KeptPage> now;
  add_pages_of(page.process, now);
  return std::any_of(now.begin(), now.end(), [&](const KeptPage& one) {
    return one.file == page.file && one.address == page.address;
  });
}

OwnedFile file_of(const KeptPage& page) {
  std::vector<std::string> ways{fmt::format("/proc/{}/map_files/{}", page.process, page.range)};
  for (const std::string& number : descriptors_of(page.process, {page.file})) {
    ways.push_back(fmt::format("/proc/{}/fd/{}", page.process, number));
  }
  for (const std::string& way : ways) {
    OwnedFile file(::open(way.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (file.get() >= 0 && ::fstat(file.get(), &status) == 0 && status.st_ino == page.file) {
      return file;
    }
  }
  return {};
}

}  // namespace

std::vector<KeptPage> kept_pages() {
  std::vector<KeptPage> found;
  for (const pid_t process : other_processes()) add_pages_of(process, found);
  return found;
}

Result<std::optional<std::vector<ReopenedFile>>> reopen(const std::vector<KeptPage>& pages) {
  std::vector<ReopenedFile> files;
  bool all = true;
  std::vector<ino_t> known;
  for (const KeptPage& page : pages) {
    if (std::find(known.begin(), known.end(), page.file) != known.end()) continue;
    OwnedFile file = file_of(page);
    if (file.get() >= 0) {
      known.push_back(page.file);
      files.push_back({page.path, std::move(file)});
    } else if (is_kept_still(page)) {
      return missing_capability(
          "'{}' was installed anew while process {} has claims on the file before, which cannot be "
          "read: wait until that process has ended, or end it",
          page.path, name_of_process(page.process));
    } else {
      all = false;
    }
  }
  return all ? std::optional(std::move(files)) : std::nullopt;
}

std::optional<pid_t> locker_of(const std::vector<ino_t>& files,
                               const std::vector<LockedRange>& ranges,
                               const std::vector<pid_t>& others) {
  for (const pid_t process : other_processes()) {
    if (std::find(others.begin(), others.end(), process) != others.end()) continue;
    for (const std::string& number : descriptors_of(process, files)) {
      std::ifstream facts(fmt::format("/proc/{}/fdinfo/{}", process, number));
      for (std::string line; std::getline(facts, line);) {
        const bool locked = std::any_of(ranges.begin(), ranges.end(),
                                        [&](const auto& range) { return locks(line, range); });
        if (locked) return process;
      }
    }
  }
  return std::nullopt;
}

std::string name_of_process(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", process), std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; words.size() < 2 && std::getline(file, word, '\0');) {
    words.push_back(fs::path(word).filename());
  }
  return fmt::format("{} ({})", process, joined(words, " "));
}

}  // namespace demarc::lease
