// Other processes that have files mapped or locked, as /proc tells. Those of other users are told
// to root alone, and those of containers from outside alone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"

namespace demarc::lease {

// A shared mapping that nothing can access, which a process has for the file alone.
struct KeptPage {
  pid_t process = 0;
  std::string range;       // "7f00-7f01", as in /proc/PID/map_files
  std::int64_t address{};  // in the file
  ino_t file{};
  std::string path;  // as the kernel shows it, but without " (deleted)"
};
[[nodiscard]] std::vector<KeptPage> kept_pages();

// The files of such pages, each once, although they may have no name any more. Root opens them by
// the mapping, others by a descriptor of the same user's process. Nothing if a process does not
// keep its page any more: a child may, so look again. missing_capability names a process whose file
// cannot be opened.
struct ReopenedFile {
  std::string path;
  OwnedFile file;
};
[[nodiscard]] Result<std::optional<std::vector<ReopenedFile>>> reopen(
    const std::vector<KeptPage>& pages);

// Bytes of a file; or all of the file, locked by flock().
struct LockedRange {
  bool whole = false;
  std::int64_t first{};
  std::int64_t last{};
};
// A process that has locked some of these bytes of one of the files, and is none of `others`;
// nothing if none is seen.
[[nodiscard]] std::optional<pid_t> locker_of(const std::vector<ino_t>& files,
                                             const std::vector<LockedRange>& ranges,
                                             const std::vector<pid_t>& others = {});

// "4711 (python3 train.py)"
[[nodiscard]] std::string name_of_process(pid_t process);

}  // namespace demarc::lease
